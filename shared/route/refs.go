package route

import (
	"context"
	"fmt"
	"hash/fnv"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/wire"
)

// Refs are the saved resources that a config names, in its order.
type Refs struct {
	Providers  []Ref // saved providers, without @
	Guardrails []Ref
	Prompts    []Ref
}

// Ref is a place in a config that names a saved resource.
type Ref struct {
	Field string // path of the place, as Parse reports it
	Name  string // slug or id
}

// Refs collects what the config refers to.
func (c *Config) Refs() Refs {
	var refs Refs
	c.each(func(n *Config) {
		add := func(list *[]Ref, name, ref string) {
			if ref != "" {
				*list = append(*list, Ref{field(n.Path, name), ref})
			}
		}
		if slug, ok := strings.CutPrefix(n.Provider, "@"); ok {
			add(&refs.Providers, "provider", slug)
		}
		add(&refs.Providers, "virtual_key", n.VirtualKey)
		for _, p := range []struct {
			name   string
			params []Param
		}{{"override_params", n.OverrideParams}, {"default_params", n.DefaultParams}} {
			var ignored []fault.Detail
			_, slug := modelParam(p.params, n.Path, p.name, &ignored)
			add(&refs.Providers, p.name+".model", slug)
		}
		if n.Cache != nil && n.Cache.Embedder != nil {
			add(&refs.Providers, "cache.embedder.provider", n.Cache.Embedder.Slug)
		}
		for _, g := range slices.Concat(n.Input, n.Output) {
			if g.Slug != "" {
				refs.Guardrails = append(refs.Guardrails, Ref{g.Field, g.Slug})
			}
		}
		id, _, _ := strings.Cut(n.PromptID, "@") // the version comes after it
		add(&refs.Prompts, "prompt_id", id)
	})
	return refs
}

// Guardrails are the guardrails that are written in the config.
func (c *Config) Guardrails() []Guardrail {
	var out []Guardrail
	c.each(func(n *Config) {
		for _, g := range slices.Concat(n.Input, n.Output) {
			if g.Slug == "" {
				out = append(out, g)
			}
		}
	})
	return out
}

// Host is an address in a config that must pass the egress rules.
type Host struct{ Field, URL string }

// Hosts gives the addresses that people wrote into the config, to check them against the
// egress rules when it is saved.
func (c *Config) Hosts() []Host {
	var hosts []Host
	c.each(func(n *Config) {
		if n.CustomHost != nil && *n.CustomHost != "" {
			hosts = append(hosts, Host{field(n.Path, "custom_host"), *n.CustomHost})
		}
		for _, name := range []string{"azure_foundry_url", "huggingface_base_url"} {
			if u, ok := n.Fields[name].(string); ok && u != "" {
				hosts = append(hosts, Host{field(n.Path, name), u})
			}
		}
	})
	return hosts
}

// each calls visit for the node and every node below it.
func (c *Config) each(visit func(*Config)) {
	visit(c)
	for _, t := range c.Targets {
		t.each(visit)
	}
}

// modelParam reads the model among params and splits "@slug/model".
func modelParam(params []Param, path, name string, details *[]fault.Detail) (model, slug string) {
	for _, p := range params {
		if p.Key != "model" || wire.IsNull(p.Value) {
			continue
		}
		at := field(path, name+".model")
		text, err := wire.ScanString(p.Value, at)
		if err != nil {
			*details = append(*details, fault.Detail{Field: at, Message: "must be a string"})
			return "", ""
		}
		rest, saved := strings.CutPrefix(text, "@")
		if !saved {
			return text, ""
		}
		slug, model, ok := strings.Cut(rest, "/")
		if !ok || slug == "" || model == "" {
			*details = append(*details, fault.Detail{Field: at, Message: "must be a model, or @slug/model for a saved provider"})
		}
		return model, slug
	}
	return "", ""
}

// RefersField is the list field of saved configs that name saved resources: it has their
// Marks. When the users of a resource are looked for, configs that cannot name it are not
// read.
const RefersField = "refers"

const (
	// mostMarks bounds the field, because every list row has it.
	mostMarks = 32
	// manyMarks replaces more marks than that: such a config is always read.
	manyMarks = "*"
)

// Marks is the value of RefersField for a config with these references: a short hash
// of each name, with spaces between them; "" without any.
func Marks(refs Refs) string {
	var marks []string
	for _, ref := range slices.Concat(refs.Providers, refs.Guardrails, refs.Prompts) {
		marks = append(marks, mark(ref.Name))
	}
	slices.Sort(marks)
	if marks = slices.Compact(marks); len(marks) > mostMarks {
		return manyMarks
	}
	return strings.Join(marks, " ")
}

func mark(name string) string {
	h := fnv.New32a()
	h.Write([]byte(name))
	return fmt.Sprintf("%08x", h.Sum32())
}

// marked reports whether a config with these marks may name the record.
func marked(marks string, of *resource.Record) bool {
	return marks == manyMarks || strings.Contains(marks, mark(of.ID)) || of.Slug != "" && strings.Contains(marks, mark(of.Slug))
}

// Users are the saved configs of the scopes that name a record, archived ones too. pick
// chooses the references that count.
func Users(ctx context.Context, r *resource.Resources, in []store.Scope, of *resource.Record, pick func(Refs) []Ref) ([]resource.Ref, error) {
	var out []resource.Ref
	for _, archived := range []bool{false, true} {
		lists, err := r.ListMany(ctx, in, KindConfig, archived)
		if err != nil {
			return nil, err
		}
		for n, rows := range lists {
			var ids []string
			for i := range rows {
				if marked(rows[i].Fields[RefersField], of) {
					ids = append(ids, rows[i].ID)
				}
			}
			recs, err := r.GetMany(ctx, in[n], KindConfig, ids)
			if err != nil {
				return nil, err
			}
			for i := range recs {
				cfg, bad := ParseSaved(recs[i].Body)
				if len(bad) == 0 && slices.ContainsFunc(pick(cfg.Refs()), func(ref Ref) bool { return ref.Name == of.ID || ref.Name == of.Slug }) {
					out = append(out, recs[i].Ref())
				}
			}
		}
	}
	return out, nil
}
