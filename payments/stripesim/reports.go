package stripesim

import (
	"maps"
	"slices"
	"strings"
	"time"
	_ "time/tzdata" // zones must not depend on the machine
)

// report is a report run and its file. Guarded by world.mu.
type report struct {
	id        string
	order     int64
	created   int64
	kind      string
	asked     object // the parameters, as they were given
	start     int64
	end       int64 // exclusive
	zone      *time.Location
	columns   []string
	currency  string
	category  string
	succeeded int64 // 0: not yet
	file      *file
}

// file is what a report run has written.
type file struct {
	id      string
	created int64
	name    string
	url     string
	body    []byte
}

func (p *report) ident() string { return p.id }
func (p *report) place() int64  { return p.order }
func (p *report) born() int64   { return p.created }

// writers are the reports there are.
func writers() map[string]func(*world, *report) [][]string {
	return map[string]func(*world, *report) [][]string{
		"balance_change_from_activity.itemized.3": (*world).itemizedActivity,
		"balance_change_from_activity.summary.1":  (*world).summedActivity,
		"balance.summary.1":                       (*world).summedBalance,
		"payout_reconciliation.itemized.5":        (*world).itemizedPayouts,
	}
}

func prepareReportCreate(c *call) (execution, *apiError) {
	r := c.params.read()
	p := &report{id: newID("frr_1", 23), kind: r.required("report_type")}
	known := writers()
	if _, modelled := known[p.kind]; !modelled {
		r.refuse(invalid("", "report_type", "The report types here are %s.", strings.Join(slices.Sorted(maps.Keys(known)), ", ")))
	}
	r.known["parameters"] = true
	given, _ := r.params["parameters"].(params)
	p.read(r, given.read())
	x := c.expansions(r)
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		if p.end > w.now().Unix() {
			return nil, invalid("", "parameters[interval_end]", "The data for this report is not there yet: the interval ends in the future.")
		}
		p.order, p.created = w.birth()
		w.reports = append(w.reports, p)
		c.entry.Object = p.id
		pending := p.render(x)
		w.write(p, c.host)
		w.emit(nil, "reporting.report_run.succeeded", p.render(expansions{}))
		return pending, nil // as Stripe answers: whoever asks again finds it done
	}, nil
}

// read takes the report's own parameters.
func (p *report) read(outer, r *reader) {
	p.start, p.end = r.integer("interval_start"), r.integer("interval_end")
	p.columns, p.currency, p.category = r.list("columns"), r.text("currency"), r.text("reporting_category")
	name := orDefault(r.text("timezone"), "Etc/UTC")
	r.unmodelled("connected_account", "payout")
	if err := r.finish(); err != nil {
		outer.refuse(invalid(err.code, "parameters["+err.param+"]", "%s", err.message))
		return
	}
	zone, err := time.LoadLocation(name)
	if err != nil || name == "Local" {
		outer.refuse(invalid("", "parameters[timezone]", "%q is no time zone of the IANA database, such as Europe/Berlin.", name))
		return
	}
	p.zone = zone
	if p.start <= 0 || p.end <= p.start {
		outer.refuse(invalid("", "parameters[interval_end]", "interval_start and interval_end are Unix times, the end is exclusive and later."))
	}
	for _, column := range p.columns {
		if !knownColumn(column) {
			outer.refuse(invalid("", "parameters[columns]", "There is no column %q.", column))
		}
	}
	p.asked = object{"interval_start": p.start, "interval_end": p.end, "timezone": name}
	for field, value := range map[string]string{"currency": p.currency, "reporting_category": p.category} {
		if value != "" {
			p.asked[field] = value
		}
	}
	if len(p.columns) > 0 {
		p.asked["columns"] = p.columns
	}
}

// write makes the report's file.
func (w *world) write(p *report, host string) {
	now := w.now().Unix()
	f := &file{id: newID("file_1", 23), created: now, name: p.id + ".csv", body: encodeCSV(writers()[p.kind](w, p))}
	f.url = "http://" + host + "/v1/files/" + f.id + "/contents"
	w.files = append(w.files, f)
	p.file, p.succeeded = f, now
}

func (p *report) render(expansions) object {
	o := object{
		"id": p.id, "object": "reporting.report_run", "livemode": false, "created": p.created, "report_type": p.kind,
		"parameters": maps.Clone(p.asked), "status": "pending", "error": nil, "result": nil, "succeeded_at": nil,
	}
	if p.succeeded != 0 {
		o["status"], o["succeeded_at"], o["result"] = "succeeded", p.succeeded, p.file.render()
	}
	return o
}

func (f *file) render() object {
	return object{
		"id": f.id, "object": "file", "created": f.created, "filename": f.name, "purpose": "finance_report_run", "size": len(f.body),
		"type": "csv", "title": nil, "expires_at": nil, "url": f.url,
		"links": object{"object": "list", "data": []object{}, "has_more": false, "url": "/v1/file_links?file=" + f.id},
	}
}

func prepareReportRetrieve(c *call) (execution, *apiError) {
	if err := c.params.read().finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		for _, p := range w.reports {
			if p.id == c.id {
				return p.render(expansions{}), nil
			}
		}
		return nil, missing("report run", "id", c.id)
	}, nil
}

func prepareReportList(c *call) (execution, *apiError) {
	r := c.params.read()
	page := readPage(r)
	if err := r.finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		return list(c, page, w.reports, func(*report) bool { return true }, func(p *report) object { return p.render(expansions{}) })
	}, nil
}

func prepareFile(c *call) (execution, *apiError) {
	if err := c.params.read().finish(); err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		for _, f := range w.files {
			if f.id == c.id {
				return f.render(), nil
			}
		}
		return nil, missing("file", "file", c.id)
	}, nil
}

// prepareFileContents answers the file itself.
func prepareFileContents(c *call) (execution, *apiError) {
	find, err := prepareFile(c)
	if err != nil {
		return nil, err
	}
	return func(w *world) (object, *apiError) {
		o, err := find(w)
		for _, f := range w.files {
			if f.id == c.id {
				c.file = f.body
			}
		}
		return o, err
	}, nil
}
