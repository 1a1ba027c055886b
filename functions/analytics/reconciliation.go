package analytics

import (
	"context"
	"encoding/json"
	"slices"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/store"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
	"gateway/shared/usage/statement"
)

// Bounds of one reconciliation.
const (
	maxRequests  = 500_000 // recorded requests that are read
	maxNamed     = 100     // requests listed for one line
	requestsPage = 1000
)

func (f *family) reconciliations() admin.Route {
	return admin.Route{
		Method: "POST", Path: "/reconciliations", Name: "reconcile", Scopes: scopes, Level: admin.InEither,
		Doc: "Compare a provider's invoice with the recorded costs, line by line, with the requests that may explain each difference. Nothing is stored.",
		Body: []admin.Field{
			{Name: "provider", Type: admin.String, Required: true, Min: 1, Max: 64, Example: "openai", Doc: "Provider of the export."},
			{Name: "format", Type: admin.String, Required: true, Enum: statement.Formats(), Example: "csv", Doc: "openai and anthropic: responses of their usage or cost APIs, as JSON. aws: a cost and usage report. csv: a table with the column start (or date) and any of end, model, requests, input_tokens, cached_tokens, output_tokens, cost_usd."},
			{Name: "export", Type: admin.Any, Required: true, Example: "date,model,requests,cost_usd\n2026-11-01,gpt-4o,12,0.35\n", Doc: "The export: JSON, or a table as a string.", Form: admin.Schema{"type": []string{"object", "string"}}},
			{Name: "provider_slugs", Type: admin.Array, Max: 100, Of: &admin.Field{Type: admin.String, Min: 1, Max: 255}, Doc: "Only requests by these saved providers: those of the invoiced account."},
		},
		Unrecorded: true, ResponseOf: admin.SchemaOf[reconciled], Do: f.reconcile,
	}
}

// reconciled is the response.
type reconciled struct {
	Object   string  `json:"object" enum:"reconciliation"`
	Provider string  `json:"provider"`
	Matches  bool    `json:"matches" doc:"No line has a difference."`
	Lines    []entry `json:"lines"`
}

// entry is a period and a model.
type entry struct {
	Start      time.Time     `json:"start"`
	End        time.Time     `json:"end"`
	Model      *string       `json:"model" doc:"null: all models."`
	Theirs     *side         `json:"theirs" doc:"null: the invoice has no such line."`
	Ours       *side         `json:"ours" doc:"null: there are no such recorded requests."`
	Difference side          `json:"difference" doc:"Invoiced minus recorded, for the figures that both sides have."`
	Matches    bool          `json:"matches"`
	Requests   []lineRequest `json:"requests" doc:"For a line with a difference: up to 100 requests, doubtful ones first."`
}

// side has the figures of one of the two sides; null where it has none.
type side struct {
	Requests *int64   `json:"requests"`
	Input    *int64   `json:"input_tokens"`
	Cached   *int64   `json:"cached_tokens"`
	Output   *int64   `json:"output_tokens"`
	Cost     *float64 `json:"cost" doc:"US dollars."`
}

// lineRequest is a recorded request that belongs to a line.
type lineRequest struct {
	LogID string   `json:"log_id"`
	Cost  float64  `json:"cost" doc:"US dollars."`
	Doubt []string `json:"doubt" doc:"Possible reasons for a difference: estimated, limited, unpriced, unconfirmed, failed, client_gone."`
}

func (f *family) reconcile(c *admin.Call) (any, error) {
	sc, err := usagequery.Scope(c)
	if err != nil {
		return nil, err
	}
	raw := c.Body.Raw("export")
	var text string
	if json.Unmarshal(raw, &text) == nil {
		raw = []byte(text)
	}
	lines, err := statement.Read(c.Body.Text("format"), raw)
	if err != nil {
		return nil, err
	}
	// A request may have called the provider and then another: all are read.
	filter := report.Filter{From: lines[0].Start}
	for i := range lines {
		if lines[i].End.After(filter.To) {
			filter.To = lines[i].End
		}
	}
	filter.To = filter.To.Add(-time.Microsecond) // its end is included there
	if err := usagequery.Restrict(c, &filter); err != nil {
		return nil, err
	}
	b := newReconciler(lines, c.Body.Text("provider"), c.Body.Texts("provider_slugs"))
	if err := f.count(c.Context, sc, &filter, b); err != nil {
		return nil, usagequery.Failed(err)
	}
	return b.respond(), nil
}

