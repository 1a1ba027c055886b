// Package vendors implements the checks that call a guardrail vendor. A table of wires defines
// for each check how to call its vendor and how to read the response: a template for the
// request and a short function. Calls, credentials, limits, errors and breakers are shared.
//
// If a vendor does not respond or responds incorrectly, the check has an error and passes
// unless failOnError is set. A check reports labels and scores, never parts of the text.
package vendors

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/content"
	"gateway/shared/guard/judge"
	"gateway/shared/provider"
	"gateway/shared/wire"
)

// Deps are the dependencies of vendor checks.
type Deps struct {
	Now    func() time.Time
	Signer provider.Signer // trades credentials for short-lived ones
}

// Makers returns the checks of this package, by id.
func Makers(d Deps) map[string]judge.Maker {
	b := &breakers{now: d.Now, known: map[[32]byte]*circuit{}}
	out := make(map[string]judge.Maker, len(wires))
	for i := range wires {
		w := &wires[i]
		out[w.id] = func(params map[string]json.RawMessage) judge.Func { return w.check(d, b, params).run }
	}
	return out
}

// check is a vendor's check with the parameters of one guardrail. It is immutable and shared
// between requests.
type check struct {
	*row
	Deps
	breakers *breakers
	params   map[string]any // with the table's defaults for those that are absent
	creds    map[string]any
	bodies   [2]any // templates: before the request, after the response
	timeout  time.Duration
	forward  []string
	mapped   []provider.SecretMapping // credentials that a secret manager fills
	broken   *judge.Failure           // the credentials cannot be used
}

func (w *row) check(d Deps, b *breakers, raw map[string]json.RawMessage) *check {
	c := &check{row: w, Deps: d, breakers: b, params: map[string]any{}, timeout: 5 * time.Second}
	if row, ok := guard.Find(w.id); ok {
		for _, p := range row.Parameters() { // unknown parameters are ignored
			if p.Default != nil {
				c.params[p.Name] = p.Default
			}
			if v, ok := judge.Read[any](raw, p.Name); ok {
				c.params[p.Name] = v
			}
		}
	}
	if ms := c.number("timeout", 5000); ms > 0 {
		c.timeout = time.Duration(min(ms, 60_000)) * time.Millisecond
	}
	c.forward = judge.Get(raw, "forwardHeaders", []string(nil))
	c.creds, _ = judge.Object[map[string]any](raw, "credentials")
	if inner, ok := c.creds[w.nest].(map[string]any); ok && w.nest != "" {
		c.creds = inner
	}
	delete(c.params, "credentials")
	c.mapped = guard.Mappings(raw)
	for i, text := range []string{w.body, w.after} {
		if text == "" {
			text = w.body
		}
		if json.Unmarshal([]byte(text), &c.bodies[i]) != nil {
			c.broken = &judge.Failure{Name: "Check error", Message: "Error executing check"}
		}
	}
	if c.creds == nil {
		c.creds = map[string]any{}
	}
	if w.ready != nil && c.broken == nil && len(c.mapped) == 0 {
		c.broken = w.ready(c)
	}
	return c
}

// filled returns the check with the credentials from a secret manager. They are only for saved
// guardrails: otherwise the author of a config could choose where a secret is sent.
func (c *check) filled(ctx context.Context, s *judge.Subject) (*check, *judge.Failure) {
	if len(c.mapped) == 0 || c.broken != nil {
		return c, c.broken
	}
	if !s.Saved || s.Secrets == nil {
		return nil, c.fails(judge.CredentialsError, "was not called: secret_mappings are only allowed in saved guardrails")
	}
	values, err := s.Secrets(ctx, c.mapped)
	if err != nil {
		return nil, c.fails(judge.CredentialsError, "was not called: %s", fault.From(err).Message)
	}
	own := *c
	own.creds = maps.Clone(c.creds)
	for field, value := range values {
		own.creds[field[strings.LastIndexByte(field, '.')+1:]] = value
	}
	if own.ready != nil {
		return &own, own.ready(&own)
	}
	return &own, nil
}

// number reads a parameter; standard if it is not a number.
func (c *check) number(name string, standard float64) float64 {
	switch v := c.params[name].(type) {
	case float64:
		return v
	case int64:
		return float64(v)
	case int:
		return float64(v)
	}
	return standard
}

