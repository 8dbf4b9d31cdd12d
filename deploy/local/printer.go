package main

import (
	"fmt"
	"io"
	"os"
	"sync"
	"time"
)

// printer writes for a person: plain text, with colours only on a terminal that wants them.
type printer struct {
	mu      sync.Mutex
	w       io.Writer
	colours bool
	began   time.Time
}

const (
	bold  = "1"
	dim   = "2"
	red   = "31"
	green = "32"
)

func newPrinter(file *os.File) *printer {
	info, err := file.Stat()
	_, refused := os.LookupEnv("NO_COLOR")
	terminal := err == nil && info.Mode()&os.ModeCharDevice != 0
	return &printer{w: file, colours: terminal && !refused, began: time.Now()}
}

func (p *printer) paint(style, text string) string {
	if !p.colours {
		return text
	}
	return "\x1b[" + style + "m" + text + "\x1b[0m"
}

func (p *printer) line(format string, args ...any) {
	p.mu.Lock()
	defer p.mu.Unlock()
	_, _ = fmt.Fprintf(p.w, format+"\n", args...)
}

// progress says what is being done, with the time since the beginning.
func (p *printer) progress(format string, args ...any) {
	at := fmt.Sprintf("%6.1fs", time.Since(p.began).Seconds())
	p.line("%s %s", p.paint(dim, at), fmt.Sprintf(format, args...))
}

func (p *printer) title(text string) {
	p.line("\n%s", p.paint(bold, text))
}

// verdict prints one line of a summary and whether it holds.
func (p *printer) verdict(holds bool, format string, args ...any) {
	mark := p.paint(green, "  ok  ")
	if !holds {
		mark = p.paint(red, " FAIL ")
	}
	p.line("%s %s", mark, fmt.Sprintf(format, args...))
}
