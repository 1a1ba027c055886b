// Package usagequery is the common part of the routes of logs and analytics: the query
// parameters that select usage records, the scopes that a caller may query, and pages.
// Processing the records belongs to the families.
package usagequery

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/instant"
	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
)

// Names of the parameters that bound the time.
const (
	From = "time_of_generation_min"
	To   = "time_of_generation_max"
)

// Bounds of the parameters.
const (
	maxTokens    = 1 << 53
	maxCents     = 100_000_000_000 // a billion dollars
	mostFeedback = 10              // weighted feedback is in [-10, 10]
	maxEntries   = 100             // of a comma list
	maxEntry     = 255             // characters of an entry
	maxPairs     = 20              // of metadata
)

// bound is a pair of parameters, name_min and name_max.
type bound struct {
	name, doc string
	kind      admin.Type
	min, max  int64
	set       func(f *report.Filter, r report.Range)
}

var bounds = []bound{
	{"total_units", "tokens in and out", admin.Integer, 0, maxTokens, func(f *report.Filter, r report.Range) { f.TotalTokens = r }},
	{"prompt_token", "tokens in", admin.Integer, 0, maxTokens, func(f *report.Filter, r report.Range) { f.PromptTokens = r }},
	{"completion_token", "tokens out", admin.Integer, 0, maxTokens, func(f *report.Filter, r report.Range) { f.CompletionTokens = r }},
	{"cost", "cost in US cents", admin.Number, 0, maxCents, func(f *report.Filter, r report.Range) { f.Cost = r }},
	{"weighted_feedback", "weighted feedback; requests without feedback are excluded", admin.Number, -mostFeedback, mostFeedback, func(f *report.Filter, r report.Range) { f.Feedback = r }},
}

// list is a parameter with several values and commas between them.
type list struct {
	name, doc string
	check     func(entry string) (problem string)
	set       func(f *report.Filter, entries []string)
}

var cacheStatuses = []string{"HIT", "SEMANTIC HIT", "MISS", "SEMANTIC MISS", "REFRESH", "DISABLED"}

var lists = []list{
	{"status_code", "Statuses that clients received.", checkStatus, func(f *report.Filter, e []string) {
		for _, s := range e {
			n, _ := strconv.Atoi(s) // checkStatus has read it
			f.Statuses = append(f.Statuses, n)
		}
	}},
	{"virtual_keys", "Saved providers, by slug.", nil, func(f *report.Filter, e []string) {
		for _, s := range e {
			f.ProviderSlugs = append(f.ProviderSlugs, strings.TrimPrefix(s, "@"))
		}
	}},
	{"configs", "Configs, by slug.", nil, func(f *report.Filter, e []string) { f.Configs = e }},
	{"prompt_slug", "Prompts, by slug.", nil, func(f *report.Filter, e []string) { f.Prompts = e }},
	{"experiment_ids", "Experiments of prompts, by id.", nil, func(f *report.Filter, e []string) { f.Experiments = e }},
	{"api_key_ids", "API keys, by id.", nil, func(f *report.Filter, e []string) { f.Keys = e }},
	{"ai_org", "Providers, such as openai.", nil, func(f *report.Filter, e []string) { f.Providers = e }},
	{"ai_model", "Models.", nil, func(f *report.Filter, e []string) { f.Models = e }},
	{"ai_org_model", "Models by provider, as provider__model.", checkPair, func(f *report.Filter, e []string) {
		for _, s := range e {
			org, model, _ := strings.Cut(s, pairSeparator)
			f.ProviderModel = append(f.ProviderModel, report.ProviderModel{Provider: org, Model: model})
		}
	}},
	{"cache_status", "Cache states: " + strings.Join(cacheStatuses, ", ") + ".", checkCache, func(f *report.Filter, e []string) { f.CacheStatuses = e }},
	{"trace_id", "Traces.", nil, func(f *report.Filter, e []string) { f.TraceIDs = e }},
	{"span_id", "Spans.", nil, func(f *report.Filter, e []string) { f.SpanIDs = e }},
	{"user_ids", "Users with the keys that made the requests, by id.", nil, func(f *report.Filter, e []string) { f.UserIDs = e }},
	{"end_users", "Users that requests were made for: metadata _user.", nil, func(f *report.Filter, e []string) { f.EndUsers = e }},
	{"session_id", "Sessions of coding agents.", nil, func(f *report.Filter, e []string) { f.Sessions = e }},
	{"agent_id", "Coding agents.", nil, func(f *report.Filter, e []string) { f.Agents = e }},
	{"parent_agent_id", "Coding agents with sub-agents that made the requests.", nil, func(f *report.Filter, e []string) { f.ParentAgents = e }},
}

const pairSeparator = "__"

