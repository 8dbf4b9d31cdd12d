package main

import (
	"context"
	"errors"
)

type serveCommand struct {
	database `kong:"-"`
}

// Run serves.
func (c *serveCommand) Run(context.Context, streams) error { return errors.New("not yet") }
