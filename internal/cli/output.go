package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"unicode"
	"unicode/utf8"
)

// PrintJSON writes one value and a line break, for scripts.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// Look is how a text looks on a terminal: the numbers of an SGR sequence.
type Look string

// The looks. Nothing is told by colour alone: the words say it too.
const (
	Plain Look = ""
	Bold  Look = "1"
	Dim   Look = "2"
	Good  Look = "32"
	Warn  Look = "33"
	Bad   Look = "1;31"
)

// Cell is a text in a table.
type Cell struct {
	Text string
	Look Look
}

// Row is a line of a table; Below are lines that stand under it, across all columns.
type Row struct {
	Cells []Cell
	Below []Cell
}

// Paint gives a text its look, where the output is a terminal.
func (io IO) Paint(look Look, text string) string {
	if !io.Colour || look == Plain {
		return text
	}
	return "\x1b[" + string(look) + "m" + text + "\x1b[0m"
}

// Table writes rows under their header in aligned columns.
func (io IO) Table(header []string, rows []Row) error {
	head := Row{}
	for _, h := range header {
		head.Cells = append(head.Cells, Cell{h, Bold})
	}
	rows = append([]Row{head}, rows...)
	widths := []int{}
	for _, row := range rows {
		for i, c := range row.Cells {
			if i == len(widths) {
				widths = append(widths, 0)
			}
			widths[i] = max(widths[i], utf8.RuneCountInString(Printable(c.Text)))
		}
	}
	var out strings.Builder
	for _, row := range rows {
		gap := 0 // so that no line ends in white space
		for i, c := range row.Cells {
			text := Printable(c.Text)
			if text != "" {
				out.WriteString(strings.Repeat(" ", gap) + io.Paint(c.Look, text))
				gap = 0
			}
			gap += widths[i] - utf8.RuneCountInString(text) + 2
		}
		out.WriteByte('\n')
		for _, c := range row.Below {
			for _, line := range Wrap(Printable(c.Text), LineWidth-belowIndent) {
				out.WriteString(strings.Repeat(" ", belowIndent) + io.Paint(c.Look, line) + "\n")
			}
		}
	}
	_, err := fmt.Fprint(io.Out, out.String())
	return err
}

// LineWidth is how wide a table for people may be, in characters.
const LineWidth = 120

const belowIndent = 4

// Wrap breaks a text at spaces into lines of at most width characters; a longer word has a line of its own.
func Wrap(text string, width int) (lines []string) {
	line := ""
	for word := range strings.FieldsSeq(text) {
		if line != "" && utf8.RuneCountInString(line)+1+utf8.RuneCountInString(word) > width {
			lines, line = append(lines, line), ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	if line == "" {
		return lines
	}
	return append(lines, line)
}

// PrintTable writes plain rows under their header in aligned columns.
func PrintTable(w io.Writer, header []string, rows [][]string) error {
	cells := make([]Row, 0, len(rows))
	for _, row := range rows {
		var r Row
		for _, text := range row {
			r.Cells = append(r.Cells, Cell{Text: text})
		}
		cells = append(cells, r)
	}
	return IO{Out: w}.Table(header, cells)
}

// Printable keeps what somebody named from steering the terminal of whoever lists it.
func Printable(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}

// printableLines does the same, line by line.
func printableLines(s string) string {
	lines := strings.Split(s, "\n")
	for i := range lines {
		lines[i] = Printable(lines[i])
	}
	return strings.Join(lines, "\n")
}
