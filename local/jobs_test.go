package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"gateway/shared/pricing"
)

// jobHost is a kind of provider whose files and batches have a shape of their own.
type jobHost struct {
	provider            string
	key, configurations string // further members of its integration
	model               string
	create              string // further members of a new batch
	path                string // below the mock's address, where the host is none of its own
}

// claudeHost runs Message Batches.
var claudeHost = jobHost{provider: "anthropic", key: `"key":"mock-key",`, model: "claude-sonnet-4-5"}

// bedrockHost runs model invocation jobs.
var bedrockHost = jobHost{
	provider: "bedrock", model: "anthropic.claude-sonnet-4-5-20250929-v1:0", create: `,"role_arn":"arn:aws:iam::123456789012:role/batch"`,
	configurations: `"aws_auth_type":"accessKey","aws_region":"us-east-1","aws_access_key_id":"AKIDMOCK","aws_secret_access_key":"mock-secret","aws_s3_bucket":"mock-bucket",`,
}

// host makes two workspaces that share the provider as @common.
func (h jobHost) host(t *testing.T) neighbours {
	r := start(t)
	r.admin("POST", "/integrations", fmt.Sprintf(`{"name":"Common","slug":"common","ai_provider_id":%q,%s"configurations":{%s"custom_host":%q}}`, h.provider, h.key, h.configurations, h.base(r)))
	r.admin("PUT", "/integrations/common/workspaces", `{"workspaces":[],"global_workspace_access":{"enabled":true},"override_existing_workspace_access":true}`)
	n := neighbours{running: r}
	for i, key := range []*string{&n.mine, &n.theirs} {
		ws := r.admin("POST", "/workspaces", fmt.Sprintf(`{"name":"Neighbour %d"}`, i))
		*key = r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"k","workspace_id":%q,"scopes":["completions.write"]}`, ws["id"]))["key"].(string)
	}
	return n
}

// base is the address of the host.
func (h jobHost) base(r *running) string {
	if h.path == "" {
		return r.mockBase()
	}
	return strings.TrimSuffix(r.mockBase(), "/v1") + h.path
}

// rowsFor are rows for a model; the last is one that the provider fails.
func rowsFor(model string, more ...string) string {
	var b strings.Builder
	for i, text := range append([]string{"mock: say=One", "mock: say=Two"}, more...) {
		body, _ := json.Marshal(map[string]any{"model": model, "max_tokens": 50, "messages": []any{
			map[string]any{"role": "system", "content": "Be brief."}, map[string]any{"role": "user", "content": text},
		}})
		fmt.Fprintf(&b, `{"custom_id":"row %d.","method":"POST","url":"/v1/chat/completions","body":%s}`+"\n", i+1, body)
	}
	return b.String()
}

// upload keeps rows and gives the file's id.
func (n neighbours) upload(key, rows string) string {
	n.t.Helper()
	return n.id("POST", "/files", form("purpose", "batch", "file", "rows.jsonl:"+rows), as(key, formType...)...)
}

// make makes a batch of rows and gives its response.
func (n neighbours) make(h jobHost, key, file string) map[string]any {
	n.t.Helper()
	got := n.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h","metadata":{"a":"b"}%s}`, file, h.create), as(key)...)
	if got.status != 200 {
		n.t.Fatalf("%d %s", got.status, got.body)
	}
	return got.json(n.t)
}

// end reads a batch until it has ended.
func (n neighbours) end(key, id string) map[string]any {
	n.t.Helper()
	for range 10 {
		b := n.call("GET", "/batches/"+id, "", as(key)...).json(n.t)
		switch b["status"] {
		case "completed", "failed", "cancelled", "expired":
			return b
		}
	}
	n.t.Fatalf("the batch %s does not end", id)
	return nil
}

func TestABatchOfMessagesFromItsRowsToItsOutput(t *testing.T) {
	t.Parallel()
	runsABatch(t, claudeHost)
}

