package mockprovider

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// bedrockCall sends a body with a Bearer key.
func bedrockCall(s *Server, path, body string, headers ...string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, path, strings.NewReader(body))
	r.Header.Set("Authorization", "Bearer mock-key")
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	s.ServeHTTP(w, r)
	return w
}

func TestBedrockRefusesWhatTheServiceRefuses(t *testing.T) {
	s := New(Options{})
	const claude = "/model/anthropic.claude-sonnet-4-5/converse"
	hi := `{"role":"user","content":[{"text":"x"}]}`
	call := `{"role":"assistant","content":[{"toolUse":{"toolUseId":"t1","name":"f","input":{}}}]}`
	result := `{"role":"user","content":[{"toolResult":{"toolUseId":"t1","content":[]}}]}`
	doc := `{"document":{"format":"pdf","name":"a","source":{"bytes":"AAAA"}}}`
	tools := `,"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{"type":"object"}}}}]}`
	for _, c := range []struct{ name, path, body, want string }{
		{"no JSON", claude, `{`, "SerializationException"},
		{"unknown member", claude, `{"model":"x","messages":[` + hi + `]}`, "Extra inputs"},
		{"no message", claude, `{"messages":[]}`, "messages: Field required"},
		{"assistant first", claude, `{"messages":[{"role":"assistant","content":[{"text":"x"}]}]}`, "must start with a user message"},
		{"roles do not take turns", claude, `{"messages":[` + hi + `,` + hi + `]}`, "must alternate"},
		{"empty content", claude, `{"messages":[{"role":"user","content":[]}]}`, "content: Field required"},
		{"blank text", claude, `{"messages":[{"role":"user","content":[{"text":" "}]}]}`, "should be nonblank"},
		{"two members", claude, `{"messages":[{"role":"user","content":[{"text":"a","cachePoint":{"type":"default"}}]}]}`, "should be 'text', 'image'"},
		{"tools of the history alone", claude, `{"messages":[` + hi + `,` + call + `,` + result + `]}`, "toolConfig field must be defined"},
		{"call without result", claude, `{"messages":[` + hi + `,` + call + `,` + hi + `]` + tools + `}`, "without `tool_result`"},
		{"result without call", claude, `{"messages":[` + result + `]` + tools + `}`, "unexpected `tool_use_id`"},
		{"empty tools", claude, `{"messages":[` + hi + `],"toolConfig":{"tools":[]}}`, "toolConfig.tools: Field required"},
		{"schema without type", claude, `{"messages":[` + hi + `],"toolConfig":{"tools":[{"toolSpec":{"name":"f","inputSchema":{"json":{}}}}]}}`, "inputSchema.json.type"},
		{"choice of no tool", claude, `{"messages":[` + hi + `]` + strings.Replace(tools, `]}`, `],"toolChoice":{"tool":{"name":"g"}}}`, 1) + `}`, ""},
		{"documents of one name", claude, `{"messages":[{"role":"user","content":[{"text":"x"},` + doc + `,` + doc + `]}]}`, "same name"},
		{"document alone", claude, `{"messages":[{"role":"user","content":[` + doc + `]}]}`, "text block is required"},
		{"name of a document", claude, `{"messages":[{"role":"user","content":[{"text":"x"},` + strings.Replace(doc, `"a"`, `"a.pdf"`, 1) + `]}]}`, "document.name"},
		{"format jpg", claude, `{"messages":[{"role":"user","content":[{"image":{"format":"jpg","source":{"bytes":"AAAA"}}}]}]}`, "image.format"},
		{"image by address", claude, `{"messages":[{"role":"user","content":[{"image":{"format":"png","source":{"url":"https://x"}}}]}]}`, "Extra inputs"},
		{"reasoning that was not signed here", claude, `{"messages":[` + hi + `,{"role":"assistant","content":[{"reasoningContent":{"reasoningText":{"text":"a","signature":"b"}}}]},` + hi + `]}`, "Invalid `signature`"},
		{"five cache points", claude, `{"messages":[{"role":"user","content":[{"text":"x"}` + strings.Repeat(`,{"cachePoint":{"type":"default"}}`, 5) + `]}]}`, "maximum of 4"},
		{"cache of a model without", "/model/meta.llama3/converse", `{"messages":[{"role":"user","content":[{"text":"x"},{"cachePoint":{"type":"default"}}]}]}`, "prompt caching"},
		{"temperature", claude, `{"messages":[` + hi + `],"inferenceConfig":{"temperature":1.5}}`, "temperature"},
		{"budget", claude, `{"messages":[` + hi + `],"inferenceConfig":{"maxTokens":1024},"additionalModelRequestFields":{"thinking":{"type":"enabled","budget_tokens":1024}}}`, "budget_tokens"},
		{"count of a profile", "/model/us.anthropic.claude/count-tokens", `{"input":{"converse":{"messages":[` + hi + `]}}}`, "counting tokens"},
		{"embedding with more", "/model/amazon.titan-embed-text-v1/invoke", `{"inputText":"a","dimensions":3}`, "extraneous key [dimensions]"},
		{"Cohere without a purpose", "/model/cohere.embed-english-v3/invoke", `{"texts":["a"]}`, "input_type"},
		{"Claude with a model", "/model/anthropic.claude/invoke", `{"anthropic_version":"bedrock-2023-05-31","model":"x","max_tokens":1,"messages":[]}`, "Extra inputs"},
	} {
		w := bedrockCall(s, c.path, c.body)
		if w.Code/100 != 4 || !strings.Contains(w.Body.String()+w.Header().Get("X-Amzn-Errortype"), c.want) {
			t.Errorf("%s: %d %s", c.name, w.Code, w.Body)
		}
	}
	if w := bedrockCall(s, claude, `{"messages":[`+hi+`]}`, "Authorization", "AWS4-HMAC-SHA256 Credential=AKIDMOCK/20260101/us-east-1/bedrock/aws4_request, SignedHeaders=host, Signature=00", "X-Amz-Date", "20260101T000000Z"); w.Code != 403 {
		t.Errorf("a signature that is none: %d %s", w.Code, w.Body)
	}
	if w := bedrockCall(s, claude, `{"messages":[`+hi+`]}`); w.Code != 200 {
		t.Errorf("a good request: %d %s", w.Code, w.Body)
	}
}
