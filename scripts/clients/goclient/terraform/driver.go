package main

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/hashicorp/terraform-plugin-framework/providerserver"
	"github.com/hashicorp/terraform-plugin-go/tfprotov6"
	"github.com/hashicorp/terraform-plugin-go/tftypes"
)

// example is a resource of one kind with the configuration that creates it and those that it is
// changed to, in order.
type example struct {
	kind, about string
	configs     []map[string]any
	// stays is true where a destroyed resource remains readable by design.
	stays bool
}

func (e example) title() string { return e.kind + ": " + e.about }

// protocol is a provider as Terraform sees it.
type protocol struct {
	server tfprotov6.ProviderServer
	kindOfResource
	typ tftypes.Object
}

func open(ctx context.Context, kind string) (*protocol, error) {
	i := slices.IndexFunc(kinds, func(k kindOfResource) bool { return k.name == kind })
	if i < 0 {
		return nil, fmt.Errorf("no kind %q", kind)
	}
	p := &protocol{server: providerserver.NewProtocol6(gateway{})(), kindOfResource: kinds[i]}
	described, err := p.server.GetProviderSchema(ctx, &tfprotov6.GetProviderSchemaRequest{})
	if err = errors.Join(err, problems(described.Diagnostics)); err != nil {
		return nil, err
	}
	none := tftypes.Object{AttributeTypes: map[string]tftypes.Type{}}
	configured, err := p.server.ConfigureProvider(ctx, &tfprotov6.ConfigureProviderRequest{Config: encode(none, tftypes.NewValue(none, map[string]tftypes.Value{}))})
	if err = errors.Join(err, problems(configured.Diagnostics)); err != nil {
		return nil, err
	}
	p.typ = described.ResourceSchemas["gateway_"+kind].ValueType().(tftypes.Object)
	return p, nil
}

// drive takes an example through its life.
func drive(ctx context.Context, e example) (err error) {
	defer func() { // a response of another type
		if r := recover(); r != nil {
			err = fmt.Errorf("%v", r)
		}
	}()
	p, err := open(ctx, e.kind)
	if err != nil {
		return err
	}
	state := tftypes.NewValue(p.typ, nil)
	for i, config := range e.configs {
		step := fmt.Sprintf("configuration %d", i+1)
		desired := p.config(config)
		if state, err = p.apply(ctx, desired, state); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
		if err := p.settled(ctx, desired, state); err != nil {
			return fmt.Errorf("%s: %w", step, err)
		}
	}
	last := p.config(e.configs[len(e.configs)-1])
	if len(p.imported) > 0 {
		if err := p.imports(ctx, last, state); err != nil {
			return fmt.Errorf("import: %w", err)
		}
	}
	if _, err := p.change(ctx, p.null(), state, p.null()); err != nil {
		return fmt.Errorf("destroy: %w", err)
	}
	after, err := p.refresh(ctx, state)
	if err != nil || !after.IsNull() && !e.stays {
		return fmt.Errorf("a destroyed resource is read as %v, %w", after, err)
	}
	return nil
}

func (p *protocol) null() tftypes.Value { return tftypes.NewValue(p.typ, nil) }

// config is a configuration as a value; what it lacks is null.
func (p *protocol) config(values map[string]any) tftypes.Value {
	for name := range values {
		if !slices.ContainsFunc(p.fields, func(a attribute) bool { return a.name == name }) {
			panic("no attribute " + name)
		}
	}
	v := tftypes.NewValue(p.typ, nil)
	out := map[string]tftypes.Value{}
	for _, a := range p.fields {
		if w, ok := values[a.name]; ok {
			out[a.name] = a.from(p.typ.AttributeTypes[a.name], w, w)
		} else {
			out[a.name] = tftypes.NewValue(p.typ.AttributeTypes[a.name], nil)
		}
	}
	return tftypes.NewValue(v.Type(), out)
}

// apply plans and applies a configuration, and checks that the result is what was planned.
func (p *protocol) apply(ctx context.Context, config, prior tftypes.Value) (tftypes.Value, error) {
	valid, err := p.server.ValidateResourceConfig(ctx, &tfprotov6.ValidateResourceConfigRequest{TypeName: "gateway_" + p.name, Config: encode(p.typ, config)})
	if err = errors.Join(err, problems(valid.Diagnostics)); err != nil {
		return prior, err
	}
	planned, err := p.plan(ctx, config, prior)
	if err != nil {
		return prior, err
	}
	state, err := p.change(ctx, config, prior, planned)
	if err != nil {
		return prior, err
	}
	// What Terraform calls an inconsistent result after apply.
	diffs, err := planned.Diff(state)
	if err != nil {
		return prior, err
	}
	for _, d := range diffs {
		if d.Value1 != nil && d.Value1.IsFullyKnown() && (d.Value2 == nil || !d.Value1.Equal(*d.Value2)) && leaf(*d.Value1) {
			return prior, fmt.Errorf("the result differs from the plan at %s: %s, planned %s", d.Path, shown(d.Value2), shown(d.Value1))
		}
	}
	if !state.IsFullyKnown() {
		return prior, errors.New("values are unknown after apply")
	}
	return state, nil
}

