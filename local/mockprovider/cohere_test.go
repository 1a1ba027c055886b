package mockprovider

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// askWire sends a body to a fresh server.
func askWire(t *testing.T, s *Server, path, body string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	req := httptest.NewRequest("POST", path, strings.NewReader(body))
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer mock-key")
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, req)
	return w
}

func TestCohereIsStrict(t *testing.T) {
	const hi = `{"role":"user","content":"Hello"}`
	for _, c := range []struct {
		path, body string
		status     int
		want       string
	}{
		{"/v2/chat", `{"model":"m","messages":[` + hi + `]}`, 200, `"finish_reason":"COMPLETE"`},
		{"/v2/chat", `{"model":"m","messages":[` + hi + `],"top_p":0.5}`, 422, "unknown field"},
		{"/v2/chat", `{"messages":[` + hi + `]}`, 400, "model is required"},
		{"/v2/chat", `{"model":"m","messages":[]}`, 400, "messages"},
		{"/v2/chat", `{"model":"m","messages":[` + hi + `],"p":1}`, 400, "p must be between"},
		{"/v2/chat", `{"model":"m","messages":[` + hi + `],"temperature":2}`, 400, "temperature"},
		{"/v2/chat", `{"model":"m","messages":[` + hi + `],"response_format":{"type":"json_schema"}}`, 400, "response_format"},
		{"/v2/chat", `{"model":"m","messages":[` + hi + `],"thinking":{"type":"enabled"}}`, 400, "thinking"},
		{"/v2/chat", `{"model":"m","messages":[` + hi + `],"tool_choice":"REQUIRED"}`, 400, "tool_choice"},
		{"/v2/chat", `{"model":"m","messages":[` + hi + `,{"role":"tool","tool_call_id":"x","content":"1"}]}`, 400, "tool_call_id"},
		{"/v2/chat", `{"model":"m","messages":[` + hi + `,{"role":"assistant","tool_calls":[{"id":"x","type":"function","function":{"name":"f","arguments":"{}"}}]},` + hi + `]}`, 400, "must be answered"},
		{"/v2/chat", `{"model":"m","messages":[{"role":"developer","content":"x"}]}`, 400, "role"},
		{"/v2/embed", `{"model":"m","texts":["a"]}`, 400, "input_type"},
		{"/v2/embed", `{"model":"m","texts":["a"],"input_type":"search_query"}`, 200, `"float"`},
		{"/v2/rerank", `{"model":"m","query":"q","documents":[{"text":"a"}]}`, 400, "documents"},
		{"/v2/rerank", `{"model":"m","query":"q","documents":["a"],"return_documents":true}`, 422, "unknown field"},
		{"/voyage/v1/embeddings", `{"model":"m","input":["a"],"encoding_format":"float"}`, 400, "encoding_format"},
		{"/voyage/v1/rerank", `{"model":"m","query":"q","documents":["a"],"top_n":1}`, 422, "top_n"},
		{"/jina/v1/embeddings", `{"model":"m","input":["a"],"encoding_format":"base64"}`, 422, "encoding_format"},
		{"/nomic/v1/embedding/text", `{"model":"m","input":["a"]}`, 400, "texts"},
		{"/azure/providers/mistral/azure/ocr", `{"model":"m","document":{"type":"document_url","document_url":"https://x"}}`, 422, "cannot be read"},
		{"/workers/m", `{"prompt":"a","model":"m"}`, 422, "extra fields"},
		{"/oci/20231130/actions/chat", `{}`, 401, "authentication"},
	} {
		got := askWire(t, New(Options{}), c.path, c.body)
		if got.Code != c.status || !strings.Contains(got.Body.String(), c.want) {
			t.Errorf("%s %s: %d %s", c.path, c.body, got.Code, got.Body)
		}
	}
	if got := askWire(t, New(Options{}), "/v2/chat", `{"model":"m","messages":[`+hi+`]}`, "Authorization", "Bearer stranger"); got.Code != http.StatusUnauthorized {
		t.Errorf("a stranger's key: %d", got.Code)
	}
}

// TestCohereStreamsKeepTheirGrammar: message-start first, blocks that start and
// end, message-end last with what was billed.
func TestCohereStreamsKeepTheirGrammar(t *testing.T) {
	tools := `,"tools":[{"type":"function","function":{"name":"a","parameters":{"type":"object"}}},{"type":"function","function":{"name":"b","parameters":{"type":"object"}}}]`
	for _, c := range []struct{ model, directives, more string }{
		{"m", "chunks=5", ""}, {"m", "tools=2 parallel", tools}, {"m", "split-utf8", ""}, {"x-reasoning", "chunks=3", `,"thinking":{"type":"enabled"}`},
	} {
		s := New(Options{})
		got := askWire(t, s, "/v2/chat", fmt.Sprintf(`{"model":%q,"stream":true,"messages":[{"role":"user","content":"mock: %s\nHello"}]%s}`, c.model, c.directives, c.more))
		if got.Code != 200 {
			t.Fatalf("%v: %d %s", c, got.Code, got.Body)
		}
		list := readEvents(got.Body.String())
		if err := cohereGrammar(list); err != nil {
			t.Errorf("%v: %v\n%s", c, err, got.Body)
		}
		if bill := s.Bill(); bill.Total.Output+bill.Total.Reasoning == 0 || bill.Open != 0 {
			t.Errorf("%v: bill %+v", c, bill.Total)
		}
	}
}

// cohereGrammar holds events against the order in which they may come.
func cohereGrammar(list []sseEvent) error {
	open := ""
	for i, e := range list {
		v, err := parseJSON(e.data)
		if err != nil {
			return err
		}
		kind := v.get("type").s
		switch {
		case kind != e.name:
			return fmt.Errorf("event %d is named %s and is %s", i, e.name, kind)
		case (i == 0) != (kind == "message-start"), (i == len(list)-1) != (kind == "message-end"):
			return fmt.Errorf("%s at place %d of %d", kind, i, len(list))
		}
		block, step, _ := strings.Cut(strings.TrimPrefix(kind, "tool-"), "-")
		if block != "content" && block != "call" {
			continue
		}
		block += v.get("index").s
		switch {
		case step == "start" && open == "":
			open = block
		case step == "delta" && open == block:
		case step == "end" && open == block:
			open = ""
		default:
			return fmt.Errorf("%s of block %s while %q is open", kind, block, open)
		}
	}
	if open != "" || len(list) < 3 {
		return fmt.Errorf("%d events, %q is open", len(list), open)
	}
	return nil
}
