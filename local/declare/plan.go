package declare

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"
)

// Actions of changes.
const (
	Create = "create"
	Change = "change"
	Delete = "delete"
)

// Step is one change that a plan makes.
type Step struct {
	Action    string   `json:"action"`
	Noun      string   `json:"kind"`
	Name      string   `json:"name"`
	Workspace string   `json:"workspace,omitempty"`
	Fields    []string `json:"fields,omitempty"` // what a change changes

	missing  []string
	rejected string // why it cannot be done
	run      func(ctx context.Context, p *Plan) error
}

// String is the step in one line.
func (s *Step) String() string {
	text := strings.TrimSpace(s.Action + " " + s.Noun + " " + s.Name)
	if s.Workspace != "" && s.Noun != nounWorkspace {
		text += " in " + s.Workspace
	}
	if len(s.Fields) > 0 {
		text += ": " + strings.Join(s.Fields, ", ")
	}
	return text
}

const nounWorkspace = "workspace"

// Plan lists the steps to reach a declared state.
type Plan struct {
	Steps []*Step

	api   API
	own   bool              // the key is of one workspace
	names map[string]string // of workspaces, by their slugs in the document
	refs  map[string]string // slugs of the document to live ones
}

// Missing returns the names of the secrets that the plan needs and does not have.
func (p *Plan) Missing() []string {
	var all []string
	for _, s := range p.Steps {
		all = append(all, s.missing...)
	}
	slices.Sort(all)
	return slices.Compact(all)
}

// Options change how a plan is made.
type Options struct {
	Prune   bool // delete what the document does not have, in the sections that it has
	Secrets Secrets
	// OwnWorkspace means that the key is of one workspace, the only one of the document.
	OwnWorkspace bool
	// PreserveNames leaves the names of workspaces as they are.
	PreserveNames bool
	// Inactive creates what lacks a secret so that it cannot be used.
	Inactive bool
	// KnownSettings omits settings that the gateway does not have.
	KnownSettings bool
}

// MakePlan compares a document with the live state.
func MakePlan(ctx context.Context, api API, d *Document, o Options) (*Plan, error) {
	live, err := readState(ctx, api, d.scope(o))
	if err != nil {
		return nil, err
	}
	p := &Plan{api: api, own: o.OwnWorkspace, names: map[string]string{}, refs: map[string]string{}}
	b := &planner{Plan: p, o: o}
	if d.Organization != nil {
		b.match(d.Organization.Sections, live.items)
	}
	spaces := make([]*space, len(d.Workspaces))
	for i, w := range d.Workspaces {
		if spaces[i] = live.find(w, o.OwnWorkspace); spaces[i] != nil {
			if w.Slug != "" {
				p.refs[w.Slug] = spaces[i].slug
			}
			b.match(w.Sections, spaces[i].items)
		}
	}
	targets := make([]*target, len(d.Workspaces))
	for i, w := range d.Workspaces { // before what the organization opens to them
		targets[i] = b.target(w, spaces[i])
		p.names[w.Slug] = targets[i].name
	}
	if o := d.Organization; o != nil {
		b.single("settings of the organization", "", o.Settings, live.settings, "/admin/organisation/settings")
		b.resources(o.Sections, live.items, "", inOrganization)
	}
	for i, w := range d.Workspaces {
		b.workspace(w, spaces[i], targets[i])
	}
	if o := d.Organization; o != nil {
		b.single("defaults of the organization", "", o.Defaults, live.defaults, "/admin/organisation/defaults")
	}
	b.deletions(d, live, spaces)
	return p, nil
}

// scope lists the resources to read to compare a document.
func (d *Document) scope(o Options) scope {
	sc := scope{organization: d.Organization != nil, own: o.OwnWorkspace}
	in := map[level]map[string]bool{inOrganization: {}, inWorkspace: {}}
	if d.Organization != nil {
		for s := range d.Organization.Sections {
			in[inOrganization][s] = true
		}
	}
	for _, w := range d.Workspaces {
		for s := range w.Sections {
			in[inWorkspace][s] = true
		}
	}
	sc.sections = func(at level, section string) bool { return in[at][section] }
	all := o.Prune && d.listsWorkspaces
	sc.workspace = func(slug, name string) bool {
		return all || slices.ContainsFunc(d.Workspaces, func(w *Workspace) bool { return w.Slug != "" && w.Slug == slug || w.Name == name })
	}
	return sc
}

