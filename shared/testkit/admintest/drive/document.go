package drive

import (
	"encoding/json"
	"fmt"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Schema is a JSON schema as the document has it.
type Schema = map[string]any

// Operation is one operation of the document.
type Operation struct {
	ID, Method, Path, Tag string
	Scopes                []string
	Public                bool
	Alias                 bool // another path of an operation
	Path1                 []Param
	Query                 []Param
	Body                  Schema // nil: none
	BodyRequired          bool
	Example               any // of the body
	Answer                Schema
	Links                 map[string]Link
}

// Param is a parameter of path or query.
type Param struct {
	Name     string
	Required bool
	Schema   Schema
}

// Link leads from a response to an operation on what it made.
type Link struct {
	Operation string
	Variables map[string]string // runtime expressions
}

// Document is a document, read.
type Document struct {
	Operations []*Operation // by path and method
	byID       map[string]*Operation
	created    map[string]*Operation // creates by the path of the collection
	whole      map[string]any
}

// provision is the scope of a protocol for identity providers; its operations do not follow the
// conventions of the administration API.
const provision = "scim.provision"

var aliasID = regexp.MustCompile(`Alias\d+$`)

// Read reads a document.
func Read(raw []byte) (*Document, error) {
	var whole map[string]any
	if err := json.Unmarshal(raw, &whole); err != nil {
		return nil, err
	}
	d := &Document{byID: map[string]*Operation{}, created: map[string]*Operation{}, whole: whole}
	paths := object(whole["paths"])
	for _, path := range slices.Sorted(maps.Keys(paths)) {
		operations := object(paths[path])
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			op := d.operation(strings.ToUpper(method), path, object(operations[method]))
			if slices.Contains(op.Scopes, provision) {
				continue
			}
			d.Operations = append(d.Operations, op)
			if d.byID[op.ID] != nil {
				return nil, fmt.Errorf("drive: two operations are called %s", op.ID)
			}
			d.byID[op.ID] = op
		}
	}
	for _, op := range d.Operations {
		if read := d.Linked(op, "read"); read != nil && !op.Alias {
			d.created[Collection(read.Path)] = op
		}
	}
	return d, nil
}

func (d *Document) operation(method, path string, o map[string]any) *Operation {
	op := &Operation{Method: method, Path: path, ID: text(o["operationId"]), Scopes: texts(o["x-gateway-scopes"]), Links: map[string]Link{}}
	op.Alias = aliasID.MatchString(op.ID)
	if tags := texts(o["tags"]); len(tags) > 0 {
		op.Tag = tags[0]
	}
	if security, ok := o["security"].([]any); ok {
		op.Public = len(security) == 0 || slices.ContainsFunc(security, func(one any) bool { return len(object(one)) == 0 }) // nothing is one of the choices
	}
	for _, p := range list(o["parameters"]) {
		m := object(p)
		if m["$ref"] != nil {
			continue
		}
		schema := object(m["schema"])
		if schema == nil {
			schema = object(object(object(m["content"])["application/json"])["schema"])
		}
		one := Param{Name: text(m["name"]), Required: m["required"] == true, Schema: schema}
		switch m["in"] {
		case "path":
			op.Path1 = append(op.Path1, one)
		case "query":
			op.Query = append(op.Query, one)
		}
	}
	if body := object(o["requestBody"]); body != nil {
		op.BodyRequired = body["required"] == true
		media := object(object(body["content"])["application/json"])
		op.Body, op.Example = object(media["schema"]), media["example"]
	}
	for status, answer := range object(o["responses"]) {
		if n, err := strconv.Atoi(status); err != nil || n >= 300 {
			continue
		}
		op.Answer = object(object(object(object(answer)["content"])["application/json"])["schema"])
		for name, l := range object(object(answer)["links"]) {
			link := Link{Operation: text(object(l)["operationId"]), Variables: map[string]string{}}
			for v, expression := range object(object(l)["parameters"]) {
				link.Variables[v] = text(expression)
			}
			op.Links[name] = link
		}
	}
	return op
}

// Linked is the operation that a link of op leads to; nil without one.
func (d *Document) Linked(op *Operation, name string) *Operation {
	if l, ok := op.Links[name]; ok {
		return d.byID[l.Operation]
	}
	return nil
}

// Creates are the operations that make something, by the paths of collections.
func (d *Document) Creates() []*Operation {
	var out []*Operation
	for _, path := range slices.Sorted(maps.Keys(d.created)) {
		out = append(out, d.created[path])
	}
	return out
}

// At is the operation of a method and path; nil without one.
func (d *Document) At(method, path string) *Operation {
	for _, op := range d.Operations {
		if op.Method == method && op.Path == path {
			return op
		}
	}
	return nil
}

// Collection is the path above an item's.
func Collection(item string) string { return item[:strings.LastIndexByte(item, '/')] }

// Variables are the names of a path's variables.
func Variables(path string) (out []string) {
	for seg := range strings.SplitSeq(path, "/") {
		if strings.HasPrefix(seg, "{") {
			out = append(out, strings.Trim(seg, "{}"))
		}
	}
	return out
}

func object(v any) map[string]any { m, _ := v.(map[string]any); return m }
func list(v any) []any            { a, _ := v.([]any); return a }
func text(v any) string           { s, _ := v.(string); return s }

func texts(v any) (out []string) {
	for _, s := range list(v) {
		out = append(out, text(s))
	}
	return out
}

