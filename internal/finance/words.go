package finance

import (
	"fmt"
	"regexp"
	"strconv"
	"time"
)

// SQL knows minor units only. Where a reason has an amount, the statements write {1250 EUR}, and it is stored so; whoever reads it is
// told 12.50 EUR.
var amountInWords = regexp.MustCompile(`\{(-?\d{1,19}) ([A-Z]{3})\}`)

// inWords is a reason as people read it.
func inWords(why string) string {
	return amountInWords.ReplaceAllStringFunc(why, func(found string) string {
		part := amountInWords.FindStringSubmatch(found)
		amount, err := strconv.ParseInt(part[1], 10, 64)
		if err != nil {
			return found
		}
		return Major(amount, part[2]) + " " + part[2]
	})
}

// Age is how long ago something was: to the minute within a day, to the hour within a week, then in days.
func Age(d time.Duration) string {
	days, hours, minutes := int(d.Hours())/24, int(d.Hours())%24, int(d.Minutes())%60
	switch {
	case days >= 7:
		return fmt.Sprintf("%d d", days)
	case days > 0:
		return fmt.Sprintf("%d d %d h", days, hours)
	case hours > 0:
		return fmt.Sprintf("%d h %d min", hours, minutes)
	default:
		return fmt.Sprintf("%d min", max(minutes, 0))
	}
}

// countOf is a number with its noun, such as 1 exception, 2 exceptions.
func countOf[N int | int64](n N, one, many string) string {
	if n != 1 {
		one = many
	}
	return strconv.FormatInt(int64(n), 10) + " " + one
}
