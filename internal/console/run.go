package console

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"

	"github.com/google/uuid"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/operator"
)

const (
	maxCap     = 10_000
	defaultCap = 1000
	runRows    = 100
)

// atATime is how many effects one request does, so that it ends well within its time: replays are one commit, an event is sent to the
// broker, and of money the provider is asked.
func atATime(act operator.Act) int {
	switch act {
	case operator.Replay:
		return 100
	case operator.Republish:
		return 25
	case operator.Resolve, operator.Discard, operator.Refund:
		return 5
	default:
		return 1
	}
}

// runsPage lists the bulk acts.
type runsPage struct {
	Runs []operator.Run
	All  bool
	May  bool
}

// newRunPage chooses what to do to which effects, and tells what it would do.
type newRunPage struct {
	Filter filterForm
	Acts   []operator.Act
	Act    operator.Act
	Cap    int
	ID     uuid.UUID // of the run that the form would start: sent twice, it is one run
	Dry    *operator.DryRun
}

// runPage is how far a bulk act has come.
type runPage struct {
	operator.Run

	Items    []operator.RunItem
	From     int
	Previous string
	Next     string
	Percent  int
	Continue bool // this person may go on with it
	MayEnd   bool // and may end it
}

// runActs are the acts that can be done to many, and that somebody may do.
func runActs(who clients.Principal) []operator.Act {
	return slices.DeleteFunc(effectActs(), func(a operator.Act) bool { return !who.Can(scopeOf(a)) })
}

func (c *Console) runs(v *visit) error {
	page := runsPage{All: v.query("all") != "0", May: len(runActs(v.who)) > 0}
	var err error
	if page.Runs, err = c.config.Desk.Runs(v.r.Context(), !page.All); err != nil {
		return err
	}
	v.render(http.StatusOK, "runs", "Bulk runs", page)
	return nil
}

// newRun shows the form and, once an act is chosen, the dry run.
func (c *Console) newRun(v *visit) error {
	order, page, err := v.runOrder(v.r.URL.Query())
	if err != nil {
		return err
	}
	if page.Act != "" {
		order.ID, order.Reason = page.ID, "dry run"
		dry, err := c.config.Desk.DryRun(v.r.Context(), order)
		if err != nil {
			return err
		}
		page.Dry = &dry
	}
	v.render(http.StatusOK, "newrun", "New bulk run", page)
	return nil
}

// runOrder reads an order, and what the form shows of it.
func (v *visit) runOrder(values url.Values) (operator.RunOrder, newRunPage, error) {
	form, f, err := filter(values, unfinished())
	if err != nil {
		return operator.RunOrder{}, newRunPage{}, err
	}
	page := newRunPage{Filter: form, Acts: runActs(v.who), Act: operator.Act(values.Get("act")), Cap: defaultCap, ID: uuid.Must(uuid.NewV7())}
	if len(page.Acts) == 0 {
		return operator.RunOrder{}, page, refusal(http.StatusForbidden, "You may not do this", "Your token has the scope of no act that can be done to many. Nothing was done.")
	}
	if page.Act != "" {
		if !slices.Contains(effectActs(), page.Act) {
			return operator.RunOrder{}, page, refusal(http.StatusBadRequest, "There is no such act", "What can be done to many is "+list(effectActs())+".")
		}
		if err := v.demand(scopeOf(page.Act)); err != nil {
			return operator.RunOrder{}, page, err
		}
	}
	if text := values.Get("cap"); text != "" {
		n, err := strconv.Atoi(text)
		if err != nil || n < 1 || n > maxCap {
			return operator.RunOrder{}, page, refusal(http.StatusBadRequest, "The cap is not understood", "How many effects at most is a number from 1 to 10000. Nothing was done.",
				link{"/runs/new", "New bulk run"})
		}
		page.Cap = n
	}
	return operator.RunOrder{Act: page.Act, Filter: f, Cap: page.Cap, By: v.actor()}, page, nil
}

