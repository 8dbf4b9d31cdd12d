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

type resourceCommands struct {
	Create resourceCreateCommand `cmd:"" help:"Make a resource that can be booked."`
	List   resourceListCommand   `cmd:"" help:"List the resources."`
}

type resourceCreateCommand struct {
	cli.Database `kong:"-"`

	Name        string        `required:"" placeholder:"NAME" help:"What people call it."`
	TimeZone    string        `required:"" placeholder:"ZONE" help:"Where it is, as an IANA zone such as Europe/Berlin."`
	Places      int           `default:"1" help:"How many can have it at the same time (default ${default})."`
	UnitMinutes int           `default:"60" help:"It is booked in multiples of this many minutes (default ${default})."`
	Price       int64         `required:"" placeholder:"N" help:"For one place and one unit, in minor units: 2500 is 25.00 EUR, but 2500 JPY."`
	Currency    string        `required:"" placeholder:"CODE" help:"ISO 4217, such as eur."`
	Hold        time.Duration `default:"15m" setting:"HOLD" help:"How long a slot waits for its money (default ${default})."`
	Refund      []string      `placeholder:"Nh=PERCENT" help:"What goes back to a customer who cancels N hours before the start or earlier; once for each step, the earliest first: --refund 48h=100 --refund 24h=50. After the last step nothing goes back; none: nothing ever does. Without it everything does until the start."`
	JSON        bool          `name:"json" help:"Print JSON, for scripts."`
}

type resource struct {
	ID          domain.ResourceID   `json:"id"`
	Name        string              `json:"name"`
	TimeZone    string              `json:"time_zone"`
	Places      int                 `json:"places"`
	UnitMinutes int                 `json:"unit_minutes"`
	Price       int64               `json:"price"`
	Currency    string              `json:"currency"`
	HoldSeconds float64             `json:"hold_seconds"`
	Refunds     domain.RefundPolicy `json:"refund_policy"`
}

func show(r domain.Resource) resource {
	return resource{
		ID: r.ID, Name: r.Name, TimeZone: r.TimeZone, Places: r.Places, UnitMinutes: r.UnitMinutes,
		Price: r.Price.Amount, Currency: r.Price.Currency, HoldSeconds: r.Hold.Seconds(), Refunds: r.Refunds,
	}
}

// Run makes the resource.
func (c *resourceCreateCommand) Run(ctx context.Context, io cli.IO) error {
	policy, err := refundPolicy(c.Refund)
	if err != nil {
		return err
	}
	var made domain.Resource
	err = once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		made, err = bookings.New(pool, nil, bookings.Config{}).CreateResource(ctx, domain.Resource{
			Name: c.Name, TimeZone: c.TimeZone, Places: c.Places, UnitMinutes: c.UnitMinutes,
			Price: domain.Money{Amount: c.Price, Currency: strings.ToUpper(c.Currency)}, Hold: c.Hold, Refunds: policy,
		})
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		return cli.PrintJSON(io.Out, show(made))
	}
	_, err = fmt.Fprintf(io.Out, "made resource %s\n", made.ID)
	return err
}

// refundPolicy reads the steps of a policy as they are set; without any it is nil, the default.
func refundPolicy(steps []string) (domain.RefundPolicy, error) {
	if len(steps) == 1 && steps[0] == "none" {
		return domain.RefundPolicy{}, nil
	}
	var p domain.RefundPolicy
	for _, step := range steps {
		before, percent, _ := strings.Cut(step, "=")
		hours, isHours := strings.CutSuffix(before, "h")
		h, err := strconv.Atoi(hours)
		n, err2 := strconv.Atoi(percent)
		if !isHours || err != nil || err2 != nil {
			return nil, &domain.ValidationError{Field: "refund", Reason: fmt.Sprintf("want a step such as 48h=100, or none alone, not %q", step)}
		}
		p = append(p, domain.RefundStep{HoursBefore: h, Percent: n})
	}
	return p, nil
}

type resourceListCommand struct {
	cli.Database `kong:"-"`

	JSON bool `name:"json" help:"Print JSON, for scripts."`
}

// Run lists the resources.
func (c *resourceListCommand) Run(ctx context.Context, io cli.IO) error {
	var found []domain.Resource
	err := once(ctx, c.Database, func(ctx context.Context, pool *pgxpool.Pool) (err error) {
		found, err = everyResource(ctx, bookings.New(pool, nil, bookings.Config{}))
		return err
	})
	if err != nil {
		return err
	}
	if c.JSON {
		shown := make([]resource, 0, len(found))
		for _, r := range found {
			shown = append(shown, show(r))
		}
		return cli.PrintJSON(io.Out, map[string]any{"resources": shown})
	}
	if len(found) == 0 {
		_, err := fmt.Fprintln(io.Out, "There are no resources yet. Make one:\n"+
			"  api resource create --name \"Court 1\" --time-zone Europe/Berlin --unit-minutes 60 --price 2500 --currency eur")
		return err
	}
	rows := make([][]string, 0, len(found))
	for _, r := range found {
		rows = append(rows, []string{
			r.ID.String(), r.Name, r.TimeZone, strconv.Itoa(r.Places), strconv.Itoa(r.UnitMinutes) + " min", r.Price.String(), r.Hold.String(), r.Refunds.String(),
		})
	}
	return cli.PrintTable(io.Out, []string{"ID", "NAME", "ZONE", "PLACES", "UNIT", "PRICE (MINOR UNITS)", "HOLD", "REFUNDS"}, rows)
}

func everyResource(ctx context.Context, service *bookings.Service) ([]domain.Resource, error) {
	const page = 1000
	var all []domain.Resource
	for after := (domain.ResourceID{}); ; after = all[len(all)-1].ID {
		found, err := service.Resources(ctx, after, page)
		if all = append(all, found...); err != nil || len(found) < page {
			return all, err
		}
	}
}
