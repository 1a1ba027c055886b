package a2a

import (
	"encoding/json"
	"fmt"

	"gateway/shared/wire"
)

// A signature covers the canonical JSON of a card (RFC 8785) without its signatures, in one of
// two forms: the card as it is sent, or only the fields of the 1.0 data model without empty
// values, because libraries decode cards into that model.

// signedForms returns both forms.
func signedForms(card json.RawMessage) (sent, modelled []byte, err error) {
	var c map[string]any
	if err := json.Unmarshal(card, &c); err != nil {
		return nil, nil, fmt.Errorf("a2a: card: %w", err)
	}
	whole := fields(card)
	delete(whole, "signatures")
	raw, err := json.Marshal(whole)
	if err == nil {
		sent, err = wire.AppendCanonical(nil, raw)
	}
	if err != nil {
		return nil, nil, err
	}
	// The model has no numbers except in the params of extensions, which are formatted as in
	// ECMAScript.
	kept, _ := dropEmpty(cardModel.project(c)).(map[string]any)
	if kept == nil {
		kept = map[string]any{}
	}
	raw, err = json.Marshal(kept)
	if err == nil {
		modelled, err = wire.AppendCanonical(nil, raw)
	}
	return sent, modelled, err
}

// model describes the fields of an object in the 1.0 data model. A field with a nil model is
// copied verbatim. With each set, the model applies to the entries of a list or map.
type model struct {
	members    map[string]*model
	each       bool
	unsetFalse []string // booleans for which false means the same as absent
}

func verbatimFields(names ...string) map[string]*model {
	out := make(map[string]*model, len(names))
	for _, n := range names {
		out[n] = nil
	}
	return out
}

var cardModel = func() *model {
	with := func(m map[string]*model, more map[string]*model) map[string]*model {
		for name, of := range more {
			m[name] = of
		}
		return m
	}
	extensions := &model{members: verbatimFields("uri", "description", "required", "params"), each: true, unsetFalse: []string{"required"}}
	return &model{members: with(verbatimFields("name", "description", "version", "documentationUrl", "iconUrl", "defaultInputModes", "defaultOutputModes", "securityRequirements"), map[string]*model{
		"supportedInterfaces": {members: verbatimFields("url", "protocolBinding", "tenant", "protocolVersion"), each: true},
		"provider":            {members: verbatimFields("url", "organization")},
		"capabilities":        {members: with(verbatimFields("streaming", "pushNotifications", "extendedAgentCard"), map[string]*model{"extensions": extensions})},
		"skills":              {members: verbatimFields("id", "name", "description", "tags", "examples", "inputModes", "outputModes", "securityRequirements"), each: true},
		"securitySchemes":     {members: verbatimFields("apiKeySecurityScheme", "httpAuthSecurityScheme", "oauth2SecurityScheme", "openIdConnectSecurityScheme", "mtlsSecurityScheme"), each: true},
	})}
}()

// project returns the part of a value that the model contains.
func (m *model) project(v any) any {
	if m == nil {
		return v
	}
	if list, ok := v.([]any); ok && m.each {
		out := make([]any, 0, len(list))
		for _, one := range list {
			out = append(out, m.projectObject(one))
		}
		return out
	}
	if o, ok := v.(map[string]any); ok && m.each {
		out := make(map[string]any, len(o))
		for name, one := range o {
			out[name] = m.projectObject(one)
		}
		return out
	}
	return m.projectObject(v)
}

func (m *model) projectObject(v any) any {
	o, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	out := map[string]any{}
	for name, of := range m.members {
		if v, has := o[name]; has {
			out[name] = of.project(v)
		}
	}
	for _, name := range m.unsetFalse {
		if out[name] == false {
			delete(out, name)
		}
	}
	return out
}

// dropEmpty removes empty values recursively. It returns nil if nothing is left.
func dropEmpty(v any) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return nil
		}
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			if one = dropEmpty(one); one != nil {
				out = append(out, one)
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	case map[string]any:
		out := make(map[string]any, len(v))
		for name, one := range v {
			if one = dropEmpty(one); one != nil {
				out[name] = one
			}
		}
		if len(out) == 0 {
			return nil
		}
		return out
	}
	return v
}
