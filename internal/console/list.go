package console

import (
	"net/http"
	"slices"

	"holdfast/internal/operator"
)

const pageRows = 50

// listPage is one page of the effects that a filter chooses.
type listPage struct {
	operator.Page

	Filter filterForm
	Next   string // the next page's address; empty: this is the last
	First  bool
	Bulk   string // the address of a bulk act on what is listed; empty: not by this filter
}

func (c *Console) list(v *visit) error {
	form, f, err := filter(v.r.URL.Query(), slices.Concat(unfinished(), finished()))
	if err != nil {
		return err
	}
	f.Limit, f.After = pageRows, v.query("after")
	found, err := c.config.Desk.List(v.r.Context(), f)
	if err != nil {
		return err
	}
	page := listPage{Page: found, Filter: form, First: f.After == ""}
	if found.Next != "" {
		next := form.values()
		next.Set("after", found.Next)
		page.Next = "/effects?" + next.Encode()
	}
	if !form.Status.Finished() && len(runActs(v.who)) > 0 {
		page.Bulk = "/runs/new?" + form.values().Encode()
	}
	title := "Effects"
	if form.Stuck {
		title = "Stuck"
	}
	v.render(http.StatusOK, "list", title, page)
	return nil
}