// kindOf is the type of a schema; of several the first that is not null.
func kindOf(s Schema) string {
	if t := text(s["type"]); t != "" {
		return t
	}
	for _, t := range texts(s["type"]) {
		if t != "null" {
			return t
		}
	}
	if s["properties"] != nil {
		return "object"
	}
	return ""
}

// branch is the part of a union that a value is of, or the first that is not null.
func branch(s Schema, v any) Schema {
	for _, key := range []string{"oneOf", "anyOf"} {
		var first Schema
		for _, one := range list(s[key]) {
			o := object(one)
			if kindOf(o) == "null" || kindOf(o) == "" && text(o["type"]) == "null" {
				continue
			}
			if v != nil && fits(kindOf(o), v) {
				return o
			}
			if first == nil {
				first = o
			}
		}
		if first != nil {
			return first
		}
	}
	return s
}

func fits(kind string, v any) bool {
	switch v.(type) {
	case string:
		return kind == "string"
	case float64:
		return kind == "number" || kind == "integer"
	case bool:
		return kind == "boolean"
	case []any:
		return kind == "array"
	case map[string]any:
		return kind == "object"
	}
	return false
}

// Leaf is a plain member of a body that is made of objects, such as settings.
type Leaf struct {
	Schema Schema
	path   []string
}

// Leaves are the plain members that bodies of a schema may have, but those that name
// things or are never read.
func Leaves(s Schema) []Leaf {
	var out []Leaf
	leaves(s, nil, &out)
	return out
}

func leaves(s Schema, at []string, out *[]Leaf) {
	s = branch(s, nil)
	for _, name := range slices.Sorted(maps.Keys(object(s["properties"]))) {
		below := object(object(s["properties"])[name])
		if below["writeOnly"] == true || below[RefersTo] != nil || name == workspaceID {
			continue
		}
		path := append(slices.Clone(at), name)
		switch kindOf(branch(below, nil)) {
		case "object":
			if len(path) < reach {
				leaves(below, path, out)
			}
		case "array":
		default:
			*out = append(*out, Leaf{below, path})
		}
	}
}

// Name is the member's own name.
func (l Leaf) Name() string { return l.path[len(l.path)-1] }

func (l Leaf) String() string { return strings.Join(l.path, ".") }

// In is the member's value in a response.
func (l Leaf) In(of map[string]any) (v any, there bool) {
	v = of
	for _, name := range l.path {
		o := object(v)
		if v, there = o[name]; !there {
			return nil, false
		}
	}
	return v, true
}

// Body is a body with the member alone.
func (l Leaf) Body(v any) map[string]any {
	for _, name := range slices.Backward(l.path) {
		v = map[string]any{name: v}
	}
	return object(v)
}

// Differences returns the fields of sent that differ in read, by the schema of the body.
// Write-only fields are skipped. names resolves the names that a reference may be returned as.
func Differences(body Schema, sent, read map[string]any, names func(collection, name string) []string) (out []string) {
	properties := object(body["properties"])
	for _, name := range slices.Sorted(maps.Keys(sent)) {
		s := object(properties[name])
		if s["writeOnly"] == true || name == workspaceID {
			continue
		}
		got, there := read[name]
		if !there {
			out = append(out, name+" is not read back, and the document does not say so")
			continue
		}
		d := differ{names}
		d.compare(name, s, sent[name], got, &out)
	}
	return out
}

const workspaceID = "workspace_id"

type differ struct {
	names func(collection, name string) []string
}

func (d differ) compare(at string, s Schema, sent, got any, out *[]string) {
	if collection := text(s[RefersTo]); collection != "" && sent != nil {
		one := got
		if o := object(got); o != nil {
			one = o["id"]
		}
		if !slices.Contains(d.names(collection, text(sent)), text(one)) {
			*out = append(*out, fmt.Sprintf("%s is %v, sent %v", at, got, sent))
		}
		return
	}
	s = branch(s, sent)
	switch x := sent.(type) {
	case map[string]any:
		o := object(got)
		if a := list(got); len(a) == 1 {
			o = object(a[0]) // the single schema of a list that allows several
		}
		for _, k := range slices.Sorted(maps.Keys(x)) {
			below := object(object(s["properties"])[k])
			if below["writeOnly"] == true {
				continue
			}
			if below == nil {
				below = object(s["additionalProperties"])
			}
			d.compare(at+"."+k, below, x[k], o[k], out)
		}
		return
	case []any:
		a := list(got)
		if len(a) != len(x) {
			*out = append(*out, fmt.Sprintf("%s has %d entries, sent %d", at, len(a), len(x)))
			return
		}
		for i := range x {
			d.compare(fmt.Sprintf("%s[%d]", at, i), object(s["items"]), x[i], a[i], out)
		}
		return
	}
	if !same(sent, got) {
		*out = append(*out, fmt.Sprintf("%s is %v, sent %v", at, got, sent))
	}
}

// same compares plain values: times as times, truth as JSON and as 0 and 1.
func same(a, b any) bool {
	if reflect.DeepEqual(a, b) {
		return true
	}
	if x, ok := a.(bool); ok {
		n, isNumber := b.(float64)
		return isNumber && (n == 1) == x
	}
	t, errA := time.Parse(time.RFC3339Nano, text(a))
	u, errB := time.Parse(time.RFC3339Nano, text(b))
	return errA == nil && errB == nil && t.Equal(u)
}
