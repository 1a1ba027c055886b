package relay_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"testing"

	"gateway/shared/dialect/openai"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay"
	"gateway/shared/testkit/relaytest"
)

// TestOperations requires the calls, the responses, the usage and the cost of requests that are
// no conversations.
func TestOperations(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	const (
		embed     = `{"model":"text-embedding-3-small","input":"Hi"}`
		vectors   = `{"object":"list","model":"text-embedding-3-small","data":[{"object":"embedding","index":0,"embedding":[0.5,-1]}],"usage":{"prompt_tokens":1000,"total_tokens":1000}}`
		cohere    = `{"id":"e","embeddings":{"float":[[0.5,-1]]},"texts":["Hi"],"meta":{"billed_units":{"input_tokens":1000}},"response_type":"embeddings_by_type"}`
		generated = `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hello"}]},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":100,"candidatesTokenCount":10,"totalTokenCount":110},"modelVersion":"gemini-2.5-flash"}`
		asked     = `{"contents":[{"role":"user","parts":[{"text":"Hi"}]}]}`
	)
	for _, c := range []struct {
		name, method, path, body, config string
		reply                            relaytest.Reply
		call                             string // method, URL
		sent                             string // in the body
		status                           int
		says                             string
		input                            int64
	}{
		{"embeddings", "POST", "/v1/embeddings", embed, openAI(""), ok(vectors), "POST https://api.openai.com/v1/embeddings", `"input":"Hi"`, 200, `[0.5,-1]`, 1000},
		{"translated embeddings", "POST", "/v1/embeddings", `{"model":"embed-english-v3.0","input":"Hi"}`, `{"provider":"cohere","api_key":"co"}`, ok(cohere), "POST https://api.cohere.ai/v2/embed", `"texts":["Hi"]`, 200, `[0.5,-1]`, 1000},
		{"embeddings without input", "POST", "/v1/embeddings", `{"model":"text-embedding-3-small"}`, openAI(""), relaytest.Reply{}, "", "", 400, "input", 0},
		{"embeddings that the provider's format lacks", "POST", "/v1/embeddings", `{"model":"embed-english-v3.0","input":[[1,2,3]]}`, `{"provider":"cohere","api_key":"co"}`, relaytest.Reply{}, "", "", 400, "input", 0},
		{"an error of embeddings", "POST", "/v1/embeddings", embed, openAI(""), failure(400, invalid), "POST https://api.openai.com/v1/embeddings", "", 400, "no such field", 0},
		{"a path that is passed through", "GET", "/v1/proxy/evals?limit=2&after=a%2Fb", "", openAI(""), ok(`{"data":[]}`), "GET https://api.openai.com/v1/evals?limit=2&after=a%2Fb", "", 200, `{"data":[]}`, 0},
		{"a body that is passed through", "POST", "/v1/proxy/evals", `{"a": 1}`, openAI(""), failure(418, `{"teapot":true}`), "POST https://api.openai.com/v1/evals", `{"a": 1}`, 418, "teapot", 0},
		{"Gemini at Google", "POST", "/v1beta/models/gemini-2.5-flash:generateContent", asked, `{"provider":"google","api_key":"g"}`, ok(generated), "POST https://generativelanguage.googleapis.com/v1beta/models/gemini-2.5-flash:generateContent", `"text":"Hi"`, 200, `"promptTokenCount":100`, 100},
		{"Gemini at OpenAI", "POST", "/v1beta/models/gpt-4o:generateContent", asked, openAI(""), ok(reply), "POST https://api.openai.com/v1/chat/completions", `"content":"Hi"`, 200, `"promptTokenCount":100`, 100},
		{"an error of OpenAI for Gemini's client", "POST", "/v1beta/models/gpt-4o:generateContent", asked, openAI(""), failure(429, limited), "POST https://api.openai.com/v1/chat/completions", "", 429, "RESOURCE_EXHAUSTED", 0},
	} {
		g.Script(c.reply)
		got := g.Do(c.method, c.path, c.body, config(c.config)...)
		call, sent := "", ""
		for _, one := range g.Calls() {
			call, sent = one.Method+" "+one.URL, one.Body
		}
		if got.Status != c.status || call != c.call || !strings.Contains(sent, c.sent) || !strings.Contains(got.Body, c.says) {
			t.Errorf("%s: %d %s after %q with %s; want %d %q after %q with %s", c.name, got.Status, got.Body, call, sent, c.status, c.says, c.call, c.sent)
		}
		r := g.Record()
		if r.Usage.N(pricing.Input) != c.input || r.ClientStatus != c.status || (r.Cost > 0) != (c.input > 0) || r.Usage.Estimated {
			t.Errorf("%s: status %d, %d in, cost %d, estimated %t; want %d in", c.name, r.ClientStatus, r.Usage.N(pricing.Input), r.Cost, r.Usage.Estimated, c.input)
		}
	}
}

