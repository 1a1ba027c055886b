package a2a

import (
	"encoding/json"
	"fmt"

	"gateway/shared/wire"
)

// A signature is over the canonical JSON of a card (RFC 8785) without its signatures. There
// are two such forms. One is of the card as it is sent. The other is of the members that
// the data model of 1.0 knows, without empty values: libraries of 1.0 read every card into
// that model.

// forms gives both forms.
func forms(card json.RawMessage) (sent, modelled []byte, err error) {
	var c map[string]any
	if err := json.Unmarshal(card, &c); err != nil {
		return nil, nil, fmt.Errorf("a2a: card: %w", err)
	}
	whole := members(card)
	delete(whole, "signatures")
	raw, err := json.Marshal(whole)
	if err == nil {
		sent, err = wire.AppendCanonical(nil, raw)
	}
	if err != nil {
		return nil, nil, err
	}
	// The model has no numbers except in params of extensions, where they are written as
	// ECMAScript writes them.
	kept, _ := filled(modelOfCard.of(c)).(map[string]any)
	if kept == nil {
		kept = map[string]any{}
	}
	raw, err = json.Marshal(kept)
	if err == nil {
		modelled, err = wire.AppendCanonical(nil, raw)
	}
	return sent, modelled, err
}

// model is what the data model of 1.0 knows of an object. A member whose model is nil is
// taken as it is. If each is set, the model describes the entries of a list or a map.
type model struct {
	members    map[string]*model
	each       bool
	unsetFalse []string // booleans for which false means the same as absent
}

func plain(names ...string) map[string]*model {
	out := make(map[string]*model, len(names))
	for _, n := range names {
		out[n] = nil
	}
	return out
}

var modelOfCard = func() *model {
	with := func(m map[string]*model, more map[string]*model) map[string]*model {
		for name, of := range more {
			m[name] = of
		}
		return m
	}
	extensions := &model{members: plain("uri", "description", "required", "params"), each: true, unsetFalse: []string{"required"}}
	return &model{members: with(plain("name", "description", "version", "documentationUrl", "iconUrl", "defaultInputModes", "defaultOutputModes", "securityRequirements"), map[string]*model{
		"supportedInterfaces": {members: plain("url", "protocolBinding", "tenant", "protocolVersion"), each: true},
		"provider":            {members: plain("url", "organization")},
		"capabilities":        {members: with(plain("streaming", "pushNotifications", "extendedAgentCard"), map[string]*model{"extensions": extensions})},
		"skills":              {members: plain("id", "name", "description", "tags", "examples", "inputModes", "outputModes", "securityRequirements"), each: true},
		"securitySchemes":     {members: plain("apiKeySecurityScheme", "httpAuthSecurityScheme", "oauth2SecurityScheme", "openIdConnectSecurityScheme", "mtlsSecurityScheme"), each: true},
	})}
}()

// of gives the part of a value that the model knows.
func (m *model) of(v any) any {
	if m == nil {
		return v
	}
	if list, ok := v.([]any); ok && m.each {
		out := make([]any, 0, len(list))
		for _, one := range list {
			out = append(out, m.one(one))
		}
		return out
	}
	if o, ok := v.(map[string]any); ok && m.each {
		out := make(map[string]any, len(o))
		for name, one := range o {
			out[name] = m.one(one)
		}
		return out
	}
	return m.one(v)
}

func (m *model) one(v any) any {
	o, ok := v.(map[string]any)
	if !ok {
		return nil
	}
	out := map[string]any{}
	for name, of := range m.members {
		if v, has := o[name]; has {
			out[name] = of.of(v)
		}
	}
	for _, name := range m.unsetFalse {
		if out[name] == false {
			delete(out, name)
		}
	}
	return out
}

// filled leaves out empty values, and values that become empty by that; nil is nothing.
func filled(v any) any {
	switch v := v.(type) {
	case string:
		if v == "" {
			return nil
		}
	case []any:
		out := make([]any, 0, len(v))
		for _, one := range v {
			if one = filled(one); one != nil {
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
			if one = filled(one); one != nil {
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
