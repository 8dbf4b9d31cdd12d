package main

import (
	"context"
	"errors"
)

type demoCommand struct{}

// Run is not written yet.
func (c *demoCommand) Run(context.Context, *printer) error { return errors.New("not yet") }

type unmetError struct{}

func (*unmetError) Error() string { return "the summary does not hold" }