func TestABatchOfMessagesBelongsToItsWorkspace(t *testing.T) {
	t.Parallel()
	isolatesBatches(t, claudeHost)
}

func TestAModelInvocationJobFromItsRowsToItsOutput(t *testing.T) {
	t.Parallel()
	runsABatch(t, bedrockHost)
}

func TestAModelInvocationJobBelongsToItsWorkspace(t *testing.T) {
	t.Parallel()
	isolatesBatches(t, bedrockHost)
}

// A customization job is made of examples in either form, and is read, listed and
// stopped as one of OpenAI's.
func TestACustomizationJobOfBedrock(t *testing.T) {
	t.Parallel()
	n := bedrockHost.host(t)
	upload := func(rows string) string {
		return n.id("POST", "/files", form("purpose", "fine-tune", "file", "rows.jsonl:"+rows), as(n.mine, formType...)...)
	}
	const role = `"role_arn":"arn:aws:iam::123456789012:role/tune"`
	talks := upload(`{"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]}` + "\n")
	plain := upload(`{"prompt":"a","completion":"b"}` + "\n")
	made := n.call("POST", "/fine_tuning/jobs", fmt.Sprintf(`{"model":"amazon.nova-lite-v1:0","training_file":%q,"validation_file":%q,"suffix":"mine","hyperparameters":{"n_epochs":2,"batch_size":"auto"},%s}`, talks, plain, role), as(n.mine)...)
	job := made.json(t)
	id, _ := job["id"].(string)
	if made.status != 200 || job["object"] != "fine_tuning.job" || job["status"] != "running" || job["training_file"] != talks || job["model"] != "amazon.nova-lite-v1:0" {
		t.Fatalf("%d %s", made.status, made.body)
	}
	if got := n.call("GET", "/fine_tuning/jobs/"+id, "", as(n.theirs)...); got.status != 404 {
		t.Errorf("another's: %d %s", got.status, got.body)
	}
	for range 3 {
		job = n.call("GET", "/fine_tuning/jobs/"+id, "", as(n.mine)...).json(t)
	}
	if job["status"] != "succeeded" || job["fine_tuned_model"] == nil || job["finished_at"] == nil || job["validation_file"] != plain {
		t.Errorf("%v", job)
	}
	second := n.id("POST", "/fine_tuning/jobs", fmt.Sprintf(`{"model":"amazon.nova-lite-v1:0","training_file":%q,%s}`, plain, role), as(n.mine)...)
	first := n.call("GET", "/fine_tuning/jobs?limit=1", "", as(n.mine)...).json(t)
	next := n.call("GET", "/fine_tuning/jobs?limit=1&after="+second, "", as(n.mine)...).json(t)
	if first["last_id"] != second || first["has_more"] != true || next["last_id"] != id || next["has_more"] != false {
		t.Errorf("%v\n%v", first, next)
	}
	if got := n.call("POST", "/fine_tuning/jobs/"+second+"/cancel", "", as(n.mine)...).json(t); got["status"] != "cancelled" {
		t.Errorf("%v", got)
	}
	for body, problem := range map[string]string{
		fmt.Sprintf(`{"model":"m","training_file":%q}`, plain):                                                        "role_arn",
		fmt.Sprintf(`{"model":"m","training_file":%q,"method":{"type":"dpo"},%s}`, plain, role):                       "method.type",
		fmt.Sprintf(`{"model":"m","training_file":%q,"hyperparameters":{"batch_size":[1]},%s}`, plain, role):          "hyperparameters",
		fmt.Sprintf(`{"model":"m","training_file":%q,%s}`, upload("{"), role):                                         "training_file: line 1",
		fmt.Sprintf(`{"model":"m","training_file":%q,%s}`, upload(`{"messages":[{"role":"x","content":"a"}]}`), role): "line 1: ",
		fmt.Sprintf(`{"model":"m","training_file":%q,%s}`, upload(""), role):                                          "at least one example",
		fmt.Sprintf(`{"model":"m","training_file":%q,%s}`, n.upload(n.mine, "{}"), role):                              "purpose fine-tune",
	} {
		if got := n.call("POST", "/fine_tuning/jobs", body, as(n.mine)...); got.status != 400 || !strings.Contains(got.body, problem) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}

// runsABatch takes a batch through its life and compares the accounting with the bill.
func runsABatch(t *testing.T, h jobHost) {
	n := h.host(t)
	rows := rowsFor(h.model, "mock: status=400")
	file := n.upload(n.mine, rows)
	if got := n.call("GET", "/files/"+file+"/content", "", as(n.mine)...); got.status != 200 || got.body != rows {
		t.Fatalf("%d %s", got.status, got.body)
	}
	b := n.make(h, n.mine, file)
	id := b["id"].(string)
	if b["object"] != "batch" || b["input_file_id"] != file || b["endpoint"] != "/v1/chat/completions" || b["metadata"].(map[string]any)["a"] != "b" || b["created_at"].(float64) > 1e11 {
		t.Errorf("%v", b)
	}
	if got := n.call("GET", "/batches/"+id+"/output", "", as(n.mine)...); got.status != 404 {
		t.Errorf("output before the end: %d %s", got.status, got.body)
	}
	b = n.end(n.mine, id)
	counts := b["request_counts"].(map[string]any)
	if b["status"] != "completed" || counts["total"] != 3.0 || counts["completed"] != 2.0 || counts["failed"] != 1.0 || b["completed_at"] == nil || b["metadata"] == nil {
		t.Fatalf("%v", b)
	}
	for range 2 {
		n.end(n.mine, id) // is booked once all the same
	}
	answered := map[string]string{}
	for line := range strings.Lines(n.call("GET", "/batches/"+id+"/output", "", as(n.mine)...).body) {
		var row struct {
			CustomID string `json:"custom_id"`
			Response *struct {
				Status int `json:"status_code"`
				Body   struct {
					Object  string
					Choices []struct{ Message struct{ Content string } }
					Usage   struct {
						TotalTokens int `json:"total_tokens"`
					}
				}
			}
			Error *struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch {
		case row.Response != nil && row.Error == nil && row.Response.Status == 200 && row.Response.Body.Object == "chat.completion" && row.Response.Body.Usage.TotalTokens > 0:
			answered[row.CustomID] = row.Response.Body.Choices[0].Message.Content
		case row.Response == nil && row.Error.Code != "" && row.Error.Message != "":
			answered[row.CustomID] = "failed"
		default:
			t.Errorf("%s", line)
		}
	}
	if fmt.Sprint(answered) != "map[row 1.:One row 2.:Two row 3.:failed]" {
		t.Errorf("%v", answered)
	}
	for _, name := range []string{"output_file_id", "error_file_id"} {
		out := b[name].(string)
		content := n.call("GET", "/files/"+out+"/content", "", as(n.mine)...)
		info := n.call("GET", "/files/"+out, "", as(n.mine)...)
		if content.status != 200 || info.status != 200 || info.json(t)["bytes"] != float64(len(content.body)) {
			t.Errorf("%s: %d %d %s", name, content.status, info.status, info.body)
		}
	}
	n.booksOfBatch(h.provider == "anthropic")
}

// booksOfBatch compares the accounting with the mock's bill, half of whose prices the
// rows of batches cost.
func (n neighbours) booksOfBatch(priced bool) {
	n.t.Helper()
	total := n.mock.Bill().Total // which has no prices of Bedrock
	var cost pricing.NanoDollars
	var in, out, with int64
	eventually(n.t, func() error {
		cost, in, out, with = 0, 0, 0, 0
		for _, rec := range archived(n.t, n.g) {
			cost += rec.Cost
			in, out = in+rec.Usage.N(pricing.Input), out+rec.Usage.N(pricing.Output)
			if rec.Usage.N(pricing.Input) > 0 {
				with++
			}
		}
		if in != total.Input || out != total.Output || priced && int64(cost) != total.NanoDollars || cost == 0 || with != 1 || in == 0 {
			return fmt.Errorf("books: %d in, %d out, cost %d, %d requests; the bill: %+v", in, out, cost, with, total)
		}
		return nil
	})
}

// isolatesBatches shows that a workspace sees nothing of another's.
func isolatesBatches(t *testing.T, h jobHost) {
	n := h.host(t)
	file := n.upload(n.theirs, rowsFor(h.model))
	id := n.make(h, n.theirs, file)["id"].(string)
	b := n.end(n.theirs, id)
	own := n.upload(n.mine, rowsFor(h.model))
	mine := n.make(h, n.mine, own)["id"].(string)
	before := n.mock.Bill().Total.Requests
	for _, c := range [][2]string{
		{"GET", "/files/" + file}, {"GET", "/files/" + file + "/content"}, {"DELETE", "/files/" + file}, {"GET", "/batches/" + id}, {"POST", "/batches/" + id + "/cancel"},
		{"GET", "/batches/" + id + "/output"}, {"GET", "/files/" + b["output_file_id"].(string) + "/content"}, {"GET", "/files/" + b["output_file_id"].(string)},
	} {
		if got := n.call(c[0], c[1], "", as(n.mine)...); got.status != 404 {
			t.Errorf("%v: %d %s", c, got.status, got.body)
		}
	}
	if got := n.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"%s}`, file, h.create), as(n.mine)...); got.status != 404 {
		t.Errorf("a batch of another's file: %d %s", got.status, got.body)
	}
	if after := n.mock.Bill().Total.Requests; after != before {
		t.Errorf("%d requests reached the provider", after-before)
	}
	for path, want := range map[string]string{"/batches?limit=1": mine, "/files": own} {
		list := n.call("GET", path, "", as(n.mine)...).json(t)
		data := list["data"].([]any)
		if len(data) != 1 || data[0].(map[string]any)["id"] != want || list["first_id"] != want {
			t.Errorf("%s: %v", path, list)
		}
	}
	stopped := n.call("POST", "/batches/"+mine+"/cancel", "", as(n.mine)...).json(t)
	if stopped["status"] != "cancelling" || stopped["id"] != mine {
		t.Errorf("%v", stopped)
	}
	if b := n.end(n.mine, mine); b["status"] != "cancelled" || b["cancelled_at"] == nil {
		t.Errorf("%v", b)
	}
	if got := n.call("DELETE", "/files/"+own, "", as(n.mine)...).json(t); got["deleted"] != true || got["id"] != own {
		t.Errorf("%v", got)
	}
	if got := n.call("GET", "/files/"+own, "", as(n.mine)...); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// What is wrong with rows is reported by its line, before anything is sent.
func TestRowsThatCannotBeRunAreRefusedByLine(t *testing.T) {
	t.Parallel()
	n := claudeHost.host(t)
	before := n.mock.Bill().Total.Requests
	good := rowsFor(claudeHost.model)
	for _, c := range []struct{ rows, code, message string }{
		{"", "", "at least one row"},
		{"\n \n", "", "at least one row"},
		{good + "{", "", "line 3"},
		{good + `{"custom_id":"x"}`, "", "line 3: body"},
		{good + `{"custom_id":"x","body":{"messages":[{"role":"user","content":"a"}]}}`, "", "line 3: model"},
		{good + `{"custom_id":7,"body":{}}`, "", "line 3: custom_id"},
		{good + `{"body":{"model":"m"}}`, "", "line 3: custom_id"},
		{good + good, "", "line 3: custom_id must be unique"},
		{`{"custom_id":"x","body":{"model":"m","messages":"no"}}`, "", "line 1: messages"},
		{`{"custom_id":"x","url":"/v1/embeddings","body":{"model":"m","messages":[]}}`, "", "line 1: url"},
		{`{"custom_id":"x","method":"GET","body":{"model":"m","messages":[]}}`, "", "line 1: method"},
		{`{"custom_id":"` + strings.Repeat("y", 65) + `","body":{"model":"m","messages":[{"role":"user","content":"a"}]}}`, "", "64 characters"},
		{`{"custom_id":"x","body":{"model":"@other/m","messages":[{"role":"user","content":"a"}]}}`, "", "line 1: model"},
	} {
		file := n.upload(n.mine, c.rows)
		got := n.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file), as(n.mine)...)
		if got.status != 400 || !strings.Contains(got.body, c.message) || !strings.Contains(got.body, "input_file_id") {
			t.Errorf("%.80s: %d %s", c.rows, got.status, got.body)
		}
	}
	file := n.upload(n.mine, good)
	for body, problem := range map[string]string{
		`{"input_file_id":"` + file + `","endpoint":"/v1/embeddings","completion_window":"24h"}`:                          "endpoint",
		`{"input_file_id":"` + file + `","endpoint":"/v1/chat/completions","completion_window":"1h"}`:                     "completion_window",
		`{"input_file_id":"` + file + `","endpoint":"/v1/chat/completions","completion_window":"24h","job_name":7}`:       "job_name",
		`{"input_file_id":"` + file + `","endpoint":"/v1/chat/completions","completion_window":"24h","role_arn":["x"]}`:   "role_arn",
		`{"input_file_id":"` + file + `","endpoint":"/v1/chat/completions","completion_window":"24h","metadata":{"a":1}}`: "metadata",
	} {
		if got := n.call("POST", "/batches", body, as(n.mine)...); got.status != 400 || !strings.Contains(got.body, problem) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
	for _, c := range []struct{ body, message string }{
		{form("purpose", "vision", "file", "a.jsonl:x"), "purpose"}, {form("file", "a.jsonl:x"), "purpose"}, {form("purpose", "batch"), "file"},
		{form("purpose", "batch", "file", "a:b", "file", "c:d"), "file"},
	} {
		if got := n.call("POST", "/files", c.body, as(n.mine, formType...)...); got.status != 400 || !strings.Contains(got.body, c.message) {
			t.Errorf("%q: %d %s", c.body, got.status, got.body)
		}
	}
	if sent := n.mock.Bill().Total.Requests - before; sent != 0 {
		t.Errorf("%d requests were sent", sent)
	}
}

// A file that is too long for memory is streamed on its way in; its purpose may
// stand behind it. Anthropic gets its rows in one body, Bedrock in parts.
func TestALongFileOfRowsIsStreamed(t *testing.T) {
	t.Parallel()
	for _, h := range []jobHost{claudeHost, bedrockHost} {
		n := h.host(t)
		var b strings.Builder
		filler := strings.Repeat("word ", 20_000)
		for i := range 100 {
			fmt.Fprintf(&b, `{"custom_id":"r%d","method":"POST","url":"/v1/chat/completions","body":{"model":%q,"max_tokens":10,"messages":[{"role":"user","content":"%s"}]}}`+"\n", i, h.model, filler)
		}
		file := n.id("POST", "/files", form("file", "rows.jsonl:"+b.String(), "purpose", "batch"), as(n.mine, formType...)...)
		if got := n.call("GET", "/files/"+file+"/content", "", as(n.mine)...); got.body != b.String() {
			t.Fatalf("%s: %d bytes of %d", h.provider, len(got.body), b.Len())
		}
		id := n.make(h, n.mine, file)["id"].(string)
		if b := n.end(n.mine, id); b["request_counts"].(map[string]any)["completed"] != 100.0 || b["error_file_id"] != nil {
			t.Errorf("%s: %v", h.provider, b)
		}
		n.stop()
	}
}