// TestStoredObjectsBelongToAWorkspace requires that a file is read and deleted by the workspace
// that uploaded it, and that another workspace gets 404 without a call of the provider.
func TestStoredObjectsBelongToAWorkspace(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	other := g.Workspace("other")
	var form bytes.Buffer
	w := multipart.NewWriter(&form)
	_ = w.WriteField("purpose", "batch")
	part, _ := w.CreateFormFile("file", "rows.jsonl")
	_, _ = part.Write([]byte("{}\n"))
	_ = w.Close()

	const shared = `{"provider":"` + relaytest.Saved + `"}`
	const file = `{"id":"file-1","object":"file","bytes":3,"created_at":1,"filename":"rows.jsonl","purpose":"batch"}`
	g.Script(ok(file))
	got := g.Do("POST", "/v1/files", form.String(), append(config(shared), "Content-Type", w.FormDataContentType())...)
	calls := g.Calls()
	if got.Status != 200 || !strings.Contains(got.Body, `"id":"file-1"`) || len(calls) != 1 || !strings.Contains(calls[0].Body, "rows.jsonl") {
		t.Fatalf("%d %s after %+v", got.Status, got.Body, calls)
	}
	g.Record()
	for _, c := range []struct {
		method, key string
		status      int
	}{
		{"GET", "", 200}, {"GET", other, 404}, {"DELETE", other, 404}, {"DELETE", "", 200},
	} {
		g.Script(ok(file))
		if c.method == "DELETE" {
			g.Script(ok(`{"id":"file-1","object":"file","deleted":true}`))
		}
		headers := config(shared)
		if c.key != "" {
			headers = append(headers, "X-Gateway-Api-Key", c.key)
		}
		got := g.Do(c.method, "/v1/files/file-1", "", headers...)
		if calls := len(g.Calls()); got.Status != c.status || (calls == 1) != (c.status == 200) {
			t.Errorf("%s by %q: %d %s after %d calls; want %d", c.method, c.key, got.Status, got.Body, calls, c.status)
		}
		g.Record()
	}
}

