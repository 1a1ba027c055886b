package docs

import (
	"maps"
	"slices"
	"strings"
)

// Examples of bodies are made from their schemas, so that none can be out of date. The
// example of a response has all its fields. That of a request has the fields that it
// needs, or one field where it needs none.

// addExamples puts an example beside each JSON schema of a body.
func addExamples(doc map[string]any) {
	components, _ := doc["components"].(map[string]any)
	schemas, _ := components["schemas"].(map[string]any)
	x, shown := exampler{schemas}, shown()
	for path, at := range doc["paths"].(map[string]any) {
		for method, o := range at.(map[string]any) {
			op, ok := o.(map[string]any)
			if !ok {
				continue
			}
			if body, ok := op["requestBody"].(map[string]any); ok {
				x.into(body, shown[strings.ToUpper(method)+" "+path], false)
			}
			answers, _ := op["responses"].(map[string]any)
			for status, answer := range answers {
				if strings.HasPrefix(status, "2") {
					x.into(answer.(map[string]any), nil, true)
				}
			}
		}
	}
}

// shown returns fields that the example of a request has besides: their schema cannot express that
// they are needed, as that depends on other fields or on the provider. The values become parts of
// a document that is changed, so each has its own.
func shown() map[string]map[string]any {
	return map[string]map[string]any{
		"POST /auth/sso-configurations":    {"client_id": "gateway", "client_secret": "a long secret", "issuer": "https://login.example.com"},
		"POST /integrations":               {"key": "sk-your-key"},
		"POST /virtual-keys":               {"key": "sk-your-key"},
		"POST /mcp-servers":                {"mcp_integration_id": usual["id"]},
		"POST /admin/users/invites/accept": {"token": "M6iVoefK_SrMDF-R7f6jb2Aw"},
		"POST /audio/speech":               {"model": "@openai/gpt-4o-mini-tts"},
		"POST /embeddings":                 {"model": "@openai/text-embedding-3-small"},
		"POST /images/generations":         {"model": "@openai/gpt-image-1"},
		"POST /moderations":                {"model": "@openai/omni-moderation-latest"},
		"POST /ocr":                        {"model": "@mistral/mistral-ocr-latest"},
		"POST /rerank":                     {"model": "@cohere/rerank-v3.5"},
		"POST /realtime/client_secrets":    {"session": map[string]any{"type": "realtime", "model": "gpt-realtime"}},
		"POST /batches":                    {"completion_window": "24h"},
		"PUT /prompts/{promptId}":          {"patch": true},
		"POST /configs/dry-run":            {"path": "/chat/completions", "body": map[string]any{"model": usual["model"], "messages": []any{map[string]any{"role": "user", "content": "Hello"}}}},
	}
}

type exampler struct{ schemas map[string]any }

// into adds the example of a body beside its schema, with the additional fields of besides. The
// example of a response is complete.
func (x exampler) into(body, besides map[string]any, whole bool) {
	contents, _ := body["content"].(map[string]any)
	for media, c := range contents {
		mediaType, ok := c.(map[string]any)
		if !ok || !strings.HasSuffix(media, "json") || mediaType["schema"] == nil {
			continue
		}
		if _, there := mediaType["example"]; !there {
			made := x.of(mediaType["schema"], "", whole, 0)
			if object, ok := made.(map[string]any); ok {
				maps.Copy(object, besides)
			}
			mediaType["example"] = made
		}
	}
}

// maxExample bounds how deep an example goes: schemas may name themselves.
const maxExample = 8

