package main

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/datasource"
	"github.com/hashicorp/terraform-plugin-framework/diag"
	"github.com/hashicorp/terraform-plugin-framework/path"
	"github.com/hashicorp/terraform-plugin-framework/provider"
	"github.com/hashicorp/terraform-plugin-framework/resource"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/boolplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/planmodifier"
	"github.com/hashicorp/terraform-plugin-framework/resource/schema/stringplanmodifier"
	"github.com/hashicorp/terraform-plugin-framework/types"
)

// kind is the type of an attribute.
type kind int

const (
	text     kind = iota
	flag          // true or false, or 1 or 0 in a response
	number        //
	moment        // a time, equal in another spelling
	document      // JSON as text, an object or text in a response; equal by meaning
	texts         // a list of text, its order kept
	labels        // a map of text
	object        // fields
	objects       // a list of fields
)

// attribute is one attribute of a resource, named as in bodies and responses.
type attribute struct {
	name string
	kind kind
	fields
	required, computed bool
	// secret attributes are sent and no response has them.
	secret bool
	// changing attributes are computed again by each change.
	changing bool
	// first attributes are sent when the resource is created, and not when it is changed.
	first bool
	// cleared attributes are sent as null when they are gone from the configuration.
	cleared bool
}

type fields []attribute

// kindOfResource describes one kind of resource: its attributes and its calls. In paths, {name}
// stands for an attribute.
type kindOfResource struct {
	name string
	fields
	create, item string
	// creation makes the body of the creation where it is not the attributes.
	creation func(planned map[string]any) any
	// query is added to the item's path when it is read and deleted.
	query string
	// removal is the body of the deletion, attributes by name.
	removal []string
	// imported are the attributes in the id of an import, joined by colons.
	imported []string
	// element is for what is one element of a list that is written as a whole: the list's name,
	// and the attribute that names the element. Its path is item.
	element, key string
	// listed is the list's name in responses, where it differs.
	listed string
	// found is for objects without an item route: the list, and the attributes that identify one.
	found string
}

// api calls the administration API as the provider does: one header, JSON.
type api struct{ url, key string }

// failure is a response that is not 2xx.
type failure struct {
	call   string
	status int
	body   string
}

func (f *failure) Error() string { return fmt.Sprintf("%s: status %d: %s", f.call, f.status, f.body) }

func (a api) call(ctx context.Context, method, path string, body any) (map[string]any, error) {
	var sent io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		sent = bytes.NewReader(b)
	}
	r, err := http.NewRequestWithContext(ctx, method, a.url+path, sent)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("x-gateway-api-key", a.key)
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	if resp.StatusCode < 200 || resp.StatusCode > 299 {
		return nil, &failure{method + " " + path, resp.StatusCode, string(b)}
	}
	answer := map[string]any{}
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	if err := d.Decode(&answer); err != nil && len(b) > 0 {
		return nil, fmt.Errorf("%s %s: %w: %s", method, path, err, b)
	}
	return answer, nil
}

// gateway is the provider.
type gateway struct{}

func (gateway) Metadata(_ context.Context, _ provider.MetadataRequest, resp *provider.MetadataResponse) {
	resp.TypeName = "gateway"
}

func (gateway) Schema(_ context.Context, _ provider.SchemaRequest, resp *provider.SchemaResponse) {
	resp.Schema.Attributes = nil
}

func (gateway) Configure(context.Context, provider.ConfigureRequest, *provider.ConfigureResponse) {}

func (gateway) DataSources(context.Context) []func() datasource.DataSource { return nil }

func (gateway) Resources(context.Context) []func() resource.Resource {
	var all []func() resource.Resource
	for _, k := range kinds {
		all = append(all, func() resource.Resource { return &managed{kindOfResource: k, api: target} })
	}
	return all
}

// managed is a resource of one kind.
type managed struct {
	kindOfResource
	api api
}

func (m *managed) Metadata(_ context.Context, req resource.MetadataRequest, resp *resource.MetadataResponse) {
	resp.TypeName = req.ProviderTypeName + "_" + m.name
}

func (m *managed) Schema(_ context.Context, _ resource.SchemaRequest, resp *resource.SchemaResponse) {
	resp.Schema.Attributes = m.schema()
}

