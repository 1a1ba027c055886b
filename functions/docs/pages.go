package docs

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"gateway/functions/docs/components"
	"gateway/functions/docs/guides"
	"gateway/shared/admin"
)

// pageType is the media type of the reference.
const pageType = "text/html; charset=utf-8"

// page is a page of the documentation: the overview, a family of routes or a guide.
type page struct {
	Title, Version string
	Guides         []guides.Guide
	Families       []*familyPage
	Family         *familyPage   // nil unless it is the page of a family
	Guide          *guides.Guide // nil unless it is the page of a guide
	Base           string        // from the address of the page to /v1/
}

type familyPage struct {
	Name, Doc  string
	Operations []operationPage
}

// headings are the headings of families whose name is not one capitalized English word.
var headings = map[string]string{
	"apikeys": "API keys", "modelpricing": "Model pricing", "secretreferences": "Secret references", "mcpservers": "MCP servers",
	"agentservers": "Agent servers", "scim": "SCIM", "auditlogs": "Audit logs", "auth": "Sign-in", "docs": "Documentation",
	"organisation": "Organization settings", "users": "Users and invitations",
}

// heading returns the heading of the page of a family.
func (f *familyPage) heading() string {
	if h := headings[f.Name]; h != "" {
		return h
	}
	return strings.ToUpper(f.Name[:1]) + f.Name[1:]
}

type operationPage struct {
	ID, Method, Path, Doc string
	Scopes                []string
	Public                bool
	Parameters, Body      []row
	Example, Answer       string
	Media                 string // of the response
	Statuses              []string
}

// row is a parameter or a field of a body.
type row struct {
	Name, In, Type, Doc string
	Required            bool
}

// methodOrder is the order of methods on a page.
var methodOrder = []string{"get", "post", "put", "patch", "delete"}

// searchPath is the path of the search index, beside the pages of families.
const searchPath = "search"

// guidePath is the path of guides, below that of the pages of families.
const guidePath = "guides/"

// makePages renders all pages: the overview under "", each family under its name and each guide
// under its name after guidePath.
func makePages(raw json.RawMessage) (map[string]*admin.Document, error) {
	raw, err := components.Resolve(raw)
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	var doc map[string]any
	if err := json.Unmarshal(raw, &doc); err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	all, err := guides.All()
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	families := familiesOf(doc)
	out := make(map[string]*admin.Document, 1+len(families)+len(all))
	info := members(doc["info"])
	add := func(name string, p page) error {
		p.Title, p.Version, p.Families, p.Guides = fmt.Sprint(info["title"]), fmt.Sprint(info["version"]), families, all
		p.Base = strings.Repeat("../", strings.Count("docs/"+name, "/"))
		if name == "" {
			p.Base = ""
		}
		made, err := admin.NewPage(pageType, p.render(), script)
		if err != nil {
			return fmt.Errorf("docs: %w", err)
		}
		out[name] = made
		return nil
	}
	if err := add("", page{}); err != nil {
		return nil, err
	}
	for _, f := range families {
		if err := add(f.Name, page{Family: f}); err != nil {
			return nil, err
		}
	}
	for i := range all {
		if err := add(guidePath+all[i].Name, page{Guide: &all[i]}); err != nil {
			return nil, err
		}
	}
	index, err := json.Marshal(searchIndex(families, all))
	if err != nil {
		return nil, fmt.Errorf("docs: %w", err)
	}
	out[searchPath], err = admin.NewDocument(index)
	return out, err
}

// searchIndex lists what the search finds: each section of a guide and each operation, as
// title, address below /docs and text.
func searchIndex(families []*familyPage, all []guides.Guide) [][3]string {
	var out [][3]string
	for _, g := range all {
		for _, s := range g.Sections {
			entry := [3]string{g.Title, "/" + guidePath + g.Name, s.Text}
			if s.ID != "" {
				entry[0], entry[1] = g.Title+" › "+s.Title, entry[1]+"#"+s.ID
			}
			out = append(out, entry)
		}
	}
	for _, f := range families {
		for _, o := range f.Operations {
			out = append(out, [3]string{o.Method + " " + o.Path, "/" + f.Name + "#" + o.ID, strings.TrimSpace(o.Doc + " " + strings.Join(o.Scopes, " "))})
		}
	}
	return out
}

