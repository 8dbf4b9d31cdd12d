package cli

import (
	"context"
	"fmt"
	"os"
	"strings"

	"github.com/willabides/kongplete"
)

// completionHint stands under the help of a program.
func completionHint(name string) string {
	return "\n\nTab completion: source <(" + name + " completion bash), likewise for zsh; " + name + " completion fish | source"
}

// Completion prints what makes a shell complete a program's commands and flags: the shell runs the program itself with
// COMP_LINE set, and takes what it prints.
type Completion struct {
	Shell string `arg:"" enum:"bash,zsh,fish" help:"bash, zsh or fish."`

	Name string `kong:"-"` // of the program
}

// Help says more than the summary.
func (c *Completion) Help() string {
	return "For this session: source <(" + c.Name + " completion bash). For good, put that line into ~/.bashrc or ~/.zshrc; " +
		"for fish: " + c.Name + " completion fish > ~/.config/fish/completions/" + c.Name + ".fish"
}

// Run prints it.
func (c *Completion) Run(_ context.Context, io IO) error {
	path, err := os.Executable()
	if err != nil {
		return fmt.Errorf("find out where this program is: %w", err)
	}
	_, err = fmt.Fprint(io.Out, strings.NewReplacer("NAME", c.Name, "PATH", quoted(path)).Replace(completions(c.Shell)))
	return err
}

func completions(shell string) string {
	switch shell {
	case "zsh":
		return "autoload -U +X bashcompinit && bashcompinit\ncomplete -o default -C PATH NAME\n"
	case "fish":
		return `function __complete_NAME
    set -lx COMP_LINE (commandline -cp)
    test -z (commandline -ct)
    and set COMP_LINE "$COMP_LINE "
    PATH
end
complete -f -c NAME -a "(__complete_NAME)"
`
	default:
		return "complete -o default -C PATH NAME\n"
	}
}

// quoted keeps a path with spaces one word of a shell.
func quoted(path string) string { return "'" + strings.ReplaceAll(path, "'", `'\''`) + "'" }

// Complete answers a shell that asks, by COMP_LINE in the process's environment, what could come next.
func (p Program) Complete(io IO) int {
	printed := false
	parser, err := p.parser(&Problems{}, func(string) string { return "" }, io, &printed)
	if err == nil {
		kongplete.Complete(parser, kongplete.WithExitFunc(func(int) {}), kongplete.WithErrorHandler(func(e error) { err = e }))
	}
	return p.report(io, err)
}
