package main

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
)

// vertexHost runs batch prediction jobs.
func vertexHost(model string) jobHost {
	return jobHost{
		provider: "vertex-ai", key: `"key":"mock-vertex",`, model: model,
		configurations: `"vertex_auth_type":"basic","vertex_region":"us-central1","vertex_project_id":"proj","vertex_storage_bucket_name":"mock-gcs",`,
	}
}

func TestABatchPredictionJobOfGemini(t *testing.T) {
	t.Parallel()
	runsABatch(t, vertexHost("gemini-2.5-flash"))
}

func TestABatchPredictionJobOfClaude(t *testing.T) {
	t.Parallel()
	runsABatch(t, vertexHost("anthropic.claude-sonnet-4-5"))
}

func TestABatchPredictionJobBelongsToItsWorkspace(t *testing.T) {
	t.Parallel()
	isolatesBatches(t, vertexHost("gemini-2.5-flash"))
}

func TestALongFileOfRowsIsStreamedToCloudStorage(t *testing.T) {
	t.Parallel()
	h := vertexHost("gemini-2.5-flash")
	n := h.host(t)
	var b strings.Builder
	filler := strings.Repeat("word ", 20_000)
	for i := range 100 {
		fmt.Fprintf(&b, `{"custom_id":"r%d","method":"POST","url":"/v1/chat/completions","body":{"model":%q,"max_tokens":10,"messages":[{"role":"user","content":"%s"}]}}`+"\n", i, h.model, filler)
	}
	id := n.make(h, n.mine, n.upload(n.mine, b.String()))["id"].(string)
	if b := n.end(n.mine, id); b["request_counts"].(map[string]any)["completed"] != 100.0 || b["error_file_id"] != nil {
		t.Errorf("%v", b)
	}
}

// vectorsFor are rows that ask for embeddings; the last is one that is rejected.
func vectorsFor(model string, more string) string {
	var b strings.Builder
	for i, text := range []string{"One", "Two two", "mock: status=400"} {
		body, _ := json.Marshal(map[string]any{"model": model, "input": text})
		fmt.Fprintf(&b, `{"custom_id":"row %d.","method":"POST","url":"/v1/embeddings","body":%s}`+"\n", i+1, strings.TrimSuffix(string(body), "}")+more+"}")
	}
	return b.String()
}

// embedsABatch takes a batch of embeddings through its life; told is whether its
// rows tell what they used.
func embedsABatch(t *testing.T, h jobHost, rows string, size, failed int, reported bool) {
	n := h.host(t)
	file := n.upload(n.mine, rows)
	got := n.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/embeddings","completion_window":"24h"%s}`, file, h.create), as(n.mine)...)
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	id := got.json(t)["id"].(string)
	b := n.end(n.mine, id)
	counts := b["request_counts"].(map[string]any)
	if b["status"] != "completed" || b["endpoint"] != "/v1/embeddings" || counts["completed"] != float64(strings.Count(rows, "\n")-failed) || counts["failed"] != float64(failed) {
		t.Fatalf("%v", b)
	}
	seen := 0
	for line := range strings.Lines(n.call("GET", "/batches/"+id+"/output", "", as(n.mine)...).body) {
		var row struct {
			CustomID string `json:"custom_id"`
			Response *struct {
				Status int `json:"status_code"`
				Body   struct {
					Object string
					Data   []struct{ Embedding []float64 }
				}
			}
			Error *struct{ Code, Message string }
		}
		if err := json.Unmarshal([]byte(line), &row); err != nil {
			t.Fatalf("%v: %s", err, line)
		}
		switch seen++; {
		case !strings.HasPrefix(row.CustomID, "row "):
			t.Errorf("%s", line)
		case row.Error != nil && row.Error.Message != "" && row.Response == nil && failed > 0:
			failed--
		case row.Response == nil || row.Response.Status != 200 || row.Response.Body.Object != "list" || len(row.Response.Body.Data) != 1 || len(row.Response.Body.Data[0].Embedding) != size:
			t.Errorf("%.300s", line)
		}
	}
	if seen != strings.Count(rows, "\n") || failed != 0 {
		t.Errorf("%d rows", seen)
	}
	if reported {
		n.booksOfBatch(false)
	}
}

func TestABatchOfEmbeddingsOnVertex(t *testing.T) {
	t.Parallel()
	h := vertexHost("text-embedding-005")
	embedsABatch(t, h, vectorsFor(h.model, `,"dimensions":16`), 16, 1, true)
}

func TestABatchOfEmbeddingsOnBedrock(t *testing.T) {
	t.Parallel()
	for model, reported := range map[string]bool{"amazon.titan-embed-text-v2:0": true, "cohere.embed-english-v3": false} {
		h := bedrockHost
		h.model = model
		embedsABatch(t, h, vectorsFor(model, ""), 1024, 1, reported)
	}
}

