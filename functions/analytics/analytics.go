// Package analytics is the family of questions about usage: graphs over time,
// the summary of the cache, and groups. Answers count a request about a second
// after it ended, when its record has been kept.
package analytics

import (
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/store"
	"gateway/shared/usage/report"
)

// scopes of which a caller needs one.
var scopes = []string{"analytics.view"}

// family is the description with what answers it.
type family struct{ reader *report.Reader }

// New makes the family.
func New(r *report.Reader) admin.Family {
	f := &family{reader: r}
	routes := []admin.Route{{
		Method: "GET", Path: "/analytics/summary/cache", Name: "getCacheSummary", Doc: "Sum up what the cache did.",
		Scopes: scopes, Where: admin.InEither, Query: usagequery.Fields(true), Answer: cacheSchema, Do: f.cache,
	}}
	for _, name := range report.GraphNames() {
		routes = append(routes, f.graph(name))
	}
	return admin.Family{Name: "analytics", Doc: "Usage over time and by group.", Routes: append(routes, f.groupRoutes()...)}
}

// ask reads what every question has: where it looks, and the filter.
func ask(c *admin.Call) (store.Scope, report.Filter, error) {
	sc, err := usagequery.Scope(c)
	if err != nil {
		return sc, report.Filter{}, err
	}
	f, err := usagequery.TimedFilter(c.Query)
	return sc, f, err
}

// graph is the route of one graph.
func (f *family) graph(name string) admin.Route {
	id := ""
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '-' }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return admin.Route{
		Method: "GET", Path: "/analytics/graphs/" + name, Name: "get" + id + "Graph", Doc: shapes[name].doc,
		Scopes: scopes, Where: admin.InEither, Query: usagequery.Fields(true), Answer: shapes[name].schema(),
		Do: func(c *admin.Call) (any, error) {
			sc, filter, err := ask(c)
			if err != nil {
				return nil, err
			}
			g, _, err := f.reader.Graph(c.Context, sc, name, &filter) // name is one of GraphNames
			return g, usagequery.Failed(err)
		},
	}
}

func (f *family) cache(c *admin.Call) (any, error) {
	sc, filter, err := ask(c)
	if err != nil {
		return nil, err
	}
	summary, err := f.reader.Cache(c.Context, sc, &filter)
	return map[string]any{"summary": summary, "object": "analytics-summary"}, usagequery.Failed(err)
}

// shape says what a graph consists of, for the document.
type shape struct {
	doc     string
	summary string // names of its members
	point   string // the same; timestamp is a time
	lists   map[string]string
}

// shapes by the name of the graph.
var shapes = map[string]shape{
	"requests":            {doc: "Requests over time.", summary: "total", point: "timestamp total"},
	"cost":                {doc: "Cost over time, in US cents; avg is by request.", summary: "total avg", point: "timestamp total avg"},
	"tokens":              {doc: "Tokens in and out over time; avg is by request.", summary: "total avg", point: "timestamp total avg"},
	"latency":             {doc: "Durations of requests over time, in milliseconds.", summary: "avg p50 p90 p99", point: "timestamp avg p50 p90 p99"},
	"users":               {doc: "Distinct users over time: values of the metadata _user.", summary: "total", point: "timestamp total"},
	"users/requests":      {doc: "Requests by user over time.", summary: "total unique avg", point: "timestamp avg"},
	"errors":              {doc: "Requests that ended with another status than 200 to 299, over time.", summary: "total", point: "timestamp total"},
	"errors/rate":         {doc: "Per cent of requests that failed, over time.", summary: "rate", point: "timestamp rate"},
	"errors/stacks":       {doc: "Failed requests by status, over time.", summary: "total", point: "timestamp stats", lists: map[string]string{"stats": "response_status_code count"}},
	"errors/status-codes": {doc: "Failed requests by status.", summary: "total_errors unique_error_codes", point: "status_code count"},
	"requests/rescued":    {doc: "Requests that succeeded by a retry or at a later target, over time.", summary: "retry fallback", point: "timestamp retry fallback", lists: map[string]string{"retry": "retry_success_count count"}},
	"cache/hit-rate": {doc: "Hits of the cache over time, in per cent; savings are running totals in US cents.", summary: "total rate",
		point: "timestamp simple_hits semantic_hits rate cumulative_simple_cache_savings cumulative_semantic_cache_savings"},
	"cache/latency": {doc: "Mean duration of hits of the cache over time, in milliseconds.", point: "timestamp avg"},
}

func (s shape) schema() admin.Schema {
	return closed(map[string]admin.Schema{
		"summary": numbers(s.summary, nil), "object": {"type": "string", "const": "analytics-graph"},
		"data_points": {"type": "array", "items": numbers(s.point, s.lists)},
	})
}

var cacheSchema = closed(map[string]admin.Schema{
	"summary": numbers("hits avg_latency total_requests cache_speedup", nil), "object": {"type": "string", "const": "analytics-summary"},
})

// numbers is an object of numbers, a timestamp, and lists of objects of numbers.
func numbers(names string, lists map[string]string) admin.Schema {
	members := map[string]admin.Schema{}
	for _, name := range strings.Fields(names) {
		switch of, list := lists[name]; {
		case list:
			members[name] = admin.Schema{"type": "array", "items": numbers(of, nil)}
		case name == "timestamp":
			members[name] = admin.Schema{"type": "string", "format": "date-time", "description": "Beginning of the bucket: a minute, an hour, a day or a week, by the length of the time."}
		default:
			members[name] = admin.Schema{"type": "number"}
		}
	}
	return closed(members)
}

// closed is an object with all of the members and no others.
func closed(members map[string]admin.Schema) admin.Schema {
	s := admin.ObjectSchema(members)
	required := make([]string, 0, len(members))
	for name := range members {
		required = append(required, name)
	}
	slices.Sort(required)
	s["required"], s["additionalProperties"] = required, false
	return s
}
