package onlambda_test

import (
	"bytes"
	"crypto/rand"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"mime/multipart"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/oklog/ulid/v2"

	"gateway/shared/host/placement"
	"gateway/shared/testkit/awstest/rights"
	"gateway/shared/testkit/sqstest"
	"gateway/shared/usage"
)

// TestRolesAreWhatFunctionsUse drives all functions and the container as they are deployed,
// each with the permissions of its role. It compares both ways: what was rejected, and what a
// role allows and nothing used.
func TestRolesAreWhatFunctionsUse(t *testing.T) {
	in := restrict(t)
	in.leaveOld()
	in.administer()
	in.serve()
	in.runBatch()
	in.repair()
	in.readUsage()
	in.exportLogs()
	in.loseEvent()
	if t.Failed() {
		t.Logf("%s", in.log.text())
	}
	for _, refused := range in.recorder.Denied() {
		t.Errorf("missing: %s", refused)
	}
	t.Logf("%d calls were evaluated", in.recorder.Calls())
	in.compareUnused()
}

// administer makes, changes, reads and deletes one resource of each family.
func (in *restricted) administer() {
	made := func(path, body string) string {
		out := in.send("POST", path, adminKey, body)
		for _, name := range []string{"slug", "id"} {
			if v, ok := out[name].(string); ok && v != "" {
				return v
			}
		}
		if data, ok := out["data"].(map[string]any); ok {
			for _, name := range []string{"slug", "id"} {
				if v, ok := data[name].(string); ok && v != "" {
					return v
				}
			}
		}
		return fmt.Sprint(out["id"])
	}
	for _, r := range []struct{ path, create, update string }{
		{"/configs", `{"name":"A","workspace_id":"default","config":{"retry":{"attempts":1}}}`, `{"name":"B"}`},
		{"/integrations", `{"name":"A","ai_provider_id":"openai","key":"sk-of-a-provider"}`, `{"name":"B"}`},
		{"/admin/workspaces", `{"name":"W"}`, `{"name":"V"}`},
		{"/api-keys", "", `{"name":"C"}`},
		{"/virtual-keys", `{"name":"V","workspace_id":"default","provider":"openai","key":"sk-of-a-provider"}`, `{"name":"W"}`},
		{"/prompts/partials", `{"name":"P","workspace_id":"default","string":"x"}`, `{"string":"y"}`},
		{"/guardrails", `{"name":"G","workspace_id":"default","checks":[{"id":"default.contains","parameters":{"words":["a"]}}],"actions":{}}`, `{"name":"H"}`},
		{"/policies/usage-limits", `{"name":"P","workspace_id":"default","conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}],"type":"requests","credit_limit":10}`, `{"reset_usage_for_value":"api_key:none"}`},
		{"/collections", `{"name":"C","workspace_id":"default"}`, `{"name":"D"}`},
		{"/mcp-integrations", `{"name":"M","workspace_id":"default","url":"https://mcp.example.com/mcp","auth_type":"oauth_auto","transport":"http","configurations":{"headers":{"X-A":"a value of a header"}}}`, `{"name":"N"}`},
		{"/agent-integrations", `{"name":"M","workspace_id":"default","url":"https://agent.example.com","auth_type":"headers","configurations":{"headers":{"X-A":"a value of a header"}}}`, `{"name":"N"}`},
		{"/webhooks", `{"name":"M","workspace_id":"default","url":"https://hooks.example.com/in"}`, `{"name":"N"}`},
		{"/deployments", `{"name":"M","type":"production"}`, `{"name":"N"}`},
	} {
		id := ""
		if r.path == "/api-keys" {
			got := in.send("POST", "/api-keys/workspace/service", adminKey, `{"name":"B","workspace_id":"default","scopes":["completions.write"],"rate_limits":[{"type":"requests","unit":"rpd","value":10}]}`)
			id, _ = got["id"].(string)
			in.send("POST", "/api-keys/"+id+"/rotate", adminKey, `{}`)
		} else {
			id = made(r.path, r.create)
		}
		of := "?workspace_id=default"
		in.send("GET", r.path+of, adminKey, "")
		in.send("GET", r.path+"/"+id+of, adminKey, "")
		in.send("PUT", r.path+"/"+id+of, adminKey, r.update)
		gone := ""
		if r.path == "/admin/workspaces" {
			gone = fmt.Sprintf(`{"name":%q}`, "V")
		}
		in.send("DELETE", r.path+"/"+id+of, adminKey, gone)
	}
	in.send("GET", "/openapi.json", adminKey, "")
	in.send("GET", "/.well-known/jwks.json", adminKey, "")
	in.send("POST", "/mcp", adminKey, `{"jsonrpc":"2.0","id":1,"method":"tools/list"}`)
	in.send("GET", "/pricing/openai.json", adminKey, "")
	in.send("GET", "/general/openai.json", adminKey, "")
	mapped := in.send("POST", "/scim/workspaces", adminKey, `{"workspace_id":"default","role":"member","scim_group_name":"M"}`)
	in.send("DELETE", fmt.Sprint("/scim/workspaces/", mapped["id"]), adminKey, "")
	provider := in.send("POST", "/scim/tokens", adminKey, `{"name":"T"}`)
	if token, ok := provider["token"].(string); ok {
		in.send("GET", "/scim/Users", token, "")
		res := in.do(in.t, "POST", "/scim/Groups", token, `{"displayName":"G"}`)
		if text := whole(in.t, res); res.StatusCode != 201 {
			in.t.Errorf("a group of a provider: %d %s", res.StatusCode, text)
		}
	}
	in.send("DELETE", fmt.Sprint("/scim/tokens/", provider["id"]), adminKey, "")
	rated := in.send("POST", "/feedback", workspaceKey, `{"trace_id":"t","value":1}`)
	if ids, ok := rated["feedback_ids"].([]any); ok && len(ids) == 1 {
		in.send("PUT", fmt.Sprint("/feedback/", ids[0]), workspaceKey, `{"value":2}`)
	}
	in.send("GET", "/admin/organisation/settings", adminKey, "")
	in.send("PUT", "/admin/organisation/settings", adminKey, `{"request_logging":{"mode":"full"}}`)
}