func (f fields) schema() map[string]schema.Attribute {
	all := map[string]schema.Attribute{}
	for _, a := range f {
		optional := !a.required && a.name != "id"
		switch a.kind {
		case text, moment, document:
			s := schema.StringAttribute{Required: a.required, Optional: optional, Computed: a.computed, Sensitive: a.secret}
			if a.first {
				s.PlanModifiers = append(s.PlanModifiers, stringplanmodifier.RequiresReplaceIfConfigured())
			}
			if a.computed && !a.changing {
				s.PlanModifiers = append(s.PlanModifiers, stringplanmodifier.UseStateForUnknown())
			}
			all[a.name] = s
		case flag:
			s := schema.BoolAttribute{Required: a.required, Optional: optional, Computed: a.computed}
			if a.computed {
				s.PlanModifiers = []planmodifier.Bool{boolplanmodifier.UseStateForUnknown()}
			}
			all[a.name] = s
		case number:
			all[a.name] = schema.NumberAttribute{Required: a.required, Optional: optional, Computed: a.computed}
		case texts:
			all[a.name] = schema.ListAttribute{ElementType: types.StringType, Required: a.required, Optional: optional, Computed: a.computed}
		case labels:
			all[a.name] = schema.MapAttribute{ElementType: types.StringType, Required: a.required, Optional: optional, Computed: a.computed}
		case object:
			all[a.name] = schema.SingleNestedAttribute{Attributes: a.schema(), Required: a.required, Optional: optional, Computed: a.computed, Sensitive: a.secret}
		case objects:
			all[a.name] = schema.ListNestedAttribute{NestedObject: schema.NestedAttributeObject{Attributes: a.schema()}, Required: a.required, Optional: optional, Computed: a.computed}
		}
	}
	return all
}

func (m *managed) Create(ctx context.Context, req resource.CreateRequest, resp *resource.CreateResponse) {
	planned := m.values(req.Plan.Raw)
	if m.element != "" {
		if _, err := m.api.call(ctx, http.MethodPut, fill(m.item, planned), m.listWith(planned, true)); err != nil {
			refuse(&resp.Diagnostics, err)
			return
		}
	} else {
		body := any(m.body(planned, nil, false))
		if m.creation != nil {
			body = m.creation(planned)
		}
		answer, err := m.api.call(ctx, http.MethodPost, fill(m.create, planned), body)
		if err != nil {
			refuse(&resp.Diagnostics, err)
			return
		}
		// What only the creation responses is taken from there, as the id.
		for _, a := range m.fields {
			if v, ok := answer[a.name]; ok && a.computed {
				planned[a.name] = v
			}
		}
	}
	read, err := m.read(ctx, planned)
	if err != nil {
		refuse(&resp.Diagnostics, err)
		return
	}
	resp.State.Raw = m.state(req.Plan.Raw, planned, read)
}

func (m *managed) Read(ctx context.Context, req resource.ReadRequest, resp *resource.ReadResponse) {
	prior := m.values(req.State.Raw)
	read, err := m.read(ctx, prior)
	if gone(err) {
		resp.State.RemoveResource(ctx)
		return
	}
	if err != nil {
		refuse(&resp.Diagnostics, err)
		return
	}
	resp.State.Raw = m.state(req.State.Raw, prior, read)
}

func (m *managed) Update(ctx context.Context, req resource.UpdateRequest, resp *resource.UpdateResponse) {
	planned, prior := m.values(req.Plan.Raw), m.values(req.State.Raw)
	for _, a := range m.fields {
		if a.computed && planned[a.name] == nil {
			planned[a.name] = prior[a.name]
		}
	}
	var body any = m.body(planned, prior, true)
	if m.element != "" {
		body = m.listWith(planned, true)
	}
	if _, err := m.api.call(ctx, http.MethodPut, fill(m.item, planned), body); err != nil {
		refuse(&resp.Diagnostics, err)
		return
	}
	read, err := m.read(ctx, planned)
	if err != nil {
		refuse(&resp.Diagnostics, err)
		return
	}
	resp.State.Raw = m.state(req.Plan.Raw, planned, read)
}

