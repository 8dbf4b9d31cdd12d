package cli

import (
	"fmt"
	"strconv"
	"time"
)

// Age shows how long something has lasted, in its two largest units.
func Age(d time.Duration) string {
	d = max(d, 0).Truncate(time.Second)
	days, hours, minutes, seconds := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60, int(d.Seconds())%60
	switch {
	case days > 0:
		return fmt.Sprintf("%dd%dh", days, hours)
	case hours > 0:
		return fmt.Sprintf("%dh%dm", hours, minutes)
	case minutes > 0:
		return fmt.Sprintf("%dm%ds", minutes, seconds)
	default:
		return strconv.Itoa(seconds) + "s"
	}
}

// When shows a moment to the second.
func When(t time.Time) string { return t.UTC().Format("2006-01-02 15:04:05 UTC") }