func checkStatus(s string) string {
	if n, err := strconv.Atoi(s); err != nil || n < 100 || n > 599 || len(s) != 3 {
		return "must be comma-separated statuses from 100 to 599"
	}
	return ""
}

func checkPair(s string) string {
	if org, model, ok := strings.Cut(s, pairSeparator); !ok || org == "" || model == "" {
		return "must be comma-separated pairs such as openai__gpt-4o"
	}
	return ""
}

func checkCache(s string) string {
	if !slices.Contains(cacheStatuses, s) {
		return "must contain only " + strings.Join(cacheStatuses, ", ")
	}
	return ""
}

// List describes a parameter with several comma-separated values. check validates one of them;
// it may be nil.
func List(name, doc string, check func(entry string) string) admin.Field {
	return admin.Field{
		Name: name, Type: admin.Array, Of: &admin.Field{Type: admin.String}, Max: maxEntries,
		Doc: doc + " Several, comma-separated.",
		Check: func(raw json.RawMessage) []fault.Detail {
			var entries []string
			if err := json.Unmarshal(raw, &entries); err != nil {
				return []fault.Detail{{Message: "must be a comma-separated list"}}
			}
			for _, e := range entries {
				e = strings.TrimSpace(e)
				problem := ""
				switch {
				case e == "":
					problem = "must not have empty entries"
				case len(e) > maxEntry:
					problem = fmt.Sprintf("must have entries of at most %d characters", maxEntry)
				case check != nil:
					problem = check(e)
				}
				if problem != "" {
					return []fault.Detail{{Message: problem}}
				}
			}
			return nil
		},
	}
}

// Entries reads a parameter that List describes.
func Entries(q admin.Values, name string) []string {
	entries := q.Texts(name)
	for i := range entries {
		entries[i] = strings.TrimSpace(entries[i])
	}
	return entries
}

// Fields are the parameters that choose records. timed means that both ends of
// the time must be given.
func Fields(timed bool) []admin.Field {
	out := []admin.Field{
		instant.Field(From, "Start of the time range; requests are counted at their arrival.", timed),
		instant.EndField(To, "End of the time range, inclusive.", timed),
		{Name: "workspace_slug", Type: admin.String, Max: maxEntry,
			Doc: "Workspace, by id or slug, for organization keys, which see all workspaces by default. Ignored for other keys, which see their own."},
	}
	for _, b := range bounds {
		for _, end := range [...][2]string{{"_min", "Minimum "}, {"_max", "Maximum "}} {
			out = append(out, admin.Field{Name: b.name + end[0], Type: b.kind, Min: b.min, Max: b.max, Doc: end[1] + b.doc + "."})
		}
	}
	for _, l := range lists {
		out = append(out, List(l.name, l.doc, l.check))
	}
	return append(out, admin.Field{Name: "metadata", Type: admin.Map, Of: &admin.Field{Type: admin.String}, Max: maxPairs,
		Doc: "JSON object of metadata that a request must contain."})
}

// Filter reads the parameters. Errors name all that is wrong. Bounds on feedback have
// to be turned into traces by Rated; until then no request is within them.
func Filter(q admin.Values) (report.Filter, error) {
	var f report.Filter
	var wrong []fault.Detail
	var reversed *fault.Detail
	if f.From, f.To, reversed = instant.Range(q, From, To); reversed != nil {
		wrong = append(wrong, *reversed)
	}
	for _, b := range bounds {
		r, err := b.read(q)
		if err != nil {
			wrong = append(wrong, *err)
		} else {
			b.set(&f, r)
		}
	}
	for _, l := range lists {
		if e := Entries(q, l.name); len(e) > 0 {
			l.set(&f, e)
		}
	}
	if m := q.TextMap("metadata"); len(m) > 0 {
		f.Metadata = m
	}
	if wrong := fault.Invalids(wrong); wrong != nil {
		return f, wrong
	}
	return f, nil
}

// nanoDollars of a cent.
const nanoDollars = 10_000_000

func (b *bound) read(q admin.Values) (r report.Range, wrong *fault.Detail) {
	for _, end := range []struct {
		name string
		to   **int64
	}{{b.name + "_min", &r.Min}, {b.name + "_max", &r.Max}} {
		if !q.HasValue(end.name) {
			continue
		}
		n := q.Int(end.name)
		if b.kind == admin.Number {
			n = int64(math.Round(q.Float(end.name) * nanoDollars))
		}
		*end.to = &n
	}
	if r.Min != nil && r.Max != nil && *r.Min > *r.Max {
		return r, &fault.Detail{Field: b.name + "_min", Message: "must not be more than " + b.name + "_max"}
	}
	return r, nil
}

