package mockprovider

import (
	"net/http"
	"strings"
	"testing"
)

func TestOpenAIRefusesWhatTheProviderRefuses(t *testing.T) {
	const path = "/v1/chat/completions"
	tools := `,"tools":[` + weatherTool + `]`
	cases := []struct {
		name, body string
		status     int
		code       string
		says       string
	}{
		{"unknown role", `{"model":"m","messages":[{"role":"robot","content":"x"}]}`, 400, "invalid_value", "'robot'"},
		{"no role", `{"model":"m","messages":[{"content":"x"}]}`, 400, "missing_required_parameter", "messages[0].role"},
		{"no model", `{"messages":[{"role":"user","content":"x"}]}`, 400, "", "model parameter"},
		{"no messages", `{"model":"m"}`, 400, "missing_required_parameter", "'messages'"},
		{"empty messages", `{"model":"m","messages":[]}`, 400, "missing_required_parameter", "messages"},
		{"messages as a string", `{"model":"m","messages":"hi"}`, 400, "invalid_type", "messages"},
		{"empty content parts", `{"model":"m","messages":[{"role":"user","content":[]}]}`, 400, "empty_array", "content"},
		{"null content of a user", `{"model":"m","messages":[{"role":"user","content":null}]}`, 400, "missing_required_parameter", "content"},
		{"unknown part", `{"model":"m","messages":[{"role":"user","content":[{"type":"video"}]}]}`, 400, "invalid_value", "'video'"},
		{"image in a system message", `{"model":"m","messages":[{"role":"system","content":[{"type":"image_url","image_url":{"url":"https://x/y"}}]}]}`, 400, "invalid_value", "image_url"},
		{"image that is no URL", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"nothing"}}]}]}`, 400, "invalid_value", "image_url"},
		{"image of a wrong type", `{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/tiff;base64,AAAA"}}]}]}`, 400, "invalid_value", "image_url"},
		{"tool result without call", `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"tool","tool_call_id":"c","content":"x"}]}`, 400, "", "not found in 'tool_calls'"},
		{"tool result for another call", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"tool","tool_call_id":"b","content":"x"}]}`, 400, "", "not found in 'tool_calls'"},
		{"tool call without result", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]},{"role":"user","content":"x"}]}`, 400, "", "did not have response messages: a"},
		{"tool call at the end", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}}]}]}`, 400, "", "did not have response messages: a"},
		{"arguments as an object", `{"model":"m","messages":[{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":{}}}]}]}`, 400, "invalid_type", "arguments"},
		{"temperature above range", chat("x", `,"temperature":2.1`), 400, "decimal_above_max_value", "temperature"},
		{"temperature below range", chat("x", `,"temperature":-1`), 400, "decimal_below_min_value", "temperature"},
		{"temperature as a string", chat("x", `,"temperature":"1"`), 400, "invalid_type", "temperature"},
		{"n of zero", chat("x", `,"n":0`), 400, "integer_below_min_value", "'n'"},
		{"n that is not whole", chat("x", `,"n":1.5`), 400, "invalid_type", "'n'"},
		{"both max_tokens forms", chat("x", `,"max_tokens":5,"max_completion_tokens":5`), 400, "invalid_parameter_combination", "max_completion_tokens"},
		{"max_tokens for a reasoning model", `{"model":"o4-mini","max_tokens":5,"messages":[{"role":"user","content":"x"}]}`, 400, "unsupported_parameter", "max_completion_tokens"},
		{"temperature for a reasoning model", `{"model":"gpt-5","temperature":0.5,"messages":[{"role":"user","content":"x"}]}`, 400, "unsupported_value", "temperature"},
		{"tool_choice without tools", chat("x", `,"tool_choice":"auto"`), 400, "", "'tool_choice' and"},
		{"parallel_tool_calls without tools", chat("x", `,"parallel_tool_calls":true`), 400, "", "only allowed"},
		{"tool_choice of an unknown tool", chat("x", tools+`,"tool_choice":{"type":"function","function":{"name":"f"}}`), 400, "", "no function named 'f'"},
		{"tool_choice of an unknown kind", chat("x", tools+`,"tool_choice":"maybe"`), 400, "invalid_value", "maybe"},
		{"empty tools", chat("x", `,"tools":[]`), 400, "empty_array", "tools"},
		{"bad tool name", chat("x", `,"tools":[{"type":"function","function":{"name":"a b"}}]`), 400, "invalid_value", "tools[0].function.name"},
		{"tool schema that is no object", chat("x", `,"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"string"}}}]`), 400, "invalid_value", "object"},
		{"tools and functions", chat("x", tools+`,"functions":[{"name":"f"}]`), 400, "", "together"},
		{"stream_options without stream", chat("x", `,"stream_options":{"include_usage":true}`), 400, "", "stream_options"},
		{"top_logprobs without logprobs", chat("x", `,"top_logprobs":2`), 400, "invalid_value", "logprobs"},
		{"five stop sequences", chat("x", `,"stop":["a","b","c","d","e"]`), 400, "array_above_max_length", "stop"},
		{"json_object without the word", chat("x", `,"response_format":{"type":"json_object"}`), 400, "", "must contain the word 'json'"},
		{"json_schema without a name", chat("x", `,"response_format":{"type":"json_schema","json_schema":{"schema":{}}}`), 400, "missing_required_parameter", "json_schema.name"},
		{"strict schema that is open", chat("x", `,"response_format":{"type":"json_schema","json_schema":{"name":"n","strict":true,"schema":{"type":"object","properties":{}}}}`), 400, "", "additionalProperties"},
		{"duplicate key", `{"model":"m","model":"n","messages":[{"role":"user","content":"x"}]}`, 400, "", `duplicate key "model"`},
		{"duplicate key deep inside", `{"model":"m","messages":[{"role":"user","content":"x","content":"y"}]}`, 400, "", `duplicate key "content"`},
		{"duplicate key in an escape", `{"model":"m","mod\u0065l":"n","messages":[{"role":"user","content":"x"}]}`, 400, "", `duplicate key "model"`},
		{"not JSON", `{"model":`, 400, "", "could not parse"},
		{"not an object", `[]`, 400, "", "could not parse"},
		{"something after the body", chat("x", "") + "x", 400, "", "trailing data"},
		{"an unknown model", `{"model":"does-not-exist","messages":[{"role":"user","content":"x"}]}`, 404, "model_not_found", "does not exist"},
		{"an unknown directive", chat("mock: explode", ""), 400, "", "unknown directive"},
	}
	_, url := start(t, Options{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := post(t, url, path, c.body)
			v := decode(t, r.body)
			msg, _ := at(v, "error", "message").(string)
			code, _ := at(v, "error", "code").(string)
			if r.status != c.status || code != c.code || !strings.Contains(msg, c.says) {
				t.Errorf("%d code %q message %q; want %d %q with %q", r.status, code, msg, c.status, c.code, c.says)
			}
			if typ := at(v, "error", "type"); typ != "invalid_request_error" {
				t.Errorf("type %v", typ)
			}
		})
	}
}