// startRun writes the run down; its page carries it on.
func (c *Console) startRun(v *visit) error {
	order, page, err := v.runOrder(v.r.PostForm)
	if err != nil {
		return err
	}
	again := link{"/runs/new?" + page.Filter.values().Encode(), "The bulk run"}
	if order.ID, err = uuid.Parse(v.form("id")); err != nil || page.Act == "" {
		return refusal(http.StatusBadRequest, "The form is not whole", "It does not say which run it starts. Nothing was done; make the dry run again.", again)
	}
	order.Reason = v.form("reason")
	if err := reasoned(order.Reason); err != nil {
		return err.with(again)
	}
	run, err := c.config.Desk.StartRun(v.r.Context(), order)
	if err != nil {
		return v.explain(err).with(again)
	}
	return v.see("/runs/" + run.ID.String())
}

// run shows how far it has come.
func (c *Console) run(v *visit) error {
	run, err := c.oneRun(v)
	if err != nil {
		return err
	}
	return c.showRun(v, run)
}

func (c *Console) showRun(v *visit, run operator.Run) error {
	page := runPage{Run: run, Continue: run.FinishedAt == nil && v.who.Can(scopeOf(run.Act))}
	page.MayEnd = page.Continue && run.EndedBy == ""
	page.From, _ = strconv.Atoi(v.query("from"))
	page.From = max(0, min(page.From, run.Total))
	items, err := c.config.Desk.RunItems(v.r.Context(), run.ID, page.From, runRows)
	if err != nil {
		return err
	}
	page.Items = items
	at := "/runs/" + run.ID.String() + "?from="
	if page.From > 0 {
		page.Previous = at + strconv.Itoa(max(0, page.From-runRows))
	}
	if len(items) == runRows && page.From+runRows < run.Total {
		page.Next = at + strconv.Itoa(page.From+runRows)
	}
	if page.Percent = 100; run.Total > 0 {
		page.Percent = (run.Total - run.Left) * 100 / run.Total
	}
	v.render(http.StatusOK, "run", actName(run.Act)+" run "+short(run.ID), page)
	return nil
}

// oneRun reads the run in a page's address.
func (c *Console) oneRun(v *visit) (operator.Run, error) {
	id, err := uuid.Parse(v.r.PathValue("id"))
	if err != nil {
		return operator.Run{}, domain.ErrNotFound
	}
	return c.config.Desk.Run(v.r.Context(), id)
}

// continueRun does the act to the next effects. The page asks for it again and again, and anybody who opens the page later goes on
// with it: what is done to each effect is done once.
func (c *Console) continueRun(v *visit) error {
	run, err := c.oneRun(v)
	if err != nil {
		return err
	}
	if err := v.demand(scopeOf(run.Act)); err != nil {
		return err
	}
	run, err = c.config.Desk.ContinueRun(v.r.Context(), run.ID, atATime(run.Act))
	if err != nil {
		return v.explain(err).with(link{"/runs/" + run.ID.String(), "The run"})
	}
	if v.r.Header.Get("HX-Request") != "" {
		return c.showRun(v, run)
	}
	return v.see("/runs/" + run.ID.String())
}

// endRun ends it before all of it is done.
func (c *Console) endRun(v *visit) error {
	run, err := c.oneRun(v)
	if err != nil {
		return err
	}
	back := link{"/runs/" + run.ID.String(), "The run"}
	if err := v.demand(scopeOf(run.Act)); err != nil {
		return err
	}
	if err := reasoned(v.form("reason")); err != nil {
		return err.with(back)
	}
	if run, err = c.config.Desk.EndRun(v.r.Context(), run.ID, v.actor(), v.form("reason")); err != nil {
		return v.explain(err).with(back)
	}
	v.say("The run is ended. What was done stays done; nothing was done to the effects that were left.")
	return v.see("/runs/" + run.ID.String())
}

// Says is which effects it was started for, in words.
func (p runPage) Says() string {
	return filterForm{Stuck: p.Filter.Stuck, Kind: p.Filter.Kind, Status: p.Filter.Status, Older: p.Filter.OlderThan}.Says()
}
