package tenant

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// MetadataSchema describes the required metadata of new keys or workspaces: the part of JSON
// Schema (draft 07) for an object of strings.
type MetadataSchema struct {
	Schema     string                    `json:"$schema,omitempty"`
	Type       string                    `json:"type"`
	Properties map[string]MetadataMember `json:"properties,omitempty"`
	Required   []string                  `json:"required,omitempty"`
	Additional *bool                     `json:"additionalProperties,omitempty"`
}

// MetadataMember describes one field.
type MetadataMember struct {
	Type        string   `json:"type"`
	Title       string   `json:"title,omitempty"`
	Description string   `json:"description,omitempty"`
	Enum        []string `json:"enum,omitempty"`
	Default     *string  `json:"default,omitempty"`
	Pattern     string   `json:"pattern,omitempty"`
	MinLength   int      `json:"minLength,omitempty"`
	MaxLength   int      `json:"maxLength,omitempty"`
}

// maxMetadata is the number of fields of a schema.
const maxMetadata = 64

// CheckMetadataSchema returns the faults of a schema to be stored.
func CheckMetadataSchema(raw json.RawMessage) []fault.Detail {
	var s MetadataSchema
	d := json.NewDecoder(strings.NewReader(string(raw)))
	d.DisallowUnknownFields()
	if err := d.Decode(&s); err != nil {
		return []fault.Detail{{Message: "must be a JSON schema of an object of texts: type, properties, required, additionalProperties; of a property type, title, description, enum, default, pattern, minLength, maxLength"}}
	}
	var bad []fault.Detail
	fail := func(field, format string, args ...any) {
		bad = append(bad, fault.Detail{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	if s.Type != "object" {
		fail("type", "must be object")
	}
	if s.Additional != nil && !*s.Additional {
		fail("additionalProperties", "must be true")
	}
	if len(s.Properties) > maxMetadata || len(s.Required) > maxMetadata {
		fail("properties", "must have at most %d entries", maxMetadata)
		return bad
	}
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		m, at := s.Properties[name], "properties."+name
		if m.Type != "string" {
			fail(at+".type", "must be string")
		}
		if _, err := regexp.Compile(m.Pattern); err != nil || len(m.Pattern) > 512 {
			fail(at+".pattern", "must be a regular expression (RE2) of at most 512 characters")
			continue
		}
		if m.Default != nil {
			for _, d := range m.check(*m.Default) {
				fail(at+".default", "%s", d)
			}
		}
	}
	return bad
}

func (m *MetadataMember) check(v string) (bad []string) {
	n := len([]rune(v))
	if len(m.Enum) > 0 && !slices.Contains(m.Enum, v) {
		bad = append(bad, "must be one of "+strings.Join(m.Enum, ", "))
	}
	if m.Pattern != "" {
		if p, err := regexp.Compile(m.Pattern); err != nil || !p.MatchString(v) {
			bad = append(bad, "must match "+m.Pattern)
		}
	}
	if n < m.MinLength || m.MaxLength > 0 && n > m.MaxLength {
		bad = append(bad, fmt.Sprintf("must have %d to %d characters", m.MinLength, m.MaxLength))
	}
	return bad
}

// Complete adds the schema's defaults to metadata. A nil schema has none.
func (s *MetadataSchema) Complete(metadata map[string]string) map[string]string {
	if s == nil {
		return metadata
	}
	out := maps.Clone(metadata)
	for name, m := range s.Properties {
		if _, given := out[name]; !given && m.Default != nil {
			if out == nil {
				out = make(map[string]string)
			}
			out[name] = *m.Default
		}
	}
	return out
}

// Check returns the faults of metadata; field is its name in faults. A nil schema has no
// requirements.
func (s *MetadataSchema) Check(field string, metadata map[string]string) (bad []fault.Detail) {
	if s == nil {
		return nil
	}
	for _, name := range s.Required {
		if _, given := metadata[name]; !given {
			bad = append(bad, fault.Detail{Field: field + "." + name, Message: "is required by the organisation"})
		}
	}
	for _, name := range slices.Sorted(maps.Keys(metadata)) {
		m, described := s.Properties[name]
		if !described {
			continue
		}
		for _, message := range m.check(metadata[name]) {
			bad = append(bad, fault.Detail{Field: field + "." + name, Message: message})
		}
	}
	return bad
}