// settled checks that a read changes nothing, and that nothing is planned.
func (p *protocol) settled(ctx context.Context, config, state tftypes.Value) error {
	again, err := p.refresh(ctx, state)
	if err != nil {
		return fmt.Errorf("read: %w", err)
	}
	if !again.Equal(state) {
		return fmt.Errorf("read: %s", difference(state, again))
	}
	planned, err := p.plan(ctx, config, state)
	if err != nil {
		return err
	}
	if !planned.Equal(state) {
		return fmt.Errorf("the plan is not empty: %s", difference(state, planned))
	}
	return nil
}

// imports imports what state describes, and plans: only secrets may differ, which no response has.
func (p *protocol) imports(ctx context.Context, config, state tftypes.Value) error {
	known := p.values(state)
	var id []string
	for _, name := range p.imported {
		id = append(id, fmt.Sprint(known[name]))
	}
	resp, err := p.server.ImportResourceState(ctx, &tfprotov6.ImportResourceStateRequest{TypeName: "gateway_" + p.name, ID: strings.Join(id, ":")})
	if err = errors.Join(err, problems(resp.Diagnostics)); err != nil {
		return err
	}
	imported, err := resp.ImportedResources[0].State.Unmarshal(p.typ)
	if err != nil {
		return err
	}
	read, err := p.refresh(ctx, imported)
	if err != nil {
		return err
	}
	if read.IsNull() {
		return errors.New("nothing is there")
	}
	var have, want map[string]tftypes.Value
	must(read.As(&have))
	must(state.As(&want))
	have = maps.Clone(have)
	for _, a := range p.fields {
		if a.secret || a.first && have[a.name].IsNull() || a.kind == document && sameText(a, have[a.name], want[a.name]) {
			have[a.name] = want[a.name]
		}
	}
	return p.settled(ctx, config, tftypes.NewValue(p.typ, have))
}

// sameText reports whether two documents mean the same.
func sameText(a attribute, have, want tftypes.Value) bool {
	if have.IsNull() || want.IsNull() {
		return false
	}
	written := a.value(want).(string)
	return sameDocument(a.value(have), written) == written
}

func (p *protocol) plan(ctx context.Context, config, prior tftypes.Value) (tftypes.Value, error) {
	resp, err := p.server.PlanResourceChange(ctx, &tfprotov6.PlanResourceChangeRequest{
		TypeName: "gateway_" + p.name, PriorState: encode(p.typ, prior), ProposedNewState: encode(p.typ, p.proposed(config, prior)), Config: encode(p.typ, config),
	})
	if err = errors.Join(err, problems(resp.Diagnostics)); err != nil {
		return prior, err
	}
	if len(resp.RequiresReplace) > 0 {
		return prior, fmt.Errorf("must be replaced because of %v", resp.RequiresReplace)
	}
	return resp.PlannedState.Unmarshal(p.typ)
}

// proposed is the configuration with what the API computes from the state before.
func (p *protocol) proposed(config, prior tftypes.Value) tftypes.Value {
	var want, before map[string]tftypes.Value
	must(config.As(&want))
	want = maps.Clone(want) // the value's own
	if !prior.IsNull() {
		must(prior.As(&before))
	}
	for _, a := range p.fields {
		if b, ok := before[a.name]; ok && a.computed && want[a.name].IsNull() {
			want[a.name] = b
		}
	}
	return tftypes.NewValue(p.typ, want)
}

func (p *protocol) change(ctx context.Context, config, prior, planned tftypes.Value) (tftypes.Value, error) {
	resp, err := p.server.ApplyResourceChange(ctx, &tfprotov6.ApplyResourceChangeRequest{
		TypeName: "gateway_" + p.name, PriorState: encode(p.typ, prior), PlannedState: encode(p.typ, planned), Config: encode(p.typ, config),
	})
	if err = errors.Join(err, problems(resp.Diagnostics)); err != nil {
		return prior, err
	}
	return resp.NewState.Unmarshal(p.typ)
}

func (p *protocol) refresh(ctx context.Context, state tftypes.Value) (tftypes.Value, error) {
	resp, err := p.server.ReadResource(ctx, &tfprotov6.ReadResourceRequest{TypeName: "gateway_" + p.name, CurrentState: encode(p.typ, state)})
	if err = errors.Join(err, problems(resp.Diagnostics)); err != nil {
		return state, err
	}
	return resp.NewState.Unmarshal(p.typ)
}

func encode(typ tftypes.Type, v tftypes.Value) *tfprotov6.DynamicValue {
	d, err := tfprotov6.NewDynamicValue(typ, v)
	must(err)
	return &d
}

func problems(all []*tfprotov6.Diagnostic) error {
	var errs []error
	for _, d := range all {
		if d.Severity == tfprotov6.DiagnosticSeverityError {
			errs = append(errs, fmt.Errorf("%s: %s", d.Summary, d.Detail))
		}
	}
	return errors.Join(errs...)
}

func leaf(v tftypes.Value) bool {
	switch v.Type().(type) {
	case tftypes.Object, tftypes.List, tftypes.Map:
		return v.IsNull()
	}
	return true
}

func difference(a, b tftypes.Value) string {
	diffs, err := a.Diff(b)
	if err != nil {
		return err.Error()
	}
	var out []string
	for _, d := range diffs {
		if d.Value1 == nil || d.Value2 == nil || leaf(*d.Value1) || leaf(*d.Value2) {
			out = append(out, fmt.Sprintf("%s: %s -> %s", d.Path, shown(d.Value1), shown(d.Value2)))
		}
	}
	return strings.Join(out, "; ")
}

func shown(v *tftypes.Value) string {
	if v == nil {
		return "absent"
	}
	return v.String()
}