// familiesOf sorts the operations of a document into its tags.
func familiesOf(doc map[string]any) []*familyPage {
	var out []*familyPage
	byName := map[string]*familyPage{}
	for _, t := range values(doc["tags"]) {
		tag := members(t)
		f := &familyPage{Name: fmt.Sprint(tag["name"]), Doc: fmt.Sprint(tag["description"])}
		byName[f.Name], out = f, append(out, f)
	}
	w := writer{members(members(doc["components"])["schemas"]), members(members(doc["components"])["parameters"])}
	paths := members(doc["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		at := members(paths[path])
		for _, method := range methodOrder {
			op, ok := at[method].(map[string]any)
			if !ok {
				continue
			}
			for _, t := range values(op["tags"]) {
				if f := byName[fmt.Sprint(t)]; f != nil {
					f.Operations = append(f.Operations, w.operation(strings.ToUpper(method), path, op))
				}
			}
		}
	}
	return slices.DeleteFunc(out, func(f *familyPage) bool { return len(f.Operations) == 0 })
}

// writer contains the components that the document refers to.
type writer struct{ schemas, parameters map[string]any }

func (w writer) operation(method, path string, op map[string]any) operationPage {
	p := operationPage{ID: fmt.Sprint(op["operationId"]), Method: method, Path: path, Doc: textOf(op["summary"])}
	for _, s := range values(op["x-gateway-scopes"]) {
		p.Scopes = append(p.Scopes, fmt.Sprint(s))
	}
	security := values(op["security"])
	p.Public = len(security) == 0 || slices.ContainsFunc(security, func(one any) bool { return len(members(one)) == 0 })
	for _, v := range values(op["parameters"]) {
		param := members(v)
		if ref, ok := param["$ref"].(string); ok {
			param = members(w.parameters[ref[strings.LastIndexByte(ref, '/')+1:]])
		}
		schema := members(param["schema"])
		r := row{Name: textOf(param["name"]), In: textOf(param["in"]), Type: typeOf(schema), Doc: textOf(param["description"])}
		if r.Doc == "" {
			r.Doc = textOf(schema["description"])
		}
		r.Doc = sentence(r.Doc, bounds(schema))
		r.Required, _ = param["required"].(bool)
		p.Parameters = append(p.Parameters, r)
	}
	for _, media := range members(members(op["requestBody"])["content"]) {
		c := members(media)
		p.Body = w.rows(nil, "", members(c["schema"]), 0)
		p.Example = pretty(c["example"])
	}
	answers := members(op["responses"])
	p.Statuses = slices.Sorted(maps.Keys(answers))
	for _, status := range p.Statuses {
		if status[0] != '2' {
			continue
		}
		content := members(members(answers[status])["content"])
		p.Media = strings.Join(slices.Sorted(maps.Keys(content)), ", ")
		for _, c := range content {
			if e := members(c)["example"]; e != nil {
				p.Answer = pretty(e)
			}
		}
	}
	return p
}

// maxDepth limits how deep fields of fields are listed.
const maxDepth = 4

// rows lists the fields of a schema, with those inside them.
func (w writer) rows(out []row, prefix string, s map[string]any, depth int) []row {
	if ref, ok := s["$ref"].(string); ok {
		s = members(w.schemas[ref[strings.LastIndexByte(ref, '/')+1:]])
	}
	if depth > maxDepth {
		return out
	}
	if items := members(s["items"]); len(items) > 0 {
		return w.rows(out, prefix+"[]", items, depth+1)
	}
	properties := members(s["properties"])
	for _, name := range slices.Sorted(maps.Keys(properties)) {
		of := members(properties[name])
		if readOnly, _ := of["readOnly"].(bool); readOnly {
			continue
		}
		at := strings.TrimPrefix(prefix+"."+name, ".")
		out = append(out, row{Name: at, Type: typeOf(of), Doc: sentence(textOf(of["description"]), bounds(of)), Required: slices.Contains(values(s["required"]), any(name))})
		out = w.rows(out, at, of, depth+1)
	}
	return out
}

// typeOf is a schema's type in words.
func typeOf(s map[string]any) string {
	var all []string
	switch t := s["type"].(type) {
	case string:
		all = []string{t}
	default:
		for _, one := range values(t) {
			all = append(all, fmt.Sprint(one))
		}
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		for _, one := range values(s[key]) {
			all = append(all, typeOf(members(one)))
		}
	}
	if format := textOf(s["format"]); format != "" {
		return strings.Join(all, " or ") + " (" + format + ")"
	}
	return strings.Join(slices.Compact(all), " or ")
}

// bounds describes the constraints of a schema in words.
func bounds(s map[string]any) string {
	var out []string
	if choice := values(s["enum"]); len(choice) > 0 {
		var names []string
		for _, c := range choice {
			names = append(names, plain(c))
		}
		out = append(out, "one of "+strings.Join(names, ", "))
	}
	for _, b := range []struct{ key, words string }{
		{"minimum", "at least %s"}, {"maximum", "at most %s"}, {"minLength", "at least %s characters"}, {"maxLength", "at most %s characters"},
		{"minItems", "at least %s entries"}, {"maxItems", "at most %s entries"}, {"maxProperties", "at most %s fields"}, {"pattern", "as %s"}, {"default", "%s by default"},
	} {
		if v, ok := s[b.key]; ok && v != nil {
			out = append(out, fmt.Sprintf(b.words, plain(v)))
		}
	}
	return strings.Join(out, ", ")
}

// sentence joins a description and its bounds.
func sentence(doc, bounds string) string {
	if bounds == "" {
		return doc
	}
	bounds = strings.ToUpper(bounds[:1]) + bounds[1:] + "."
	return strings.TrimSpace(doc + " " + bounds)
}

// plain formats a JSON value for readers: integers without an exponent.
func plain(v any) string {
	if n, ok := v.(float64); ok {
		return strconv.FormatFloat(n, 'f', -1, 64)
	}
	return fmt.Sprint(v)
}

func textOf(v any) string {
	s, _ := v.(string)
	return s
}

func pretty(v any) string {
	if v == nil {
		return ""
	}
	raw, err := json.MarshalIndent(v, "", "  ")
	if err != nil {
		return ""
	}
	return string(raw)
}