// of gives a value that fits the schema of the field name.
func (x exampler) of(schema any, name string, whole bool, depth int) any {
	s := members(schema)
	if ref, ok := s["$ref"].(string); ok {
		s = members(x.schemas[ref[strings.LastIndexByte(ref, '/')+1:]])
	}
	for _, key := range []string{"example", "const", "default"} {
		if v, ok := s[key]; ok && v != nil {
			return v
		}
	}
	if choice := values(s["enum"]); len(choice) > 0 {
		if slices.Contains(choice, any("user")) {
			return "user"
		}
		return choice[0]
	}
	for _, key := range []string{"oneOf", "anyOf"} {
		for _, one := range values(s[key]) {
			if members(one)["type"] != "null" {
				return x.of(one, name, whole, depth)
			}
		}
	}
	switch kindOf(s) {
	case "string":
		return sample(s, name)
	case "integer", "number":
		return number(s, name)
	case "boolean":
		return true
	case "array":
		return x.array(s, name, whole, depth)
	case "object":
		return x.object(s, name, whole, depth)
	}
	return map[string]any{}
}

func (x exampler) array(s map[string]any, name string, whole bool, depth int) any {
	out := []any{}
	if depth >= maxExample {
		return out
	}
	for range max(1, int(float(s["minItems"], 0))) {
		out = append(out, x.of(s["items"], strings.TrimSuffix(name, "s"), whole, depth+1))
	}
	return out
}

// always are fields that the example of a request shows although they are optional, or
// although one of several would do.
var always = []string{"model", "messages", "input", "content", "name", "voice", "document", "scim_group_name", "group_by"}

func (x exampler) object(s map[string]any, name string, whole bool, depth int) any {
	out := map[string]any{}
	if depth >= maxExample {
		return out
	}
	properties := members(s["properties"])
	var required []string
	for _, r := range values(s["required"]) {
		required = append(required, r.(string))
	}
	for _, member := range slices.Sorted(maps.Keys(properties)) {
		if readOnly, _ := members(properties[member])["readOnly"].(bool); readOnly && !whole {
			continue
		}
		if whole || slices.Contains(required, member) || slices.Contains(always, member) {
			out[member] = x.of(properties[member], member, whole, depth+1)
		}
	}
	if more := members(s["additionalProperties"]); len(more) > 0 && len(properties) == 0 {
		out["team"] = x.of(more, "team", whole, depth+1)
	}
	if len(out) == 0 && !whole && name == "message" {
		return map[string]any{"role": "user", "content": "Hello"}
	}
	if len(out) == 0 && !whole {
		return x.one(properties, depth)
	}
	return out
}

// exampleTypes are the kinds of fields that show most in an example, the best kind first.
var exampleTypes = []string{"array", "string", "integer", "number", "boolean", "object"}

// one is an example for a request that requires no field: it shows one of them.
func (x exampler) one(properties map[string]any, depth int) map[string]any {
	names := slices.Sorted(maps.Keys(properties))
	for _, name := range names {
		if v := members(properties[name])["example"]; v != nil && members(properties[name])["x-gateway-immutable"] != true {
			return map[string]any{name: v}
		}
	}
	for _, kind := range exampleTypes {
		for _, name := range names {
			p := members(properties[name])
			if kindOf(p) != kind || p["readOnly"] == true || p["x-gateway-immutable"] == true || name == "workspace_id" || name == "organisation_id" {
				continue
			}
			v := x.of(p, name, false, depth+1)
			if o, ok := v.(map[string]any); ok && len(o) == 0 {
				continue
			}
			return map[string]any{name: v}
		}
	}
	return map[string]any{}
}

// kindOf is the type of a schema; of several the first that is not null.
func kindOf(s map[string]any) string {
	switch t := s["type"].(type) {
	case string:
		return t
	default:
		for _, k := range values(t) {
			if k != "null" {
				return k.(string)
			}
		}
	}
	if s["properties"] != nil {
		return "object"
	}
	return ""
}

// otherID is the id of a resource that a resource names.
const otherID = "b7d41c92"