func TestAnthropicRefusesWhatTheProviderRefuses(t *testing.T) {
	const path = "/v1/messages"
	msgs := func(list, more string) string {
		return `{"model":"claude-sonnet-4-5","max_tokens":3000,"messages":[` + list + `]` + more + `}`
	}
	user := `{"role":"user","content":"x"}`
	use := `{"role":"assistant","content":[{"type":"tool_use","id":"t1","name":"get_weather","input":{}}]}`
	result := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1","content":"ok"}]}`
	cached := func(n int, ttl string) string {
		return strings.TrimSuffix(strings.Repeat(`{"type":"text","text":"x","cache_control":{"type":"ephemeral"`+ttl+`}},`, n), ",")
	}
	cases := []struct {
		name, body string
		says       string
	}{
		{"no max_tokens", `{"model":"m","messages":[` + user + `]}`, "max_tokens: Field required"},
		{"max_tokens of zero", `{"model":"m","max_tokens":0,"messages":[` + user + `]}`, "max_tokens: Input should be greater"},
		{"max_tokens above the model's", `{"model":"claude-3-5-sonnet-20241022","max_tokens":9000,"messages":[` + user + `]}`, "9000 > 8192"},
		{"no model", `{"max_tokens":1,"messages":[` + user + `]}`, "model: Field required"},
		{"no messages", `{"model":"m","max_tokens":1}`, "messages: Field required"},
		{"empty messages", msgs("", ""), "at least one message"},
		{"unknown field", msgs(user, `,"n":1`), "n: Extra inputs are not permitted"},
		{"unknown field in a message", msgs(`{"role":"user","content":"x","name":"n"}`, ""), "messages.0.name: Extra inputs are not permitted"},
		{"unknown field in a block", msgs(`{"role":"user","content":[{"type":"text","text":"x","index":0}]}`, ""), "messages.0.content.0.index: Extra inputs"},
		{"unknown metadata", msgs(user, `,"metadata":{"user":"u"}`), "metadata.user: Extra inputs"},
		{"beta field without beta header", msgs(user, `,"mcp_servers":[]`), "mcp_servers: Extra inputs"},
		{"system role", msgs(`{"role":"system","content":"x"}`, ""), "not 'system'"},
		{"unknown role", msgs(`{"role":"tool","content":"x"}`, ""), "not 'tool'"},
		{"assistant first", msgs(`{"role":"assistant","content":"x"}`, ""), "first message must use the \"user\" role"},
		{"empty content", msgs(`{"role":"user","content":""}`, ""), "must have non-empty content"},
		{"empty block list", msgs(`{"role":"user","content":[]}`, ""), "must have non-empty content"},
		{"empty text block", msgs(`{"role":"user","content":[{"type":"text","text":""}]}`, ""), "text: Input should be nonblank"},
		{"blank text block", msgs(`{"role":"user","content":[{"type":"text","text":" \n"}]}`, ""), "text: Input should be nonblank"},
		{"prefill with a space at the end", msgs(user+`,{"role":"assistant","content":"so "}`, ""), "trailing whitespace"},
		{"unknown block", msgs(`{"role":"user","content":[{"type":"image_url"}]}`, ""), "not 'image_url'"},
		{"tool_use by a user", msgs(`{"role":"user","content":[{"type":"tool_use","id":"t","name":"n","input":{}}]}`, ""), "not 'tool_use'"},
		{"input as a string", msgs(user+`,{"role":"assistant","content":[{"type":"tool_use","id":"t","name":"n","input":"{}"}]}`, ""), "input: Input should be a valid dictionary"},
		{"tool result without call", msgs(result, ""), "unexpected `tool_use_id`"},
		{"tool call without result", msgs(user+","+use+","+user, ""), "were found without `tool_result`"},
		{"tool call at the end", msgs(user+","+use, ""), "were found without `tool_result`"},
		{"text before the tool result", msgs(user+","+use+`,{"role":"user","content":[{"type":"text","text":"x"},{"type":"tool_result","tool_use_id":"t1"}]}`, ""), "were found without `tool_result`"},
		{"two results for one call", msgs(user+","+use+`,{"role":"user","content":[{"type":"tool_result","tool_use_id":"t1"},{"type":"tool_result","tool_use_id":"t1"}]}`, ""), "single result"},
		{"temperature above range", msgs(user, `,"temperature":1.1`), "temperature: Input should be less than or equal to 1"},
		{"blank stop sequence", msgs(user, `,"stop_sequences":[" "]`), "stop_sequences"},
		{"stop as a string", msgs(user, `,"stop_sequences":"x"`), "stop_sequences: Input should be a valid list"},
		{"tool_choice without tools", msgs(user, `,"tool_choice":{"type":"auto"}`), "while providing tools"},
		{"tool_choice as a string", msgs(user, `,"tools":[`+weatherUse+`],"tool_choice":"auto"`), "tool_choice: Input should be a valid dictionary"},
		{"tool_choice of an unknown tool", msgs(user, `,"tools":[`+weatherUse+`],"tool_choice":{"type":"tool","name":"f"}`), "'f' not found"},
		{"two tools of one name", msgs(user, `,"tools":[`+weatherUse+`,`+weatherUse+`]`), "must be unique"},
		{"tool without schema", msgs(user, `,"tools":[{"name":"f"}]`), "input_schema: Field required"},
		{"tool schema without type", msgs(user, `,"tools":[{"name":"f","input_schema":{}}]`), "input_schema.type: Field required"},
		{"OpenAI's tool form", msgs(user, `,"tools":[`+weatherTool+`]`), "name: Field required"},
		{"image of a wrong type", msgs(`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/jpg","data":"AAAA"}}]}`, ""), "media_type: Input should be"},
		{"image that is not base64", msgs(`{"role":"user","content":[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"*"}}]}`, ""), "source.data"},
		{"five cache marks", msgs(`{"role":"user","content":[`+cached(5, "")+`]}`, ""), "A maximum of 4 blocks"},
		{"long cache after a short one", msgs(`{"role":"user","content":[`+cached(1, "")+`,`+cached(1, `,"ttl":"1h"`)+`]}`, ""), "must not come after"},
		{"bad cache time", msgs(`{"role":"user","content":[`+cached(1, `,"ttl":"2h"`)+`]}`, ""), "ttl: Input should be"},
		{"thinking budget too small", msgs(user, `,"thinking":{"type":"enabled","budget_tokens":100}`), "greater than or equal to 1024"},
		{"thinking budget above max_tokens", msgs(user, `,"thinking":{"type":"enabled","budget_tokens":3000}`), "`max_tokens` must be greater"},
		{"thinking and temperature", msgs(user, `,"temperature":0.5,"thinking":{"type":"enabled","budget_tokens":1024}`), "`temperature` may only be set to 1"},
		{"thinking and top_k", msgs(user, `,"top_k":5,"thinking":{"type":"adaptive"}`), "`top_k` must be unset"},
		{"thinking and a forced tool", msgs(user, `,"tools":[`+weatherUse+`],"tool_choice":{"type":"any"},"thinking":{"type":"adaptive"}`), "tool_choice forces tool use"},
		{"unknown thinking", msgs(user, `,"thinking":{"type":"deep"}`), "not 'deep'"},
		{"open output schema", msgs(user, `,"output_config":{"format":{"type":"json_schema","schema":{"type":"object"}}}`), "additionalProperties"},
		{"unknown effort", msgs(user, `,"output_config":{"effort":"huge"}`), "output_config.effort"},
		{"duplicate key", `{"model":"m","model":"m","max_tokens":1,"messages":[` + user + `]}`, `duplicate key "model"`},
		{"not JSON", `{`, "not valid JSON"},
	}
	_, url := start(t, Options{})
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := post(t, url, path, c.body)
			v := decode(t, r.body)
			msg, _ := at(v, "error", "message").(string)
			if r.status != 400 || at(v, "type") != "error" || at(v, "error", "type") != "invalid_request_error" || !strings.Contains(msg, c.says) {
				t.Errorf("%d %s; want 400 with %q", r.status, r.body, c.says)
			}
		})
	}
}

