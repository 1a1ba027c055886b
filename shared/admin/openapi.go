package admin

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
)

// Schemas that many responses share.
var (
	emptySchema    = Schema{"type": "object", "additionalProperties": false}
	stringSchema   = Schema{"type": "string"}
	timeSchema     = Schema{"type": []string{"string", "null"}, "format": "date-time"}
	anyListSchema  = func(of Schema) Schema { return Schema{"type": "array", "items": of} }
	integerSchema  = Schema{"type": "integer"}
	listOf         = func(name string) Schema { return Schema{"type": "string", "const": name} }
	describedError = Schema{"$ref": "#/components/schemas/Error"}
)

// EmptyResponse documents the response {}.
var EmptyResponse = emptySchema

// ObjectSchema is an object with the given fields.
func ObjectSchema(members map[string]Schema) Schema {
	return Schema{"type": "object", "properties": members}
}

// Closed is an object that has all of the fields and no other.
func Closed(members map[string]Schema) Schema {
	s := ObjectSchema(members)
	s["required"], s["additionalProperties"] = slices.Sorted(maps.Keys(members)), false
	return s
}

// form is the schema that the description gives, nil where Type says all.
func (f *Field) form() Schema {
	if f.Form == nil && f.FormOf != nil {
		return f.FormOf()
	}
	return f.Form
}

// schema is the JSON schema of a field.
func (f *Field) schema() Schema {
	s := Schema{}
	if f.Doc != "" {
		s["description"] = f.Doc
	}
	if f.Default != nil {
		s["default"] = f.Default
	}
	f.use(s)
	if form := f.form(); form != nil {
		maps.Copy(s, form)
		return s
	}
	switch f.Type {
	case String:
		s["type"] = "string"
		f.bounds(s, "minLength", "maxLength")
		if f.Pattern != nil {
			s["pattern"] = f.Pattern.String()
		}
		if len(f.Enum) > 0 {
			s["enum"] = f.Enum
		}
	case Timestamp:
		s["type"], s["format"] = "string", "date-time"
	case Integer, Number:
		s["type"] = map[Type]string{Integer: "integer", Number: "number"}[f.Type]
		if f.Min != 0 || f.Max != 0 {
			s["minimum"] = f.Min
		}
		if f.Max != 0 {
			s["maximum"] = f.Max
		}
	case Boolean:
		s["type"] = "boolean"
	case Array:
		s["type"] = "array"
		f.bounds(s, "minItems", "maxItems")
		if f.Of != nil {
			s["items"] = f.Of.schema()
		}
	case Map:
		s["type"] = "object"
		f.bounds(s, "minProperties", "maxProperties")
		if f.Of != nil {
			s["additionalProperties"] = f.Of.schema()
		}
	case Object:
		s = f.objectSchema(s)
	}
	return s
}

func (f *Field) bounds(s Schema, lower, upper string) {
	if f.Min != 0 {
		s[lower] = f.Min
	}
	if f.Max != 0 {
		s[upper] = f.Max
	}
}

func (f *Field) objectSchema(s Schema) Schema {
	for k, v := range membersSchema(f.Fields, creating) {
		s[k] = v
	}
	s["additionalProperties"] = f.Open
	return s
}

// nullable allows null, which means "clear".
func nullable(s Schema) Schema {
	t, ok := s["type"].(string)
	if !ok {
		return s
	}
	s["type"] = []string{t, "null"}
	if e, ok := s["enum"].([]string); ok {
		all := make([]any, 0, len(e)+1)
		for _, v := range e {
			all = append(all, v)
		}
		s["enum"] = append(all, nil)
	}
	return s
}