// serve sends each function of the data plane its sample, with a key that has
// limits, as it is and with a large body, through the cache where it has one.
func (in *restricted) serve() {
	limited := in.limitedKey()
	const cached = `{"cache":{"mode":"semantic","embedder":{"provider":"@mock","model":"text-embedding-3-small"}}}`
	names, places := placement.Families()
	for _, name := range names {
		if places[name] != placement.Stream || name == "mcp" {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(root, "events", name+".json"))
		if err != nil {
			in.t.Fatal(err)
		}
		var ev struct {
			HTTPMethod, Path, Body string
			Headers                map[string]string
		}
		if err := json.Unmarshal(raw, &ev); err != nil {
			in.t.Fatal(err)
		}
		provider, key := []string{"x-gateway-provider", "@mock"}, limited
		if name == "messages" {
			ev.Body = strings.Replace(ev.Body, "claude-sonnet-4-5", "gpt-4o-mini", 1)
		}
		if name == "rerank" || name == "models" {
			key = workspaceKey // they have no price
		}
		for range 2 {
			in.send(ev.HTTPMethod, ev.Path, key, ev.Body, append(slices.Clone(provider), "x-gateway-config", cached)...)
		}
		if ev.HTTPMethod == "POST" && name != "audio" && name != "dryrun" && name != "images" {
			// Its bodies are too large for an event, its response for a row of the cache.
			for _, text := range []string{noise(300 << 10), strings.Repeat("many words ", 40_000), ""} {
				large := strings.Replace(ev.Body, "Hello", "mock: say="+text, 1)
				for range 2 {
					in.send(ev.HTTPMethod, ev.Path, key, large, append(slices.Clone(provider), "x-gateway-config", `{"cache":{"mode":"simple"}}`)...)
				}
			}
		}
	}
	in.session()
	breaks := `{"targets":[{"provider":"@mock","cb_config":{"failure_threshold":5,"cooldown_interval":30000}}],"strategy":{"mode":"single"}}`
	in.send("POST", "/chat/completions", limited, hello, "x-gateway-config", breaks)
	in.send("POST", "/configs/dry-run", workspaceKey, `{"path":"/chat/completions","config":`+breaks+`,"body":`+hello+`}`)
	if res := in.do(in.t, "POST", "/chat/completions", "nobody", hello); res.StatusCode != 401 {
		in.t.Errorf("an unknown key: %d", res.StatusCode)
	}
}

