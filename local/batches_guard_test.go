package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
)

// batchHost is a provider with OpenAI's format that runs a batch at once. Its response to each
// row repeats the row's text in capitals.
type batchHost struct {
	mu   sync.Mutex
	rows string
}

func (h *batchHost) serve(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("POST /v1/files", func(w http.ResponseWriter, r *http.Request) {
		f, _, err := r.FormFile("file")
		if err != nil {
			http.Error(w, err.Error(), 400)
			return
		}
		b, _ := io.ReadAll(f)
		h.mu.Lock()
		h.rows = string(b)
		h.mu.Unlock()
		fmt.Fprint(w, `{"id":"file-in","object":"file","bytes":1,"created_at":1,"filename":"f","purpose":"batch"}`)
	})
	batch := func(w http.ResponseWriter, _ *http.Request) {
		fmt.Fprint(w, `{"id":"batch_1","object":"batch","input_file_id":"file-in","output_file_id":"file-out","endpoint":"/v1/chat/completions","completion_window":"24h","status":"completed","created_at":1,"request_counts":{"total":1,"completed":1,"failed":0}}`)
	}
	mux.HandleFunc("POST /v1/batches", batch)
	mux.HandleFunc("GET /v1/batches/batch_1", batch)
	mux.HandleFunc("GET /v1/files/file-out/content", func(w http.ResponseWriter, _ *http.Request) {
		for _, row := range readRows(t, h.sent()) {
			text := strings.ToUpper(row.text())
			fmt.Fprintf(w, `{"id":"r","custom_id":%q,"response":{"status_code":200,"request_id":"q","body":{"id":"c","object":"chat.completion","created":1,"model":"gpt-4o-mini","choices":[{"index":0,"finish_reason":"stop","message":{"role":"assistant","content":%q}}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}},"error":null}`+"\n", row.CustomID, text)
		}
	})
	s := httptest.NewServer(mux)
	t.Cleanup(s.Close)
	return s.URL + "/v1"
}

func (h *batchHost) sent() string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.rows
}

// text is the word that a sent row asks about.
func (r outputRow) text() string {
	switch r.CustomID {
	case "row-0":
		return "plain"
	case "row-2":
		return "address"
	}
	return "leak"
}

// The rows of a batch that a provider runs are judged as those that the gateway runs: a row
// that a guardrail denies does not reach the provider, one that it changes reaches it changed,
// and a response that it denies does not reach the client.
func TestGuardrailsJudgeTheRowsOfABatchThatAProviderRuns(t *testing.T) {
	t.Parallel()
	host := &batchHost{}
	r := start(t)
	r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"Host","slug":"host","provider":"openai","key":"of-the-provider","workspace_id":"default","customHost":%q}`, host.serve(t)))
	texts := []string{"plain words", "FORBIDDENWORD", "mail ann@example.com", "say the leak"}
	file := r.storeRows(workspaceKey, chatRows(len(texts), "gpt-4o-mini", func(i int) string { return texts[i] }))
	r.guardBatches("FORBIDDENWORD", "LEAK")
	id := r.id("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h","gateway_options":{"x-gateway-virtual-key":"host"}}`, file), asGateway(workspaceKey)...)
	b := r.ended(workspaceKey, id)
	if b["status"] != "completed" || fmt.Sprint(b["request_counts"]) != counts(4, 2, 2) {
		t.Fatalf("%v", b)
	}
	sent := host.sent()
	if strings.Contains(sent, "FORBIDDENWORD") || strings.Contains(sent, "ann@example.com") || !strings.Contains(sent, "{{EMAIL_ADDRESS_1}}") || strings.Count(sent, "\n") != 3 {
		t.Errorf("the provider got\n%s", sent)
	}
	good, bad := r.fileRows(workspaceKey, b["output_file_id"]), r.fileRows(workspaceKey, b["error_file_id"])
	if len(good) != 2 || good[0].CustomID != "row-0" || good[1].CustomID != "row-2" {
		t.Errorf("output %+v", good)
	}
	if len(bad) != 2 || bad[0].CustomID != "row-1" || bad[1].CustomID != "row-3" {
		t.Fatalf("errors %+v", bad)
	}
	for _, row := range bad {
		if row.Response == nil || row.Response.Status != 446 || !strings.Contains(string(row.Response.Body), "hook_results") || strings.Contains(string(row.Response.Body), "choices") {
			t.Errorf("%s: %+v", row.CustomID, row.Response)
		}
	}
}

// guardBatches denies a word of requests and one of responses, and masks addresses in requests.
func (r *running) guardBatches(in, out string) {
	r.t.Helper()
	denies := func(name, word string) string {
		return r.guardrail(name, fmt.Sprintf(`{"id":"default.regexMatch","parameters":{"rule":%q,"not":true}}`, word), `"deny":true`)
	}
	masks := r.guardrail("masks", `{"id":"gateway.pii","parameters":{"redact":true,"categories":["EMAIL_ADDRESS"]}}`, "")
	r.admin("PUT", "/admin/workspaces/"+r.workspace(), fmt.Sprintf(`{"defaults":{"input_guardrails":[%q,%q],"output_guardrails":[%q]}}`, denies("denies in", in), masks, denies("denies out", out)))
}

// A batch none of whose rows passes ends without the provider.
func TestGuardrailsRefuseEveryRowOfABatch(t *testing.T) {
	t.Parallel()
	host := &batchHost{}
	r := start(t)
	r.admin("POST", "/virtual-keys", fmt.Sprintf(`{"name":"Host","slug":"host","provider":"openai","key":"of-the-provider","workspace_id":"default","customHost":%q}`, host.serve(t)))
	file := r.storeRows(workspaceKey, chatRows(2, "gpt-4o-mini", func(int) string { return "FORBIDDENWORD" }))
	r.guardBatches("FORBIDDENWORD", "LEAK")
	id := r.id("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h","gateway_options":{"x-gateway-virtual-key":"host"}}`, file), asGateway(workspaceKey)...)
	b := r.ended(workspaceKey, id)
	if b["status"] != "completed" || fmt.Sprint(b["request_counts"]) != counts(2, 0, 2) || b["output_file_id"] != nil || len(r.fileRows(workspaceKey, b["error_file_id"])) != 2 || host.sent() != "" {
		t.Errorf("%v; sent %q", b, host.sent())
	}
}
