package cli_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"holdfast/internal/cli"
)

// root is a program of two commands.
type root struct {
	Pause      pause          `cmd:"" help:"Stop."`
	Completion cli.Completion `cmd:"" help:"Complete."`
}

type pause struct {
	Kind   string `arg:"" enum:"charge,publish" help:"What."`
	Reason string `help:"Why."`

	Lag time.Duration `default:"5m" help:"How long."`
}

// Configure checks the bound.
func (p *pause) Configure(_ func(string) string, found *cli.Problems) {
	if p.Lag <= 0 {
		found.Add("--lag: %s is not more than 0", p.Lag)
	}
}

func (p *pause) Run(ctx context.Context, _ cli.IO) error {
	if ctx.Err() != nil {
		return fmt.Errorf("begin: %w", ctx.Err())
	}
	if p.Reason != "" {
		return errors.New("refused: ada paused it: " + p.Reason)
	}
	return nil
}

func program() cli.Program {
	return cli.Program{Name: "test", Description: "Tests.", Root: &root{Completion: cli.Completion{Name: "test"}}}
}

func run(t *testing.T, args ...string) (code int, out, errs string) {
	t.Helper()
	var stdout, stderr bytes.Buffer
	code = program().Run(t.Context(), args, func(string) string { return "" }, cli.IO{Out: &stdout, Err: &stderr})
	return code, stdout.String(), stderr.String()
}

// What somebody has written as a reason does not steer the terminal of whoever is refused because of it.
func TestErrorsAreOnlyText(t *testing.T) {
	t.Parallel()
	code, _, errs := run(t, "pause", "charge", "--reason", "\x1b]0;owned\a\x1b[2J\u202ewhy\nnot")
	require.Equal(t, cli.ExitProblem, code)
	require.Equal(t, "test: refused: ada paused it: \ufffd]0;owned\ufffd\ufffd[2J\ufffdwhy\nnot\n", errs)
}

// A signal ends a command in words that whoever has sent it understands.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	var errs bytes.Buffer
	require.Equal(t, cli.ExitUnknown, program().Run(ctx, []string{"pause", "charge"}, func(string) string { return "" }, cli.IO{Out: &errs, Err: &errs}))
	require.Equal(t, "test: interrupted: what it had not done by then is not done; run it again\n", errs.String())
}

// What cannot be read is told of once.
func TestAWrongValueIsOneProblem(t *testing.T) {
	t.Parallel()
	code, _, errs := run(t, "pause", "charge", "--lag", "banana")
	require.Equal(t, cli.ExitUsage, code)
	require.Equal(t, "test: --lag: \"banana\" is not a duration such as 90s, 15m or 24h\n", errs)
}

// A shell that has taken what completion prints runs the program with COMP_LINE, and is told commands, flags and words.
func TestCompletion(t *testing.T) { //nolint:paralleltest // the library reads the process's environment
	for shell, want := range map[string]string{"bash": "complete -o default -C '", "zsh": "bashcompinit", "fish": "complete -f -c test"} {
		code, out, errs := run(t, "completion", shell)
		require.Equal(t, cli.ExitDone, code, errs)
		require.Contains(t, out, want)
	}
	code, _, _ := run(t, "completion", "csh")
	require.Equal(t, cli.ExitUsage, code)
	code, out, _ := run(t, "--help")
	require.Equal(t, cli.ExitDone, code)
	require.Contains(t, out, "source <(test completion bash)")
	for line, want := range map[string][]string{
		"test pa":       {"pause"},
		"test pause ":   {"charge", "publish"},
		"test pause --": {"--help", "--lag", "--reason"},
	} {
		t.Setenv("COMP_LINE", line)
		var out bytes.Buffer
		require.Equal(t, cli.ExitDone, program().Complete(cli.IO{Out: &out}))
		require.ElementsMatch(t, want, strings.Fields(out.String()), line)
	}
}

func TestTable(t *testing.T) {
	t.Parallel()
	rows := []cli.Row{
		{Cells: []cli.Cell{{Text: "größer"}, {Text: "parked", Look: cli.Bad}, {}}, Below: []cli.Cell{{Text: strings.Repeat("word ", 30)}}},
		{Cells: []cli.Cell{{Text: "b\x1b[2J"}, {}, {Text: "last"}}},
	}
	var plain, coloured bytes.Buffer
	require.NoError(t, cli.IO{Out: &plain}.Table([]string{"A", "B"}, rows))
	require.Equal(t, "A       B\ngröß"+"er  parked\n    "+strings.Repeat("word ", 22)+"word\n    "+strings.Repeat("word ", 6)+"word\nb\ufffd[2J           last\n", plain.String())
	require.NoError(t, cli.IO{Out: &coloured, Colour: true}.Table([]string{"A", "B"}, rows))
	require.Contains(t, coloured.String(), "größer  \x1b[1;31mparked\x1b[0m\n", "what a row says must not steer the terminal; its look may")
	require.NotContains(t, coloured.String(), "\x1b[2J")
	for line := range strings.Lines(plain.String()) {
		require.LessOrEqual(t, len(line), 121)
		require.Equal(t, strings.TrimRight(line, " \n")+"\n", line)
	}
}

func TestPeople(t *testing.T) {
	t.Parallel()
	for d, want := range map[time.Duration]string{
		-time.Second: "0s", 59 * time.Second: "59s", 61 * time.Second: "1m1s", 3*time.Hour + 2*time.Minute: "3h2m", 49 * time.Hour: "2d1h",
	} {
		require.Equal(t, want, cli.Age(d))
	}
}

// TWO_PERSON_ABOVE is read whole or told of: an entry that is passed over would let money move that should have waited.
func TestTwoPersons(t *testing.T) {
	t.Parallel()
	type env map[string]string
	configure := func(e env) (cli.TwoPersons, string) {
		var s cli.TwoPersons
		p := &cli.Problems{}
		s.Configure(func(name string) string { return e[name] }, p)
		return s, strings.Join(p.List(), "\n")
	}
	s, wrong := configure(env{})
	require.Empty(t, wrong)
	require.Empty(t, s.Above)
	require.Equal(t, 24*time.Hour, s.RequestLife)
	s, wrong = configure(env{"TWO_PERSON_ABOVE": "eur=50000, JPY=0", "REQUEST_LIFE": "1h"})
	require.Empty(t, wrong)
	require.Equal(t, map[string]int64{"EUR": 50_000, "JPY": 0}, s.Above)
	require.Equal(t, time.Hour, s.RequestLife)
	for _, text := range []string{"eur", "eur=", "eur=1.5", "eur=-1", "xx=1", "eur=1,eur=2", "eur=1,", ",", "eur=1;usd=2"} {
		_, wrong = configure(env{"TWO_PERSON_ABOVE": text, "REQUEST_LIFE": "soon"})
		require.Contains(t, wrong, "TWO_PERSON_ABOVE", text)
		require.Contains(t, wrong, "REQUEST_LIFE")
	}
}
