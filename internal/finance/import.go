package finance

import (
	"bufio"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/payments"
)

// File is a report of the provider's.
type File struct {
	Name string
	io.ReadSeeker
	Size int64  // for the progress; 0: unknown
	Kind string // FileActivity, FilePayouts, FilePayout; empty: by its header
	// Covers is the interval that the report was asked for: only a file of all activity in it proves what is missing, and only one of its payouts
	// which of these there were. Nil: nothing is proved.
	Covers *Window
}

// Imported is what an import has read.
type Imported struct {
	Kind     string `json:"kind"`
	Rows     int64  `json:"rows"`
	NewRows  int64  `json:"new_rows"`
	SHA256   string `json:"sha256"`
	Differs  int64  `json:"differs"`         // stored before with other amounts: what the provider says changed
	FirstBad string `json:"first_differing"` // its id
	Unlisted int64  `json:"unlisted"`        // new, although all of the time that they are of had been read from the provider's API
	FirstNew string `json:"first_unlisted"`  // its id
}

// batch is how many lines are stored at once.
const batch = 1000

// Import stores the rows of a report. The file is read twice: once to the end, so that a broken one stores nothing (*FileError), and
// once to store it. It may be imported again, and be interrupted.
func (d *Desk) Import(ctx context.Context, file File) (Imported, error) {
	var found Imported
	hash := sha256.New()
	err := d.scan(ctx, file, io.TeeReader(file, hash), func(kind string, rows []fileRow) error {
		found.Kind = kind
		return inside(file.Covers, kind, rows)
	}, 0)
	if err != nil {
		return found, err
	}
	found.SHA256 = hex.EncodeToString(hash.Sum(nil))
	if _, err := file.Seek(0, io.SeekStart); err != nil {
		return found, fmt.Errorf("read the file again: %w", err)
	}
	covers := file.Covers
	kind := "import"
	switch found.Kind {
	case FilePayout:
		kind = "payouts"
	case FilePayouts:
		covers = nil
	}
	if err := d.over(ctx, covers); err != nil {
		return found, err
	}
	run, err := d.begin(ctx, kind, covers, strings.ToValidUTF8(filepath.Base(file.Name), "?"), found.SHA256)
	if err != nil {
		return found, err
	}
	payouts := map[string]time.Time{}
	err = d.scan(ctx, file, file, func(kind string, rows []fileRow) error {
		if found.Rows += int64(len(rows)); found.Rows%(20*batch) == 0 {
			if err := d.analyze(ctx); err != nil {
				return err
			}
		}
		return d.storeRows(ctx, kind, rows, payouts, &found)
	}, 0.5)
	why := ""
	if err != nil {
		why = "the import was broken off"
	}
	if err == nil && found.Kind == FilePayouts {
		for _, id := range slices.Sorted(maps.Keys(payouts)) {
			err = errors.Join(err, d.payoutIsWhole(ctx, id))
		}
	}
	if err == nil && covers != nil && found.Kind == FileActivity {
		if why, err = d.lacks(ctx, *covers, found.Rows); why != "" {
			err = fmt.Errorf("%w: %s. The rows were stored, and prove nothing about what is missing: say the interval that the report was made for, "+
				"and ask for all currencies and categories", ErrIncomplete, why)
		} else if err != nil {
			why = "the import was broken off"
		}
	}
	return found, errors.Join(err, d.end(context.WithoutCancel(ctx), run, found.Rows, 0, why))
}

// over refuses an interval that has not ended long enough ago: what comes later in it is in no file, and would never be read.
func (d *Desk) over(ctx context.Context, covers *Window) error {
	if covers == nil {
		return nil
	}
	listed, err := d.listed(ctx, *covers)
	if err == nil && listed.To.Before(covers.To) {
		err = &domain.ValidationError{Field: "to", Reason: "must not be later than " + minuteOf(listed.To) + ": a report holds nothing of what is not over"}
	}
	return err
}

// lacks doubts a file as a listing is doubted: it says what the file does not have and should, if that is a whole interval.
func (d *Desk) lacks(ctx context.Context, w Window, rows int64) (why string, err error) {
	var stored int64
	err = d.pool.QueryRow(ctx, `
		SELECT count(*) FROM provider_transactions WHERE created_at >= $1 AND created_at < $2 AND category NOT IN ('payout', 'payout_reversal')`,
		w.From, w.To).Scan(&stored)
	if err != nil {
		return "", fmt.Errorf("compare a file with what is stored: %w", err)
	}
	if stored > rows {
		return fmt.Sprintf("the file has %s of an interval of which %d are known", countOf(rows, "transaction", "transactions"), stored), nil
	}
	if rows > 0 {
		return "", nil
	}
	busy, err := d.busy(ctx, w)
	if busy {
		why = "the file has no transaction of an interval in which bookings were paid"
	}
	return why, err
}

// inside refuses a row from outside of what the file is said to cover: then it is another file, or another interval.
func inside(covers *Window, kind string, rows []fileRow) error {
	if covers == nil || kind == FilePayouts {
		return nil
	}
	for _, r := range rows {
		if r.Created.Before(covers.From) || !r.Created.Before(covers.To) {
			return &domain.ValidationError{Field: "from", Reason: fmt.Sprintf("transaction %s was created at %s UTC, which is not between --from and --to: "+
				"say the interval that the report was made for; nothing was stored", printable(r.ID), r.Created.Format(time.DateTime))}
		}
	}
	return nil
}

