package console

import (
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"

	"holdfast/domain"
	"holdfast/internal/clients"
	"holdfast/internal/finance"
)

// exceptionsPage lists what does not match.
type exceptionsPage struct {
	Items    []finance.Item
	Status   string
	Kind     string
	Owner    string
	Period   finance.Period // empty: all of them
	Older    string
	Statuses []choice
	Kinds    []choice
	Ages     []choice
	Told     []finance.Kind // the kinds on this page
	Next     string
	First    bool
	Filtered bool
}

// exceptionPage is one of them.
type exceptionPage struct {
	finance.Item

	Of        finance.Kind
	MayFollow bool // to the booking, which is operators'
}

func itemStatuses() []choice {
	return []choice{{"open", "open"}, {"signed_off", "signed off"}, {"closed", "closed by itself"}, {"all", "all"}}
}

func itemAges() []choice {
	return []choice{{"", "any age"}, {"24h", "over 1 d"}, {"72h", "over 3 d"}, {"168h", "over 7 d"}, {"720h", "over 30 d"}, {"2160h", "over 90 d"}}
}

// itemKinds are the kinds as a filter offers them.
func itemKinds() (all []choice) {
	for _, k := range finance.Kinds() {
		all = append(all, choice{k.Name, k.Words()})
	}
	return all
}

func (c *Console) exceptions(v *visit) error {
	q := v.r.URL.Query()
	page := exceptionsPage{Status: q.Get("status"), Kind: q.Get("kind"), Owner: v.query("owner"), Period: period(q), Older: q.Get("older"), Statuses: itemStatuses(), Kinds: itemKinds(), Ages: itemAges(), First: q.Get("after") == ""}
	if page.Status == "" {
		page.Status = "open"
	}
	page.Filtered = page.Status != "open" || page.Kind != "" || page.Owner != "" || page.Older != "" || page.Period.From != ""
	known := func(all []choice, value string) bool {
		return slices.ContainsFunc(all, func(c choice) bool { return c.Value == value })
	}
	after, err := strconv.ParseInt("0"+q.Get("after"), 10, 64)
	if err != nil || !known(page.Statuses, page.Status) || page.Kind != "" && !known(page.Kinds, page.Kind) || !known(page.Ages, page.Older) {
		return refusal(http.StatusBadRequest, "The filter is not understood", "The address is not one that this page has made. Choose from its lists.",
			link{"/finance/exceptions", "Exceptions"})
	}
	f := finance.Filter{Kind: page.Kind, Owner: page.Owner, After: after, Limit: pageRows + 1}
	if page.Status != "all" {
		f.Status = page.Status
	}
	f.Older, _ = time.ParseDuration(page.Older) // empty, or one of the list's
	if page.Period.From+page.Period.To != "" {
		w, err := c.config.Books.Window(v.r.Context(), page.Period)
		if err != nil {
			return err
		}
		f.Window = &w
	}
	if page.Items, err = c.config.Books.Items(v.r.Context(), f); err != nil {
		return err
	}
	if len(page.Items) > pageRows {
		page.Items = page.Items[:pageRows]
		q.Set("after", strconv.FormatInt(page.Items[pageRows-1].ID, 10))
		page.Next = "/finance/exceptions?" + q.Encode()
	}
	for _, k := range finance.Kinds() {
		if slices.ContainsFunc(page.Items, func(i finance.Item) bool { return i.Kind == k.Name }) {
			page.Told = append(page.Told, k)
		}
	}
	v.render(http.StatusOK, "exceptions", "Exceptions", page)
	return nil
}

// itemID reads the exception's number in the address, and where it is.
func (v *visit) itemID() (int64, link, error) {
	id, err := strconv.ParseInt(v.r.PathValue("id"), 10, 64)
	if err != nil {
		return 0, link{}, domain.ErrNotFound
	}
	return id, link{"/finance/exceptions/" + strconv.FormatInt(id, 10), "The exception"}, nil
}

func (c *Console) exception(v *visit) error {
	id, _, err := v.itemID()
	if err != nil {
		return err
	}
	found, err := c.config.Books.Item(v.r.Context(), id)
	if err != nil {
		return err
	}
	v.render(http.StatusOK, "exception", "Exception "+strconv.FormatInt(id, 10), exceptionPage{found, finance.KindOf(found.Kind), v.who.Can(clients.OperatorRead)})
	return nil
}

func (c *Console) noteException(v *visit) error {
	id, back, err := v.itemID()
	if err != nil {
		return err
	}
	note, owner := v.form("note"), v.form("owner")
	if note+owner == "" || len([]rune(note)) > maxReason || len([]rune(owner)) > 100 {
		return refusal(http.StatusUnprocessableEntity, "A note or an owner is needed",
			"Say what is known of it, in at most 500 characters, or who sees to it. Nothing was done.", back)
	}
	if _, err := c.config.Books.Note(v.r.Context(), id, v.actor(), note, owner); err != nil {
		return v.explain(explainBooks(err)).with(back)
	}
	v.say("It is noted.")
	return v.see(back.Path)
}

func (c *Console) signOffException(v *visit) error {
	id, back, err := v.itemID()
	if err != nil {
		return err
	}
	if err := reasoned(v.form("reason")); err != nil {
		return err.with(back)
	}
	if _, err := c.config.Books.SignOff(v.r.Context(), id, v.actor(), v.form("reason")); err != nil {
		return v.explain(explainBooks(err)).with(back)
	}
	v.say("Signed off. It comes back only if its amount changes.")
	return v.see(back.Path)
}

// payoutPage is a payout and what went out with it.
type payoutPage struct {
	finance.PayoutDetail

	Next      template.URL
	First     bool
	Adds      bool // it is the sum of its rows
	MayFollow bool
}

func (c *Console) payout(v *visit) error {
	id, after := v.r.PathValue("id"), v.query("after")
	if strings.ContainsFunc(id+after, func(r rune) bool { return r <= ' ' || r > '~' }) {
		return domain.ErrNotFound // no id of the provider's
	}
	found, err := c.config.Books.PayoutRows(v.r.Context(), id, after, pageRows+1)
	if err != nil {
		return err
	}
	page := payoutPage{PayoutDetail: found, First: after == "", Adds: found.Payout.Amount == found.Payout.RowsNet, MayFollow: v.who.Can(clients.OperatorRead)}
	if len(page.Rows) > pageRows {
		page.Rows = page.Rows[:pageRows]
		page.Next = template.URL(url.Values{"after": {page.Rows[pageRows-1].ID}}.Encode()) //nolint:gosec // encoded
	}
	v.render(http.StatusOK, "payout", "Payout "+id, page)
	return nil
}