// TestStreams requires what clients read of streams that a guardrail denies, that fail before
// and after their first event, and that another client reads in its own form.
func TestStreams(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	event := func(text string) string {
		return `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{"content":"` + text + `"},"finish_reason":null}]}` + "\n\n"
	}
	const end = `data: {"id":"c","object":"chat.completion.chunk","created":1,"model":"gpt-4o","choices":[{"index":0,"delta":{},"finish_reason":"stop"}],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}` + "\n\ndata: [DONE]\n\n"
	const failed = `data: {"error":{"message":"it broke","type":"server_error","code":"server_error"}}` + "\n\n"
	denies := `,"output_guardrails":[{"default.contains":{"words":["secret"],"operator":"none"},"deny":true}]`
	for _, c := range []struct {
		name, path, config string
		script             []relaytest.Reply
		has, lacks         []string
		status             int
		success            bool
		calls              int
	}{
		{"it passes", chatPath, openAI(denies), []relaytest.Reply{ok(event("Hello") + end)}, []string{"Hello", "data: [DONE]"}, []string{"error"}, 200, true, 1},
		{"it is denied", chatPath, openAI(denies), []relaytest.Reply{ok(event("the sec") + event("ret word") + end)}, []string{"guardrail"}, []string{"ret word", "[DONE]"}, 446, false, 1},
		{"its first event is an error", chatPath, fallback(openAI(""), openAI("")), []relaytest.Reply{ok(failed), ok(event("Hello") + end)}, []string{"Hello", "[DONE]"}, []string{"it broke"}, 200, true, 2},
		{"a later event is an error", chatPath, fallback(openAI(""), openAI("")), []relaytest.Reply{ok(event("Hello") + failed)}, []string{"Hello", "it broke"}, nil, 200, false, 1},
		{"it ends before its end", chatPath, openAI(""), []relaytest.Reply{{Status: 200, Body: event("Hello"), Cut: true}}, []string{"Hello"}, []string{"[DONE]"}, 200, false, 1},
		{"Messages at OpenAI", messagesPath, openAI(`,"override_params":{"model":"gpt-4o"}`), []relaytest.Reply{ok(event("Hello") + end)}, []string{"event: message_start", `"text":"Hello"`, `"stop_reason":"end_turn"`, "event: message_stop"}, []string{"[DONE]"}, 200, true, 1},
		{"an error for a client of Messages", messagesPath, openAI(`,"override_params":{"model":"gpt-4o"}`), []relaytest.Reply{ok(event("Hello") + failed)}, []string{"event: error", `"type":"error"`}, []string{"message_stop"}, 200, false, 1},
	} {
		g.Script(c.script...)
		got := g.Do("POST", c.path, `{"model":"gpt-4o","max_tokens":50,"stream":true,"messages":[{"role":"user","content":"Hi"}]}`, config(c.config)...)
		for _, text := range c.has {
			if !strings.Contains(got.Body, text) {
				t.Errorf("%s: no %q in %d %s", c.name, text, got.Status, got.Body)
			}
		}
		for _, text := range c.lacks {
			if strings.Contains(got.Body, text) {
				t.Errorf("%s: %q in %s", c.name, text, got.Body)
			}
		}
		if got.Status != c.status || strings.HasPrefix(got.Header.Get("Content-Type"), "text/event-stream") != (c.status == http.StatusOK) {
			t.Errorf("%s: %d %v", c.name, got.Status, got.Header)
		}
		r := g.Record()
		if calls := len(g.Calls()); calls != c.calls || (r.ErrorCode == "") != c.success || r.Cost == 0 || !r.Stream {
			t.Errorf("%s: %d calls, status %d, error %q, cost %d; want success %t", c.name, calls, r.ClientStatus, r.ErrorCode, r.Cost, c.success)
		}
	}
}

// TestSemanticCache requires that a question of the same meaning gets the stored response, that
// the embedder's request is priced in a record of its own, and that its failure costs only the hit.
func TestSemanticCache(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	semantic := `{"provider":"` + relaytest.Saved + `","cache":{"mode":"semantic","embedder":{"provider":"` + relaytest.Saved + `","model":"text-embedding-3-small"}}}`
	vector := func(v string) relaytest.Reply {
		return ok(`{"object":"list","model":"text-embedding-3-small","data":[{"object":"embedding","index":0,"embedding":` + v + `}],"usage":{"prompt_tokens":8,"total_tokens":8}}`)
	}
	for _, c := range []struct {
		text   string
		script []relaytest.Reply
		status string
	}{
		{"What is the capital of France?", []relaytest.Reply{vector("[1,0,0]"), ok(reply)}, "SEMANTIC MISS"},
		{"The capital of France is what?", []relaytest.Reply{vector("[0.999,0.01,0]")}, "SEMANTIC HIT"},
		{"How tall is the tower?", []relaytest.Reply{vector("[0,1,0]"), ok(reply)}, "SEMANTIC MISS"},
		{"Who broke the embedder?", []relaytest.Reply{failure(500, broken), ok(reply)}, "SEMANTIC MISS"},
	} {
		g.Script(c.script...)
		got := g.Do("POST", chatPath, strings.Replace(question, "Hi", c.text, 1), config(semantic)...)
		if got.Status != 200 || got.Header.Get("X-Gateway-Cache-Status") != c.status || len(g.Calls()) != len(c.script) {
			t.Errorf("%s: %d with status %q; want %q: %s", c.text, got.Status, got.Header.Get("X-Gateway-Cache-Status"), c.status, got.Body)
		}
		records := g.Records()
		if len(records) != 2 {
			t.Fatalf("%s: %d records; want those of the embedder and of the request", c.text, len(records))
		}
		for _, r := range records {
			if r.Endpoint == "embed" && (r.Cost > 0) == (c.script[0].Status != 200) || r.Endpoint != "embed" && (r.CacheStatus != c.status || (r.Cost == 0) != (len(c.script) == 1)) {
				t.Errorf("%s: record of %s with status %q and cost %d", c.text, r.Endpoint, r.CacheStatus, r.Cost)
			}
		}
	}
}

