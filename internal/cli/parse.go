package cli

import (
	"fmt"
	"log/slog"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/alecthomas/kong"
)

// Configurer is a sub-command, or a part of one, that reads what may stand in the environment only (secrets), or knows
// more about its values than their types do.
type Configurer interface {
	Configure(getenv func(string) string, p *Problems)
}

// Problems gathers what is wrong, so that one run tells all of it.
type Problems struct{ list []string }

// List is what was noted.
func (p *Problems) List() []string { return p.list }

// Add notes a problem: what is wrong, where, and what would be right.
func (p *Problems) Add(format string, args ...any) {
	// A default is decoded more than once, and says the same each time.
	if text := fmt.Sprintf(format, args...); !slices.Contains(p.list, text) {
		p.list = append(p.list, text)
	}
}

// parse reads the arguments and the environment into the chosen sub-command. A flag's environment variable is in its tag
// "setting". printed says that help was asked for and has been written. Problems come all at once, as a *UsageError.
func (p Program) parse(args []string, getenv func(string) string, io IO) (chosen Command, printed bool, err error) {
	found := &Problems{}
	parser, err := p.parser(found, getenv, io, &printed)
	if err != nil {
		return nil, false, err
	}
	parsed, err := parser.Parse(args)
	if printed {
		return nil, true, nil
	}
	if err != nil {
		found.Add("%s (see %s --help)", err, p.Name)
		return nil, false, &UsageError{Problems: found.list}
	}
	chosen, ok := parsed.Selected().Target.Addr().Interface().(Command)
	if !ok {
		return nil, false, fmt.Errorf("%s cannot be run", parsed.Command())
	}
	if c, ok := chosen.(Configurer); ok {
		c.Configure(getenv, found)
	}
	if len(found.list) > 0 {
		return nil, false, &UsageError{Problems: found.list}
	}
	return chosen, false, nil
}

// parser describes the commands to kong. printed becomes true once help has been written.
func (p Program) parser(found *Problems, getenv func(string) string, io IO, printed *bool) (*kong.Kong, error) {
	parser, err := kong.New(p.Root,
		kong.Name(p.Name), kong.Description(p.Description+completionHint(p.Name)), kong.UsageOnError(),
		kong.Writers(io.Out, io.Err),
		kong.Exit(func(int) { *printed = true }),
		kong.ConfigureHelp(kong.HelpOptions{Compact: true}),
		kong.ExplicitGroups([]kong.Group{
			{Key: "many", Title: "Many at once:"}, {Key: "settings", Title: "Settings, as a rule from the environment:"},
		}),
		kong.ValueFormatter(withEnvironment),
		kong.Resolvers(environment(getenv)),
		kong.TypeMapper(reflect.TypeFor[time.Duration](), gather(found, "a duration such as 90s, 15m or 24h", time.ParseDuration)),
		kong.TypeMapper(reflect.TypeFor[slog.Level](), gather(found, "debug, info, warn or error", parseLevel)),
		kong.KindMapper(reflect.Int, gather(found, "a whole number", strconv.Atoi)),
		kong.KindMapper(reflect.Int64, gather(found, "a whole number", parseInt64)),
	)
	if err != nil {
		return nil, fmt.Errorf("describe the commands: %w", err)
	}
	return parser, nil
}

// gather decodes a flag. A value that cannot be decoded is noted, and decoding goes on, so that the next wrong value is
// told in the same run.
func gather[T any](found *Problems, want string, decode func(string) (T, error)) kong.MapperFunc {
	return func(ctx *kong.DecodeContext, target reflect.Value) error {
		var text string
		if err := ctx.Scan.PopValueInto(ctx.Value.Name, &text); err != nil {
			return err
		}
		v, err := decode(text)
		if err != nil {
			found.Add("%s: %q is not %s", nameOf(ctx.Value), text, want)
			if v, err = decode(ctx.Value.Default); err != nil { // the default, so that nothing else is found wrong with it
				return nil //nolint:nilerr // it is noted, and told with the others
			}
		}
		target.Set(reflect.ValueOf(v))
		return nil
	}
}

// nameOf names a setting by all the ways in which it can be given.
func nameOf(v *kong.Value) string {
	if name := v.Tag.Get("setting"); name != "" {
		return name + " (--" + v.Name + ")"
	}
	return "--" + v.Name
}

// environment gives a flag that the command line leaves out its value from the environment variable in its tag
// "setting". An empty variable counts as not set. (kong's own tag reads the process's environment, which tests share.)
func environment(getenv func(string) string) kong.ResolverFunc {
	return func(_ *kong.Context, _ *kong.Path, flag *kong.Flag) (any, error) {
		if name := flag.Tag.Get("setting"); name != "" {
			if v := getenv(name); v != "" {
				return v, nil
			}
		}
		return nil, nil // kong's way to say "not set here"
	}
}

// withEnvironment shows a flag's environment variable in the help.
func withEnvironment(v *kong.Value) string {
	name := v.Tag.Get("setting")
	if name == "" {
		return v.Help
	}
	return strings.TrimSuffix(v.Help, ".") + " ($" + name + ")."
}

func parseLevel(s string) (slog.Level, error) {
	var level slog.Level
	err := level.UnmarshalText([]byte(s))
	return level, err
}

func parseInt64(s string) (int64, error) { return strconv.ParseInt(s, 10, 64) }