// find returns the live workspace that is declared: by its slug, else by its name.
func (s *state) find(w *Workspace, own bool) *space {
	if own {
		return s.spaces[0]
	}
	for _, sp := range s.spaces {
		if w.Slug != "" && sp.slug == w.Slug {
			return sp
		}
	}
	for _, sp := range s.spaces {
		if w.Name != "" && sp.name == w.Name {
			return sp
		}
	}
	return nil
}

// planner collects the steps of a plan.
type planner struct {
	*Plan
	o Options
}

// match notes the live slugs of declared resources.
func (b *planner) match(sections map[string][]*Resource, items []*item) {
	for section, list := range sections {
		for _, r := range list {
			slug, _ := r.Fields["slug"].(string)
			if it := findItem(kindOf(section), r.Fields, items); it != nil && slug != "" && it.slug != "" {
				b.refs[slug] = it.slug
			}
		}
	}
}

// findItem returns the live resource that is declared: by its slug, else by its name.
func findItem(k *kind, fields map[string]any, items []*item) *item {
	slug, _ := fields["slug"].(string)
	for _, it := range items {
		if it.kind == k && slug != "" && it.slug == slug {
			return it
		}
	}
	if k.bySlug {
		return nil
	}
	id := identity(k, fields)
	for _, it := range items {
		if it.kind == k && it.name() == id {
			return it
		}
	}
	return nil
}

// generated matches the suffix of generated slugs; they may occur inside a text.
var generated = regexp.MustCompile(`-[0-9a-f]{6}$`)

// rewrite replaces the slugs of the document by live ones.
func (p *Plan) rewrite(v any) any {
	switch v := v.(type) {
	case string:
		if to, ok := p.refs[v]; ok {
			return to
		}
		for from, to := range p.refs {
			if from != to && generated.MatchString(from) && strings.Contains(v, from) {
				v = strings.ReplaceAll(v, from, to)
			}
		}
		return v
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = p.rewrite(v[i])
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for k := range v {
			out[k] = p.rewrite(v[k])
		}
		return out
	}
	return v
}

// wanted are the fields of a declared resource as they are now known.
func (b *planner) wanted(fields map[string]any) map[string]any {
	m, _ := Native(fields).(map[string]any)
	m, _ = b.o.Secrets.resolve(b.rewriteFields(m)).(map[string]any)
	return m
}

// rewriteFields replaces labels in the fields of a resource. Its own name may be equal to a
// label, and is none.
func (p *Plan) rewriteFields(fields map[string]any) map[string]any {
	out := make(map[string]any, len(fields))
	for k, v := range fields {
		if out[k] = v; k != "name" && k != "slug" && k != "description" {
			out[k] = p.rewrite(v)
		}
	}
	return out
}

