// Package analytics is the family of usage queries: graphs over time, the cache summary, and
// groups. A request is counted about a second after it ended, when its record has been stored.
package analytics

import (
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/fault"
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
		Scopes: scopes, Level: admin.InEither, Query: query, ResponseOf: admin.SchemaOf[cacheResponse], Do: f.cache,
	}}
	routes = append(routes, f.severalGraphs(query))
	for _, name := range report.GraphNames() {
		routes = append(routes, f.graph(name, query))
	}
	routes = append(routes, f.feedbackGraphs(query)...)
	return admin.Family{Name: "analytics", Doc: "Usage over time and by group.", Routes: append(append(routes, f.groupRoutes()...), f.experiments(), f.reconciliations(), f.health())}
}

// readQuery reads what every question has: where it looks, and the filter.
func readQuery(c *admin.Call) (store.Scope, report.Filter, error) {
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

// rate turns what a filter states about feedback into traces.
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
		Scopes: scopes, Level: admin.InEither, Query: comparing(query), ResponseOf: func() admin.Schema { return graphSchema(name) },
		Do: func(c *admin.Call) (any, error) {
			return f.draw(c, func(sc store.Scope, filter *report.Filter) (report.Graph, error) {
				g, _, err := f.reader.Graph(c.Context, sc, name, filter) // name is one of GraphNames
				return g, usagequery.Failed(err)
			})
		},
	}
}

func (f *family) cache(c *admin.Call) (any, error) {
	sc, filter, err := readQuery(c)
	if err != nil {
		return nil, err
	}
	if err := f.rate(c, sc, &filter); err != nil {
		return nil, err
	}
	summary, err := f.reader.Cache(c.Context, sc, &filter)
	return cacheResponse{summary, "analytics-summary"}, usagequery.Failed(err)
}

// cacheResponse is the summary of the cache.
type cacheResponse struct {
	Summary report.CacheSummary `json:"summary"`
	Object  string              `json:"object" enum:"analytics-summary"`
}

// docs of the graphs, by their name.
var docs = map[string]string{
	"requests":            "Read requests over time.",
	"cost":                "Read the cost over time, in US cents; avg is per request, gateway_total is the AWS cost of the gateway itself, as far as it is counted per request.",
	"tokens":              "Read input and output tokens over time; avg is per request.",
	"latency":             "Read the durations of requests over time, in milliseconds.",
	"users":               "Read the number of distinct users over time, by the metadata _user.",
	"users/requests":      "Read requests per user over time.",
	"errors":              "Read requests over time that ended with a status other than 2xx, or 101 for sessions.",
	"errors/rate":         "Read the percentage of failed requests over time.",
	"errors/stacks":       "Read failed requests by status, over time.",
	"errors/status-codes": "Read failed requests by status.",
	"requests/rescued":    "Read requests that succeeded by a retry or at a later target, over time.",
	"cache/hit-rate":      "Read the cache hit rate over time, in percent; savings are cumulative, in US cents.",
	"feedbacks":           "Read feedback over time, by the time of the feedback. Filters select the rated requests.",
	"feedbacks/weighted":  "Read the mean of value times weight of feedback, over time.",
	"feedbacks/scores":    "Read feedback by its value.",
	"feedbacks/ai-models": "Read feedback by the model of the newest request of its trace.",
	"cache/latency":       "Read the mean duration of cache hits over time, in milliseconds.",
}

// graphSchema describes the response of a graph by the types of what it is made of.
func graphSchema(name string) admin.Schema {
	return shapeOf(report.GraphTypes(name))
}

func shapeOf(summary, point reflect.Type) admin.Schema {
	s := admin.SchemaOf[report.Graph]()
	members := s["properties"].(map[string]admin.Schema)
	members["summary"], members["data_points"]["items"] = admin.SchemaOfType(summary), admin.SchemaOfType(point)
	return withPrevious(s)
}