func (c *check) is(name string) bool { v, _ := c.params[name].(bool); return v }

// listed reads a parameter that is a list of texts, or one text.
func (c *check) listed(name string) []string {
	switch v := c.params[name].(type) {
	case string:
		return []string{v}
	case []string:
		return v
	case []any:
		var out []string
		for _, e := range v {
			if s, ok := e.(string); ok {
				out = append(out, s)
			}
		}
		return out
	}
	return nil
}

// run is one run of a check: its subject and its results. Its calls run side by side and
// write under mu.
type run struct {
	*check
	s *judge.Subject

	mu       sync.Mutex
	failed   bool
	findings []string
	scores   map[string]float64
	texts    []*string
	body     json.RawMessage
	sources  []source
	err      *judge.Failure
	answered bool // a call got a verdict
}

// vendorCall is one call of a run.
type vendorCall struct {
	run  *run
	part int    // index of the subject's text; -1: all of them
	text string // of this part, or of all
}

// run runs the check.
func (c *check) run(ctx context.Context, s *judge.Subject) judge.Verdict {
	if c.only != nil && !slices.Contains(c.only, s.Kind) {
		return judge.Verdict{Pass: true}
	}
	text := s.Text()
	if text == "" && !c.empty {
		return judge.Failed("MissingText", "There is no text to be checked")
	}
	ctx, cancel := context.WithTimeout(ctx, c.timeout)
	defer cancel()
	c, broken := c.filled(ctx, s)
	if broken != nil {
		return judge.Verdict{Err: broken}
	}
	r := &run{check: c, s: s}
	var wait sync.WaitGroup
	places := make(chan struct{}, maxSideBySide)
	send := func(part int, text string) {
		places <- struct{}{}
		wait.Go(func() {
			defer func() { <-places }()
			r.query(ctx, part, text)
		})
	}
	switch {
	case c.each:
		for i, t := range s.Texts {
			if t != "" {
				send(i, t)
			}
		}
	case c.most > 0 && len(text) > c.most:
		for piece := range slices.Chunk([]rune(text), c.most) {
			send(-1, string(piece))
		}
	default:
		r.query(ctx, -1, text)
	}
	wait.Wait()
	return r.verdict()
}

// maxSideBySide limits how many calls of one check run at a time.
const maxSideBySide = 8

// data is the data of a verdict.
type data struct {
	Verdict  bool               `json:"verdict"`
	Findings []string           `json:"findings"` // labels from the vendor
	Scores   map[string]float64 `json:"scores,omitempty"`
	Redacted bool               `json:"redacted"`
	Sources  []source           `json:"sources,omitempty"` // results of a search
}

func (r *run) verdict() judge.Verdict {
	if r.err != nil && !r.failed {
		r.err.Answered = r.err.Answered || r.answered // of parts of a text: no outage
		return judge.Verdict{Err: r.err, Texts: r.texts}
	}
	slices.Sort(r.findings)
	d := &data{Verdict: !r.failed, Findings: slices.Compact(r.findings), Scores: r.scores, Sources: r.sources}
	if d.Findings == nil {
		d.Findings = []string{}
	}
	v := judge.Verdict{Pass: !r.failed, Data: d, Texts: r.texts, Body: r.body}
	d.Redacted = r.texts != nil || r.body != nil
	return v
}

// found reports something for which the vendor faults the text.
func (r *run) found(label string) { r.note(label); r.failed = true }

// note reports a label that does not make the check fail.
func (r *run) note(label string) {
	if label != "" {
		r.findings = append(r.findings, label)
	}
}

// score stores a score of the vendor.
func (r *run) score(name string, x float64) {
	if r.scores == nil {
		r.scores = map[string]float64{}
	}
	r.scores[name] = max(r.scores[name], x)
}

// replace replaces the text of a part.
func (r *run) replace(part int, text string) {
	if part < 0 || part >= len(r.s.Texts) || r.s.Texts[part] == text {
		return
	}
	if r.texts == nil {
		r.texts = make([]*string, len(r.s.Texts))
	}
	r.texts[part] = &text
}

// redact replaces the text of a part if the check redacts; otherwise it makes the check fail.
func (r *run) redact(part int, text, label string) {
	if !r.is("redact") || part < 0 || part >= len(r.s.Texts) || r.s.Texts[part] == text {
		r.found(label)
		return
	}
	r.note(label)
	r.replace(part, text)
}