// Native returns v in the types of decoded JSON.
func Native(v any) any {
	raw, err := json.Marshal(v)
	if err != nil {
		panic(err) // values of a document
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var out any
	if err := d.Decode(&out); err != nil {
		panic(err)
	}
	return out
}

// single plans a change of an object that always exists.
func (b *planner) single(noun, workspace string, want, have map[string]any, path string) {
	want = b.wanted(want)
	var changed []string
	for k, v := range want {
		if _, there := have[k]; !there && b.o.KnownSettings {
			continue
		}
		if !equal(v, have[k], false) {
			changed = append(changed, k)
		}
	}
	if len(changed) == 0 {
		return
	}
	slices.Sort(changed)
	body := pick(want, changed...)
	_, missing := reveal(body, false)
	b.Steps = append(b.Steps, &Step{Action: Change, Noun: noun, Workspace: workspace, Fields: changed, missing: missing, run: func(ctx context.Context, p *Plan) error {
		sent, _ := reveal(p.rewriteFields(body), false)
		_, err := call(ctx, p.api, "PUT", path, sent)
		return err
	}})
}

// target returns the workspace that a part of the document is about. It plans the creation
// of one that does not exist.
func (b *planner) target(w *Workspace, live *space) *target {
	to := &target{name: w.Name, label: w.Slug}
	if to.name == "" {
		to.name = w.Slug
	}
	if live != nil {
		to.slug, to.name = live.slug, live.name
		return to
	}
	body := b.wanted(pick(w.Fields, "description", "icon"))
	body["name"] = to.name
	b.Steps = append(b.Steps, &Step{Action: Create, Noun: nounWorkspace, Name: to.name, run: func(ctx context.Context, p *Plan) error {
		out, err := call(ctx, p.api, "POST", "/admin/workspaces", body)
		if err != nil {
			return err
		}
		if to.slug, _ = out["slug"].(string); to.slug == "" {
			return errors.New("the response to the creation of a workspace has no slug")
		}
		if to.label != "" {
			p.refs[to.label] = to.slug
		}
		return nil
	}})
	return to
}

// workspace plans the declared state of one workspace.
func (b *planner) workspace(w *Workspace, live *space, to *target) {
	have := map[string]any{}
	var items []*item
	if live != nil {
		have, items = live.fields, live.items
	}
	if live == nil || w.Settings != nil {
		var own map[string]any
		if live != nil {
			own = live.settings
		}
		b.inWorkspace("settings of the workspace", to, w.Settings, own, "/settings")
	}
	b.resourcesIn(w.Sections, items, to, inWorkspace)
	fields := maps.Clone(w.Fields)
	if w.Name != "" && live != nil && !b.o.OwnWorkspace && !b.o.PreserveNames {
		if fields == nil {
			fields = map[string]any{}
		}
		fields["name"] = w.Name
	}
	if live == nil {
		have = pick(w.Fields, "description", "icon")
	}
	b.inWorkspace(nounWorkspace, to, fields, have, "")
}

// target is the workspace that steps work in. Its slug is known once it exists.
type target struct{ slug, name, label string }

// inWorkspace plans a change of a workspace itself, or of its settings.
func (b *planner) inWorkspace(noun string, to *target, want, have map[string]any, more string) {
	want = b.wanted(want)
	var changed []string
	for k, v := range want {
		if !equal(v, have[k], false) {
			changed = append(changed, k)
		}
	}
	if len(changed) == 0 {
		return
	}
	slices.Sort(changed)
	body := pick(want, changed...)
	_, missing := reveal(body, false)
	b.Steps = append(b.Steps, &Step{Action: Change, Noun: noun, Name: to.name, Workspace: to.name, Fields: changed, missing: missing, run: func(ctx context.Context, p *Plan) error {
		sent, _ := reveal(p.rewriteFields(body), false)
		_, err := call(ctx, p.api, "PUT", "/admin/workspaces/"+to.slug+more, sent)
		return err
	}})
}

func (b *planner) resources(sections map[string][]*Resource, items []*item, name string, at level) {
	b.resourcesIn(sections, items, &target{name: name}, at)
}

func (b *planner) resourcesIn(sections map[string][]*Resource, items []*item, to *target, at level) {
	for _, k := range kinds {
		for _, r := range dependenciesFirst(sections[k.section]) {
			if it := findItem(k, r.Fields, items); it != nil {
				b.change(r, it, to)
			} else {
				b.create(k, r, to, at)
			}
		}
	}
}

// created are parts of a resource as they are when it is new.
var created = map[string]any{"allow_all_models": true, "global_workspace_access": map[string]any{"enabled": false}}

// body returns the fields that a kind writes at its own address, under the names of bodies.
func (k *kind) body(fields map[string]any, creates bool) map[string]any {
	out := map[string]any{}
	for i := range k.fields {
		f := &k.fields[i]
		v, present := fields[f.name]
		if !present || f.fixed && !creates {
			continue
		}
		name := f.name
		if f.write != "" {
			name = f.write
			if b, ok := v.(bool); ok {
				v = map[bool]int{true: 1, false: 0}[b]
			}
		}
		out[name] = v
	}
	return out
}

func (b *planner) create(k *kind, r *Resource, to *target, at level) {
	want := b.wanted(r.Fields)
	if b.o.Inactive && !known(want) {
		want = inactive(k, want)
	}
	body := k.body(want, true)
	for name, v := range body {
		if v == nil {
			delete(body, name)
		}
	}
	switch {
	case k.section == "integrations" && at == inWorkspace:
		body["create_default_provider"] = false // providers are declared
	case k.section == "collections" && body["parent_collection_id"] == "":
		delete(body, "parent_collection_id")
	}
	_, missing := reveal(body, false)
	label, _ := r.Fields["slug"].(string)
	b.Steps = append(b.Steps, &Step{Action: Create, Noun: k.noun, Name: identity(k, want), Workspace: to.name, missing: missing, run: func(ctx context.Context, p *Plan) error {
		sent, _ := reveal(p.rewriteFields(body), false)
		it := &item{kind: k, workspace: to.slug}
		out, err := call(ctx, p.api, "POST", k.path, it.body(sent.(map[string]any)))
		if err != nil {
			return err
		}
		if inner, ok := out["data"].(map[string]any); ok {
			out = inner
		}
		it.slug, _ = out["slug"].(string)
		if it.id = it.slug; it.id == "" {
			it.id, _ = out["id"].(string)
		}
		if label != "" && it.slug != "" {
			p.refs[label] = it.slug
		}
		for i := range k.extras {
			e := &k.extras[i]
			if e.at&at == 0 {
				continue
			}
			fields := pick(want, e.names...)
			if len(fields) == 0 || e.unchanged(fields, created) {
				continue
			}
			sent, _ := reveal(p.rewrite(fields), true)
			if err := e.write(ctx, p.api, it, sent.(map[string]any)); err != nil {
				return err
			}
		}
		return nil
	}})
}

func (e *extra) unchanged(want, have map[string]any) bool {
	for n, v := range want {
		if !e.equal(n, v, have) {
			return false
		}
	}
	return true
}

func (b *planner) change(r *Resource, it *item, to *target) {
	if it.builtIn {
		return
	}
	k, want := it.kind, b.wanted(r.Fields)
	if b.o.Inactive && !known(want) {
		for _, name := range passive[k.section] {
			delete(want, name)
		}
	}
	var changed, extras []string
	for name, v := range want {
		f, e := k.field(name), k.extra(name)
		switch {
		case e != nil:
			if !e.equal(name, v, it.fields) {
				extras = append(extras, name)
			}
		case f == nil || name == "slug":
		case !equal(v, it.fields[name], f.exact):
			changed = append(changed, name)
		}
	}
	if len(changed)+len(extras) == 0 {
		return
	}
	slices.Sort(changed)
	slices.Sort(extras)
	send := pick(want, changed...)
	if len(changed) > 0 && k.secrets { // a change of the address needs its secrets again
		for name, v := range want {
			if f := k.field(name); f != nil && !f.fixed && hasSecret(v) && (f.partial || known(v)) {
				send[name] = v
			}
		}
	}
	var missing, wrong []string
	body := map[string]any{}
	for name, v := range k.body(send, false) {
		f := k.field(name)
		_, m := reveal(v, f != nil && f.partial)
		if f == nil || !f.partial {
			missing = append(missing, m...)
		}
		body[name] = v
	}
	for _, name := range changed {
		if k.field(name).fixed {
			wrong = append(wrong, name)
		}
	}
	step := &Step{Action: Change, Noun: k.noun, Name: it.name(), Workspace: to.name, Fields: append(changed, extras...), missing: missing}
	if len(wrong) > 0 {
		step.rejected = fmt.Sprintf("%s cannot be changed; delete the %s first", strings.Join(wrong, ", "), k.noun)
	}
	step.run = func(ctx context.Context, p *Plan) error {
		if len(body) > 0 {
			sent := p.rewriteFields(body)
			for name, v := range sent {
				f := k.field(name)
				sent[name], _ = reveal(v, f != nil && f.partial)
			}
			if _, err := call(ctx, p.api, "PUT", k.path+"/"+it.id, it.body(sent)); err != nil {
				return err
			}
			if err := publish(ctx, p.api, it); err != nil {
				return err
			}
		}
		for i := range k.extras {
			e := &k.extras[i]
			if !slices.ContainsFunc(e.names, func(n string) bool { return slices.Contains(extras, n) }) {
				continue
			}
			sent, _ := reveal(p.rewrite(pick(want, e.names...)), true)
			if err := e.write(ctx, p.api, it, sent.(map[string]any)); err != nil {
				return err
			}
		}
		return nil
	}
	b.Steps = append(b.Steps, step)
}

// known reports whether no secret in v is unknown.
func known(v any) bool {
	_, missing := reveal(v, false)
	return len(missing) == 0
}
