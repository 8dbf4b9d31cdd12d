package cli

import (
	"os"
	"os/user"
	"strings"
)

// Operator is who acts by hand, and why.
type Operator struct {
	Reason string `placeholder:"TEXT" help:"Why; kept with what was done."`
	Actor  string `placeholder:"NAME" help:"Who, if not the user that runs this." setting:"HOLDFAST_ACTOR"`
}

// Configure demands a reason.
func (o *Operator) Configure(p *Problems) {
	if strings.TrimSpace(o.Reason) == "" {
		p.Add("--reason is missing: it is kept with what was done")
	}
}

// Name is who acts: by default the user that runs the command, and where.
func (o *Operator) Name() string {
	if o.Actor != "" {
		return o.Actor
	}
	name, host := "unknown", "unknown"
	if u, err := user.Current(); err == nil {
		name = u.Username
	}
	if h, err := os.Hostname(); err == nil {
		host = h
	}
	return name + "@" + host
}
