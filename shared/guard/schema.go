package guard

// Document returns a JSON Schema of the checks of a guardrail, from the table.
func Document() map[string]any {
	rows := make([]any, len(all))
	for i, c := range all {
		members, required := map[string]any{}, []string{}
		for _, p := range c.Parameters() {
			members[p.Name] = p.schema()
			if p.Required {
				required = append(required, p.Name)
			}
		}
		parameters := map[string]any{"type": "object", "properties": members}
		if len(required) > 0 {
			parameters["required"] = required
		}
		ids := append([]string{c.ID}, c.Aliases...)
		row := map[string]any{"type": "object", "description": c.Doc, "properties": map[string]any{
			"id": map[string]any{"enum": ids}, "parameters": parameters,
		}}
		row["required"] = []string{"id"}
		if len(required) > 0 {
			row["required"] = []string{"id", "parameters"}
		}
		rows[i] = row
	}
	check := map[string]any{"type": "object", "anyOf": rows, "properties": map[string]any{
		"name": map[string]any{"type": "string", "maxLength": 255}, "is_enabled": map[string]any{"type": "boolean", "default": true},
		"forward_headers": map[string]any{"type": "array", "items": map[string]any{"type": "string"}},
	}}
	return map[string]any{"type": "array", "minItems": 1, "maxItems": MaxChecks, "items": check}
}

func (p *Param) schema() map[string]any {
	s := map[string]any{}
	switch p.Type {
	case Text, Pattern, Replaced:
		s["type"] = "string"
		if len(p.Enum) > 0 {
			s["enum"] = p.Enum
		}
	case URL:
		s["type"], s["format"], s["example"] = "string", "uri", "https://checks.example.com/v1"
	case Integer:
		s["type"] = "integer"
	case Number:
		s["type"] = "number"
	case Flag:
		s["type"] = "boolean"
	case Texts, Headers:
		s["type"], s["items"] = "array", p.entry()
		if p.Min > 0 {
			s["minItems"] = p.Min
		}
	case Listed, TextOrList:
		s["anyOf"] = []any{map[string]any{"type": "array", "items": p.entry()}, map[string]any{"type": "string"}}
	case Object:
		s["type"] = []string{"object", "string"}
		p.members(s)
	case Mapped:
		text := map[string]any{"type": "string", "maxLength": 255}
		s["type"], s["description"] = "array", "Credentials from a secret manager, by target_field: credentials.apiKey."
		s["items"] = map[string]any{"type": "object", "required": []string{"target_field", "secret_reference_id"}, "properties": map[string]any{
			"target_field": text, "secret_reference_id": text, "secret_key": text, "value_format": map[string]any{"enum": []string{"string", "json"}}}}
	case Schema:
		s["type"], s["example"] = "object", map[string]any{"type": "object"}
	}
	if p.Type == Integer || p.Type == Number {
		s["minimum"] = p.Min
		if p.Max != 0 {
			s["maximum"] = p.Max
		}
	}
	if p.Default != nil {
		s["default"] = p.Default
	}
	return s
}

// members describes the known fields of an object.
func (p *Param) members(s map[string]any) {
	if len(p.Members) == 0 {
		return
	}
	properties, required := map[string]any{}, []string{}
	for i := range p.Members {
		m := &p.Members[i]
		properties[m.Name] = m.schema()
		if m.Required {
			required = append(required, m.Name)
		}
	}
	s["properties"] = properties
	if len(required) > 0 {
		s["required"] = required
	}
}

func (p *Param) entry() map[string]any {
	e := map[string]any{"type": "string"}
	if len(p.Enum) > 0 {
		e["enum"] = p.Enum
	}
	return e
}
