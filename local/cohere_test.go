package main

import (
	"crypto/rand"
	"crypto/rsa"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/pricing"
)

// wired makes the saved provider @id of a provider type whose host is the mock
// below path; fields are further members of its configurations.
func (r *running) wired(id, path, fields string) {
	r.t.Helper()
	host := strings.TrimSuffix(r.mockBase(), "/v1") + path
	if fields != "" {
		fields = "," + fields
	}
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":%q,"slug":%q,"workspace_id":%q,"ai_provider_id":%q,"key":"mock-key","configurations":{"custom_host":%q%s}}`, id, id, r.workspace(), id, host, fields))
}

const weatherTool = `,"tools":[{"type":"function","function":{"name":"get.weather","parameters":{"type":"object","properties":{"city":{"type":"string"}},"required":["city"]}}}]`

func TestCohereConversations(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.wired("cohere", "", "")
	r.mock.Reset()
	n := 0
	send := func(path, body string) reply {
		t.Helper()
		n++
		got := r.call("POST", path, body)
		if got.status != 200 {
			t.Fatalf("%d %s\n%s", got.status, got.body, body)
		}
		return got
	}
	plain := send("/chat/completions", chatBody("@cohere/command-r", "mock: echo\nHello", `,"top_p":1,"user":"u"`))
	if body := plain.json(t); content(t, body) != "Hello" || body["provider"] != "cohere" {
		t.Errorf("%s", plain.body)
	}
	if got := plain.header.Get("X-Gateway-Translation"); !strings.Contains(got, "user") && got != "" {
		t.Errorf("translation %q", got)
	}
	streamed := send("/chat/completions", chatBody("@cohere/command-r", "mock: split-utf8\nHello", `,"stream":true,"stream_options":{"include_usage":true}`))
	if list := events(streamed.body); list[len(list)-1] != "[DONE]" || !strings.Contains(streamed.body, "東京") || !strings.Contains(list[len(list)-2], `"prompt_tokens"`) {
		t.Errorf("%s", streamed.body)
	}
	messages := send("/messages", `{"model":"@cohere/command-r","max_tokens":50,"messages":[{"role":"user","content":"mock: echo\nHello"}]}`)
	if !strings.Contains(messages.body, `"type":"text"`) || !strings.Contains(messages.body, "Hello") {
		t.Errorf("%s", messages.body)
	}
	send("/completions", `{"model":"@cohere/command-r","prompt":"mock: echo\nHello","max_tokens":9}`)
	generated := send("/completions", `{"model":"@cohere/command","prompt":"mock: echo\nHello","max_tokens":9}`)
	if last := r.mock.Requests(1)[0]; last.Path != "/v1/generate" || !strings.Contains(generated.body, "Hello") {
		t.Errorf("%s %s", last.Path, generated.body)
	}
	lines := send("/completions", `{"model":"@cohere/command","prompt":"mock: echo\nHello again","max_tokens":9,"stream":true}`)
	if list := events(lines.body); list[len(list)-1] != "[DONE]" || len(list) < 3 {
		t.Errorf("%s", lines.body)
	}
	r.toolLoop(t, "@cohere/command-r", send)
	thought := send("/messages", `{"model":"@cohere/command-a-reasoning-08-2025","max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"Hello"}]}`)
	if !strings.Contains(thought.body, `"type":"thinking"`) {
		t.Errorf("%s", thought.body)
	}
	n += 2 // of the tool loop
	r.billed(t, n-2)
}

// content is the text of a chat's answer.
func content(t *testing.T, body map[string]any) string {
	t.Helper()
	message := body["choices"].([]any)[0].(map[string]any)["message"].(map[string]any)
	s, _ := message["content"].(string)
	return strings.TrimSpace(s)
}