// TimedFilter is Filter for routes where the time must be given.
func TimedFilter(q admin.Values) (report.Filter, error) {
	f, err := Filter(q)
	if err != nil {
		return f, err
	}
	if wrong := fault.Invalids(f.Validate(From, To)); wrong != nil {
		return f, wrong
	}
	return f, nil
}

// Scope is where a call looks: a workspace key in its own workspace, an
// organization key in the one that it names, else in all of them. Routes that
// use it are admin.InEither.
func Scope(c *admin.Call) (store.Scope, error) {
	named := c.Query.Text("workspace_slug")
	if named == "" || !c.Caller.OfOrganisation() {
		return c.Scope, nil
	}
	ws, ok, err := c.Workspace(named)
	switch {
	case err != nil:
		return c.Scope, err
	case !ok:
		return c.Scope, admin.Denied()
	case c.Scope.Workspace != "" && c.Scope.Workspace != ws.ID:
		return c.Scope, fault.Invalid("workspace_slug", "must name the same workspace as workspace_id")
	}
	sc := c.Scope
	sc.Workspace = ws.ID
	return sc, nil
}

// maxPage prevents page times size from overflowing.
const maxPage = 1_000_000

// PageFields are the parameters of a page. A page_size of 0 requests only the total.
func PageFields(size, maxSize int64) []admin.Field {
	return []admin.Field{
		{Name: "current_page", Type: admin.Integer, Max: maxPage, Default: 0, Doc: "Number of the page; the first is 0."},
		{Name: "page_size", Type: admin.Integer, Max: maxSize, Default: size, Doc: "Entries per page; 0 returns only the total."},
	}
}

// Page reads the parameters of PageFields: how many entries to skip, and
// how many to give.
func Page(q admin.Values, size int64) (offset, limit int) {
	if q.HasValue("page_size") {
		size = q.Int("page_size")
	}
	return int(q.Int("current_page") * size), int(size)
}

// Failed is the error of a question as callers see it: what the reader says
// about the query, else that the archive did not answer.
func Failed(err error) error {
	var f *fault.Fault
	if err == nil || errors.As(err, &f) || errors.Is(err, context.Canceled) {
		return err
	}
	return fault.Unavailable(err)
}

// MaxFeedback is how many feedbacks one question reads.
const MaxFeedback = 50_000

// MaxStoredTraces is how many traces a filter that is stored may name.
const MaxStoredTraces = 5_000

// early is how long before its request feedback may have been given, because clocks differ
// and clients may name traces beforehand.
const early = time.Hour

// Workspaces returns the workspace scopes that store the feedback of a scope.
func Workspaces(c *admin.Call, sc store.Scope) ([]store.Scope, error) {
	if sc.Workspace != "" {
		return []store.Scope{sc}, nil
	}
	rows, err := c.Resources.List(c.Context, sc, tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	scopes := make([]store.Scope, len(rows))
	for i := range rows {
		scopes[i] = store.Scope{Org: sc.Org, Workspace: rows[i].ID}
	}
	return scopes, nil
}

// Ratings are the samples of weighted feedback by trace that requests since from may
// have got.
func Ratings(c *admin.Call, rated *feedback.Store, sc store.Scope, from time.Time) (map[string]*report.Sample, error) {
	scopes, err := Workspaces(c, sc)
	if err != nil {
		return nil, err
	}
	out, n := map[string]*report.Sample{}, 0
	for _, in := range scopes {
		err := rated.Between(c.Context, in, from.Add(-early), c.Now.Add(time.Second), func(r *feedback.Feedback) bool {
			if n++; n > MaxFeedback {
				return false
			}
			if out[r.Trace] == nil {
				out[r.Trace] = new(report.Sample)
			}
			out[r.Trace].Add(r.Weighted())
			return true
		})
		if err != nil {
			return nil, err
		}
		if n > MaxFeedback {
			return nil, fault.Invalid(From, "the time range has more than %d ratings; shorten it", MaxFeedback)
		}
	}
	return out, nil
}

// Rated replaces limits on weighted feedback by the traces with a mean within them, at most
// most. A filter without such limits is unchanged.
func Rated(c *admin.Call, rated *feedback.Store, sc store.Scope, f *report.Filter, most int) error {
	if f.Feedback.Unlimited() {
		return nil
	}
	of, err := Ratings(c, rated, sc, f.From)
	if err != nil {
		return err
	}
	var passing []string
	for trace, s := range of {
		if f.Feedback.HasCents(s.Mean()) {
			passing = append(passing, trace)
		}
	}
	if f.RestrictTraces(passing); len(f.TraceIDs) > most {
		return fault.Invalid("weighted_feedback_min", "with weighted_feedback_max selects %d traces; narrow them or the time to at most %d", len(f.TraceIDs), most)
	}
	f.Feedback = report.Range{}
	return nil
}
