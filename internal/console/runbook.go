package console

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"
	"regexp"

	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
)

// runbook is the runbook as a page; empty: there is none.
type runbook template.HTML

// renderRunbook makes it once. The text is this project's own, and what is HTML in it is left out all the same.
func renderRunbook(text []byte) (runbook, error) {
	if len(text) == 0 {
		return "", nil
	}
	var out bytes.Buffer
	tables := extension.NewTable(extension.WithTableCellAlignMethod(extension.TableCellAlignAttribute)) // a style would not be let through
	markdown := goldmark.New(goldmark.WithExtensions(tables, extension.Linkify), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	if err := markdown.Convert(text, &out); err != nil {
		return "", fmt.Errorf("render the runbook: %w", err)
	}
	return runbook(otherTexts.ReplaceAllString(out.String(), "<code>docs/$1</code>")), nil
}

// otherTexts are links to texts that the console does not show.
var otherTexts = regexp.MustCompile(`<a href="([a-z_-]+\.md)(?:#[^"]*)?">[^<]*</a>`)

func (c *Console) showRunbook(v *visit) error {
	v.render(http.StatusOK, "runbook", "Runbook", template.HTML(c.runbook)) //nolint:gosec // made from our own text, see above
	return nil
}
