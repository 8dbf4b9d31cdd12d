package main

import (
	"context"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5/pgxpool"

	"holdfast/domain"
	"holdfast/internal/bookings"
	"holdfast/internal/cli"
)

type minimumsCommands struct {
	Set  minimumsSetCommand  `cmd:"" help:"Set the least total of a booking in a currency, from a day on. Bookings already taken stay as they are."`
	List minimumsListCommand `cmd:"" help:"List the minimums, and which of them hold."`
}

type minimumsSetCommand struct {
	cli.Database `kong:"-"`

	Currency string    `required:"" placeholder:"CODE" help:"ISO 4217, such as eur."`
	Amount   int64     `required:"" placeholder:"N" help:"In minor units, as the payment provider states it: 50 is 0.50 EUR, but 50 JPY; 0 is none."`
	AsOf     time.Time `required:"" placeholder:"DAY" format:"2006-01-02" help:"The first day (UTC) that it holds, such as 2027-01-31. It holds until the day of the next one."`
}

// Run sets the minimum.
func (c *minimumsSetCommand) Run(ctx context.Context, io cli.IO) error {
	least := domain.Money{Amount: c.Amount, Currency: strings.ToUpper(c.Currency)}
	err := once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) error {
		return bookings.New(pool, nil, bookings.Config{}).SetMinimum(ctx, least, c.AsOf)
	})
	if err != nil {
		return err
	}
	_, err = fmt.Fprintf(io.Out, "the minimum is %s (minor units) from %s on\n", least, c.AsOf.Format(time.DateOnly))
	return err
}

type minimumsListCommand struct {
	cli.Database `kong:"-"`

	JSON bool `name:"json" help:"Print JSON, for scripts."`
}

type minimum struct {
	Currency string `json:"currency"`
	Amount   int64  `json:"amount"`
	AsOf     string `json:"as_of"`
	Holds    bool   `json:"holds"`
}

// Run lists the minimums.
func (c *minimumsListCommand) Run(ctx context.Context, io cli.IO) error {
	var found []bookings.Minimum
	err := once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		found, err = bookings.New(pool, nil, bookings.Config{}).Minimums(ctx)
		return err
	})
	if err != nil {
		return err
	}
	shown, rows := make([]minimum, 0, len(found)), make([][]string, 0, len(found))
	for _, m := range found {
		s := minimum{Currency: m.Least.Currency, Amount: m.Least.Amount, AsOf: m.AsOf.Format(time.DateOnly), Holds: m.Now}
		holds := ""
		if s.Holds {
			holds = "now"
		}
		shown, rows = append(shown, s), append(rows, []string{s.Currency, strconv.FormatInt(s.Amount, 10), s.AsOf, holds})
	}
	if c.JSON {
		return cli.PrintJSON(io.Out, map[string]any{"minimums": shown})
	}
	return cli.PrintTable(io.Out, []string{"CURRENCY", "MINIMUM (MINOR UNITS)", "FROM", "HOLDS"}, rows)
}
