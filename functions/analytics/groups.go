package analytics

import (
	"encoding/json"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/usage/report"
)

// Sizes of pages.
const (
	pageSize    = 50
	maxPageSize = 1000
)

// maxKey bounds a metadata key, in characters.
const maxKey = 255

// byName are the groupings of the generic route, which are also the names of
// the member that holds a row's value.
var byName = []string{"agent", "ai_service", "api_key", "config", "model", "parent_agent", "prompt", "provider", "session", "status_code", "workspace"}

// grouping is what one route groups by.
type grouping struct {
	by, metadataKey string
	member          string   // of rows, holds the value
	columns         []string // that rows always have, beside requests
	feedback        bool     // rows have the members about feedback
}

// columns that a query may select. requests is always included.
var columns = slices.DeleteFunc(report.Columns(), func(name string) bool { return name == "requests" })

// groupQuery are the parameters of all groups.
func groupQuery() []admin.Field {
	q := append(usagequery.Fields(true), usagequery.PageFields(pageSize, maxPageSize)...)
	return append(q,
		usagequery.List("columns", "Columns in addition to requests: "+strings.Join(columns, ", ")+".", checkColumn),
		admin.Field{Name: "order_by", Type: admin.String, Max: 64, Default: "requests:desc",
			Doc: "A column followed by :asc or :desc, such as cost:desc. Rows with equal values in it are sorted by group."})
}

func checkColumn(name string) string {
	if !slices.Contains(columns, name) && name != "requests" {
		return "must be a comma-separated list of " + strings.Join(columns, ", ")
	}
	return ""
}

// groupRoutes are the routes of the groups.
func (f *family) groupRoutes() []admin.Route {
	query := groupQuery()
	route := func(path, name, doc string, row func() admin.Schema, of func(c *admin.Call) (grouping, error)) admin.Route {
		return admin.Route{
			Method: "GET", Path: "/analytics/groups/" + path, Name: name, Doc: doc, Scopes: scopes, Level: admin.InEither,
			Query: query, ResponseOf: func() admin.Schema { return pageSchema(row()) },
			Do: func(c *admin.Call) (any, error) {
				g, err := of(c)
				if err != nil {
					return nil, err
				}
				return f.groups(c, &g)
			},
		}
	}
	rows := func(members, always []string, feedback bool) func() admin.Schema {
		return func() admin.Schema { return rowSchema(members, always, feedback) }
	}
	fixed := func(g grouping) func(*admin.Call) (grouping, error) {
		return func(*admin.Call) (grouping, error) { return g, nil }
	}
	users := grouping{by: "users", member: "user", columns: []string{"cost"}}
	models := grouping{by: "ai-models", member: "ai_model"}
	metadata := grouping{member: "metadata_value", columns: []string{"cost", "avg_tokens", "last_seen"}, feedback: true}
	generic := route("{groupBy}", "listGroups", "Group requests by "+strings.Join(byName, ", ")+".", rows(byName, nil, false), named)
	generic.Aliases = []string{"/logs/groups/{groupBy}"}
	return []admin.Route{
		route("users", "listUserGroups", "Group requests by user: the metadata _user.", rows([]string{users.member}, users.columns, false), fixed(users)),
		route("ai-models", "listModelGroups", "Group requests by model.", rows([]string{models.member}, nil, false), fixed(models)),
		route("metadata/{metadataKey}", "listMetadataGroups", "Group requests by the values of a metadata key.",
			rows([]string{metadata.member}, metadata.columns, true), func(c *admin.Call) (grouping, error) {
				g := metadata
				if g.metadataKey = c.Param("metadataKey"); len(g.metadataKey) > maxKey {
					return g, fault.Invalid("metadataKey", "must have at most %d characters", maxKey)
				}
				return g, nil
			}),
		generic,
	}
}

// named is the grouping that the path names.
func named(c *admin.Call) (grouping, error) {
	name := c.Param("groupBy")
	if name == "workspaces" { // as the npm SDK spells it
		name = "workspace"
	}
	if !slices.Contains(byName, name) {
		return grouping{}, fault.Invalid("groupBy", "must be one of %s", strings.Join(byName, ", "))
	}
	return grouping{by: name, member: name}, nil
}