// count adds every request of the time range to b.
func (f *family) count(ctx context.Context, sc store.Scope, filter *report.Filter, b *reconciler) error {
	q := report.LogQuery{Filter: *filter, Limit: requestsPage, NoTotal: true}
	for seen := 0; ; {
		page, err := f.reader.Logs(ctx, sc, &q)
		if err != nil {
			return err
		}
		for i := range page.Records {
			b.record(&page.Records[i])
		}
		if seen += len(page.Records); page.Next == "" {
			return nil
		}
		if seen >= maxRequests {
			return fault.Invalid("export", "covers more than %d requests; shorten the time range", maxRequests)
		}
		q.Cursor = page.Next
	}
}

// reconciler matches the gateway's records with the lines of the provider's invoice.
type reconciler struct {
	provider string
	slugs    []string // empty: of all
	lines    []*line
	periods  [][2]time.Time // of the lines, each once
}

type line struct {
	start, end time.Time
	model      string
	theirs     *statement.Counts // nil: they have no such line
	ours       statement.Counts
	counted    bool // ours has something
	requests   []lineRequest
}

func newReconciler(lines []statement.Line, provider string, slugs []string) *reconciler {
	b := &reconciler{provider: provider, slugs: slugs}
	for i := range lines {
		l := &lines[i]
		b.lines = append(b.lines, &line{start: l.Start, end: l.End, model: l.Model, theirs: &l.Counts})
		if p := [2]time.Time{l.Start, l.End}; !slices.Contains(b.periods, p) {
			b.periods = append(b.periods, p)
		}
	}
	return b
}

// record adds the calls of one request to their lines.
func (b *reconciler) record(r *usage.Record) {
	for i := range r.Attempts {
		a := &r.Attempts[i]
		if a.Provider != b.provider || len(b.slugs) > 0 && !slices.Contains(b.slugs, a.ProviderSlug) || a.Status < 200 || a.Status > 299 && !a.Usage.IsReported() {
			continue // a rejected call is on no invoice
		}
		at, model := r.Start.Add(a.Start), a.Model
		if i == len(r.Attempts)-1 && r.Model != "" {
			model = r.Model // as the provider calls it
		}
		for _, p := range b.periods {
			if !at.Before(p[0]) && at.Before(p[1]) {
				b.line(p, a.Model, model).count(r, a)
			}
		}
	}
}

// line finds the line of a model in a period: theirs, else one of ours alone.
func (b *reconciler) line(p [2]time.Time, requested, answered string) *line {
	var all *line
	for _, l := range b.lines {
		switch {
		case !l.start.Equal(p[0]) || !l.end.Equal(p[1]):
		case sameModel(l.model, answered), sameModel(l.model, requested):
			return l
		case l.model == "" && l.theirs != nil:
			all = l
		}
	}
	if all == nil {
		all = &line{start: p[0], end: p[1], model: answered}
		b.lines = append(b.lines, all)
	}
	return all
}

// sameModel reports whether two names denote the same model: equal names, or one with a version
// date appended.
func sameModel(a, b string) bool {
	if a == "" || b == "" {
		return false
	}
	if len(a) > len(b) {
		a, b = b, a
	}
	rest, ok := strings.CutPrefix(b, a)
	return ok && strings.Trim(rest, "-0123456789") == ""
}

func (l *line) count(r *usage.Record, a *usage.Attempt) {
	l.counted = true
	u := &a.Usage
	for _, n := range []struct {
		to **int64
		by int64
	}{{&l.ours.Requests, max(u.N(pricing.Requests), 1)}, {&l.ours.Input, u.InputTokens()}, {&l.ours.Cached, u.Cached()}, {&l.ours.Output, u.OutputTokens()}} {
		if *n.to == nil {
			*n.to = new(int64)
		}
		**n.to += n.by
	}
	if l.ours.Cost == nil {
		l.ours.Cost = new(pricing.NanoDollars)
	}
	*l.ours.Cost += a.Cost
	l.name(r, a)
}

