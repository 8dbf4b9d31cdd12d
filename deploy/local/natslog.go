package main

import (
	"fmt"
	"io"
	"time"
)

// natsLog writes the server's log lines; its own logger package would add nothing.
type natsLog struct{ w io.Writer }

func newNATSLog(w io.Writer) *natsLog { return &natsLog{w: w} }

func (l *natsLog) say(level, format string, args []any) {
	_, _ = fmt.Fprintf(l.w, "%s %s %s\n", time.Now().UTC().Format(time.RFC3339Nano), level, fmt.Sprintf(format, args...))
}

// Noticef and the others are the server's logger interface.
func (l *natsLog) Noticef(format string, args ...any) { l.say("INF", format, args) }

// Warnf logs what may need attention.
func (l *natsLog) Warnf(format string, args ...any) { l.say("WRN", format, args) }

// Fatalf logs what ends the server, which ends itself.
func (l *natsLog) Fatalf(format string, args ...any) { l.say("FTL", format, args) }

// Errorf logs errors.
func (l *natsLog) Errorf(format string, args ...any) { l.say("ERR", format, args) }

// Debugf is silent.
func (l *natsLog) Debugf(string, ...any) {}

// Tracef is silent.
func (l *natsLog) Tracef(string, ...any) {}
