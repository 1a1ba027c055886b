package configs

import (
	"encoding/json"
	"strings"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/prompt"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
)

// references rejects a config that names what the workspace does not have, or a
// host that the gateway may not call; all of them at once.
func (f *family) references(c *admin.Call, tx *resource.Tx, rec *resource.Record, raw json.RawMessage) error {
	cfg, bad := route.Parse(raw, route.Strict)
	if len(bad) > 0 {
		return fault.Invalids(bad) // the field's own check has rejected it already
	}
	refs, organisation := cfg.Refs(), c.Organisation()
	held := map[string]resource.Ref{}
	for _, kind := range []struct {
		refs    []route.Ref
		kind    resource.Kind
		in      []store.Scope
		message string
	}{
		{refs.Providers, provider.KindProvider, []store.Scope{c.Scope}, "must name a saved provider of this workspace"},
		{refs.Guardrails, guard.KindGuardrail, []store.Scope{c.Scope, organisation}, "must name a guardrail of the workspace or the organization"},
		{refs.Prompts, prompt.KindPrompt, []store.Scope{c.Scope}, "must name a prompt of this workspace"},
	} {
		if len(kind.refs) == 0 {
			continue
		}
		known, err := namesOf(c, kind.kind, kind.in)
		if err != nil {
			return err
		}
		if kind.kind == prompt.KindPrompt {
			if err := sharedPrompts(c, known); err != nil {
				return err
			}
		}
		for _, ref := range kind.refs {
			if of, ok := known[ref.Name]; ok {
				held[of.ID] = of
			} else {
				bad = append(bad, fault.Detail{Field: "config." + ref.Field, Message: kind.message + ": " + fault.Clip(ref.Name, 100)})
			}
		}
	}
	for _, g := range cfg.Guardrails() {
		for _, d := range guard.CheckHook(g.Raw, guard.URLCheck(f.CheckURL)) {
			at := "config." + g.Field
			if d.Field != "" {
				at += "." + d.Field
			}
			bad = append(bad, fault.Detail{Field: at, Message: d.Message})
		}
	}
	for _, host := range cfg.Hosts() {
		if _, err := f.CheckURL(host.URL, host.Field); err != nil {
			bad = append(bad, fault.Detail{Field: "config." + host.Field, Message: fault.From(err).Message})
		}
	}
	if len(bad) == 0 {
		var err error
		if bad, err = storedWithHosts(c, cfg); err != nil {
			return err
		}
	}
	if len(bad) > maxBad {
		bad = bad[:maxBad]
	}
	if refused := fault.Invalids(bad); refused != nil {
		return refused
	}
	return hold(tx, rec, refs, held)
}

// maxCached bounds how many of the things that a config names are protected from being
// deleted while it is saved. Who deletes one looks for configs that name it anyway.
const maxCached = 40

// hold notes what the config names.
func hold(tx *resource.Tx, rec *resource.Record, refs route.Refs, held map[string]resource.Ref) error {
	if rec.Fields == nil {
		rec.Fields = make(map[string]string, 1)
	}
	if delete(rec.Fields, route.RefersField); route.Marks(refs) != "" {
		rec.Fields[route.RefersField] = route.Marks(refs)
	}
	n := 0
	for _, of := range held {
		if n++; n > maxCached {
			break
		}
		if err := tx.RequireExists(of); err != nil {
			return err
		}
	}
	return nil
}

// sharedPrompts adds the prompts that other workspaces share with the call's.
func sharedPrompts(c *admin.Call, known map[string]resource.Ref) error {
	rows, err := c.Resources.List(c.Context, c.Organisation(), prompt.KindShare)
	if err != nil || len(rows) == 0 {
		return err
	}
	ids := make([]string, len(rows))
	for i := range rows {
		ids[i] = rows[i].ID
	}
	recs, err := c.Resources.GetMany(c.Context, c.Organisation(), prompt.KindShare, ids)
	if err != nil {
		return err
	}
	for i := range recs {
		var share prompt.Share
		if json.Unmarshal(recs[i].Body, &share) != nil || !share.OpenTo(c.Scope.Workspace) {
			continue
		}
		of := resource.Ref{Scope: store.Scope{Org: c.Scope.Org, Workspace: share.Owner}, Kind: prompt.KindPrompt, ID: recs[i].ID, Name: recs[i].Name}
		for _, name := range []string{recs[i].ID, recs[i].Slug} {
			if _, own := known[name]; !own {
				known[name] = of
			}
		}
	}
	return nil
}

// maxBad bounds the errors of one response.
const maxBad = 50

// namesOf are the ids and slugs of the live resources of a kind. A config may
// name thousands, so the lists are read and not each one.
func namesOf(c *admin.Call, kind resource.Kind, in []store.Scope) (map[string]resource.Ref, error) {
	known := map[string]resource.Ref{}
	for _, sc := range in {
		rows, err := c.Resources.List(c.Context, sc, kind)
		if err != nil {
			return nil, err
		}
		for i := range rows {
			of := resource.Ref{Scope: sc, Kind: kind, ID: rows[i].ID, Name: rows[i].Name}
			known[rows[i].ID] = of
			if _, taken := known[rows[i].Slug]; !taken && rows[i].Slug != "" {
				known[rows[i].Slug] = of
			}
		}
	}
	return known, nil
}

// storedWithHosts are the targets that would send a stored credential to a host other than
// the one that is saved with it; no request would be served by them.
func storedWithHosts(c *admin.Call, cfg *route.Config) ([]fault.Detail, error) {
	tree, bad := cfg.Compile()
	if len(bad) > 0 {
		return bad, nil
	}
	own := map[string]string{}
	for _, leaf := range tree.Leaves() {
		if leaf.Slug == "" || leaf.CustomHost == "" {
			continue
		}
		host, known := own[leaf.Slug]
		if !known {
			var err error
			if host, err = hostOf(c, leaf.Slug); err != nil {
				return nil, err
			}
			own[leaf.Slug] = host
		}
		if strings.TrimRight(leaf.CustomHost, "/") != host {
			bad = append(bad, fault.Detail{Field: leaf.Path + ".custom_host", Message: "cannot be combined with the stored credential of a saved provider, unless it is the host saved with it"})
		}
	}
	return bad, nil
}

// hostOf is the custom host that is saved with a provider; "" without one.
func hostOf(c *admin.Call, slug string) (string, error) {
	rec, ok, err := c.Resources.Get(c.Context, c.Scope, provider.KindProvider, slug)
	if err != nil || !ok {
		return "", err
	}
	inst, err := provider.DecodeInstance(rec)
	if err != nil {
		return "", err
	}
	rec, ok, err = c.Resources.Get(c.Context, inst.IntegrationScope(c.Scope), provider.KindIntegration, inst.IntegrationID)
	if err != nil || !ok {
		return "", err
	}
	in, err := provider.DecodeIntegration(rec)
	if err != nil {
		return "", err
	}
	host, _ := in.Configurations["custom_host"].(string)
	return strings.TrimRight(host, "/"), nil
}
