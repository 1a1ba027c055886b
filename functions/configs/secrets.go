package configs

import (
	"bytes"
	"encoding/json"
	"strconv"

	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/route"
)

// sealedConfig is the name under which a config with secrets is sealed; its body is then the
// masked copy. Routing reads resource.Record.OpenSecrets(...)[sealedConfig] if HasSecret is
// set.
const sealedConfig = route.SealedConfig

// secretFields are the members of a target that hold credentials: those of all
// providers, under all their names.
var secretFields = func() map[string]bool {
	names := map[string]bool{"api_key": true, "custom_headers": true}
	for _, p := range provider.All() {
		for _, f := range p.Fields {
			if !f.Secret {
				continue
			}
			names[f.Name] = true
			for _, alias := range f.Aliases {
				names[alias] = true
			}
		}
	}
	return names
}()

// hookFields are the fields of a target with checks that may contain vendor credentials,
// recognizable only by their field names.
var hookFields = map[string]bool{
	"input_guardrails": true, "output_guardrails": true, "before_request_hooks": true, "after_request_hooks": true,
	"inputGuardrails": true, "outputGuardrails": true, "beforeRequestHooks": true, "afterRequestHooks": true,
	"input_mutators": true, "output_mutators": true, "inputMutators": true, "outputMutators": true,
}

// maskSecrets gives a copy of a config to store and show, with its secrets
// masked, and whether it has any. A config without secrets stays byte for byte.
// A secret that is masked already is refused: it would be stored as the secret.
func maskSecrets(raw json.RawMessage) (masked json.RawMessage, found bool, err error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var root map[string]any
	if err := d.Decode(&root); err != nil {
		return nil, false, fault.Invalid("config", "must be a JSON object")
	}
	m := &masker{}
	m.node(root, "config")
	if f := fault.Invalids(m.Bad); f != nil {
		return nil, false, f
	}
	if !m.Found {
		return raw, false, nil
	}
	masked, err = json.Marshal(root)
	return masked, true, err
}

type masker struct {
	audit.Texts
}

// node masks the secrets of the root or a target, and of the targets below.
func (m *masker) node(n map[string]any, path string) {
	for key, v := range n {
		at := path + "." + key
		switch {
		case secretFields[key]:
			n[key] = m.Hide(v, at)
		case hookFields[key]:
			n[key] = m.hook(v, at)
		case key == "targets":
			list, _ := v.([]any)
			for i, e := range list {
				if t, ok := e.(map[string]any); ok {
					m.node(t, at+"["+strconv.Itoa(i)+"]")
				}
			}
		}
	}
}

// hook masks fields below v that have the name of a secret.
func (m *masker) hook(v any, path string) any {
	switch v := v.(type) {
	case map[string]any:
		for k, e := range v {
			if audit.SecretName(k) {
				v[k] = m.Hide(e, path+"."+k)
			} else {
				v[k] = m.hook(e, path+"."+k)
			}
		}
	case []any:
		for i, e := range v {
			v[i] = m.hook(e, path+"["+strconv.Itoa(i)+"]")
		}
	}
	return v
}
