package console

import (
	"bytes"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strings"
	"time"

	"holdfast/internal/clients"
)

// pages are the templates, each with the frame around it.
type pages map[string]*template.Template

// frame is what is around every page.
type frame struct {
	Title   string
	Page    any
	Who     string // empty: nobody is signed in
	CSRF    string
	Said    *said
	Nav     []navItem
	Home    string // where the first of them is
	Find    bool   // effects and bookings can be looked for
	Self    string // this page's own address
	Live    bool   // it refreshes itself
	Toggle  string // the address that stops or starts that
	Seconds int    // between two looks
}

type navItem struct {
	Path, Text string
	Here       bool
	scope      clients.Scope
}

// nav lists the pages by scope.
func nav() []navItem {
	see := clients.OperatorRead
	return []navItem{
		{Path: "/", Text: "Overview", scope: see},
		{Path: "/effects?stuck=1", Text: "Stuck", scope: see},
		{Path: "/requests", Text: "Second person", scope: see},
		{Path: "/runs", Text: "Bulk runs", scope: see},
		{Path: "/pauses", Text: "Pauses", scope: see},
		{Path: "/audit", Text: "Audit", scope: see},
		{Path: "/runbook", Text: "Runbook", scope: see},
		{Path: "/finance", Text: "Month", scope: clients.Finance},
		{Path: "/finance/exceptions", Text: "Exceptions", scope: clients.Finance},
	}
}

func loadPages(files fs.FS, a assets) (pages, error) {
	functions := formatting()
	functions["asset"] = a.url
	base, err := template.New("frame.html").Funcs(functions).ParseFS(files, "templates/frame.html", "templates/parts.html")
	if err != nil {
		return nil, err
	}
	names, err := fs.Glob(files, "templates/*.html")
	if err != nil {
		return nil, err
	}
	all := pages{}
	for _, name := range names {
		own, err := base.Clone()
		if err == nil {
			own, err = own.ParseFS(files, name)
		}
		if err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		all[strings.TrimSuffix(path.Base(name), ".html")] = own
	}
	return all, nil
}

// render answers with a page. It is written out first: half a page must not look whole.
func (v *visit) render(status int, name, title string, page any) {
	f := frame{Title: title, Page: page, Who: v.who.Name, Home: v.home().Path, Find: v.who.Can(clients.OperatorRead), Self: v.r.URL.RequestURI(), Seconds: int(v.c.config.Refresh / time.Second)}
	if v.who.Name != "" {
		f.CSRF, f.Said = v.csrf(), v.takeSaid()
		for _, item := range nav() {
			if v.who.Can(item.scope) && (item.scope != clients.Finance || v.c.config.Books != nil) {
				at, _, _ := strings.Cut(item.Path, "?")
				item.Here = v.r.URL.Path == Root+at || at != "/" && at != "/finance" && strings.HasPrefix(v.r.URL.Path, Root+at)
				f.Nav = append(f.Nav, item)
			}
		}
	}
	f.Live = slices.Contains(livePages(), name) && v.query("live") != "off"
	f.Toggle = v.toggle(f.Live)
	var out bytes.Buffer
	if err := v.c.pages[name].ExecuteTemplate(&out, "frame.html", f); err != nil {
		v.c.logger.ErrorContext(v.r.Context(), "a page of the console cannot be written", "page", name, "error", err.Error())
		http.Error(v.w, "This page cannot be written. The log of the api process says more. Nothing more was done than the page before said.", http.StatusInternalServerError)
		return
	}
	v.w.Header().Set("Content-Type", "text/html; charset=utf-8")
	v.w.WriteHeader(status)
	_, _ = out.WriteTo(v.w)
}

// livePages refresh themselves.
func livePages() []string {
	return []string{"overview", "list", "effect", "timeline", "requests", "runs", "run", "pauses", "audit"}
}

// toggle is this page's address with the refreshing turned the other way.
func (v *visit) toggle(live bool) string {
	u := *v.r.URL
	q := u.Query()
	q.Del("live")
	if live {
		q.Set("live", "off")
	}
	u.RawQuery = q.Encode()
	return u.RequestURI()
}
