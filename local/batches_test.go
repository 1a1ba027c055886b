package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// Batches of tests do not wait. It holds for processes that tests start, too.
func init() {
	batchPace.Pause, batchPace.Backoff, batchPace.Poll, batchPace.Late = 20*time.Millisecond, time.Millisecond, 20*time.Millisecond, 2*time.Second
	batchPace.Wait = 10 * time.Millisecond
}

// asGateway are the headers of requests that the gateway does itself.
func asGateway(key string, more ...string) []string {
	return append([]string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", "gateway"}, more...)
}

// chatRows are n rows for the endpoint of chats.
func chatRows(n int, model string, text func(i int) string) string {
	var b strings.Builder
	for i := range n {
		fmt.Fprintf(&b, `{"custom_id":"row-%d","method":"POST","url":"/v1/chat/completions","body":%s}`+"\n", i, chatBody(model, text(i), `,"max_tokens":20`))
	}
	return b.String()
}

// slowFrom makes rows that take a second each from a given one on; earlier rows take no
// time. So what a test does to the batch comes before its end on a slow machine too.
func slowFrom(first int) func(i int) string {
	return func(i int) string {
		if i < first {
			return greeting(i)
		}
		return "mock: delay=1s say=" + fmt.Sprint("Row ", i)
	}
}

func greeting(i int) string { return fmt.Sprintf("mock: say=Hello %d", i) }

// storeRows uploads rows to the gateway and gives the file's id.
func (r *running) storeRows(key, rows string) string {
	r.t.Helper()
	return r.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+rows), asGateway(key, formType...)...)
}