func membersSchema(fields []Field, m mode) Schema {
	props, required := map[string]Schema{}, []string{}
	for i := range fields {
		f := &fields[i]
		if !m.wanted(f) {
			continue
		}
		s := f.schema()
		if f.ReadOnly {
			s["readOnly"] = true
		}
		if !f.Required {
			s = nullable(s)
		} else if m == creating {
			required = append(required, f.Name)
		}
		props[f.Name] = s
	}
	out := Schema{"type": "object", "properties": props}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// ListSchema documents ListEnvelope; SuccessSchema {"success":true,"data":...}.
func ListSchema(entry Schema) Schema { return ListEnvelope.Schema(entry) }

// SuccessSchema documents {"success":true,"data":...}.
func SuccessSchema(data Schema) Schema {
	return Closed(map[string]Schema{"success": {"type": "boolean"}, "data": data})
}

// workspaceField is the parameter of routes that act in a workspace.
var workspaceField = Field{Name: workspaceID, Type: String, Max: maxWorkspaceName, Reference: "/admin/workspaces", Doc: "Workspace, by id or slug. Workspace keys act in their workspace. With an organization key it is required to create resources; without it lists cover all workspaces, and the named resource determines the workspace."}

// OpenAPI is the OpenAPI 3.1 document of the families, always the same bytes for
// the same descriptions.
func OpenAPI(title, version string, families ...Family) []byte {
	paths := map[string]map[string]any{}
	var tags []any
	for i := range families {
		f := &families[i]
		f.complete()
		tags = append(tags, map[string]any{"name": f.Name, "description": f.Doc})
		for j := range f.Routes {
			r := &f.Routes[j]
			for n, path := range r.paths() {
				if paths[path] == nil {
					paths[path] = map[string]any{}
				}
				paths[path][strings.ToLower(r.Method)] = r.document(f.Name, path, n)
			}
		}
	}
	for i := range families {
		for j := range families[i].Routes {
			families[i].Routes[j].link(paths)
		}
	}
	doc := map[string]any{
		"openapi": "3.1.0",
		"info":    map[string]any{"title": title, "version": version},
		"servers": []any{map[string]any{"url": "/v1"}},
		"tags":    tags,
		"paths":   paths,
		"components": map[string]any{
			"schemas": map[string]any{"Error": errorSchema},
			"securitySchemes": map[string]any{
				"Gateway-Key": map[string]any{"type": "apiKey", "in": "header", "name": "x-gateway-api-key"},
				"Bearer":      map[string]any{"type": "http", "scheme": "bearer"},
			},
		},
	}
	b, err := json.MarshalIndent(doc, "", "  ")
	if err != nil {
		panic("admin: the document does not encode: " + err.Error()) // descriptions are Go values
	}
	return append(b, '\n')
}

// errorSchema is the body of every rejection.
var errorSchema = ObjectSchema(map[string]Schema{
	"success": {"type": "boolean", "const": false},
	"data": ObjectSchema(map[string]Schema{
		"message":   stringSchema,
		"errorCode": {"type": "string", "pattern": "^AB0[1-9]$"},
		"errors":    anyListSchema(ObjectSchema(map[string]Schema{"field": stringSchema, "message": stringSchema})),
	}),
	"error": ObjectSchema(map[string]Schema{
		"message": stringSchema, "type": stringSchema, "param": {"type": []string{"string", "null"}},
		"code": {"type": []string{"string", "null"}}, "field": stringSchema,
	}),
	"request_id": stringSchema,
})

// document is the operation of a route at its n-th path.
func (r *Route) document(family, path string, n int) map[string]any {
	id := r.Name
	if n > 0 {
		id += "Alias" + strconv.Itoa(n)
	}
	op := map[string]any{
		"operationId": id,
		"summary":     r.Doc,
		"tags":        []string{family},
		"responses":   r.documentResponses(),
	}
	if params := r.parameters(path); len(params) > 0 {
		op["parameters"] = params
	}
	if r.Body != nil {
		op["requestBody"] = map[string]any{
			"required": r.BodyMode != OptionalBody,
			"content":  r.bodies(),
		}
	}
	if r.Public {
		op["security"] = []any{}
		if r.OptionalAuth {
			op["security"] = append(slices.Clone(credentials), map[string]any{})
		}
		return op
	}
	op["x-gateway-scopes"] = r.Scopes
	if r.Authenticate != nil {
		op["security"] = []any{map[string]any{"Bearer": []string{}}}
		return op
	}
	op["security"] = credentials
	if r.KeyHeader {
		op["security"] = credentials[:1]
	}
	return op
}

// credentials are what callers may send, one of them.
var credentials = []any{map[string]any{"Gateway-Key": []string{}}, map[string]any{"Bearer": []string{}}}

// bodies are the media types of the body.
func (r *Route) bodies() map[string]any {
	out := map[string]any{}
	for _, media := range r.Consumes {
		schema := r.bodySchema()
		if r.Unparsed && media != jsonType {
			schema = Schema{"type": "string", "format": "binary"}
		}
		out[media] = map[string]any{"schema": schema}
	}
	if len(out) == 0 {
		out[jsonType] = map[string]any{"schema": r.bodySchema()}
	}
	return out
}

func (r *Route) bodySchema() Schema {
	m := creating
	if r.BodyMode != CompleteBody {
		m = updating
	}
	s := membersSchema(r.Body, m)
	if r.Level == InWorkspace || r.Level == InEither {
		s["properties"].(map[string]Schema)["workspace_id"] = nullable(workspaceField.schema())
	}
	if r.MaxItems > 0 {
		return Schema{"oneOf": []any{s, Schema{"type": "array", "minItems": 1, "maxItems": r.MaxItems, "items": s}}}
	}
	return s
}

func (r *Route) parameters(path string) []any {
	var out []any
	for _, seg := range strings.Split(path, "/") {
		if name, ok := strings.CutPrefix(seg, "{"); ok {
			name, schema := strings.TrimSuffix(name, "}"), stringSchema
			if n := slices.IndexFunc(r.Params, func(f Field) bool { return f.Name == name }); n >= 0 {
				schema = r.Params[n].schema()
			}
			out = append(out, map[string]any{"name": name, "in": "path", "required": true, "schema": schema})
		}
	}
	if r.repeatable() {
		out = append(out, map[string]any{"name": idempotencyHeader, "in": "header", "description": "Identifies the call for 24 hours: a repeated call with the same key and body returns the first response. Without the header, so does an equal call within a minute.", "schema": Schema{"type": "string", "minLength": 1, "maxLength": maxIdempotency}})
	}
	query := slices.Clone(r.Query)
	if r.Level == InWorkspace || r.Level == InEither {
		query = append(query, workspaceField)
	}
	for i := range query {
		f := &query[i]
		p := map[string]any{"name": f.Name, "in": "query", "schema": f.schema()}
		if f.Required { // false where it is absent
			p["required"] = true
		}
		switch f.Type {
		case Object, Map, Any:
			delete(p, "schema")
			p["content"] = map[string]any{"application/json": map[string]any{"schema": f.schema()}}
		case Array:
			p["style"], p["explode"] = "form", false
		}
		out = append(out, p)
	}
	return out
}
