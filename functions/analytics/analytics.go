// Package analytics is the family of usage queries: graphs over time, the cache summary, and
// groups. A request is counted about a second after it ended, when its record has been stored.
package analytics

import (
	"reflect"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/store"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
)

// Scopes of which a caller needs one.
var scopes = []string{"analytics.view"}

// family is the description with what answers it.
type family struct {
	reader   *report.Reader
	feedback *feedback.Store
}

// New makes the family.
func New(r *report.Reader, rated *feedback.Store) admin.Family {
	f, query := &family{r, rated}, usagequery.Fields(true)
	routes := []admin.Route{{
		Method: "GET", Path: "/analytics/summary/cache", Name: "getCacheSummary", Doc: "Read the cache summary.",
		Scopes: scopes, Where: admin.InEither, Query: query, AnswerOf: admin.SchemaOf[cacheAnswer], Do: f.cache,
	}}
	routes = append(routes, f.severalGraphs(query))
	for _, name := range report.GraphNames() {
		routes = append(routes, f.graph(name, query))
	}
	routes = append(routes, f.feedbackGraphs(query)...)
	return admin.Family{Name: "analytics", Doc: "Usage over time and by group.", Routes: append(append(routes, f.groupRoutes()...), f.experiments(), f.reconciliations(), f.health())}
}

// ask reads what every question has: where it looks, and the filter.
func ask(c *admin.Call) (store.Scope, report.Filter, error) {
	sc, err := usagequery.Scope(c)
	if err != nil {
		return sc, report.Filter{}, err
	}
	filter, err := usagequery.TimedFilter(c.Query)
	if err != nil {
		return sc, filter, err
	}
	return sc, filter, usagequery.Restrict(c, &filter)
}

// rate turns what a filter says of feedback into traces.
func (f *family) rate(c *admin.Call, sc store.Scope, filter *report.Filter) error {
	return usagequery.Rated(c, f.feedback, sc, filter, usagequery.MaxFeedback)
}

// dashed are names of graphs that clients know by other spellings.
var dashed = map[string]string{
	"users/requests": "users-requests", "errors/rate": "errors-rate", "errors/stacks": "errors-stack", "errors/status-codes": "errors-status-code",
	"requests/rescued": "requests-rescued", "cache/hit-rate": "cache-hit-rate", "cache/latency": "cache-latency", "feedbacks/scores": "feedbacks/score",
}

// graphAliases are the other paths of a graph.
func graphAliases(name string) []string {
	if other := dashed[name]; other != "" {
		return []string{"/analytics/graphs/" + other}
	}
	return nil
}

// graph is the route of one graph.
func (f *family) graph(name string, query []admin.Field) admin.Route {
	id := ""
	for _, word := range strings.FieldsFunc(name, func(r rune) bool { return r == '/' || r == '-' }) {
		id += strings.ToUpper(word[:1]) + word[1:]
	}
	return admin.Route{
		Method: "GET", Path: "/analytics/graphs/" + name, Aliases: graphAliases(name), Name: "get" + id + "Graph", Doc: docs[name],
		Scopes: scopes, Where: admin.InEither, Query: comparing(query), AnswerOf: func() admin.Schema { return graphSchema(name) },
		Do: func(c *admin.Call) (any, error) {
			return f.draw(c, func(sc store.Scope, filter *report.Filter) (report.Graph, error) {
				g, _, err := f.reader.Graph(c.Context, sc, name, filter) // name is one of GraphNames
				return g, usagequery.Failed(err)
			})
		},
	}
}

func (f *family) cache(c *admin.Call) (any, error) {
	sc, filter, err := ask(c)
	if err != nil {
		return nil, err
	}
	if err := f.rate(c, sc, &filter); err != nil {
		return nil, err
	}
	summary, err := f.reader.Cache(c.Context, sc, &filter)
	return cacheAnswer{summary, "analytics-summary"}, usagequery.Failed(err)
}

// cacheAnswer is the summary of the cache.
type cacheAnswer struct {
	Summary report.CacheSummary `json:"summary"`
	Object  string              `json:"object" enum:"analytics-summary"`
}

// docs of the graphs, by their name.
var docs = map[string]string{
	"requests":            "Requests over time.",
	"cost":                "Cost over time, in US cents; avg is per request, gateway_total is the AWS cost of the gateway itself, as far as it is counted per request.",
	"tokens":              "Tokens in and out over time; avg is by request.",
	"latency":             "Durations of requests over time, in milliseconds.",
	"users":               "Distinct users over time, by the metadata _user.",
	"users/requests":      "Requests per user over time.",
	"errors":              "Requests over time that ended with a status other than 2xx, or 101 for sessions.",
	"errors/rate":         "Percentage of failed requests over time.",
	"errors/stacks":       "Failed requests by status, over time.",
	"errors/status-codes": "Failed requests by status.",
	"requests/rescued":    "Requests that succeeded by a retry or at a later target, over time.",
	"cache/hit-rate":      "Cache hit rate over time, in percent; savings are cumulative, in US cents.",
	"feedbacks":           "Feedback over time, by the time of the feedback. Filters select the rated requests.",
	"feedbacks/weighted":  "Mean of value times weight of feedback, over time.",
	"feedbacks/scores":    "Feedback by its value.",
	"feedbacks/ai-models": "Feedback by the model of the newest request of its trace.",
	"cache/latency":       "Mean duration of cache hits over time, in milliseconds.",
}

// graphSchema describes the answer of a graph by the types of what it is made of.
func graphSchema(name string) admin.Schema {
	return shapeOf(report.GraphTypes(name))
}

func shapeOf(summary, point reflect.Type) admin.Schema {
	s := admin.SchemaOf[report.Graph]()
	members := s["properties"].(map[string]admin.Schema)
	members["summary"], members["data_points"]["items"] = admin.SchemaOfType(summary), admin.SchemaOfType(point)
	return withPrevious(s)
}