// scan reads a file to its end and hands on its rows in batches. base is how much of the work was done before.
func (d *Desk) scan(ctx context.Context, file File, from io.Reader, each func(kind string, rows []fileRow) error, base float64) error {
	counted := &counter{Reader: from}
	f, err := openReport(bufio.NewReaderSize(counted, 1<<16), file.Kind)
	if err != nil {
		return err
	}
	started, p := time.Now(), Progress{Stage: "import"}
	rows := make([]fileRow, 0, batch)
	for {
		row, err := f.next()
		if err == nil {
			rows = append(rows, row)
		}
		if len(rows) == batch || errors.Is(err, io.EOF) {
			if err := each(f.kind, rows); err != nil {
				return err
			}
			p.Rows, p.Pages, p.Taken = p.Rows+int64(len(rows)), p.Pages+1, time.Since(started)
			if file.Size > 0 {
				p.Done = base + float64(counted.n)/float64(file.Size)/2
			}
			d.config.Progress(p)
			rows = rows[:0]
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case ctx.Err() != nil:
			return ctx.Err()
		}
	}
}

type counter struct {
	io.Reader
	n int64
}

func (c *counter) Read(p []byte) (int, error) {
	n, err := c.Reader.Read(p)
	c.n += int64(n)
	return n, err
}

// storeRows stores a batch: transactions, and which payout each went out with or is.
func (d *Desk) storeRows(ctx context.Context, kind string, rows []fileRow, payouts map[string]time.Time, found *Imported) error {
	if len(rows) == 0 {
		return nil
	}
	listed := make([]payments.Transaction, len(rows))
	of := map[string][]string{}
	for i, r := range rows {
		listed[i] = r.Transaction
		switch {
		case kind == FilePayout && r.Category == "payout_reversal": // of a payout that has a line of its own
		case kind == FilePayout:
			p := payments.Payout{
				ID: r.Payout, Amount: domain.Money{Amount: -r.Net, Currency: r.Amount.Currency}, Status: orElse(r.Status, "paid"), Automatic: true,
				Arrival: r.Arrival, Created: r.Created,
			}
			if err := d.storePayout(ctx, p); err != nil {
				return err
			}
		case r.Payout == r.SourceID: // it does not go out with itself
		case r.Payout != "":
			of[r.Payout] = append(of[r.Payout], r.ID)
			payouts[r.Payout] = r.Created
		}
	}
	if err := d.compare(ctx, listed, found); err != nil {
		return err
	}
	if err := payments.StoreTransactions(ctx, d.pool, listed); err != nil {
		return err
	}
	for id, transactions := range of {
		if err := d.storePayoutRows(ctx, id, transactions); err != nil {
			return err
		}
	}
	return nil
}

// compare counts which of them are not stored yet, and which are stored with other money: those stay as they are. What is new although the
// provider has listed all of its time may be another account's.
func (d *Desk) compare(ctx context.Context, listed []payments.Transaction, found *Imported) error {
	ids, amounts, fees, currencies := make([]string, len(listed)), make([]int64, len(listed)), make([]int64, len(listed)), make([]string, len(listed))
	created := make([]time.Time, len(listed))
	for i, t := range listed {
		ids[i], amounts[i], fees[i], currencies[i], created[i] = t.ID, t.Amount.Amount, t.Fee, t.Amount.Currency, t.Created
	}
	var now Imported
	err := d.pool.QueryRow(ctx, `
		SELECT count(*) FILTER (WHERE t.id IS NULL), count(*) FILTER (WHERE differs), coalesce(min(t.id) FILTER (WHERE differs), ''),
		       count(*) FILTER (WHERE unlisted), coalesce(min(f.id) FILTER (WHERE unlisted), '')
		  FROM unnest($1::text[], $2::bigint[], $3::bigint[], $4::text[], $5::timestamptz[]) AS f (id, amount, fee, currency, created_at)
		  LEFT JOIN provider_transactions t ON t.id = f.id
		 CROSS JOIN LATERAL (
		       SELECT t.id IS NOT NULL AND (t.amount, t.fee, t.currency) <> (f.amount, f.fee, f.currency) AS differs,
		              t.id IS NULL AND EXISTS (SELECT FROM reconciliation_runs r
		                                        WHERE r.kind = 'read' AND r.status = 'complete' AND r.from_at > f.created_at - $6::interval
		                                          AND r.from_at <= f.created_at AND r.to_at > f.created_at) AS unlisted) x`,
		ids, amounts, fees, currencies, created, longest).Scan(&now.NewRows, &now.Differs, &now.FirstBad, &now.Unlisted, &now.FirstNew)
	if err != nil {
		return fmt.Errorf("compare with what is stored: %w", err)
	}
	found.NewRows, found.Differs, found.FirstBad = found.NewRows+now.NewRows, found.Differs+now.Differs, orElse(found.FirstBad, now.FirstBad)
	found.Unlisted, found.FirstNew = found.Unlisted+now.Unlisted, orElse(found.FirstNew, now.FirstNew)
	return nil
}

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}
