package cli

import (
	"os"
)

// IsTerminal tells whether a person may sit at the other end. (/dev/null is a character device, too.)
func IsTerminal(stream any) bool {
	f, ok := stream.(*os.File)
	if !ok {
		return false
	}
	info, err := f.Stat()
	if err != nil || info.Mode()&os.ModeCharDevice == 0 {
		return false
	}
	null, err := os.Stat(os.DevNull)
	return err != nil || !os.SameFile(info, null)
}

// colourful tells whether colours are welcome: on a terminal that has some, unless somebody has said no (no-color.org).
func colourful(out *os.File, getenv func(string) string) bool {
	return IsTerminal(out) && getenv("NO_COLOR") == "" && getenv("TERM") != "dumb"
}
