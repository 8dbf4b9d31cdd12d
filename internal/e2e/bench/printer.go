package main

import (
	"fmt"
	"io"
	"os"
	"time"
)

// printer tells a person how far the run is, in colours only on a terminal that wants them.
type printer struct {
	w       io.Writer
	colours bool
	began   time.Time
}

func newPrinter(file *os.File) *printer {
	info, err := file.Stat()
	_, refused := os.LookupEnv("NO_COLOR")
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &printer{w: file, colours: terminal && !refused, began: time.Now()}
}

func (p *printer) progress(format string, args ...any) {
	at := fmt.Sprintf("%6.1fs", time.Since(p.began).Seconds())
	if p.colours {
		at = "\x1b[2m" + at + "\x1b[0m"
	}
	_, _ = fmt.Fprintf(p.w, "%s %s\n", at, fmt.Sprintf(format, args...))
}
