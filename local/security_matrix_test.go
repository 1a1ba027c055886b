package main

import (
	"fmt"
	"net/http"
	"strings"
	"testing"

	"gateway/functions/assembly"
	"gateway/shared/pricing"
	"gateway/shared/relay"
	"gateway/shared/usage"
)

// row is a data-plane route with a request that it serves.
type row struct {
	scope              string // of a key that may call it
	method, path, body string
	headers            []string
	endpoint           string
	recorded           string // the method in its record
	costs              cost
	prepare            func(r *running) string // makes the thing that {id} stands for
	unpriced           func(r *running) string // prepare, with a model that has no price
	ids                []string                // for requests to come

	// Of the sample that was served.
	trace  string
	served string // path
	bill   sums   // what the provider says
	record usage.Record
}

// cost is what the accounting say of a served request.
type cost int

const (
	listed  cost = iota + 1 // nothing is called: no usage, no cost
	called                  // a provider is called, which reports no usage
	metered                 // a provider is called and its bill is ours
	free                    // a provider is called, which never asks for money
	tool                    // a tool is called, whose tokens are estimated and cost nothing
)

// samples are requests by method and path of a registered route.
var samples = map[string]row{
	"POST /chat/completions":                {body: chatBody("@mock/gpt-4o-mini", "Hello", `,"max_tokens":50`), costs: metered},
	"POST /completions":                     {body: `{"model":"@mock/gpt-3.5-turbo-instruct","prompt":"Once","max_tokens":9}`, costs: metered},
	"POST /responses":                       {body: `{"model":"@mock/gpt-4o-mini","input":"Hello","max_output_tokens":50}`, costs: metered},
	"GET /responses/{id}":                   {headers: onMock, costs: free, prepare: aResponse},
	"DELETE /responses/{id}":                {headers: onMock, costs: free, prepare: aResponse},
	"GET /responses/{id}/input_items":       {headers: onMock, costs: free, prepare: aResponse},
	"POST /responses/{id}/cancel":           {headers: onMock, costs: free, prepare: aLaterResponse},
	"POST /responses/compact":               {body: `{"model":"@mock/gpt-4o-mini","input":"Hello"}`, costs: metered},
	"POST /responses/input_tokens":          {body: `{"model":"@mock/gpt-4o-mini","input":"Hello"}`, costs: free},
	"POST /decisions":                       {body: `{"model":"@mock/gpt-4o-mini","input":"Hello"}`, costs: metered},
	"POST /messages/count_tokens":           {body: chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", ""), costs: free},
	"POST /messages":                        {body: chatBody("@mock-anthropic/claude-sonnet-4-5", "Hello", `,"max_tokens":50`), costs: metered},
	"POST /embeddings":                      {body: `{"model":"@mock/text-embedding-3-small","input":["a","b"]}`, costs: metered},
	"POST /configs/dry-run":                 {body: `{"path":"/chat/completions","body":{"model":"@mock/gpt-4o-mini","messages":[{"role":"user","content":"Hello"}]}}`, costs: listed},
	"GET /models":                           {costs: listed},
	"GET /models/{model}":                   {path: "/models/gpt-4o-mini", headers: onMock, costs: free},
	"DELETE /models/{model}":                {path: "/models/gpt-4o-mini", headers: onMock, costs: free},
	"POST /moderations":                     {body: `{"model":"@mock/text-moderation-latest","input":"Hello"}`, costs: called},
	"POST /images/generations":              {body: `{"model":"@mock/dall-e-3","prompt":"A fox"}`, costs: metered},
	"POST /images/edits":                    {body: form("model", "@mock/dall-e-2", "prompt", "A hat", "image", "fox.png:PNG"), headers: formType, costs: metered},
	"POST /images/variations":               {body: form("model", "@mock/dall-e-2", "image", "fox.png:PNG"), headers: formType, costs: metered},
	"POST /audio/speech":                    {body: `{"model":"@mock/tts-1","input":"Hello","voice":"alloy"}`, costs: metered},
	"POST /audio/transcriptions":            {body: form("model", "@mock/whisper-1", "file", "a.mp3:sound"), headers: formType, costs: metered},
	"POST /audio/translations":              {body: form("file", "a.mp3:sound", "model", "@mock/whisper-1"), headers: formType, costs: metered},
	"POST /rerank":                          {body: `{"model":"@mock/rerank-v3.5","query":"fox","documents":["a fox"]}`, costs: called},
	"POST /ocr":                             {body: `{"model":"@mock/mistral-ocr-latest","document":{"type":"document_url","document_url":"https://x.example/a.pdf"}}`, costs: called},
	"POST /prompts/{promptId}/completions":  {path: "/prompts/{id}/completions", body: `{"variables":{"name":"Hello"},"model":"gpt-4o-mini"}`, costs: metered, prepare: aPrompt},
	"POST /prompts/{promptId}/test":         {path: "/prompts/{id}/test", body: `{"tests":[{"name":"a","render_only":true,"variables":{"name":"Hello"},"assertions":[{"type":"contains","value":"Hello"}]}]}`, costs: listed, prepare: aPrompt},
	"POST /prompts/{promptId}/render":       {path: "/prompts/{id}/render", body: `{"variables":{"name":"Hello"}}`, costs: listed, prepare: aPrompt},
	"POST /files":                           {body: form("purpose", "batch", "file", "rows.jsonl:"+batchRows), headers: formOnMock, costs: free},
	"GET /files":                            {headers: onMock, costs: free},
	"GET /files/{id}":                       {headers: onMock, costs: free, prepare: aFile},
	"DELETE /files/{id}":                    {headers: onMock, costs: free, prepare: aFile},
	"GET /files/{id}/content":               {headers: onMock, costs: free, prepare: aFile},
	"POST /batches":                         {body: `{"input_file_id":"{id}","endpoint":"/v1/chat/completions","completion_window":"24h"}`, headers: onMock, costs: called, prepare: aFile, unpriced: aFileWithoutPrice},
	"GET /batches":                          {headers: onMock, costs: free},
	"GET /batches/{id}":                     {headers: onMock, costs: free, prepare: aBatch},
	"POST /batches/{id}/cancel":             {headers: onMock, costs: free, prepare: aBatch},
	"GET /batches/{id}/output":              {headers: onMock, costs: free, prepare: aDoneBatch},
	"POST /fine_tuning/jobs":                {body: `{"model":"gpt-4o-mini","training_file":"{id}"}`, headers: onMock, costs: called, prepare: aTrainingFile},
	"GET /fine_tuning/jobs":                 {headers: onMock, costs: free},
	"GET /fine_tuning/jobs/{id}":            {headers: onMock, costs: free, prepare: aJob},
	"POST /fine_tuning/jobs/{id}/cancel":    {headers: onMock, costs: free, prepare: aJob},
	"GET /realtime":                         {body: `{"model":"gpt-realtime"}`, headers: []string{"X-Gateway-Provider", "@mock"}, costs: metered},
	"POST /realtime/client_secrets":         {body: `{"session":{"type":"realtime","model":"@mock/gpt-realtime"}}`, costs: listed},
	"POST /realtime/sessions":               {body: `{"model":"@mock/gpt-realtime"}`, costs: listed},
	"POST /realtime/transcription_sessions": {body: `{"input_audio_transcription":{"model":"whisper-1"}}`, headers: onMock, costs: listed},
	"GET /responses":                        {body: `{"model":"@mock/gpt-4o-mini","input":"Hello","max_output_tokens":50}`, costs: metered},
	"POST /mcp/{slug}/mcp":                  {path: "/mcp/{id}/mcp", body: aCall, headers: ofMCP, costs: tool, prepare: aToolServer},
	"POST /mcp/{slug}/{server}/mcp":         {path: "/mcp/default/{id}/mcp", body: aCall, headers: ofMCP, costs: tool, prepare: aToolServer},
	"POST /agent/{slug}":                    {path: "/agent/{id}", body: anAgentCall, headers: versionOf(false), costs: tool, prepare: aSampleAgent},
	"POST /agent/{slug}/{path+}":            {path: "/agent/{id}/message:send", body: agentMessage(false, "Hello"), headers: versionOf(false), costs: tool, prepare: aSampleAgent},
	"POST /*":                               {path: "/proxy/chat/completions", body: chatBody("gpt-4o-mini", "Hello", `,"max_tokens":50`), headers: []string{"X-Gateway-Provider", "@mock"}, costs: metered},
	"PUT /*":                                {path: "/proxy/echo/x", body: `{"model":"gpt-4o-mini"}`, headers: []string{"X-Gateway-Provider", "@mock"}, costs: called},
	"GET /*":                                {path: "/proxy/echo/x", headers: []string{"X-Gateway-Provider", "@mock"}, costs: called},
	"DELETE /*":                             {path: "/echo/x", headers: []string{"X-Gateway-Provider", "@mock"}, costs: called},
}

// rows are the registered routes, each with its sample; a route without one, and
// a sample without a route, is a mistake.
func rows(t *testing.T) (all []row) {
	t.Helper()
	used := map[string]bool{}
	for _, rt := range assembly.DataPlane() {
		methods := rt.Methods
		if rt.Method != "" {
			methods = append(methods[:len(methods):len(methods)], rt.Method)
		}
		for _, m := range methods {
			name := m + " " + rt.Path
			if rt.Protocol() != nil && m != "POST" {
				continue // they call nothing, or read what others made: TestMCPVerbs, TestAgentBridges
			}
			if rt.Live() != nil {
				continue // the first message names the model: the tests of Live sessions hold each of the cells
			}
			s, ok := samples[name]
			if !ok || used[name] {
				t.Errorf("the route %s has no sample in the matrix, or stands twice", name)
				continue
			}
			used[name] = true
			s.method, s.recorded, s.endpoint, s.scope = m, m, rt.Endpoint, "completions.write"
			if rt.Converses() {
				s.recorded, s.endpoint = "POST", "createModelResponse" // of a message; the connection has one beside it
			}
			if rt.Prompt() != nil || rt.Protocol() != nil {
				s.scope = rt.Scope
			}
			if rt.Prompt() != nil && rt.Prompt().Chat != nil {
				s.endpoint = rt.Prompt().Chat.Endpoint // the prompt says what it is
			}
			if s.path == "" {
				s.path = rt.Path
			}
			operates := true
			switch rt.Handler.(type) {
			case *relay.DryRun, *relay.Prompt, *relay.Composed, relay.Calls:
				operates = false
			}
			if rt.Scope == "" || rt.Endpoint == "" || rt.BodyMode == 0 || rt.BodyMode != relay.Raw && rt.BodyMode != relay.Listing && operates && rt.Operation == "" {
				t.Errorf("the route %s declares no scope, endpoint, shape or operation", name)
			}
			all = append(all, s)
		}
	}
	for name := range samples {
		if !used[name] {
			t.Errorf("the sample %s has no route", name)
		}
	}
	return all
}

// cells are the columns of the matrix. Guardrails have none: no route has any.
var cells = []struct {
	name  string
	check func(t *testing.T, r *running, s *row)
}{
	{"auth", checkAuth}, {"scope", checkScope}, {"limit", checkLimit}, {"budget", checkBudget}, {"log", checkLog}, {"cost", checkCost},
}

// TestEveryRouteHasEveryCheck is the matrix of routes and what holds for them;
// no cell is empty.
//
//lane:exhaustive
func TestEveryRouteHasEveryCheck(t *testing.T) {
	t.Parallel()
	r := start(t)
	all := rows(t)
	made := 0
	for i := range all {
		for range triesOfRow {
			if all[i].prepare != nil {
				all[i].ids = append(all[i].ids, all[i].prepare(r))
			}
		}
	}
	for _, b := range r.mock.Bill().Rows {
		if b.Path != "/v1/batches" || b.Model == "" { // not what a batch itself cost
			made++
		}
	}
	for i := range all {
		all[i].serve(r, fmt.Sprint("row-", i))
	}
	records := map[string]usage.Record{}
	for _, rec := range r.records(len(all) + made + 2) { // sessions have a record beside that of their response
		if rec.ClientStatus != http.StatusSwitchingProtocols {
			records[rec.TraceID] = rec
		}
	}
	for i := range all {
		s := &all[i]
		s.record = records[s.trace]
		for _, c := range cells {
			t.Run(s.method+" "+s.path+" "+c.name, func(t *testing.T) { c.check(t, &running{t: t, base: r.base, g: r.g, mock: r.mock}, s) })
		}
	}
}

// serve sends the sample once and keeps what both sides say of it.
func (s *row) serve(r *running, trace string) {
	r.t.Helper()
	before := r.mock.Bill().Total
	if got := s.send(r, workspaceKey, trace); got.status != 200 {
		r.t.Fatalf("%s %s: %d %s", s.method, s.path, got.status, got.body)
	}
	after := r.mock.Bill().Total
	s.trace = trace
	if s.costs == called || s.costs == free {
		before.Input, before.NanoDollars = after.Input, after.NanoDollars
	}
	s.bill = sums{requests: after.Requests - before.Requests, input: after.Input - before.Input, output: after.Output - before.Output, nanoDollars: after.NanoDollars - before.NanoDollars}
}

// send calls the sample with a key and a trace id.
func (s *row) send(r *running, key, trace string) reply {
	r.t.Helper()
	path, body := s.path, s.body
	if s.prepare != nil {
		id := s.ids[0]
		s.ids = s.ids[1:]
		path, body = strings.Replace(path, "{id}", id, 1), strings.Replace(body, "{id}", id, 1)
	}
	if s.served == "" {
		s.served = path
	}
	return r.call(s.method, path, body, append([]string{"X-Gateway-Api-Key", key, "X-Gateway-Trace-Id", trace}, s.headers...)...)
}

// keyWith makes a workspace key with one scope and further fields.
func (r *running) keyWith(scope, fields string) string {
	r.t.Helper()
	return r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":[%q]%s}`, r.workspace(), scope, fields))["key"].(string)
}

func checkAuth(t *testing.T, r *running, s *row) {
	before := r.mock.Bill().Total.Requests
	for _, key := range []string{"", "nobody"} {
		if got := s.send(r, key, ""); got.status != 401 || got.header.Get("X-Gateway-Trace-Id") == "" {
			t.Errorf("key %q: %d %s", key, got.status, got.body)
		}
	}
	if got := s.send(r, adminKey, ""); got.status != 403 {
		t.Errorf("an organization key: %d %s", got.status, got.body)
	}
	if r.mock.Bill().Total.Requests != before {
		t.Error("a refused request reached the provider")
	}
}

func checkScope(t *testing.T, r *running, s *row) {
	if got := s.send(r, r.keyWith("configs.list", ""), ""); got.status != 403 {
		t.Errorf("with another scope: %d %s", got.status, got.body)
	}
	if got := s.send(r, r.keyWith(s.scope, ""), ""); got.status != 200 {
		t.Errorf("with its scope: %d %s", got.status, got.body)
	}
}

func checkLimit(t *testing.T, r *running, s *row) {
	key := r.keyWith(s.scope, `,"rate_limits":[{"type":"requests","unit":"rpd","value":2}]`)
	for i, want := range []int{200, 200, 429, 429} {
		// Clients of Responses wait for as long as they are told to, even a day.
		waits := s.method != "POST" || s.path != "/responses"
		if got := s.send(r, key, ""); got.status != want || want == 429 && (got.header.Get("Retry-After") != "") != waits {
			t.Errorf("request %d: %d %v %s", i+1, got.status, got.header, got.body)
		}
	}
}

// checkBudget: what no price is known for is rejected before the call while money
// is budgeted.
func checkBudget(t *testing.T, r *running, s *row) {
	want := http.StatusPreconditionFailed
	if s.costs == listed || s.costs == free || s.costs == tool {
		want = http.StatusOK
	}
	unpriced := *s
	if s.unpriced != nil {
		unpriced.ids = []string{s.unpriced(r)}
	}
	sent := func() (n int) {
		if s.unpriced == nil {
			return int(r.mock.Bill().Total.Requests)
		}
		for _, b := range r.mock.Bill().Rows { // what was prepared is read from the provider first
			if b.Path == "/v1"+s.path {
				n++
			}
		}
		return n
	}
	before := sent()
	for _, model := range []string{"gpt-4o-mini", "gpt-3.5-turbo-instruct", "claude-sonnet-4-5", "text-embedding-3-small", "text-moderation-latest", "dall-e-2", "dall-e-3", "tts-1", "whisper-1", "gpt-realtime"} {
		unpriced.body = strings.ReplaceAll(unpriced.body, model, "nobody-knows-this-model")
	}
	if got := unpriced.send(r, r.keyWith(s.scope, `,"usage_limits":{"type":"cost","credit_limit":1}`), ""); got.status != want {
		t.Errorf("without a price: %d %s", got.status, got.body)
	}
	if want != http.StatusOK && sent() != before {
		t.Error("a request beyond the budget reached the provider")
	}
}

func checkLog(t *testing.T, r *running, s *row) {
	rec := s.record
	if rec.Endpoint != s.endpoint || rec.Method != s.recorded || rec.Path != "/v1"+s.served || rec.ClientStatus != 200 || rec.KeyID == "" || rec.Workspace == "" || rec.Duration <= 0 {
		t.Errorf("record %+v", rec)
	}
	attempts := 1
	if s.endpoint == "getBatchOutput" {
		attempts = 2 // the batch, then its file
	}
	if s.costs != listed && (rec.Provider == "" || rec.ProviderSlug == "" || len(rec.Attempts) != attempts) {
		t.Errorf("record of the attempt %+v", rec)
	}
	log := r.get("/logs/"+rec.ID, workspaceKey)
	if s.body != "" && member(log, "request/body") == nil {
		t.Errorf("the log has no request body: %v", log["request"])
	}
	// What the gateway lists itself, vectors, sound and files are not kept.
	if s.costs != listed && s.endpoint != "embed" && s.endpoint != "createSpeech" && s.endpoint != "retrieveFileContent" && member(log, "response/body") == nil {
		t.Errorf("the log has no answer: %v", log["response"])
	}
}

func checkCost(t *testing.T, _ *running, s *row) {
	rec, u := s.record, s.record.Usage
	switch s.costs {
	case listed:
		if u.IsReported() || rec.Cost != 0 || s.bill != (sums{}) {
			t.Errorf("a list costs %+v", rec)
		}
	case called, free:
		if u.N(pricing.Requests) != 1 || rec.Cost != 0 || u.TotalTokens() != 0 {
			t.Errorf("usage %+v, cost %d", u, rec.Cost)
		}
	case tool:
		if u.N(pricing.Input) == 0 || u.N(pricing.Output) == 0 || !u.Estimated || rec.Cost != 0 || rec.Call == nil || s.bill != (sums{}) {
			t.Errorf("usage %+v, cost %d, call %+v", u, rec.Cost, rec.Call)
		}
	case metered:
		got := sums{requests: u.N(pricing.Requests), input: u.N(pricing.Input), output: u.N(pricing.Output), nanoDollars: int64(rec.Cost)}
		if got != s.bill || got.nanoDollars <= 0 || !rec.Priced || u.Estimated {
			t.Errorf("our books %+v, the bill %+v", got, s.bill)
		}
	}
}