// toolLoop has the model call a tool, plain and streamed, and gives the result
// back as the client got the call.
func (r *running) toolLoop(t *testing.T, model string, send func(path, body string) reply) {
	t.Helper()
	question := fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"What is the weather?"}`, model)
	called := send("/chat/completions", question+`]`+weatherTool+`,"tool_choice":"required"}`).json(t)
	choice := called["choices"].([]any)[0].(map[string]any)
	if choice["finish_reason"] != "tool_calls" {
		t.Fatalf("%v", called)
	}
	message := choice["message"].(map[string]any)
	call := message["tool_calls"].([]any)[0].(map[string]any)
	if call["function"].(map[string]any)["name"] != "get.weather" {
		t.Errorf("%v", call)
	}
	encoded, _ := json.Marshal(message)
	send("/chat/completions", question+`,`+string(encoded)+fmt.Sprintf(`,{"role":"tool","tool_call_id":%q,"content":"clear"}]%s}`, call["id"], weatherTool))
	streamed := send("/chat/completions", question+`]`+weatherTool+`,"tool_choice":"required","stream":true}`)
	if !strings.Contains(streamed.body, `"name":"get.weather"`) || !strings.Contains(streamed.body, `"finish_reason":"tool_calls"`) {
		t.Errorf("%s", streamed.body)
	}
}

// billed waits for n records and holds their usage against the mock's bill.
func (r *running) billed(t *testing.T, n int) {
	t.Helper()
	bill := r.mock.Bill()
	var in, out int64
	for _, rec := range r.records(n) {
		in += rec.Usage.N(pricing.Input)
		out += rec.Usage.OutputTokens()
	}
	if in != bill.Total.Input || out != bill.Total.Output+bill.Total.Reasoning {
		t.Errorf("recorded %d in, %d out; billed %d and %d", in, out, bill.Total.Input, bill.Total.Output+bill.Total.Reasoning)
	}
}

func TestCohereFailures(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.wired("cohere", "", "")
	for _, c := range []struct {
		name, directives, more string
		status                 int
		want                   string
	}{
		{"rate limit", "status=429 retry-after=7", "", 429, "rate_limit_exceeded"},
		{"unavailable", "status=503", "", 503, "overloaded"},
		{"a page", "html", "", 502, "invalid_provider_response"},
		{"failed answer", "finish=ERROR", "", 502, "ended its answer with ERROR"},
		{"timed out", "finish=TIMEOUT", "", 504, "TIMEOUT"},
		{"not JSON", "garbage", "", 502, "invalid_provider_response"},
		{"stream that fails at once", "error-event=x after=0", `,"stream":true`, 502, "Overloaded"},
		{"too hot", "echo", `,"temperature":1.5`, 400, "temperature must be between 0 and 1"},
		{"two answers", "echo", `,"n":2`, 400, "n must be 1"},
		{"JSON beside tools", "echo", weatherTool + `,"response_format":{"type":"json_object"}`, 400, "unsupported_response_format"},
	} {
		t.Run(c.name, func(t *testing.T) {
			got := r.call("POST", "/chat/completions", chatBody("@cohere/command-r", "mock: "+c.directives+"\nHello", c.more), "X-Gateway-Config", `{"retry":{"attempts":0}}`)
			if got.status != c.status || !strings.Contains(got.body, c.want) {
				t.Errorf("%d %s", got.status, got.body)
			}
		})
	}
	broken := r.call("POST", "/chat/completions", chatBody("@cohere/command-r", "mock: chunks=6 cut=after:4\nHello", `,"stream":true`))
	failed := r.call("POST", "/chat/completions", chatBody("@cohere/command-r", "mock: chunks=6 error-event=x after=4\nHello", `,"stream":true`))
	for _, got := range []reply{broken, failed} {
		if list := events(got.body); got.status != 200 || list[len(list)-1] == "[DONE]" || !strings.Contains(list[len(list)-1], `"error"`) {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
}

func TestEmbeddingsRerankAndOCROfProvidersOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.wired("cohere", "", "")
	r.wired("jina", "/jina/v1", "")
	r.wired("voyage", "/voyage/v1", "")
	r.wired("nomic", "/nomic/v1", "")
	r.wired("ai21", "/ai21", "")
	r.wired("mistral-ai", "/mistral/v1", "")
	r.mock.Reset()
	n := 0
	for _, model := range []string{"cohere/embed-english-v3.0", "jina/jina-embeddings-v3", "voyage/voyage-3.5", "nomic/nomic-embed-text-v1.5", "ai21/j2-embed"} {
		for _, more := range []string{"", `,"encoding_format":"base64"`} {
			n++
			got := r.call("POST", "/embeddings", `{"model":"@`+model+`","input":["red fish","blue bird"]`+more+`}`)
			if got.status != 200 {
				t.Fatalf("%s: %d %s", model, got.status, got.body)
			}
			data := got.json(t)["data"].([]any)
			vector := data[1].(map[string]any)["embedding"]
			if _, text := vector.(string); len(data) != 2 || text != (more != "") {
				t.Errorf("%s: %s", model, got.body)
			}
		}
	}
	for _, model := range []string{"cohere/rerank-v3.5", "jina/jina-reranker-v2-base-multilingual", "voyage/rerank-2.5"} {
		n++
		got := r.call("POST", "/rerank", `{"model":"@`+model+`","query":"blue bird","documents":["red fish",{"text":"a blue bird"},"a bird"],"top_n":2,"return_documents":true}`)
		if got.status != 200 {
			t.Fatalf("%s: %d %s", model, got.status, got.body)
		}
		results := got.json(t)["results"].([]any)
		first := results[0].(map[string]any)
		if len(results) != 2 || first["index"] != 1.0 || first["document"].(map[string]any)["text"] != "a blue bird" {
			t.Errorf("%s: %s", model, got.body)
		}
	}
	n++
	if got := r.call("POST", "/ocr", `{"model":"@mistral-ai/mistral-ocr-latest","document":{"type":"document_url","document_url":"https://example.com/a.pdf"}}`); got.status != 200 || !strings.Contains(got.body, "# Two") {
		t.Errorf("%d %s", got.status, got.body)
	}
	for path, body := range map[string]string{
		"/rerank":     `{"model":"@cohere/rerank-v3.5","query":{"image":"x"},"documents":["a"]}`,
		"/ocr":        `{"model":"@mistral-ai/mistral-ocr-latest","document":{"type":"document_url","document_url":"ftp://x"}}`,
		"/embeddings": `{"model":"@cohere/embed-english-v3.0","input":[1,2,3]}`,
	} {
		n++
		if got := r.call("POST", path, body); got.status != 400 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	var pages, tokens int64
	for _, rec := range r.records(n) {
		pages += rec.Usage.N(pricing.Pages)
		tokens += rec.Usage.N(pricing.Input)
	}
	// One unit of Cohere's rerank and two pages; AI21 reports no usage.
	unreported := int64(0)
	for _, row := range r.mock.Bill().Rows {
		if strings.HasPrefix(row.Path, "/ai21/") {
			unreported += row.Input
		}
	}
	if pages != 3 || tokens < r.mock.Bill().Total.Input-unreported {
		t.Errorf("%d pages, %d tokens of %d", pages, tokens, r.mock.Bill().Total.Input-unreported)
	}
}

func TestWiresOfTheirOwn(t *testing.T) {
	t.Parallel()
	r := start(t)
	r.wired("reka-ai", "/reka", "")
	r.wired("palm", "/palm", "")
	r.wired("bytez", "/bytez", "")
	r.wired("ai21", "/ai21", "")
	r.wired("triton", "/triton/v2/models/ensemble", "")
	r.wired("workers-ai", "/workers", `"workers_ai_account_id":"account"`)
	r.mock.Reset()
	n := 0
	for _, model := range []string{"reka-ai/reka-flash", "palm/chat-bison-001", "bytez/openai-community/gpt2"} {
		for _, more := range []string{"", `,"stream":true`} {
			n++
			got := r.call("POST", "/chat/completions", `{"model":"@`+model+`","messages":[{"role":"system","content":"Be brief."},{"role":"user","content":"mock: echo\nHello"}]`+more+`}`)
			if got.status != 200 || !strings.Contains(got.body, "Hello") || !strings.Contains(got.body, `"finish_reason":"stop"`) {
				t.Errorf("%s: %d %s", model, got.status, got.body)
			}
		}
	}
	for _, model := range []string{"triton/ensemble", "workers-ai/@cf/meta/llama-3.1-8b-instruct", "ai21/j2-mid"} {
		for _, more := range []string{"", `,"stream":true`} {
			n++
			got := r.call("POST", "/completions", `{"model":"@`+model+`","prompt":"mock: echo\nHello","max_tokens":20`+more+`}`)
			if got.status != 200 || !strings.Contains(got.body, "Hello") || !strings.Contains(got.body, `"text_completion"`) {
				t.Errorf("%s: %d %s", model, got.status, got.body)
			}
		}
	}
	for _, model := range []string{"reka-ai/reka-flash", "bytez/m", "palm/chat-bison-001"} {
		n++
		got := r.call("POST", "/chat/completions", chatBody("@"+model, "mock: status=400 message=no such thing\nHello", ""))
		if got.status != 400 || !strings.Contains(got.body, "no such thing") {
			t.Errorf("%s: %d %s", model, got.status, got.body)
		}
	}
	r.records(n)
}

func TestOracleSignsAndNamesItsCompartment(t *testing.T) {
	t.Parallel()
	r := start(t)
	key, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	block, _ := json.Marshal(string(pem.EncodeToMemory(&pem.Block{Type: "RSA PRIVATE KEY", Bytes: x509.MarshalPKCS1PrivateKey(key)})))
	r.wired("oracle", "/oci", `"oracle_tenancy":"ocid1.tenancy.oc1..t","oracle_user":"ocid1.user.oc1..u","oracle_fingerprint":"20:3b:97:13:55:1c:5b:0d:d3:37:d8:50:4e:c5:3a:34","oracle_region":"us-chicago-1","oracle_compartment_id":"ocid1.compartment.oc1..c","oracle_private_key":`+string(block))
	r.mock.Reset()
	n := 0
	for _, model := range []string{"meta.llama-3.3-70b-instruct", "cohere.command-r-plus-08-2024"} {
		for _, more := range []string{"", `,"stream":true`} {
			n++
			got := r.call("POST", "/chat/completions", chatBody("@oracle/"+model, "mock: echo\nHello", more))
			if got.status != 200 || !strings.Contains(got.body, "Hello") || !strings.Contains(got.body, `"finish_reason":"stop"`) {
				t.Errorf("%s: %d %s", model, got.status, got.body)
			}
		}
	}
	if last := r.mock.Requests(1)[0]; !strings.Contains(string(last.Body), `"compartmentId":"ocid1.compartment.oc1..c"`) {
		t.Errorf("%s", last.Body)
	}
	r.billed(t, n)
}