// TestModelsOnBedrock requires that the newest Claude gets Messages natively, other models Converse, and
// that requests are signed and never contain the secret.
func TestModelsOnBedrock(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	const credentials = `{"provider":"bedrock","aws_access_key_id":"AKIAEXAMPLE","aws_secret_access_key":"very-secret","aws_region":"us-east-1"`
	const converse = `{"output":{"message":{"role":"assistant","content":[{"text":"Hello"}]}},"stopReason":"end_turn","usage":{"inputTokens":100,"outputTokens":10,"totalTokens":110},"metrics":{"latencyMs":1}}`
	for _, c := range []struct {
		name, path, body, model, url, sent, reply, says string
	}{
		{"a new Claude by Messages", messagesPath, claudeAsked, "anthropic.claude-sonnet-5", "/anthropic/v1/messages", `"max_tokens":16`, claudeReply, `"end_turn"`},
		{"an older Claude by Messages", messagesPath, claudeAsked, "anthropic.claude-sonnet-4-5-20250929-v1:0", "/model/anthropic.claude-sonnet-4-5-20250929-v1:0/converse", `"maxTokens":16`, converse, `"end_turn"`},
		{"Nova by chat", chatPath, question, "amazon.nova-pro-v1:0", "/model/amazon.nova-pro-v1:0/converse", `"inferenceConfig"`, converse, `"finish_reason":"stop"`},
		{"Nova by Messages", messagesPath, claudeAsked, "amazon.nova-pro-v1:0", "/model/amazon.nova-pro-v1:0/converse", `"maxTokens":16`, converse, `"end_turn"`},
	} {
		g.Script(ok(c.reply))
		got := g.Do("POST", c.path, c.body, config(credentials+`,"override_params":{"max_tokens":16,"model":"`+c.model+`"}}`)...)
		calls := g.Calls()
		if len(calls) != 1 || got.Status != 200 || !strings.Contains(got.Body, c.says) {
			t.Errorf("%s: %d %s after %+v", c.name, got.Status, got.Body, calls)
			continue
		}
		call := calls[0]
		if at, err := url.PathUnescape(call.URL); err != nil || at != "https://bedrock-runtime.us-east-1.amazonaws.com"+c.url || !strings.Contains(call.Body, c.sent) {
			t.Errorf("%s: %s with %s; want %s with %s", c.name, call.URL, call.Body, c.url, c.sent)
		}
		if auth := call.Header.Get("Authorization"); !strings.HasPrefix(auth, "AWS4-HMAC-SHA256 Credential=AKIAEXAMPLE/") || strings.Contains(fmt.Sprint(call), "very-secret") {
			t.Errorf("%s: signed by %q", c.name, auth)
		}
		if r := g.Record(); r.Usage.N(pricing.Input) != 100 || r.Usage.N(pricing.Output) != 10 || r.Provider != "bedrock" {
			t.Errorf("%s: %d in, %d out at %s", c.name, r.Usage.N(pricing.Input), r.Usage.N(pricing.Output), r.Provider)
		}
	}
}

