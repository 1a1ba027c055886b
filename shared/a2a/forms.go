package a2a

import (
	"encoding/json"
	"fmt"

	"gateway/shared/wire"
)

// Cards are signed in the one form of their JSON (RFC 8785), without signatures. There
// are two: of the card as it is sent, and of what the data model of 1.0 has of it
// without values that are empty, which libraries of 1.0 make of any card that they read.

// forms are both.
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
	// Numbers stand in no member of the model but in params of extensions, as ECMAScript
	// has them.
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

// model is what the data model of 1.0 knows of an object: its members, nil for one that
// is taken as it is. each: it describes what is in a list, or in a map.
type model struct {
	members    map[string]*model
	each       bool
	unsetFalse []string // booleans whose false is the same as nothing
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

// of is what the model has of a value.
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

// filled leaves out what is empty, and what is empty without that; nil is nothing.
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