// runBatch makes a batch of the gateway over a file.
func (r *running) runBatch(key, file, more string) string {
	r.t.Helper()
	return r.id("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"immediate"%s}`, file, more), asGateway(key)...)
}

// ended waits until a batch of the gateway has ended.
func (r *running) ended(key, id string) map[string]any {
	r.t.Helper()
	var b map[string]any
	eventually(r.t, func() error {
		b = r.call("GET", "/batches/"+id, "", asGateway(key)...).json(r.t)
		switch b["status"] {
		case "completed", "failed", "cancelled", "expired":
			return nil
		}
		return fmt.Errorf("the batch is %v %v", b["status"], b["request_counts"])
	})
	return b
}

// outputRow is a row of output.
type outputRow struct {
	ID       string `json:"id"`
	CustomID string `json:"custom_id"`
	Response *struct {
		Status  int             `json:"status_code"`
		Request string          `json:"request_id"`
		Body    json.RawMessage `json:"body"`
	} `json:"response"`
	Error *struct {
		Code    string `json:"code"`
		Message string `json:"message"`
	} `json:"error"`
}

// fileRows reads the rows of a file of output.
func (r *running) fileRows(key string, id any) []outputRow {
	r.t.Helper()
	if id == nil {
		return nil
	}
	got := r.call("GET", "/files/"+id.(string)+"/content", "", asGateway(key)...)
	if got.status != 200 {
		r.t.Fatalf("%d %s", got.status, got.body)
	}
	return readRows(r.t, got.body)
}

func readRows(t *testing.T, text string) (rows []outputRow) {
	t.Helper()
	for line := range strings.Lines(text) {
		var row outputRow
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		rows = append(rows, row)
	}
	return rows
}

func counts(total, completed, failed int) string {
	return fmt.Sprintf("map[completed:%d failed:%d total:%d]", completed, failed, total)
}

func TestManagedFilesFromUploadToDeletion(t *testing.T) {
	t.Parallel()
	r := start(t)
	other := r.admin("POST", "/workspaces", `{"name":"Another"}`)
	foreign := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, other["id"]))["key"].(string)
	rows := chatRows(3, "@mock/gpt-4o-mini", greeting)
	up := r.call("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+rows), asGateway(workspaceKey, formType...)...)
	f := up.json(t)
	id, _ := f["id"].(string)
	if up.status != 200 || !strings.HasPrefix(id, "gw_file_") || f["object"] != "file" || f["bytes"] != float64(len(rows)) || f["filename"] != "rows.jsonl" || f["purpose"] != "batch" || f["status"] != "processed" {
		t.Fatalf("%d %s", up.status, up.body)
	}
	if at := f["created_at"].(float64); at < float64(time.Now().Unix()-60) || at > float64(time.Now().Unix()+60) {
		t.Errorf("created_at is not in seconds: %v", at)
	}
	if got := r.call("GET", "/files/"+id+"/content", "", asGateway(workspaceKey)...); got.body != rows {
		t.Errorf("%d %q", got.status, got.body)
	}
	// Nothing names a provider: it is the gateway's.
	if got := r.call("GET", "/files/"+id, ""); got.status != 200 || got.json(t)["id"] != id {
		t.Errorf("%d %s", got.status, got.body)
	}
	second := r.storeRows(workspaceKey, rows)
	list := r.call("GET", "/files?limit=1", "", asGateway(workspaceKey)...).json(t)
	if list["first_id"] != second || list["has_more"] != true {
		t.Errorf("%v", list)
	}
	for _, path := range []string{"/files/" + id, "/files/" + id + "/content"} {
		theirs, none := r.call("GET", path, "", asGateway(foreign)...), r.call("GET", strings.Replace(path, id, strings.Repeat("x", len(id)), 1), "", asGateway(foreign)...)
		if theirs.status != 404 || strings.ReplaceAll(theirs.body, id, strings.Repeat("x", len(id))) != none.body {
			t.Errorf("%s: %d %s, and for one that is not there %s", path, theirs.status, theirs.body, none.body)
		}
	}
	if got := r.call("DELETE", "/files/"+id, "", asGateway(foreign)...); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.call("DELETE", "/files/"+id, "", asGateway(workspaceKey)...); got.status != 200 || got.json(t)["deleted"] != true {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := r.call("GET", "/files/"+id, "", asGateway(workspaceKey)...); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestFilesThatAreNoRowsAreRefusedByLine(t *testing.T) {
	t.Parallel()
	r := start(t)
	good := `{"custom_id":"a","method":"POST","url":"/v1/chat/completions","body":{"model":"x"}}`
	for _, c := range []struct{ rows, message string }{
		{"", "at least one row"},
		{"\n\n", "at least one row"},
		{good + "\nnot JSON\n", "line 2: must be a JSON object"},
		{good + "\n[]\n", "line 2: must be a JSON object"},
		{good + "\n\n" + good + "\n", "line 3: custom_id is already used in an earlier line"},
		{strings.Replace(good, `"custom_id":"a",`, "", 1), "line 1: custom_id is required"},
		{strings.Replace(good, `"custom_id":"a"`, `"custom_id":""`, 1), "line 1: custom_id must have 1 to 512"},
		{strings.Replace(good, `"custom_id":"a"`, `"custom_id":7`, 1), "line 1: custom_id"},
		{strings.Replace(good, `"POST"`, `"GET"`, 1), "line 1: method must be POST"},
		{strings.Replace(good, `"/v1/chat/completions"`, `"/v1/files"`, 1), "line 1: url must be /v1/chat/completions"},
		{strings.Replace(good, `{"model":"x"}`, `"x"`, 1), "line 1: body is required"},
		{strings.Replace(good, `"body"`, `"url":"/v1/embeddings","body"`, 1), "line 1: "},
		{good[:len(good)-4], "line 1: "},
		{good[:20] + "\xff" + good[20:], "line 1: must be text in UTF-8"},
	} {
		got := r.call("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+c.rows), asGateway(workspaceKey, formType...)...)
		if got.status != 400 || !strings.Contains(got.body, c.message) || got.json(t)["error"].(map[string]any)["param"] != "file" {
			t.Errorf("%q: %d %s, want %q", c.rows, got.status, got.body, c.message)
		}
	}
	for _, purpose := range []string{"fine-tune", "assistants", "x"} {
		if got := r.call("POST", "/files", form("purpose", purpose, "file", "rows.jsonl:"+good), asGateway(workspaceKey, formType...)...); got.status != 400 || !strings.Contains(got.body, "purpose must be batch") {
			t.Errorf("%s: %d %s", purpose, got.status, got.body)
		}
	}
	if list := r.call("GET", "/files", "", asGateway(workspaceKey)...).json(t); len(list["data"].([]any)) != 0 {
		t.Errorf("refused files are there: %v", list)
	}
}

// A batch runs through the same steps as requests: every row is a request with its own
// record, and costs what the provider bills.
func TestABatchThatTheGatewayRuns(t *testing.T) {
	t.Parallel()
	r := start(t)
	rows := chatRows(60, "gpt-4o-mini", greeting)
	file := r.storeRows(workspaceKey, rows)
	made := r.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"immediate","metadata":{"team":"a"},
		"gateway_options":{"x-gateway-virtual-key":"mock","x-gateway-metadata":{"project":"p"}}}`, file), asGateway(workspaceKey)...)
	b := made.json(t)
	id, _ := b["id"].(string)
	if made.status != 200 || !strings.HasPrefix(id, "gw_batch_") || b["object"] != "batch" || b["status"] != "validating" || b["input_file_id"] != file || fmt.Sprint(b["metadata"]) != "map[team:a]" || b["output_file_id"] != nil {
		t.Fatalf("%d %s", made.status, made.body)
	}
	b = r.ended(workspaceKey, id)
	if b["status"] != "completed" || fmt.Sprint(b["request_counts"]) != counts(60, 60, 0) || b["error_file_id"] != nil || b["completed_at"] == nil || b["in_progress_at"] == nil || b["finalizing_at"] == nil || b["errors"] != nil {
		t.Fatalf("%v", b)
	}
	out := r.fileRows(workspaceKey, b["output_file_id"])
	if len(out) != 60 {
		t.Fatalf("%d rows", len(out))
	}
	requests := map[string]bool{}
	for i, row := range out {
		if row.CustomID != fmt.Sprintf("row-%d", i) || row.Error != nil || row.Response == nil || row.Response.Status != 200 || !strings.Contains(string(row.Response.Body), fmt.Sprintf("Hello %d", i)) {
			t.Fatalf("%+v", row)
		}
		requests[row.Response.Request] = true
	}
	if got := r.call("GET", "/batches/"+id+"/output", "", asGateway(workspaceKey)...); got.status != 200 || len(readRows(t, got.body)) != 60 {
		t.Errorf("%d %s", got.status, got.body)
	}
	seen := 0
	eventually(t, func() error {
		seen = 0
		for _, rec := range archived(t, r.g) {
			if rec.Endpoint != "chatComplete" {
				continue
			}
			if rec.TraceID != id || rec.Metadata["batch_id"] != id || rec.Metadata["project"] != "p" || !requests[rec.ID] || !rec.Priced {
				return fmt.Errorf("%+v", rec)
			}
			seen++
		}
		if seen != 60 {
			return fmt.Errorf("%d records", seen)
		}
		return nil
	})
	if got, want := booked(archived(t, r.g)), billed(r); got.nanoDollars != want.nanoDollars || got.output != want.output || got.nanoDollars == 0 {
		t.Errorf("our books %+v, the bill %+v", got, want)
	}
	file2 := r.call("GET", "/files/"+b["output_file_id"].(string), "", asGateway(workspaceKey)...).json(t)
	if file2["purpose"] != "batch_output" {
		t.Errorf("%v", file2)
	}
}

// Rows that fail go to the file of errors with the response that they got; rows that may be
// sent again are sent again.
func TestRowsOfABatchFailByThemselves(t *testing.T) {
	t.Parallel()
	r := start(t)
	texts := []string{"mock: say=fine", "mock: status=400", "mock: status=500", "mock: status=503 times=2", "mock: cut"}
	file := r.storeRows(workspaceKey, chatRows(len(texts), "@mock/gpt-4o-mini", func(i int) string { return texts[i] }))
	b := r.ended(workspaceKey, r.runBatch(workspaceKey, file, ""))
	good, bad := r.fileRows(workspaceKey, b["output_file_id"]), r.fileRows(workspaceKey, b["error_file_id"])
	if b["status"] != "completed" || len(good)+len(bad) != len(texts) || len(good) != 2 || good[1].CustomID != "row-3" {
		t.Fatalf("%v\n%+v\n%+v", b, good, bad)
	}
	for _, row := range bad {
		if row.Response == nil && row.Error == nil || row.Response != nil && row.Response.Status < 400 {
			t.Errorf("%+v", row)
		}
	}
	if bad[0].CustomID != "row-1" || bad[0].Response.Status != 400 || !strings.Contains(string(bad[0].Response.Body), `"error"`) {
		t.Errorf("%+v", bad[0])
	}
}

// What is wrong with the rows of a batch is reported with their lines, before any is
// run.
func TestABatchIsCheckedBeforeItRuns(t *testing.T) {
	t.Parallel()
	r := start(t)
	rows := chatRows(1, "@mock/gpt-4o-mini", greeting) +
		`{"custom_id":"e","method":"POST","url":"/v1/embeddings","body":{"model":"x","input":"y"}}` + "\n" +
		`{"custom_id":"s","method":"POST","url":"/v1/chat/completions","body":{"model":"x","messages":[],"stream":true}}` + "\n"
	b := r.ended(workspaceKey, r.runBatch(workspaceKey, r.storeRows(workspaceKey, rows), ""))
	errs, _ := json.Marshal(b["errors"])
	want := `{"data":[{"code":"invalid_request","line":2,"message":"url must be the endpoint of the batch, /v1/chat/completions","param":"url"},{"code":"invalid_request","line":3,"message":"body.stream must be false or omitted: rows of a batch are not streamed","param":"body.stream"}],"object":"list"}`
	if b["status"] != "failed" || string(errs) != want || b["failed_at"] == nil {
		t.Errorf("%v\n%s", b, errs)
	}
	if got := r.call("GET", "/batches/"+b["id"].(string)+"/output", "", asGateway(workspaceKey)...); got.status != 200 || !strings.Contains(got.body, `"line":2`) {
		t.Errorf("%d %s", got.status, got.body)
	}
	if n := r.mock.Bill().Total.Requests; n != 0 {
		t.Errorf("%d rows were run", n)
	}
}

func TestNewBatchesAreCheckedByField(t *testing.T) {
	t.Parallel()
	r := start(t)
	file := r.storeRows(workspaceKey, chatRows(1, "@mock/gpt-4o-mini", greeting))
	for _, c := range []struct {
		more, message string
		status        int
	}{
		{`,"completion_window":"1h"`, "completion_window must be immediate", 400},
		{`,"endpoint":"/v1/files"`, "endpoint must be /v1/chat/completions", 400},
		{`,"input_file_id":"gw_file_none"`, "There is no file with the id", 404},
		{`,"gateway_options":[]`, "gateway_options must be an object", 400},
		{`,"gateway_options":{"authorization":"x"}`, "gateway_options.authorization is not known", 400},
		{`,"gateway_options":{"x-gateway-virtual-key":7}`, "gateway_options.x-gateway-virtual-key", 400},
		{`,"gateway_options":{"x-gateway-virtual-key":"a\nb"}`, "control characters", 400},
		{`,"gateway_options":{"x-gateway-virtual-key":"none"}`, "gateway_options: There is no provider @none", 400},
		{`,"gateway_options":{"x-gateway-provider":"gateway"}`, "must name the provider of the rows", 400},
		{`,"gateway_options":{"x-gateway-provider":"nobody"}`, "is not a provider", 400},
		{`,"gateway_options":{"x-gateway-config":"none"}`, "there is no config", 400},
		{`,"gateway_options":{"x-gateway-config":{"retry":1}}`, "Invalid config passed", 400},
		{`,"completion_window":"24h"`, "gateway_options must name the provider", 400},
		{`,"metadata":{"` + strings.Repeat("k", 65) + `":"v"}`, "metadata has a key with more than 64", 400},
		{`,"metadata":{"k":"` + strings.Repeat("v", 513) + `"}`, "at most 512", 400},
	} {
		fields := []string{fmt.Sprintf(`"input_file_id":%q`, file), `"endpoint":"/v1/chat/completions"`, `"completion_window":"immediate"`}
		body := ""
		for _, f := range fields {
			name, _, _ := strings.Cut(f, ":")
			if !strings.HasPrefix(c.more, ","+name) {
				body += f + ","
			}
		}
		got := r.call("POST", "/batches", "{"+body+c.more[1:]+"}", asGateway(workspaceKey)...)
		if got.status != c.status || !strings.Contains(got.body, c.message) {
			t.Errorf("%s: %d %s, want %d %q", c.more, got.status, got.body, c.status, c.message)
		}
	}
	for path, problem := range map[string]string{"/batches?limit=0": "limit must be", "/batches?limit=101": "limit must be", "/batches?after=x": "after must be"} {
		if got := r.call("GET", path, "", asGateway(workspaceKey)...); got.status != 400 || !strings.Contains(got.body, problem) {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := r.call("GET", "/batches/gw_batch_none", "", asGateway(workspaceKey)...); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestBatchesOfTheGatewayAreListedAndCancelled(t *testing.T) {
	t.Parallel()
	r := start(t)
	file := r.storeRows(workspaceKey, chatRows(120, "@mock/gpt-4o-mini", slowFrom(0)))
	first, second := r.runBatch(workspaceKey, file, ""), r.runBatch(workspaceKey, file, "")
	list := r.call("GET", "/batches?limit=1", "", asGateway(workspaceKey)...).json(t)
	next := r.call("GET", "/batches?limit=1&after="+second, "", asGateway(workspaceKey)...).json(t)
	if list["first_id"] != second || list["has_more"] != true || next["last_id"] != first || next["has_more"] != false {
		t.Errorf("%v\n%v", list, next)
	}
	if got := r.call("GET", "/batches/"+first+"/output", "", asGateway(workspaceKey)...); got.status != 404 || !strings.Contains(got.body, "has no output") {
		t.Errorf("%d %s", got.status, got.body)
	}
	for _, id := range []string{first, second} {
		got := r.call("POST", "/batches/"+id+"/cancel", "", asGateway(workspaceKey)...)
		if b := got.json(t); got.status != 200 || b["status"] != "cancelling" || b["cancelling_at"] == nil {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	for _, id := range []string{first, second} {
		b := r.ended(workspaceKey, id)
		n := b["request_counts"].(map[string]any)["completed"].(float64)
		if b["status"] != "cancelled" || b["cancelled_at"] == nil || n >= 120 || len(r.fileRows(workspaceKey, b["output_file_id"])) != int(n) {
			t.Errorf("%v", b)
		}
	}
	if got := r.call("POST", "/batches/"+first+"/cancel", "", asGateway(workspaceKey)...); got.status != 409 || !strings.Contains(got.body, "cancelled") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A limit that is reached fails the rows that come after it with that response; the
// batch ends.
func TestRowsStopWithTheLimitOfTheirKey(t *testing.T) {
	t.Parallel()
	r := start(t)
	limited := r.newKey(`"rate_limits":[{"type":"requests","unit":"rpd","value":12}]`)
	id := r.runBatch(limited, r.storeRows(limited, chatRows(40, "@mock/gpt-4o-mini", greeting)), "")
	b := r.ended(workspaceKey, id)
	if b["status"] != "completed" || fmt.Sprint(b["request_counts"]) != counts(40, 10, 30) {
		t.Fatalf("%v", b)
	}
	for _, row := range r.fileRows(workspaceKey, b["error_file_id"]) {
		if row.Response == nil || row.Response.Status != 429 || !strings.Contains(string(row.Response.Body), "rate_limit") {
			t.Fatalf("%+v", row)
		}
	}
	if n := r.mock.Bill().Total.Requests; n != 10 {
		t.Errorf("the provider was asked %d times", n)
	}
}

// The rows of a key that is revoked fail; those that were answered stay.
func TestRowsStopWithTheirKey(t *testing.T) {
	t.Parallel()
	r := start(t)
	made := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"gone soon","workspace_id":%q,"scopes":["completions.write"]}`, r.workspace()))
	key := made["key"].(string)
	id := r.runBatch(key, r.storeRows(key, chatRows(100, "@mock/gpt-4o-mini", slowFrom(25))), "")
	eventually(t, func() error {
		if n := r.mock.Bill().Total.Requests; n < 25 {
			return fmt.Errorf("%d rows have run", n)
		}
		return nil
	})
	r.admin("DELETE", "/api-keys/"+made["id"].(string), "")
	b := r.ended(workspaceKey, id)
	good, bad := r.fileRows(workspaceKey, b["output_file_id"]), r.fileRows(workspaceKey, b["error_file_id"])
	if b["status"] != "completed" || len(good) < 25 || len(bad) < 25 || len(good)+len(bad) != 100 || len(good) != int(r.mock.Bill().Total.Requests) {
		t.Fatalf("%v: %d good, %d bad, %d asked", b, len(good), len(bad), r.mock.Bill().Total.Requests)
	}
	for _, row := range bad {
		if row.Response == nil || row.Response.Status != 401 {
			t.Fatalf("%+v", row)
		}
	}
}

