package console

import (
	"bytes"
	"fmt"
	"html/template"
	"net/http"

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
	markdown := goldmark.New(goldmark.WithExtensions(extension.GFM), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
	if err := markdown.Convert(text, &out); err != nil {
		return "", fmt.Errorf("render the runbook: %w", err)
	}
	return runbook(out.String()), nil
}

func (c *Console) showRunbook(v *visit) error {
	v.render(http.StatusOK, "runbook", "Runbook", template.HTML(c.runbook)) //nolint:gosec // made from our own text, see above
	return nil
}
