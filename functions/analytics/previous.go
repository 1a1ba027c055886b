package analytics

import (
	"maps"
	"slices"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage/report"
)

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
	sc, filter, err := ask(c)
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

// withPrevious is the schema of an answer that can be compared.
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
