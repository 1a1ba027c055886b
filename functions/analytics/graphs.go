package analytics

import (
	"encoding/json"
	"slices"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage/report"
)

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
				return []fault.Detail{{Message: "must be a list with commas"}}
			}
			for _, name := range all {
				if !slices.Contains(report.GraphNames(), strings.TrimSpace(name)) {
					return []fault.Detail{{Message: "must be of " + strings.Join(report.GraphNames(), ", ")}}
				}
			}
			return nil
		},
	}
	return admin.Route{
		Method: "GET", Path: "/analytics/graphs", Name: "getGraphs", Doc: "Several graphs in one call, each as its own path returns it.",
		Scopes: scopes, Where: admin.InEither, Query: append([]admin.Field{names}, comparing(query)...),
		AnswerOf: func() admin.Schema {
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