// runBatch keeps a file in the container, runs a batch over it and deletes both.
func (in *restricted) runBatch() {
	key := in.limitedKey()
	var body bytes.Buffer
	form := multipart.NewWriter(&body)
	_ = form.WriteField("purpose", "batch") // a buffer takes all
	part, _ := form.CreateFormFile("file", "rows.jsonl")
	for i := range 3 {
		fmt.Fprintf(part, `{"custom_id":"row-%d","method":"POST","url":"/v1/chat/completions","body":{"model":"@mock/gpt-4o-mini","max_tokens":20,"messages":[{"role":"user","content":"Hello %d"}]}}`+"\n", i, i)
	}
	form.Close()
	gateway := []string{"x-gateway-provider", "gateway"}
	file := in.send("POST", "/files", workspaceKey, body.String(), append(gateway, "content-type", form.FormDataContentType())...)
	batch := in.send("POST", "/batches", workspaceKey, fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"immediate"}`, file["id"]), gateway...)
	in.work(func() error {
		b := in.send("GET", fmt.Sprint("/batches/", batch["id"]), workspaceKey, "", gateway...)
		if b["status"] != "completed" {
			return fmt.Errorf("the batch: %v", b)
		}
		return nil
	})
	in.send("GET", fmt.Sprint("/batches/", batch["id"], "/output"), workspaceKey, "", gateway...)
	in.send("GET", fmt.Sprint("/files/", file["id"], "/content"), workspaceKey, "", gateway...)
	in.send("DELETE", fmt.Sprint("/files/", file["id"]), workspaceKey, "", gateway...)
	in.send("POST", "/chat/completions", key, hello, "x-gateway-provider", "@mock")
	in.work(anything)
}

// leaveOld leaves records of hours that are over, and of a day whose records are
// not kept any more.
func (in *restricted) leaveOld() {
	for range 2 {
		for i, days := range []int{2, 2, 2, 2, 400} {
			size := 240 << 10
			if i >= 3 {
				size = 400 << 10 // larger than an event
			}
			in.leave(days, size)
		}
		in.work(anything)
		in.leave(2, 2<<10) // by itself: its bodies stand in the table
		in.work(anything)
	}
}

// leave leaves a record with bodies of a size.
func (in *restricted) leave(days, size int) {
	at := time.Now().UTC().AddDate(0, 0, -days)
	if err := in.core.Sink.Emit(in.t.Context(), &usage.Record{
		ID: ulid.MustNew(ulid.Timestamp(at), rand.Reader).String(), Start: at, Org: "default", Workspace: "default",
		Endpoint: "chatComplete", ClientStatus: 200, Bodies: []byte(noise(size)),
	}); err != nil {
		in.t.Fatal(err)
	}
}

// repair runs the tasks of the schedules on what there is, until small segments have been
// merged; merging waits some seconds for late ones.
func (in *restricted) repair() {
	run := func(task string) {
		var out any
		if err := in.shim.Call(in.t.Context(), "repair", map[string]string{"task": task}, &out); err != nil {
			in.t.Errorf("task %s: %v", task, err)
		}
	}
	in.dueKey(in.t)
	for _, task := range []string{"budgets", "outbox", "keys", "retain"} {
		run(task)
	}
	in.until(func() error {
		run("compact")
		if slices.ContainsFunc(in.recorder.Unused("repair"), func(g rights.Grant) bool {
			return g.Action == "dynamodb:GetItem" && strings.HasSuffix(g.Resource, "-usage")
		}) {
			return errors.New("no segments were merged")
		}
		return nil
	})
	in.work(anything)
}

// exportLogs has logs written to a file, which is then fetched by its link.
func (in *restricted) exportLogs() {
	made := in.send("POST", "/logs/exports", adminKey, `{"workspace_id":"default","filters":{},"requested_data":["id","request"]}`)
	at, query := fmt.Sprint("/logs/exports/", made["id"]), "?workspace_id=default"
	in.send("PUT", at+query, adminKey, `{"description":"of all"}`)
	in.send("POST", at+"/start"+query, adminKey, "")
	in.work(func() error {
		if got := in.send("GET", at+query, adminKey, ""); got["status"] != "success" {
			return fmt.Errorf("%v", got)
		}
		return nil
	})
	link, _ := in.send("GET", at+"/download"+query, adminKey, "")["signed_url"].(string)
	resp, err := http.Get(link)
	if err != nil {
		in.t.Fatal(err)
	}
	defer resp.Body.Close()
	if file, err := io.ReadAll(resp.Body); err != nil || resp.StatusCode != 200 || !bytes.Contains(file, []byte(`"request":{`)) {
		in.t.Errorf("%s: %d %v %s", link, resp.StatusCode, err, file)
	}
	in.send("DELETE", at+query, adminKey, "")
}

// readUsage reads what the requests left behind.
func (in *restricted) readUsage() {
	now := time.Now().UTC()
	from, to := now.Add(-time.Hour).Format(time.RFC3339), now.Add(time.Hour).Format(time.RFC3339)
	span := "?workspace_slug=default&time_of_generation_min=" + from + "&time_of_generation_max=" + to
	list := in.send("GET", "/logs"+span+"&page_size=100", adminKey, "")
	rows, _ := list["data"].([]any)
	if len(rows) < 20 {
		in.t.Errorf("%d logs", len(rows))
	}
	for _, row := range rows {
		in.send("GET", fmt.Sprint("/logs/", row.(map[string]any)["id"], "?workspace_slug=default"), adminKey, "")
	}
	in.send("POST", "/logs", workspaceKey, `{"request":{"url":"/v1/chat/completions","body":{}},"response":{"body":{}}}`)
	in.send("POST", "/otel/v1/traces", workspaceKey, `{"resourceSpans":[{"scopeSpans":[{"spans":[{"traceId":"5b8efff798038103d269b633813fc60c","spanId":"eee19b7ec3c1b174","attributes":[{"key":"gen_ai.request.model","value":{"stringValue":"m"}}]}]}]}]}`)
	in.send("GET", "/analytics/graphs/requests"+span, adminKey, "")
	in.send("GET", "/analytics/groups/ai-models"+span, adminKey, "")
	for _, query := range []string{"", "&workspace_slug=default"} {
		in.send("GET", "/analytics/graphs/feedbacks?time_of_generation_min="+from+"&time_of_generation_max="+to+query, adminKey, "")
	}
	in.send("GET", "/audit-logs?start_time="+from+"&end_time="+to, adminKey, "")
	in.work(anything)
}

// loseEvent has an event that cannot be queued come back from the log.
func (in *restricted) loseEvent() {
	in.sqs.SetFaults(sqstest.Faults{Request: func(action string) int {
		if strings.HasPrefix(action, "SendMessage") {
			return http.StatusServiceUnavailable
		}
		return 0
	}})
	in.send("POST", "/chat/completions", workspaceKey, hello, "x-gateway-provider", "@mock")
	lost := func() bool { return strings.Contains(in.log.text(), "usage event is not queued") }
	in.until(func() error {
		if !lost() {
			return errors.New("no event is in the log")
		}
		return nil
	})
	in.sqs.SetFaults(sqstest.Faults{})
	var out any
	if err := in.shim.Call(in.t.Context(), "requeue", logDelivery(in.t, strings.Split(in.log.text(), "\n")), &out); err != nil {
		in.t.Error(err)
	}
	in.work(anything)
}