// TestHedges requires that a slow target loses to the second one, that a fast one is alone, and
// that the record has both attempts.
func TestHedges(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, routes)
	hedged := func(after string) []string {
		return config(`{"strategy":{"mode":"fallback","hedge":{"enabled":true,"max_extra_cost":1,"after_ms":` + after + `}},"targets":[` + openAI("") + `,` + claude(`,"override_params":{"model":"claude-sonnet-4-5"}`) + `]}`)
	}
	for _, c := range []struct {
		name, after string
		script      []relaytest.Reply
		index       string
		calls       int
	}{
		{"the first is fast", "600000", []relaytest.Reply{ok(reply)}, "config.targets[0]", 1},
		{"the first hangs", "1", []relaytest.Reply{{Hang: true}, ok(claudeReply)}, "config.targets[1]", 2},
	} {
		g.Script(c.script...)
		got := g.Do("POST", chatPath, question, hedged(c.after)...)
		if got.Status != 200 || got.Header.Get("X-Gateway-Last-Used-Option-Index") != c.index || !strings.Contains(got.Body, "Hello") || len(g.Calls()) != c.calls {
			t.Errorf("%s: %d at %s: %s", c.name, got.Status, got.Header.Get("X-Gateway-Last-Used-Option-Index"), got.Body)
		}
		if r := g.Record(); len(r.Attempts) != c.calls || r.OptionIndex != c.index || r.Cost == 0 || r.ErrorCode != "" {
			t.Errorf("%s: record of %d attempts at %s, cost %d, error %q", c.name, len(r.Attempts), r.OptionIndex, r.Cost, r.ErrorCode)
		}
	}
}

// TestDryRuns requires that a rehearsed request names its target, its body and its price, and
// calls nothing.
func TestDryRuns(t *testing.T) {
	t.Parallel()
	dry := relay.Route{
		Method: "POST", Path: "/configs/dry-run", Endpoint: "configDryRun", BodyMode: relay.Unified, Scope: "configs.read", OrScopes: []string{"completions.write"},
		NoModel: true, Free: true, NoOutput: true, Handler: &relay.DryRun{Routes: routes},
		Check: func(body []byte) error { _, err := relay.ReadDryRun(body); return err },
	}
	g := relaytest.New(t, append([]relay.Route{dry}, routes...))
	for _, c := range []struct {
		name, body string
		status     int
		has        []string
	}{
		{"two targets", `{"config":` + fallback(openAI(""), claude(`,"override_params":{"model":"claude-sonnet-4-5","max_tokens":5}`)) + `,"path":"/chat/completions","body":` + question + `}`, 200, []string{"config.targets[0]", "openai", "gpt-4o"}},
		{"no such route", `{"config":` + openAI("") + `,"path":"/nothing","body":{}}`, 400, []string{"path"}},
		{"an invalid request", `{"config":` + openAI("") + `,"path":"/chat/completions","body":{"model":"gpt-4o"}}`, 200, []string{`"status":400`, "messages", `"sent":false`}},
		{"no path", `{"config":` + openAI("") + `}`, 400, []string{"path"}},
	} {
		got := g.Do("POST", "/v1/configs/dry-run", c.body)
		if got.Status != c.status || len(g.Calls()) != 0 {
			t.Errorf("%s: %d %s", c.name, got.Status, got.Body)
		}
		for _, text := range c.has {
			if !strings.Contains(got.Body, text) {
				t.Errorf("%s: no %q in %s", c.name, text, got.Body)
			}
		}
		if strings.Contains(got.Body, "sk-first") {
			t.Errorf("%s: the credential is in %s", c.name, got.Body)
		}
		g.Records()
	}
}

