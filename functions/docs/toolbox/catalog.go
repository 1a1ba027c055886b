package toolbox

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/functions/docs/components"
)

// Tool is an operation of the administration.
type Tool struct {
	Name   string // operationId
	Family string
	Doc    string
	Method string // in capitals
	Path   string // such as /configs/{slug}
	Scopes []string

	params []param
	body   json.RawMessage // its schema; nil: none is sent
	needed bool            // there must be one
}

// param is a variable of the path or a parameter of the query.
type param struct {
	Name     string          `json:"name"`
	In       string          `json:"in"`
	Required bool            `json:"required"`
	Schema   json.RawMessage `json:"schema"`
	Content  map[string]struct {
		Schema json.RawMessage `json:"schema"`
	} `json:"content"`
}

// bodyName is the argument that is sent as the body.
const bodyName = "body"

// Reads reports whether the tool is read-only.
func (t *Tool) Reads() bool { return t.Method == "GET" }

// operation is an operation of the document, with the fields that matter here.
type operation struct {
	ID         string           `json:"operationId"`
	Summary    string           `json:"summary"`
	Tags       []string         `json:"tags"`
	Parameters []param          `json:"parameters"`
	Security   []map[string]any `json:"security"`
	Scopes     []string         `json:"x-gateway-scopes"`
	Body       *struct {
		Required bool                       `json:"required"`
		Content  map[string]json.RawMessage `json:"content"`
	} `json:"requestBody"`
	Responses map[string]struct {
		Content map[string]json.RawMessage `json:"content"`
	} `json:"responses"`
}

// ofKeys is how the document declares that keys of the gateway are taken.
const ofKeys = "Gateway-Key"

// inference is the tag of requests to models.
const inference = "inference"

// Catalog are the tools of a document, by family and name.
func Catalog(document json.RawMessage) ([]Tool, error) {
	var doc struct {
		Paths map[string]map[string]operation `json:"paths"`
	}
	document, err := components.Resolve(document)
	if err != nil {
		return nil, fmt.Errorf("toolbox: %w", err)
	}
	if err := json.Unmarshal(document, &doc); err != nil {
		return nil, fmt.Errorf("toolbox: %w", err)
	}
	var out []Tool
	for path, methods := range doc.Paths {
		for method, o := range methods {
			if !o.serves() {
				continue
			}
			t := Tool{Name: o.ID, Family: o.Tags[0], Doc: o.Summary, Method: strings.ToUpper(method), Path: path, Scopes: o.Scopes, params: o.Parameters}
			if o.Body != nil {
				t.body, t.needed = schemaOf(o.Body.Content[jsonType]), o.Body.Required
			}
			out = append(out, t)
		}
	}
	slices.SortFunc(out, func(a, b Tool) int { return cmp.Or(cmp.Compare(a.Family, b.Family), cmp.Compare(a.Name, b.Name)) })
	return out, nil
}

const jsonType = "application/json"

// serves reports whether an operation can be a tool. An operation with several paths is one
// tool.
func (o *operation) serves() bool {
	if len(o.Tags) != 1 || o.Tags[0] == inference || len(o.Scopes) == 0 || strings.Contains(o.ID, "Alias") ||
		!slices.ContainsFunc(o.Security, func(s map[string]any) bool { _, ok := s[ofKeys]; return ok }) {
		return false
	}
	if o.Body != nil && o.Body.Content[jsonType] == nil {
		return false
	}
	for status, r := range o.Responses {
		if strings.HasPrefix(status, "2") && r.Content[jsonType] != nil {
			return true
		}
	}
	return false
}

func schemaOf(media json.RawMessage) json.RawMessage {
	var m struct {
		Schema json.RawMessage `json:"schema"`
	}
	if json.Unmarshal(media, &m) != nil || m.Schema == nil {
		return json.RawMessage(`{"type":"object"}`)
	}
	return m.Schema
}

// schema is that of a parameter.
func (p *param) schema() json.RawMessage {
	switch {
	case p.Schema != nil:
		return p.Schema
	case p.Content[jsonType].Schema != nil:
		return p.Content[jsonType].Schema
	}
	return json.RawMessage(`{"type":"string"}`)
}

