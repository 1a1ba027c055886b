package migrate

import (
	"encoding/json"
	"fmt"

	"gateway/local/declare"
	"gateway/local/document"
	"gateway/shared/pricing"
)

// OpenRouter imports the models and keys of an OpenRouter account. path may be empty: then
// the models are those of the price list. Otherwise it is a response of OpenRouter's list of
// models or of keys, or an object with both as models and keys.
func OpenRouter(path string, getenv func(string) string) (*Result, error) {
	l := newImporter("openrouter", getenv)
	l.add("integrations", map[string]any{"slug": "openrouter", "name": "openrouter", "ai_provider_id": "openrouter", "allow_all_models": true, "key": "${OPENROUTER_API_KEY}"})
	l.add("providers", map[string]any{"slug": "openrouter", "name": "openrouter", "integration_id": "openrouter"})
	l.Report.Lines = append(l.Report.Lines, Line{Key: "OPENROUTER_API_KEY", Status: Mapped, Note: "key of the integration openrouter, stored encrypted"})
	var roots []*document.Node
	listed := false
	if path != "" {
		folder, name, err := document.Open(path, maxSource)
		if err != nil {
			return nil, err
		}
		defer folder.Close()
		root, err := folder.Read(name, document.Position{})
		if err != nil {
			return nil, err
		}
		roots = []*document.Node{root}
		for _, list := range []*document.Node{root.Get("data"), root.Get("models"), root.Get("keys"), root.Get("models").Get("data"), root.Get("keys").Get("data")} {
			if list.Kind() != document.List {
				continue
			}
			if err := requireMaps(list, "data"); err != nil {
				return nil, err
			}
			for _, row := range list.Items() {
				models, err := openRouterRow(l, row)
				if err != nil {
					return nil, err
				}
				listed = listed || models
			}
		}
		if len(l.groups) == 0 && len(l.Access.Keys) == 0 {
			return nil, document.Errorf(root.At, "", "must be a list of models or keys of OpenRouter")
		}
	}
	if !listed {
		for _, m := range pricing.Default().Models("openrouter") {
			openRouterModel(l, m, nil)
		}
		l.Report.Lines = append(l.Report.Lines, Line{Key: "models", Status: Changed, Note: fmt.Sprintf("the %d models of the price list; others are called as @openrouter/<model>", len(l.groups))})
	}
	if err := writeRouter(l); err != nil {
		return nil, err
	}
	return l.finish(roots...)
}

func openRouterModel(l *importer, model string, at *document.Node) {
	if len(l.groups) >= maxGroups {
		l.not(at, fmt.Sprint("a config has at most ", maxGroups, " names; call it as @openrouter/", model))
		return
	}
	g := groupOf(l, model, at)
	g.deployments = []*deployment{{slug: "openrouter", integrate: "openrouter", ai: "openrouter", model: model}}
}

// openRouterRow maps a model or a key.
func openRouterRow(l *importer, row *document.Node) (model bool, err error) {
	if id := row.Get("id"); id.Kind() == document.Text && row.Get("hash") == nil {
		l.not(row, "describes the model; the price list has what counts")
		l.mapped(id, "bare name of the model")
		openRouterModel(l, id.Scalar(), id)
		prices := map[string]any{}
		for from, to := range map[string]string{"prompt": "request_token", "completion": "response_token", "input_cache_read": "cache_read_input_token", "input_cache_write": "cache_write_input_token"} {
			v := row.Get("pricing").Get(from)
			if cents, ok := centsOf(v.Scalar()); ok && v != nil {
				prices[to] = map[string]any{"price": json.Number(cents)}
				l.mapped(v, "price of the model, in US cents")
			}
		}
		if len(prices) > 0 && l.byName[id.Scalar()] != nil {
			in := l.space.Sections["integrations"][0]
			list, _ := in.Fields["models"].([]any)
			in.Fields["models"] = append(list, map[string]any{"slug": id.Scalar(), "enabled": true, "pricing_config": map[string]any{"type": "static", "pay_as_you_go": prices}})
		}
		return true, nil
	}
	name := row.Get("name")
	if name.Kind() != document.Text {
		return false, document.Errorf(row.At, "data[]", "must have an id, as models do, or a name, as keys do")
	}
	l.not(row, "describes the use of the key")
	if row.Get("disabled").True() {
		l.not(row, "is disabled")
		return false, nil
	}
	l.changed(name, "a new key: clients get another value; see --keys-file")
	fields := map[string]any{"scopes": importedScopes, "description": "imported"}
	if limit := row.Get("limit"); limit.Kind() != document.Null {
		n, ok := limit.Float()
		if !ok || n < 0 {
			return false, document.Errorf(limit.At, "data[].limit", "must be a number of at least 0")
		}
		budget := map[string]any{"credit_limit": max(n, 1e-9)}
		l.mapped(limit, "budget of the key")
		switch reset := row.Get("limit_reset"); reset.Scalar() {
		case "daily":
			budget["periodic_reset_days"] = 1
			l.mapped(reset, "reset of the budget")
		case "weekly", "monthly":
			budget["periodic_reset"] = reset.Scalar()
			l.mapped(reset, "reset of the budget")
		}
		fields["usage_limits"] = budget
	}
	l.Access.Keys = append(l.Access.Keys, declare.Key{Source: row.Get("hash").Scalar(), Workspace: MainWorkspace, Name: name.Scalar(), Fields: fields})
	return false, nil
}