// Anthropic reads consecutive turns of one role as one, so results may come one by one.
func TestAnthropicReadsTurnsOfOneRoleAsOne(t *testing.T) {
	_, url := start(t, Options{})
	use := func(id string) string {
		return `{"type":"tool_use","id":"` + id + `","name":"get_weather","input":{}}`
	}
	result := func(id string) string {
		return `{"role":"user","content":[{"type":"tool_result","tool_use_id":"` + id + `","content":"ok"}]}`
	}
	for _, messages := range []string{
		`{"role":"user","content":"x"},{"role":"user","content":"y"}`,
		`{"role":"user","content":"x"},{"role":"assistant","content":[` + use("t1") + `,` + use("t2") + `]},` + result("t1") + `,` + result("t2"),
	} {
		if r := post(t, url, "/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":3000,"messages":[`+messages+`]}`); r.status != 200 {
			t.Errorf("%d %s", r.status, r.body)
		}
	}
}

func TestLaterAnthropicVersionRefusesMore(t *testing.T) {
	_, url := start(t, Options{})
	cited := `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":[{"type":"text","text":"x","citations":[{"type":"char_location"}]}]}]}`
	document := `{"model":"m","max_tokens":5,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"document","source":{"type":"text","media_type":"text/plain","data":"d"}}]},{"role":"user","content":"y"}]}`
	for name, c := range map[string]struct{ body, says string }{
		"temperature at its default": {claude("x", `,"temperature":1`), "temperature: Extra inputs are not permitted"},
		"top_p":                      {claude("x", `,"top_p":0.9`), "top_p: Extra inputs are not permitted"},
		"top_k":                      {claude("x", `,"top_k":5`), "top_k: Extra inputs are not permitted"},
		"citations of a user":        {cited, "citations"},
		"document of an assistant":   {document, "`document` blocks can only be in `user` messages"},
	} {
		t.Run(name, func(t *testing.T) {
			if r := post(t, url, "/v1/messages", c.body); r.status != 200 {
				t.Errorf("2023-06-01: %d %s", r.status, r.body)
			}
			r := post(t, url, "/v1/messages", c.body, "Anthropic-Version", "2026-10-21")
			if r.status != 400 || !strings.Contains(string(r.body), c.says) {
				t.Errorf("2026-10-21: %d %s; want %q", r.status, r.body, c.says)
			}
		})
	}
}

func TestKeysHeadersAndRoutes(t *testing.T) {
	_, url := start(t, Options{})
	hi, claudeHi := chat("hi", ""), claude("hi", "")
	cases := []struct {
		name, method, path, body string
		headers                  []string
		status                   int
		typ                      string
	}{
		{"no key", "POST", "/v1/chat/completions", hi, []string{"Authorization", ""}, 401, "invalid_request_error"},
		{"bad key", "POST", "/v1/chat/completions", hi, []string{"Authorization", "Bearer bad"}, 401, "invalid_request_error"},
		{"a key of the gateway", "POST", "/v1/chat/completions", hi, []string{"Authorization", "Bearer gw-0123456789"}, 401, "invalid_request_error"},
		{"limited key", "POST", "/v1/chat/completions", hi, []string{"Authorization", "Bearer mock-limited"}, 429, "requests"},
		{"broken key", "POST", "/v1/chat/completions", hi, []string{"Authorization", "Bearer mock-broken"}, 500, "server_error"},
		{"OpenAI key in Anthropic's header", "POST", "/v1/chat/completions", hi, []string{"Authorization", "", "X-Api-Key", "mock-key"}, 401, "invalid_request_error"},
		{"text body", "POST", "/v1/chat/completions", hi, []string{"Content-Type", "text/plain"}, 415, "invalid_request_error"},
		{"JSON with a charset", "POST", "/v1/chat/completions", hi, []string{"Content-Type", "application/json; charset=utf-8"}, 200, ""},
		{"without /v1", "POST", "/chat/completions", hi, nil, 200, ""},
		{"PUT on chat", "PUT", "/v1/chat/completions", "", nil, 405, "invalid_request_error"},
		{"unknown path", "POST", "/v1/nothing", hi, nil, 404, "invalid_request_error"},
		{"path with a double slash", "POST", "/v1//chat/completions", hi, nil, 404, "invalid_request_error"},
		{"Anthropic without version", "POST", "/v1/messages", claudeHi, []string{"Anthropic-Version", ""}, 400, "invalid_request_error"},
		{"Anthropic with a wrong version", "POST", "/v1/messages", claudeHi, []string{"Anthropic-Version", "2020-01-01"}, 400, "invalid_request_error"},
		{"Anthropic without key", "POST", "/v1/messages", claudeHi, []string{"X-Api-Key", ""}, 401, "authentication_error"},
		{"Anthropic key as Bearer", "POST", "/v1/messages", claudeHi, []string{"X-Api-Key", "", "Authorization", "Bearer mock-key"}, 200, ""},
		{"x-api-key wins over Bearer", "POST", "/v1/messages", claudeHi, []string{"X-Api-Key", "bad", "Authorization", "Bearer mock-key"}, 401, "authentication_error"},
		{"Anthropic's later version", "POST", "/v1/messages", claudeHi, []string{"Anthropic-Version", "2026-10-21"}, 200, ""},
		{"Anthropic bad key", "POST", "/v1/messages", claudeHi, []string{"X-Api-Key", "bad"}, 401, "authentication_error"},
		{"Anthropic denied key", "POST", "/v1/messages", claudeHi, []string{"X-Api-Key", "mock-denied"}, 403, "permission_error"},
		{"Anthropic unknown model", "POST", "/v1/messages", strings.Replace(claudeHi, "claude-sonnet-4-5", "mock-missing", 1), nil, 404, "not_found_error"},
		{"Anthropic text body", "POST", "/v1/messages", claudeHi, []string{"Content-Type", "text/plain"}, 400, "invalid_request_error"},
		{"models", "GET", "/v1/models", "", nil, 200, ""},
		{"one model", "GET", "/v1/models/gpt-4o", "", nil, 200, ""},
		{"an unknown one", "GET", "/v1/models/gpt-0", "", nil, 404, "invalid_request_error"},
		{"deleting one", "DELETE", "/v1/models/gpt-4o", "", nil, 200, ""},
		{"Anthropic's models", "GET", "/v1/models", "", []string{"Anthropic-Version", "2023-06-01", "X-Api-Key", "mock-key"}, 200, ""},
		{"Anthropic's unknown model", "GET", "/v1/models/gpt-4o", "", []string{"Anthropic-Version", "2023-06-01", "X-Api-Key", "mock-key"}, 404, "not_found_error"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			r := do(t, c.method, url+c.path, c.body, c.headers...)
			if r.status != c.status {
				t.Fatalf("%d %s, want %d", r.status, r.body, c.status)
			}
			if typ, _ := at(decode(t, r.body), "error", "type").(string); typ != c.typ {
				t.Errorf("type %q, want %q", typ, c.typ)
			}
		})
	}
}