func (f *family) groups(c *admin.Call, g *grouping) (any, error) {
	sc, filter, err := readQuery(c)
	if err != nil {
		return nil, err
	}
	if err := f.rate(c, sc, &filter); err != nil {
		return nil, err
	}
	shown := slices.Clone(g.columns)
	for _, name := range usagequery.Entries(c.Query, "columns") {
		if !slices.Contains(shown, name) {
			shown = append(shown, name)
		}
	}
	q := report.GroupQuery{Filter: filter, By: g.by, MetadataKey: g.metadataKey, Columns: shown}
	if q.OrderBy, q.Ascending, err = order(c.Query.Text("order_by")); err != nil {
		return nil, err
	}
	offset, limit := usagequery.Page(c.Query, pageSize)
	q.Offset, q.Limit = offset, max(limit, 1)
	page, total, err := f.reader.Groups(c.Context, sc, &q)
	if err != nil {
		return nil, usagequery.Failed(err)
	}
	page = page[:min(limit, len(page))]
	var rated map[string]report.Sample
	if g.feedback && len(page) > 0 {
		of, err := usagequery.Ratings(c, f.feedback, sc, filter.From)
		if err != nil {
			return nil, err
		}
		if rated, err = f.reader.RateByMetadata(c.Context, sc, &filter, g.metadataKey, of); err != nil {
			return nil, usagequery.Failed(err)
		}
	}
	rows := make([]map[string]any, len(page))
	for i := range page {
		rows[i] = g.row(&page[i], shown)
		if g.feedback {
			s := rated[page[i].Value]
			rows[i]["avg_weighted_feedback"], rows[i]["requests_with_feedback"] = s.Mean(), s.N
		}
	}
	return groupPage{"list", int64(total), rows}, nil
}

// order reads order_by.
func order(text string) (column string, ascending bool, err error) {
	if text == "" {
		return "", false, nil
	}
	column, direction, hasDirection := strings.Cut(text, ":")
	if problem := checkColumn(column); problem != "" || (hasDirection && direction != "asc" && direction != "desc") {
		return "", false, fault.Invalid("order_by", "must be requests or a column (%s), followed by :asc or :desc", strings.Join(columns, ", "))
	}
	return column, direction == "asc", nil
}

// row is a group as responses show it.
func (g *grouping) row(group *report.Group, shown []string) map[string]any {
	row := map[string]any{g.member: group.Value, "requests": group.Requests, "object": "analytics-group"}
	if status, err := strconv.Atoi(group.Value); err == nil && g.by == "status_code" {
		row[g.member] = status
	}
	for _, name := range shown {
		v, _ := group.Column(name) // of Columns
		if at, ok := v.(time.Time); ok {
			v = admin.FormatTime(at)
		}
		row[name] = v
		switch name {
		case "cost":
			row["cost_unit"], row["cost_usd"] = pricing.CostUnit, group.Cost.USD()
		case "gateway_cost":
			row["cost_unit"], row["gateway_cost_usd"] = pricing.CostUnit, group.Running.USD()
		}
	}
	return row
}

// groupPage is a page of groups.
type groupPage struct {
	Object string           `json:"object" enum:"list"`
	Total  int64            `json:"total" doc:"Groups over all pages."`
	Data   []map[string]any `json:"data"`
}

// groupHead are the members of every row, groupFeedback those about feedback, and groupMoney
// those that go with a cost.
type (
	groupMoney struct {
		Unit string      `json:"cost_unit" enum:"cents" doc:"The unit of cost and gateway_cost: US cents."`
		USD  json.Number `json:"cost_usd" doc:"Exact value of cost in US dollars."`
		Own  json.Number `json:"gateway_cost_usd" doc:"Exact value of gateway_cost in US dollars."`
	}
	groupHead struct {
		Requests int64  `json:"requests"`
		Object   string `json:"object" enum:"analytics-group"`
	}
	groupFeedback struct {
		Average float64 `json:"avg_weighted_feedback"`
		With    int64   `json:"requests_with_feedback"`
	}
)

func pageSchema(row admin.Schema) admin.Schema {
	s := admin.SchemaOf[groupPage]()
	s["properties"].(map[string]admin.Schema)["data"]["items"] = row
	return s
}

// rowSchema describes a row by the types of its columns. Its value is in one of the
// members.
func rowSchema(members, always []string, feedback bool) admin.Schema {
	of := func(name string, t reflect.Type, required bool) admin.Schema {
		s := admin.Schema{"properties": map[string]admin.Schema{name: admin.SchemaOfType(t)}, "required": []string{}}
		if required {
			s["required"] = []string{name}
		}
		return s
	}
	parts := []admin.Schema{admin.SchemaOf[groupHead]()}
	for _, name := range columns {
		part := of(name, report.ColumnType(name), slices.Contains(always, name))
		if name == "cost" || name == "gateway_cost" {
			part["properties"].(map[string]admin.Schema)[name]["description"] = "In cost_unit."
		}
		parts = append(parts, part)
	}
	for _, one := range [...]struct{ name, column string }{{"cost_unit", "cost"}, {"cost_usd", "cost"}, {"gateway_cost_usd", "gateway_cost"}} {
		s := admin.SchemaOf[groupMoney]()
		props := s["properties"].(map[string]admin.Schema)
		s["properties"], s["required"] = map[string]admin.Schema{one.name: props[one.name]}, []string{}
		if slices.Contains(always, one.column) {
			s["required"] = []string{one.name}
		}
		parts = append(parts, s)
	}
	if feedback {
		parts = append(parts, admin.SchemaOf[groupFeedback]())
	}
	for _, name := range members {
		t := reflect.TypeFor[string]()
		if name == "status_code" {
			t = reflect.TypeFor[int]()
		}
		parts = append(parts, of(name, t, false))
	}
	return admin.MergeSchemas(parts...)
}