// input is the schema of the arguments.
func (t *Tool) input() map[string]any {
	properties, required := map[string]json.RawMessage{}, []string{}
	for i := range t.params {
		p := &t.params[i]
		properties[p.Name] = p.schema()
		if p.Required {
			required = append(required, p.Name)
		}
	}
	if t.body != nil {
		properties[bodyName] = t.body
		if t.needed {
			required = append(required, bodyName)
		}
	}
	out := map[string]any{"type": "object", "properties": properties, "additionalProperties": false}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// shown is the tool as lists have it.
func (t *Tool) shown() map[string]any {
	hints := map[string]any{"title": strings.TrimSuffix(t.Doc, "."), "readOnlyHint": t.Reads(), "openWorldHint": false}
	if !t.Reads() {
		hints["destructiveHint"] = !strings.HasPrefix(t.Name, "create")
		hints["idempotentHint"] = t.Method != "POST"
	}
	return map[string]any{"name": t.Name, "title": hints["title"], "description": t.describe(), "inputSchema": t.input(), "annotations": hints}
}

// describe returns the description of the tool and of its requirements for a model.
func (t *Tool) describe() string {
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s (%s %s, family %s; scope %s)", t.Doc, t.Method, t.Path, t.Family, strings.Join(t.Scopes, " or "))
	return b.String()
}

// paging are the arguments that limit how much is answered; "": there are none.
func (t *Tool) paging() string {
	var pages, filters []string
	for _, p := range t.params {
		switch {
		case p.In != "query" || p.Name == "workspace_id":
		case slices.Contains([]string{"page_size", "current_page", "limit", "offset", "cursor", "after", "last_id"}, p.Name):
			pages = append(pages, p.Name)
		default:
			filters = append(filters, p.Name)
		}
	}
	var parts []string
	if len(pages) > 0 {
		parts = append(parts, "request smaller pages with "+strings.Join(pages, ", "))
	}
	if len(filters) > 0 {
		parts = append(parts, "narrow it with "+strings.Join(filters[:min(len(filters), 12)], ", "))
	}
	return strings.Join(parts, "; ")
}

// request returns the API call for the arguments. why is the reason if the arguments are
// invalid. The API validates values, as for any caller.
func (t *Tool) request(ctx context.Context, arguments json.RawMessage) (req *http.Request, why string) {
	args := map[string]json.RawMessage{}
	if len(arguments) > 0 && (json.Unmarshal(arguments, &args) != nil || args == nil) {
		return nil, "arguments must be an object"
	}
	known, path, query := map[string]bool{bodyName: t.body != nil}, t.Path, url.Values{}
	for _, p := range t.params {
		known[p.Name] = true
		raw := args[p.Name]
		present := raw != nil && string(raw) != "null"
		text, ok := textOf(raw)
		switch {
		case !present && p.Required:
			return nil, p.Name + " is required"
		case !present:
		case !ok:
			return nil, p.Name + " must be a value, a list of values or an object"
		case p.In == "path" && (text == "" || text == "." || text == ".."):
			return nil, p.Name + " must name something"
		case p.In == "path":
			path = strings.ReplaceAll(path, "{"+p.Name+"}", url.PathEscape(text))
		default:
			query.Set(p.Name, text)
		}
	}
	for _, name := range slices.Sorted(maps.Keys(args)) {
		if !known[name] {
			return nil, fmt.Sprintf("there is no argument %.64q; there are %s", name, strings.Join(t.arguments(), ", "))
		}
	}
	body := args[bodyName]
	if t.body != nil && t.needed && (body == nil || string(body) == "null") {
		return nil, bodyName + " is required: an object with the fields of the resource"
	}
	if len(query) > 0 {
		path += "?" + query.Encode()
	}
	req, err := http.NewRequestWithContext(ctx, t.Method, path, bytes.NewReader(body))
	if err != nil {
		return nil, "the arguments do not form a path"
	}
	if t.body != nil && body != nil {
		req.Header.Set("Content-Type", jsonType)
	}
	return req, ""
}

func (t *Tool) arguments() (names []string) {
	for _, p := range t.params {
		names = append(names, p.Name)
	}
	if t.body != nil {
		names = append(names, bodyName)
	}
	if names == nil {
		return []string{"none"}
	}
	return names
}

// textOf is a value as addresses carry it: texts as they are, lists with commas between
// their entries, objects as JSON.
func textOf(raw json.RawMessage) (text string, ok bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 {
		return "", false
	}
	switch raw[0] {
	case '"':
		return text, json.Unmarshal(raw, &text) == nil
	case '{':
		return string(raw), true
	case '[':
		var list []json.RawMessage
		if json.Unmarshal(raw, &list) != nil {
			return "", false
		}
		parts := make([]string, len(list))
		for i, one := range list {
			if parts[i], ok = textOf(one); !ok || one[0] == '[' || one[0] == '{' {
				return "", false
			}
		}
		return strings.Join(parts, ","), true
	}
	return string(raw), true // numbers and booleans
}
