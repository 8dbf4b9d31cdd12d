package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"unicode"
)

// PrintJSON writes one value and a line break, for scripts.
func PrintJSON(w io.Writer, v any) error {
	enc := json.NewEncoder(w)
	enc.SetEscapeHTML(false)
	return enc.Encode(v)
}

// PrintTable writes rows under their header in aligned columns.
func PrintTable(w io.Writer, header []string, rows [][]string) error {
	table := tabwriter.NewWriter(w, 0, 0, 2, ' ', 0)
	for _, row := range append([][]string{header}, rows...) {
		cells := make([]string, len(row))
		for i, cell := range row {
			cells[i] = Printable(cell)
		}
		if _, err := fmt.Fprintln(table, strings.TrimRight(strings.Join(cells, "\t"), "\t ")); err != nil {
			return err
		}
	}
	return table.Flush()
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
