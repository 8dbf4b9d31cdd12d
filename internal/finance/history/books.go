package history

import (
	"encoding/json"
	"errors"
	"io"
	"os"
	"path/filepath"
	"slices"
	"sort"
)

// Books are the provider's side of a history, read page by page from its files.
type Books struct {
	records, rows *os.File
	count         int
	payouts       map[string]Payout
}

// Open opens what Write has made.
func Open(dir string) (*Books, error) {
	b := &Books{payouts: map[string]Payout{}}
	var err, err2 error
	b.records, err = os.Open(filepath.Join(dir, "theirs", "transactions.rec")) //nolint:gosec // a test names it
	b.rows, err2 = os.Open(filepath.Join(dir, "theirs", "payout_rows.rec"))    //nolint:gosec // likewise
	if err := errors.Join(err, err2); err != nil {
		return nil, err
	}
	info, err := b.records.Stat()
	if err != nil {
		return nil, err
	}
	b.count = int(info.Size() / width)
	var payouts []Payout
	if err := ReadJSON(filepath.Join(dir, "theirs", "payouts.json"), &payouts); err != nil {
		return nil, err
	}
	for _, p := range payouts {
		b.payouts[p.ID] = p
	}
	return b, nil
}

// Close closes the files.
func (b *Books) Close() error { return errors.Join(b.records.Close(), b.rows.Close()) }

// Each hands on what was created in [from, to), newest first, so many at once.
func (b *Books) Each(from, to int64, page int, each func([]Transaction) error) error {
	var err error
	first := func(at int64) int {
		return sort.Search(b.count, func(i int) bool {
			one, readErr := read(b.records, int64(i), 1)
			err = errors.Join(err, readErr)
			return readErr == nil && one[0].Created >= at
		})
	}
	low, high := first(from), first(to)
	for err == nil && high > low {
		n := min(page, high-low)
		var part []Transaction
		if part, err = read(b.records, int64(high-n), n); err == nil {
			slices.Reverse(part)
			err = each(part)
		}
		high -= n
	}
	return err
}

// Payout is one payout.
func (b *Books) Payout(id string) (Payout, bool) {
	p, ok := b.payouts[id]
	return p, ok
}

// EachOf hands on what went out with a payout.
func (b *Books) EachOf(id string, page int, each func([]Transaction) error) error {
	p := b.payouts[id]
	for done := 0; done < p.Rows; done += page {
		part, err := read(b.rows, p.Offset+int64(done), min(page, p.Rows-done))
		if err != nil {
			return err
		}
		if err := each(part); err != nil {
			return err
		}
	}
	return nil
}

func read(f io.ReaderAt, at int64, n int) ([]Transaction, error) {
	raw := make([]byte, n*width)
	if _, err := f.ReadAt(raw, at*width); err != nil {
		return nil, err
	}
	part := make([]Transaction, n)
	for i := range part {
		if err := json.Unmarshal(raw[i*width:(i+1)*width], &part[i]); err != nil {
			return nil, err
		}
	}
	return part, nil
}

// ReadJSON reads one of the files that are written as JSON.
func ReadJSON(path string, into any) error {
	raw, err := os.ReadFile(path) //nolint:gosec // likewise
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, into)
}
