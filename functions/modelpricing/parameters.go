package modelpricing

import (
	"embed"
	"encoding/json"
	"fmt"
	"slices"

	"gateway/shared/admin"
)

// files are what forms may offer for the models of each provider: suggestions, by
// which no request is ever refused or changed.
//
//go:embed models/*.json
var files embed.FS

// parameter is one that a form may offer.
type parameter struct {
	Key     string `json:"key"`
	Default any    `json:"defaultValue,omitempty"`
	Min     any    `json:"minValue,omitempty"`
	Max     any    `json:"maxValue,omitempty"`
	Type    string `json:"type"`
	Options []any  `json:"options,omitempty"`
}

// listed is a model of a file.
type listed struct {
	Type      string      // chat, text, responses, embedding, image...
	Supported []string    // tools, image, cache_control, json_mode...
	Params    []parameter // specific to the model; they precede the provider's
	Without   []string    // keys of the provider's parameters that it does not have
	MaxOutput any         // the most tokens of an answer
	Roles     []string    // roles of messages, where they differ from the provider's
	IsDefault bool
}

// file describes a provider: Params and Roles apply to all its chat models.
type file struct {
	Params []parameter
	Roles  []string
	Models map[string]listed
}

// open reads the file of a provider; none is false.
func open(provider string) (f file, known bool, err error) {
	raw, err := files.ReadFile("models/" + provider + ".json")
	if err != nil {
		return f, false, nil // a name that is no file's
	}
	if err := json.Unmarshal(raw, &f); err != nil {
		return f, false, fmt.Errorf("modelpricing: models of %s: %w", provider, err)
	}
	return f, true, nil
}

// document returns the description of a model.
func (f *file) document(m listed) admin.Members {
	params, roles := slices.Clone(m.Params), m.Roles
	talks := m.Type == "chat" || m.Type == "text" || m.Type == "responses"
	if talks {
		for _, p := range f.Params {
			own := slices.ContainsFunc(params, func(q parameter) bool { return q.Key == p.Key })
			if own || slices.Contains(m.Without, p.Key) {
				continue
			}
			if m.MaxOutput != nil && (p.Key == "max_tokens" || p.Key == "max_completion_tokens") {
				p.Max = m.MaxOutput
			}
			params = append(params, p)
		}
		if roles == nil {
			roles = f.Roles
		}
	}
	return admin.Members{
		"params": orEmpty(params), "type": admin.Members{"primary": m.Type, "supported": orEmpty(m.Supported)},
		"messages": admin.Members{"options": orEmpty(roles)}, "disablePlayground": !talks, "isDefault": m.IsDefault,
	}
}

func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}

var (
	texts = func(example ...any) admin.Schema {
		return admin.Schema{"type": "array", "items": admin.Schema{"type": "string"}, "example": example}
	}
	generalSchema = admin.Closed(map[string]admin.Schema{
		"params": {"type": "array", "items": map[string]any{
			"type": "object", "required": []string{"key", "type"}, "additionalProperties": false, "properties": map[string]any{
				"key": map[string]any{"type": "string", "example": "temperature"}, "type": map[string]any{"type": "string", "example": "number"},
				"defaultValue": map[string]any{"example": 0.8}, "minValue": map[string]any{"type": "number", "example": 0}, "maxValue": map[string]any{"type": "number", "example": 2},
				"options": map[string]any{"type": "array", "example": []any{"low", "medium", "high"}},
			}}},
		"type":     admin.Closed(map[string]admin.Schema{"primary": {"type": "string", "example": "chat"}, "supported": texts("tools", "image", "json_mode")}),
		"messages": admin.Closed(map[string]admin.Schema{"options": texts("system", "user", "assistant")}), "disablePlayground": {"type": "boolean"}, "isDefault": {"type": "boolean"},
	})
)
