// Package docs holds the texts that the program itself shows.
package docs

import _ "embed"

// Runbook is what to do when an alarm goes off, as Markdown.
//
//go:embed runbook.md
var Runbook []byte