// included is the parameter with the names of the graphs of one call.
const included = "include"

// maxGraphs is how many graphs one call returns.
const maxGraphs = 8

// severalGraphs returns several graphs in one call.
func (f *family) severalGraphs(query []admin.Field) admin.Route {
	names := admin.Field{
		Name: included, Type: admin.Array, Of: &admin.Field{Type: admin.String}, Required: true, Max: maxGraphs,
		Doc: "Names of graphs, as in their paths below /analytics/graphs: " + strings.Join(report.GraphNames(), ", ") + ". Several, comma-separated.",
		Check: func(raw json.RawMessage) []fault.Detail {
			var all []string
			if err := json.Unmarshal(raw, &all); err != nil {
				return []fault.Detail{{Message: "must be a comma-separated list"}}
			}
			for _, name := range all {
				if !slices.Contains(report.GraphNames(), strings.TrimSpace(name)) {
					return []fault.Detail{{Message: "must contain only " + strings.Join(report.GraphNames(), ", ")}}
				}
			}
			return nil
		},
	}
	return admin.Route{
		Method: "GET", Path: "/analytics/graphs", Name: "getGraphs", Doc: "Read several graphs in one call, each as its own path returns it.",
		Scopes: scopes, Level: admin.InEither, Query: append([]admin.Field{names}, comparing(query)...),
		ResponseOf: func() admin.Schema {
			graphs := map[string]admin.Schema{}
			for _, name := range report.GraphNames() {
				graphs[name] = graphSchema(name)
			}
			return admin.Closed(map[string]admin.Schema{
				"object": {"type": "string", "enum": []string{"analytics-graphs"}},
				"graphs": {"type": "object", "properties": graphs, "additionalProperties": false, "description": "The graphs by their names."},
			})
		},
		Do: f.drawSeveral,
	}
}

func (f *family) drawSeveral(c *admin.Call) (any, error) {
	graphs := map[string]any{}
	for _, name := range usagequery.Entries(c.Query, included) {
		g, err := f.draw(c, func(sc store.Scope, filter *report.Filter) (report.Graph, error) {
			g, _, err := f.reader.Graph(c.Context, sc, name, filter) // Check has seen the name
			return g, usagequery.Failed(err)
		})
		if err != nil {
			return nil, err
		}
		graphs[name] = g
	}
	return map[string]any{"object": "analytics-graphs", "graphs": graphs}, nil
}

// compare is the parameter that adds the previous period.
const compare = "compare"

// comparing are the parameters of questions that can be compared.
func comparing(query []admin.Field) []admin.Field {
	return append(slices.Clone(query), admin.Field{Name: compare, Type: admin.String, Enum: []string{"previous"},
		Doc: "previous: adds the same data of the preceding period of equal length."})
}

// compared is a graph with the previous period, if requested.
type compared struct {
	report.Graph
	Previous *previous `json:"previous,omitempty"`
}

// previous is the part of a response about the previous period.
type previous struct {
	Summary any           `json:"summary"`
	Points  []any         `json:"data_points,omitempty"`
	From    admin.Instant `json:"time_of_generation_min"`
	To      admin.Instant `json:"time_of_generation_max"`
}

// draw returns the result of of for the requested period and, with compare, for the previous
// one.
func (f *family) draw(c *admin.Call, of func(store.Scope, *report.Filter) (report.Graph, error)) (any, error) {
	sc, filter, err := readQuery(c)
	if err != nil {
		return nil, err
	}
	now := filter
	if err := f.rate(c, sc, &now); err != nil {
		return nil, err
	}
	var out compared
	if out.Graph, err = of(sc, &now); err != nil || c.Query.Text(compare) == "" {
		return out, err
	}
	filter.ShiftBack()
	if wrong := fault.Invalids(filter.Validate(usagequery.From, usagequery.To)); wrong != nil {
		return nil, wrong
	}
	before := &previous{From: admin.Instant(filter.From), To: admin.Instant(filter.To)}
	if err := f.rate(c, sc, &filter); err != nil {
		return nil, err
	}
	g, err := of(sc, &filter)
	if err != nil {
		return nil, err
	}
	before.Summary, before.Points = g.Summary, g.Points
	out.Previous = before
	return out, nil
}