func TestEmbeddingsInput(t *testing.T) {
	_, url := start(t, Options{})
	for _, c := range []struct {
		name, body string
		status     int
	}{
		{"text", `{"model":"text-embedding-3-small","input":"a"}`, 200},
		{"tokens", `{"model":"text-embedding-3-small","input":[1,2,3]}`, 200},
		{"lists of tokens", `{"model":"text-embedding-3-small","input":[[1,2],[3]]}`, 200},
		{"nothing", `{"model":"text-embedding-3-small"}`, 400},
		{"empty text", `{"model":"text-embedding-3-small","input":""}`, 400},
		{"empty list", `{"model":"text-embedding-3-small","input":[]}`, 400},
		{"mixed list", `{"model":"text-embedding-3-small","input":["a",1]}`, 400},
		{"too many", `{"model":"m","input":[` + strings.TrimSuffix(strings.Repeat(`"a",`, 2049), ",") + `]}`, 400},
		{"too many dimensions", `{"model":"text-embedding-3-small","input":"a","dimensions":1537}`, 400},
		{"dimensions of the old model", `{"model":"text-embedding-ada-002","input":"a","dimensions":10}`, 400},
		{"bad format", `{"model":"text-embedding-3-small","input":"a","encoding_format":"hex"}`, 400},
	} {
		t.Run(c.name, func(t *testing.T) {
			if r := post(t, url, "/v1/embeddings", c.body); r.status != c.status {
				t.Errorf("%d %.300s", r.status, r.body)
			}
		})
	}
}

func TestBodyTooLarge(t *testing.T) {
	_, url := start(t, Options{MaxBody: 100})
	r := post(t, url, "/v1/chat/completions", chat(strings.Repeat("x", 200), ""))
	if r.status != http.StatusRequestEntityTooLarge {
		t.Errorf("%d %s", r.status, r.body)
	}
}