// TestBatchesOfAnotherFormat requires that the rows of a file become a batch in the provider's
// format, that its state is read in the client's, and that rows with other models are rejected.
func TestBatchesOfAnotherFormat(t *testing.T) {
	t.Parallel()
	batches := []relay.Route{
		{Method: "POST", Path: "/batches", Endpoint: "createBatch", BodyMode: relay.Unified, Scope: "completions.write", Operation: provider.BatchesCreate, Check: openai.CheckBatch, NoModel: true, AnyModel: true, NoOutput: true, BuiltIn: true},
		stored("GET", "/batches/{id}", "retrieveBatch", provider.BatchesGet),
	}
	g := relaytest.New(t, append(batches, familyRoutes...))
	upload := func(rows string) string {
		var form bytes.Buffer
		w := multipart.NewWriter(&form)
		_ = w.WriteField("purpose", "batch")
		part, _ := w.CreateFormFile("file", "rows.jsonl")
		_, _ = part.Write([]byte(rows))
		_ = w.Close()
		got := g.Do("POST", "/v1/files", form.String(), append(config(claude("")), "Content-Type", w.FormDataContentType())...)
		g.Record()
		var file struct{ ID string }
		if err := json.Unmarshal([]byte(got.Body), &file); err != nil || got.Status != 200 || file.ID == "" {
			t.Fatalf("%d %s", got.Status, got.Body)
		}
		return file.ID
	}
	create := func(file string) relaytest.Response {
		return g.Do("POST", "/v1/batches", `{"input_file_id":"`+file+`","endpoint":"/v1/chat/completions","completion_window":"24h"}`, config(claude(""))...)
	}
	row := func(id, model string) string {
		return `{"custom_id":"` + id + `","method":"POST","url":"/v1/chat/completions","body":{"model":"` + model + `","max_tokens":7,"messages":[{"role":"user","content":"Hi"}]}}` + "\n"
	}
	const state = `{"id":"msgbatch_1","type":"message_batch","processing_status":"in_progress","request_counts":{"processing":2,"succeeded":0,"errored":0,"canceled":0,"expired":0},"ended_at":null,"created_at":"2026-01-01T00:00:00Z","expires_at":"2026-01-02T00:00:00Z","archived_at":null,"cancel_initiated_at":null,"results_url":null}`

	file := upload(row("a", "claude-sonnet-4-5") + row("b", "claude-sonnet-4-5"))
	if calls := g.Calls(); len(calls) > 0 {
		t.Errorf("the upload called the provider: %+v", calls)
	}
	g.Script(ok(state))
	got := create(file)
	calls := g.Calls()
	var batch struct{ ID, Status, Object string }
	if err := json.Unmarshal([]byte(got.Body), &batch); err != nil || got.Status != 200 || batch.ID == "" || batch.Object != "batch" || batch.Status != "in_progress" {
		t.Fatalf("%d %s after %+v", got.Status, got.Body, calls)
	}
	if len(calls) != 1 || calls[0].URL != "https://api.anthropic.com/v1/messages/batches" || strings.Count(calls[0].Body, `"max_tokens":7`) != 2 || !strings.Contains(calls[0].Body, `"custom_id":"b"`) {
		t.Errorf("calls %+v", calls)
	}
	g.Record()
	g.Script(ok(state))
	got = g.Do("GET", "/v1/batches/"+batch.ID, "", config(claude(""))...)
	if got.Status != 200 || !strings.Contains(got.Body, `"status":"in_progress"`) || !strings.Contains(got.Body, batch.ID) {
		t.Errorf("%d %s", got.Status, got.Body)
	}
	g.Calls()
	g.Records()

	for name, rows := range map[string]string{
		"a row of another provider": row("a", "@other/claude-sonnet-4-5"),
		"a row that is no JSON":     "{\n",
		"an id twice":               row("a", "claude-sonnet-4-5") + row("a", "claude-sonnet-4-5"),
		"a row without messages":    `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"claude-sonnet-4-5"}}` + "\n",
	} {
		if got := create(upload(rows)); got.Status != 400 || len(g.Calls()) > 0 {
			t.Errorf("%s: %d %s", name, got.Status, got.Body)
		}
		g.Records()
	}
}