// searchWires put search results into the request: after its system prompt, or before its
// prompt. They always pass.
var searchWires = []row{
	{id: "exa.online", name: "Exa", url: "https://api.exa.ai/search", header: apiKeyHeader, only: searched,
		body:   `{"query":"$query","numResults":"$.numResults","useAutoprompt":true,"contents":{"text":true},"includeDomains":"$.includeDomains","excludeDomains":"$.excludeDomains"}`,
		values: values{"query": searchQuery}, judge: found},
	{id: "tavily.online", name: "Tavily", url: "https://api.tavily.com/search", header: bearer, only: searched,
		body: `{"query":"$query","max_results":"$.maxResults","search_depth":"$.searchDepth","chunks_per_source":"$.chunksPerSource","topic":"$.topic","time_range":"$.timeRange","start_date":"$.startDate","end_date":"$.endDate",` +
			`"include_answer":"$.includeAnswer","include_raw_content":"$.includeRawContent","include_images":"$.includeImages","include_domains":"$.includeDomains","exclude_domains":"$.excludeDomains","country":"$.country",` +
			`"auto_parameters":"$.autoParameters","exact_match":"$.exactMatch","include_usage":"$.includeUsage","safe_search":"$.safeSearch"}`,
		values: values{"query": searchQuery}, judge: found},
}

// searched are the request types that a search extends.
var searched = []string{"chatComplete", "complete"}

func searchQuery(a *vendorCall) any { return strings.TrimSpace(strings.ReplaceAll(a.text, "\n", " ")) }

// source is a page that a search found.
type source struct {
	Title string `json:"title"`
	URL   string `json:"url"`
}

// found writes the results into the request.
func found(a *vendorCall, answered response) {
	list := answered.list("results")
	var b strings.Builder
	if s := optional[string](answered, "answer"); s != "" {
		b.WriteString(s + "\n")
	}
	for i, one := range list {
		src := source{optional[string](one, "title"), one.text("url")}
		a.run.sources = append(a.run.sources, src)
		fmt.Fprintf(&b, "[%d] %q\nURL: %s\n", i+1, src.Title, src.URL)
		if date := first(one, "publishedDate", "published_date"); date != "finding" {
			b.WriteString("Date: " + date + "\n")
		}
		if text := first(one, "text", "raw_content", "content"); text != "finding" {
			b.WriteString(text + "\n")
		}
	}
	if b.Len() == 0 || *answered.bad {
		return
	}
	prefix, suffix := "\n<web_search_context>", "\n</web_search_context>"
	if s, ok := a.run.params["prefix"].(string); ok {
		prefix = s
	}
	if s, ok := a.run.params["suffix"].(string); ok {
		suffix = s
	}
	a.run.body = a.with(prefix + "\n" + b.String() + suffix)
}

// with returns the request with a text added.
func (a *vendorCall) with(text string) json.RawMessage {
	body := a.run.s.Request
	if a.run.s.Kind == "complete" {
		f := content.InRequest(a.run.s.Kind, body, content.LastMessage)
		return changed(&f, body, func(was string) string { return text + was })
	}
	if f := content.InRequest(a.run.s.Kind, body, content.Prompt); len(f.Texts) > 0 {
		return changed(&f, body, func(was string) string { return was + text })
	}
	keys := wire.NewKeySet("messages")
	var w wire.Walk
	if keys.Walk(body, &w) != nil {
		return nil
	}
	list := w.Spans[0].Of(body)
	if wire.KindOf(list) != wire.KindArray {
		return nil
	}
	raw := append(wire.AppendJSONString([]byte(`[{"role":"system","content":`), text), '}')
	if rest := strings.TrimSpace(string(list[1:])); rest != "]" {
		raw = append(raw, ',')
	}
	return wire.Splice(nil, body, keys.SetKey(&w, 0, append(raw, list[1:]...)))
}

// changed returns a body with its first text changed.
func changed(f *content.Found, body []byte, change func(string) string) json.RawMessage {
	for i, t := range f.Texts {
		if t != "" {
			now := make([]*string, len(f.Texts))
			t = change(t)
			now[i] = &t
			return f.ReplaceTexts(body, now)
		}
	}
	return nil
}