func TestRowsThatVertexCannotRunAreRefusedByLine(t *testing.T) {
	t.Parallel()
	h := vertexHost("gemini-2.5-flash")
	n := h.host(t)
	chat := rowsFor(h.model)
	vectors := vectorsFor("text-embedding-005", "")
	for _, c := range []struct{ rows, endpoint, more, message string }{
		{"", "/v1/chat/completions", "", "at least one row"},
		{chat + rowsFor("gemini-2.5-pro")[:0] + `{"custom_id":"x","body":{"model":"gemini-2.5-pro","messages":[{"role":"user","content":"a"}]}}`, "/v1/chat/completions", "", "line 3: model must be the same"},
		{`{"custom_id":"x","body":{"model":"meta.llama-4-scout","messages":[{"role":"user","content":"a"}]}}`, "/v1/chat/completions", "", "cannot be run in batches"},
		{`{"custom_id":"x","body":{"model":"text-embedding-005","input":["a","b"]}}`, "/v1/embeddings", "", "line 1: input must be one text"},
		{vectors + `{"custom_id":"x","body":{"model":"text-embedding-005","input":"a","dimensions":9}}`, "/v1/embeddings", "", "line 4: dimensions"},
		{`{"custom_id":"x","body":{"model":"text-embedding-005"}}`, "/v1/embeddings", "", "line 1: input"},
		{`{"custom_id":"x","body":{"model":"text-embedding-005","input":[1,2]}}`, "/v1/embeddings", "", "line 1: input"},
		{chat, "/v1/moderations", "", "endpoint"},
		{chat, "/v1/chat/completions", `,"completion_window":"1h"`, "completion_window"},
	} {
		body := fmt.Sprintf(`{"input_file_id":%q,"endpoint":%q,"completion_window":"24h"}`, n.upload(n.mine, c.rows), c.endpoint)
		if c.more != "" {
			body = strings.Replace(body, `,"completion_window":"24h"`, c.more, 1)
		}
		if got := n.call("POST", "/batches", body, as(n.mine)...); got.status != 400 || !strings.Contains(got.body, c.message) {
			t.Errorf("%.90s: %d %s", c.rows, got.status, got.body)
		}
	}
	for _, id := range []string{"17", "a:b", "a%2Fb"} {
		if got := n.call("GET", "/batches/"+id, "", as(n.mine)...); got.status != 404 {
			t.Errorf("%s: %d %s", id, got.status, got.body)
		}
	}
}

// A provider without a bucket says so.
func TestVertexJobsNeedABucket(t *testing.T) {
	t.Parallel()
	h := vertexHost("gemini-2.5-flash")
	h.configurations = strings.Replace(h.configurations, `"vertex_storage_bucket_name":"mock-gcs",`, "", 1)
	n := h.host(t)
	file := n.upload(n.mine, rowsFor(h.model))
	got := n.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/chat/completions","completion_window":"24h"}`, file), as(n.mine)...)
	if got.status != 400 || !strings.Contains(got.body, "vertex_storage_bucket_name") {
		t.Errorf("%d %s", got.status, got.body)
	}
}

// A tuning job is made of examples in either form, and is read, listed and
// stopped as one of OpenAI's.
func TestATuningJobOfVertex(t *testing.T) {
	t.Parallel()
	n := vertexHost("gemini-2.5-flash").host(t)
	upload := func(rows string) string {
		return n.id("POST", "/files", form("purpose", "fine-tune", "file", "rows.jsonl:"+rows), as(n.mine, formType...)...)
	}
	talks := upload(`{"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]}` + "\n")
	plain := upload(`{"prompt":"a","completion":"b"}` + "\n")
	made := n.call("POST", "/fine_tuning/jobs", fmt.Sprintf(`{"model":"gemini-2.5-flash","training_file":%q,"validation_file":%q,"suffix":"mine","hyperparameters":{"n_epochs":2,"batch_size":4,"learning_rate_multiplier":0.5}}`, talks, plain), as(n.mine)...)
	job := made.json(t)
	id, _ := job["id"].(string)
	if made.status != 200 || job["object"] != "fine_tuning.job" || job["status"] != "queued" || job["training_file"] != talks || job["model"] != "gemini-2.5-flash" {
		t.Fatalf("%d %s", made.status, made.body)
	}
	if got := n.call("GET", "/fine_tuning/jobs/"+id, "", as(n.theirs)...); got.status != 404 {
		t.Errorf("another's: %d %s", got.status, got.body)
	}
	for range 3 {
		job = n.call("GET", "/fine_tuning/jobs/"+id, "", as(n.mine)...).json(t)
	}
	if job["status"] != "succeeded" || job["fine_tuned_model"] != "projects/1/locations/us-central1/endpoints/8" || job["finished_at"] == nil || job["trained_tokens"] != 42.0 || job["created_at"].(float64) > 1e11 {
		t.Errorf("%v", job)
	}
	second := n.id("POST", "/fine_tuning/jobs", fmt.Sprintf(`{"model":"gemini-2.5-flash","training_file":%q}`, plain), as(n.mine)...)
	first := n.call("GET", "/fine_tuning/jobs?limit=1", "", as(n.mine)...).json(t)
	next := n.call("GET", "/fine_tuning/jobs?limit=1&after="+second, "", as(n.mine)...).json(t)
	if first["last_id"] != second || first["has_more"] != true || next["last_id"] != id || next["has_more"] != false {
		t.Errorf("%v\n%v", first, next)
	}
	if got := n.call("POST", "/fine_tuning/jobs/"+second+"/cancel", "", as(n.mine)...).json(t); got["status"] != "cancelled" {
		t.Errorf("%v", got)
	}
	for body, problem := range map[string]string{
		fmt.Sprintf(`{"model":"m","training_file":%q,"hyperparameters":{"batch_size":3}}`, plain): "batch_size",
		fmt.Sprintf(`{"model":"m","training_file":%q,"method":{"type":"dpo"}}`, plain):            "method.type",
		fmt.Sprintf(`{"model":"m","training_file":%q}`, upload("{")):                              "training_file: line 1",
		fmt.Sprintf(`{"model":"m","training_file":%q}`, upload("")):                               "at least one example",
		fmt.Sprintf(`{"model":"m","training_file":%q}`, n.upload(n.mine, "{}")):                   "purpose fine-tune",
	} {
		if got := n.call("POST", "/fine_tuning/jobs", body, as(n.mine)...); got.status != 400 || !strings.Contains(got.body, problem) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}