// name lists a request of the line; doubtful ones come first.
func (l *line) name(r *usage.Record, a *usage.Attempt) {
	n := lineRequest{LogID: r.ID, Cost: dollars(a.Cost), Doubt: []string{}}
	for word, doubtful := range map[string]bool{"estimated": a.Usage.Estimated, "limited": a.Usage.Limited, "unpriced": !r.Priced, "unconfirmed": r.Unconfirmed, "failed": !r.Success(), "client_gone": r.ClientGone} {
		if doubtful {
			n.Doubt = append(n.Doubt, word)
		}
	}
	slices.Sort(n.Doubt)
	if len(l.requests) < maxNamed {
		l.requests = append(l.requests, n)
		return
	}
	if len(n.Doubt) == 0 {
		return
	}
	if i := slices.IndexFunc(l.requests, func(b lineRequest) bool { return len(b.Doubt) == 0 }); i >= 0 {
		l.requests[i] = n
	}
}

func dollars(n pricing.NanoDollars) float64 { return float64(n) / 1e9 }

func sideOf(c *statement.Counts) *side {
	s := &side{Requests: c.Requests, Input: c.Input, Cached: c.Cached, Output: c.Output}
	if c.Cost != nil {
		v := dollars(*c.Cost)
		s.Cost = &v
	}
	return s
}

// tolerance is the difference in nano-dollars up to which two amounts count as the same: invoices are
// rounded to a hundredth of a cent.
const tolerance = 100_000

func (b *reconciler) respond() reconciled {
	out := reconciled{Object: "reconciliation", Provider: b.provider, Matches: true, Lines: []entry{}}
	slices.SortStableFunc(b.lines, func(x, y *line) int {
		if c := x.start.Compare(y.start); c != 0 {
			return c
		}
		return strings.Compare(x.model, y.model)
	})
	for _, l := range b.lines {
		e := l.entry()
		out.Matches = out.Matches && e.Matches
		out.Lines = append(out.Lines, e)
	}
	return out
}

func (l *line) entry() entry {
	e := entry{Start: l.start, End: l.end, Requests: []lineRequest{}, Matches: true}
	if l.model != "" {
		e.Model = &l.model
	}
	none := statement.Counts{}
	theirs := l.theirs
	if theirs != nil {
		e.Theirs = sideOf(theirs)
	} else {
		theirs = &none
	}
	ours := l.ours
	if l.counted {
		e.Ours = sideOf(&ours)
	} else if l.theirs != nil { // no recorded request: zero of each
		ours = statement.Counts{Requests: new(int64), Input: new(int64), Cached: new(int64), Output: new(int64), Cost: new(pricing.NanoDollars)}
	}
	e.Difference.Requests = e.subtract(theirs.Requests, ours.Requests)
	e.Difference.Input = e.subtract(theirs.Input, ours.Input)
	e.Difference.Cached = e.subtract(theirs.Cached, ours.Cached)
	e.Difference.Output = e.subtract(theirs.Output, ours.Output)
	if theirs.Cost != nil && ours.Cost != nil {
		by := *theirs.Cost - *ours.Cost
		v := dollars(by)
		e.Difference.Cost = &v
		e.Matches = e.Matches && by <= tolerance && by >= -tolerance
	}
	if l.theirs == nil {
		e.Matches = false
	}
	if !e.Matches {
		slices.SortStableFunc(l.requests, func(a, b lineRequest) int { return len(b.Doubt) - len(a.Doubt) })
		e.Requests = append(e.Requests, l.requests...)
	}
	return e
}

func (e *entry) subtract(theirs, ours *int64) *int64 {
	if theirs == nil || ours == nil {
		return nil
	}
	n := *theirs - *ours
	e.Matches = e.Matches && n == 0
	return &n
}