// Rows of every endpoint run, at providers of other shapes too, and models may be
// named by the options.
func TestBatchesOfEveryEndpoint(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, c := range []struct{ endpoint, body, options, text string }{
		{"/v1/chat/completions", `{"messages":[{"role":"user","content":"mock: say=Good day"}]}`, `{"x-gateway-provider":"@mock-anthropic","x-gateway-provider-model":"claude-sonnet-4-5"}`, `"Good day"`},
		{"/v1/completions", `{"model":"gpt-3.5-turbo-instruct","prompt":"mock: say=Good day"}`, `{"x-gateway-virtual-key":"mock"}`, "text_completion"},
		{"/v1/embeddings", `{"model":"text-embedding-3-small","input":"Good day"}`, `{"x-gateway-virtual-key":"mock"}`, `"embedding"`},
		{"/v1/responses", `{"model":"gpt-4o-mini","input":"mock: say=Good day"}`, `{"x-gateway-virtual-key":"mock"}`, "Good day"},
		{"/v1/messages", `{"model":"claude-sonnet-4-5","max_tokens":20,"messages":[{"role":"user","content":"mock: say=Good day"}]}`, `{"x-gateway-config":{"targets":[{"provider":"@mock-anthropic"}],"strategy":{"mode":"fallback"}}}`, "Good day"},
	} {
		file := r.storeRows(workspaceKey, fmt.Sprintf(`{"custom_id":"one","method":"POST","url":%q,"body":%s}`, c.endpoint, c.body))
		id := r.id("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":%q,"completion_window":"immediate","gateway_options":%s}`, file, c.endpoint, c.options), asGateway(workspaceKey)...)
		b := r.ended(workspaceKey, id)
		rows := append(r.fileRows(workspaceKey, b["output_file_id"]), r.fileRows(workspaceKey, b["error_file_id"])...)
		if len(rows) != 1 || rows[0].Response == nil || rows[0].Response.Status != 200 || !strings.Contains(string(rows[0].Response.Body), c.text) {
			t.Errorf("%s: %v\n%+v", c.endpoint, b, rows)
		}
	}
}