// withPrevious is the schema of a response that can be compared.
func withPrevious(s admin.Schema) admin.Schema {
	of := admin.SchemaOf[previous]()
	members := of["properties"].(map[string]admin.Schema)
	for name, m := range s["properties"].(map[string]admin.Schema) {
		if name != "object" {
			members[name] = m
		}
	}
	out := maps.Clone(s)
	all := maps.Clone(s["properties"].(map[string]admin.Schema))
	all["previous"] = of
	out["properties"] = all
	return out
}

// feedbackGraphs returns the routes of graphs of client feedback.
func (f *family) feedbackGraphs(query []admin.Field) (routes []admin.Route) {
	for _, name := range report.FeedbackGraphs() {
		r := f.graph(name, query)
		r.ResponseOf = func() admin.Schema { return shapeOf(report.FeedbackGraphTypes(name)) }
		r.Do = func(c *admin.Call) (any, error) {
			return f.draw(c, func(sc store.Scope, filter *report.Filter) (report.Graph, error) {
				marks, err := f.marks(c, sc, filter, name == "feedbacks/ai-models")
				if err != nil {
					return report.Graph{}, err
				}
				return report.FeedbackGraph(name, filter, marks), nil
			})
		}
		routes = append(routes, r)
	}
	return routes
}

// marks is the feedback that was given in the time of the question. Where the question
// filters by more than time and workspace, a feedback counts if its trace has a request of
// that time which passes the filter; models are those of such requests.
func (f *family) marks(c *admin.Call, sc store.Scope, filter *report.Filter, models bool) (marks []report.Feedback, err error) {
	scopes, err := usagequery.Workspaces(c, sc)
	if err != nil {
		return nil, err
	}
	join := models || !timeAlone(filter)
	var traces []string
	wanted := map[string]struct{}{}
	over := false
	for _, in := range scopes {
		from, err := f.reader.RetainedSince(c.Context, in, filter.From)
		if err != nil {
			return nil, usagequery.Failed(err)
		}
		err = f.feedback.Between(c.Context, in, from, filter.To.Add(time.Millisecond), func(r *feedback.Feedback) bool {
			if over = len(marks) == usagequery.MaxFeedback; over {
				return false
			}
			marks = append(marks, report.Feedback{At: r.Created, Value: r.Value, Weighted: r.Weighted()})
			if join {
				traces, wanted[r.Trace] = append(traces, r.Trace), struct{}{}
			}
			return true
		})
		if err != nil {
			return nil, err
		}
		if over {
			return nil, fault.Invalid("time_of_generation_max", "the time range has more than %d ratings; shorten it", usagequery.MaxFeedback)
		}
	}
	if !join {
		return marks, nil
	}
	of, err := f.reader.Models(c.Context, sc, filter, wanted)
	if err != nil {
		return nil, usagequery.Failed(err)
	}
	passed := marks[:0]
	for i, trace := range traces {
		if model, ok := of[trace]; ok {
			marks[i].Model = model
			passed = append(passed, marks[i])
		}
	}
	return passed, nil
}

// timeAlone reports whether a filter restricts only the time.
func timeAlone(f *report.Filter) bool {
	rest := *f
	rest.From, rest.To = report.Filter{}.From, report.Filter{}.To
	v := reflect.ValueOf(rest)
	for i := range v.NumField() {
		if field := v.Field(i); !field.IsZero() && (field.Kind() != reflect.Slice && field.Kind() != reflect.Map || field.Len() > 0) {
			return false
		}
	}
	return true
}