func (m *managed) Delete(ctx context.Context, req resource.DeleteRequest, resp *resource.DeleteResponse) {
	prior := m.values(req.State.Raw)
	method, path, body := http.MethodDelete, m.item+m.query, any(nil)
	if m.element != "" {
		method, body = http.MethodPut, m.listWith(prior, false)
	}
	if len(m.removal) > 0 {
		named := map[string]any{}
		for _, name := range m.removal {
			named[name] = prior[name]
		}
		body = named
	}
	if _, err := m.api.call(ctx, method, fill(path, prior), body); err != nil && !gone(err) {
		refuse(&resp.Diagnostics, err)
	}
}

func (m *managed) ImportState(ctx context.Context, req resource.ImportStateRequest, resp *resource.ImportStateResponse) {
	parts := strings.Split(req.ID, ":")
	if len(parts) != len(m.imported) {
		resp.Diagnostics.AddError("import", "the id has the form "+strings.Join(m.imported, ":"))
		return
	}
	for i, name := range m.imported {
		resp.Diagnostics.Append(resp.State.SetAttribute(ctx, path.Root(name), parts[i])...)
	}
}

// read reads what the attributes name, by its item or as an element of a list.
func (m *managed) read(ctx context.Context, known map[string]any) (map[string]any, error) {
	if m.found != "" {
		answer, err := m.api.call(ctx, http.MethodGet, m.found, nil)
		if err != nil {
			return nil, err
		}
		return m.elementOf(answer, cmp.Or(m.listed, "data"), "id", known["id"])
	}
	answer, err := m.api.call(ctx, http.MethodGet, fill(m.item+m.query, known), nil)
	if err != nil || m.element == "" {
		return answer, err
	}
	return m.elementOf(answer, cmp.Or(m.listed, m.element), elementKey(m.key), known[m.key])
}

func (m *managed) elementOf(answer map[string]any, list, key string, want any) (map[string]any, error) {
	all, _ := answer[list].([]any)
	for _, e := range all {
		if e, ok := e.(map[string]any); ok && e[key] == want {
			if enabled, ok := e["enabled"].(bool); ok && !enabled && m.element != "" {
				break
			}
			return e, nil
		}
	}
	return nil, &failure{"read of " + m.name, http.StatusNotFound, fmt.Sprintf("no %v among %d", want, len(all))}
}

// elementKey is how an element is named in bodies and responses.
func elementKey(key string) string {
	if key == "workspace_id" {
		return "id"
	}
	return key
}

// listWith is the body that writes one element.
func (m *managed) listWith(values map[string]any, enabled bool) map[string]any {
	e := map[string]any{"enabled": enabled}
	for _, a := range m.fields {
		switch v := values[a.name]; {
		case v == nil || strings.Contains(m.item, "{"+a.name+"}"):
		case a.kind == document:
			e[a.name] = json.RawMessage(v.(string))
		default:
			e[a.name] = v
		}
	}
	e[elementKey(m.key)] = values[m.key]
	if elementKey(m.key) != m.key {
		delete(e, m.key)
	}
	return map[string]any{m.element: []any{e}}
}

// body is what is sent: what the configuration has, and null for what left it.
func (m *managed) body(planned, prior map[string]any, change bool) map[string]any {
	body := map[string]any{}
	for _, a := range m.fields {
		v := planned[a.name]
		switch {
		case a.computed && (v == nil || change && !a.required), change && a.first:
		case v != nil && a.kind == document:
			body[a.name] = json.RawMessage(v.(string))
		case v != nil:
			body[a.name] = v
		case a.cleared && change && prior[a.name] != nil:
			body[a.name] = nil
		}
	}
	path := m.create
	if change {
		path = m.item
	}
	for _, name := range named.FindAllString(path, -1) { // not in a body as well
		delete(body, strings.Trim(name, "{}"))
	}
	return body
}

var named = regexp.MustCompile(`\{[a-z_]+\}`)

func fill(path string, values map[string]any) string {
	return named.ReplaceAllStringFunc(path, func(name string) string {
		return url.PathEscape(fmt.Sprint(values[strings.Trim(name, "{}")]))
	})
}

func gone(err error) bool {
	f, ok := err.(*failure)
	return ok && f.status == http.StatusNotFound
}

func refuse(d *diag.Diagnostics, err error) { d.AddError("the API refused", err.Error()) }