// usual are what fields of usual names hold.
var usual = map[string]string{
	"id": "2f0c8a1e-6f0b-4c53-9f5e-0d5c1f6f2a11", "name": "Support bot", "slug": "support-bot-a1b2c3", "description": "Answers of the support team.",
	"email": "ann@example.com", "model": "@openai/gpt-5.4", "content": "Hello", "text": "Hello", "input": "Hello", "prompt": "Hello", "query": "Hello",
	"url": "https://example.com/", "key": "gw*******Vk", "currency": "USD", "team": "support", "color_code": "#3366ff", "status": "active",
	"provider": "openai", "ai_provider_id": "openai", "object": "object", "message": "Done.", "workspace_id": "ws-suppor-a1b2c3", "status_code": "200",
	"first_name": "Ann", "last_name": "Lee", "icon": "🚀", "scope": "configs.list", "org_role": "member", "client_ip": "203.0.113.7", "country": "DE",
	"user_agent": "curl/8.5.0", "error": "the server cannot be reached", "sync_error": "the server cannot be reached", "next_cursor": "01M84Y8Q9A7XA0K61ZW61Z5XSX",
	"server_name": "search", "server_version": "1.4.0", "protocol_version": "2025-11-25", "sync_status": "synced", "ai_model": "gpt-5.4", "ai_org": "openai",
	"virtual_key": "openai-a1b2c3", "secret_path": "secret/data/openai", "secret_key": "api_key", "allowed_workspace": "ws-suppor-a1b2c3", "workspace": "ws-suppor-a1b2c3",
	"scim_group": "support", "recipient": "ann@example.com", "subject": "A budget is used up", "note": "For the support team.", "value_key": "metadata._user:ann",
	"invite_link": "https://gateway.example.com/v1/invites/accept?token=M6iVoefK_SrMDF-R7f6jb2Aw", "inviteLink": "https://gateway.example.com/v1/invites/accept?token=M6iVoefK_SrMDF-R7f6jb2Aw",
	"filename": "rows.jsonl", "endpoint": "/v1/chat/completions", "finish_reason": "stop", "stop_reason": "end_turn", "owned_by": "openai", "string": "Hello {{name}}",
	"creation_mode": "api", "ai_provider_name": "openai", "updated_by": otherID, "created_by": otherID, "invited_by": otherID,
	"version_description": "Shorter.", "prompt_version_description": "Shorter.", "prompt_version_status": "active", "agent_name": "Support agent", "mcp_integration_slug": "search-a1b2c3", "agent_integration_slug": "support-a1b2c3",
}

// sample is a text for the field name, within its bounds.
func sample(s map[string]any, name string) string {
	v, known := usual[name]
	switch {
	case s["format"] == "date-time":
		return "2026-11-23T12:00:00.000Z"
	case s["pattern"] == "^AB0[1-9]$":
		return "AB01"
	case known:
	case strings.HasSuffix(name, "_id"):
		v = otherID
	case strings.Contains(name, "url"):
		v = usual["url"]
	case strings.Contains(name, "email"):
		v = usual["email"]
	case strings.HasPrefix(name, "masked_"):
		v = "Xk*******S4"
	default:
		v = "text"
	}
	for len(v) < int(float(s["minLength"], 0)) {
		v += "-"
	}
	if most := int(float(s["maxLength"], 1<<20)); len(v) > most {
		v = v[:most]
	}
	return v
}

func number(s map[string]any, name string) any {
	v := 1.0
	switch {
	case strings.Contains(name, "tokens"):
		v = 100
	case name == "credit_limit" || name == "value":
		v = 500
	}
	v = min(max(v, float(s["minimum"], v)), float(s["maximum"], v))
	if least, ok := s["exclusiveMinimum"]; ok && v <= float(least, v) {
		v = float(least, v) + 1
	}
	return v
}

// float reads a number of a schema, which is one of Go's kinds or JSON's.
func float(v any, otherwise float64) float64 {
	switch n := v.(type) {
	case float64:
		return n
	case int:
		return float64(n)
	case int64:
		return float64(n)
	}
	return otherwise
}

// members and values read schemas of the document, which are Go values of several kinds or
// what JSON was decoded into.
func members(v any) map[string]any {
	m, _ := v.(map[string]any)
	return m
}

func values(v any) []any {
	a, _ := v.([]any)
	return a
}
