package main

import (
	"fmt"
	"strings"
	"testing"
)

// Hosts that speak OpenAI's chat and run batches in a way of their own.
var (
	cohereHost    = jobHost{provider: "cohere", key: `"key":"mock-key",`, model: "embed-english-v3.0", path: "/hosts/cohere"}
	mistralHost   = jobHost{provider: "mistral-ai", key: `"key":"mock-key",`, model: "mistral-large-latest", path: "/hosts/mistral/v1"}
	fireworksHost = jobHost{
		provider: "fireworks-ai", key: `"key":"mock-key",`, model: "100b", path: "/hosts/fireworks",
		configurations: `"fireworks_account_id":"mock-account",`,
	}
	togetherHost = jobHost{provider: "together-ai", key: `"key":"mock-key",`, model: "meta-llama/Llama-3.3-70B-Instruct-Turbo", path: "/hosts/together/v1"}
)

func TestABatchJobOfMistral(t *testing.T) {
	t.Parallel()
	runsABatch(t, mistralHost)
}

func TestABatchJobOfMistralBelongsToItsWorkspace(t *testing.T) {
	t.Parallel()
	isolatesBatches(t, mistralHost)
}

func TestABatchOfEmbeddingsOnMistral(t *testing.T) {
	t.Parallel()
	h := mistralHost
	h.model = "mistral-embed"
	rows := vectorsFor(h.model, "")
	rows = rows[:strings.LastIndex(strings.TrimSuffix(rows, "\n"), "\n")+1]
	embedsABatch(t, h, rows, 1536, 0, true)
}

func TestABatchOfTogether(t *testing.T) {
	t.Parallel()
	runsABatch(t, togetherHost)
}

func TestABatchOfTogetherBelongsToItsWorkspace(t *testing.T) {
	t.Parallel()
	isolatesBatches(t, togetherHost)
}

func TestABatchInferenceJobOfFireworks(t *testing.T) {
	t.Parallel()
	runsABatch(t, fireworksHost)
}

func TestABatchInferenceJobBelongsToItsWorkspace(t *testing.T) {
	t.Parallel()
	isolatesBatches(t, fireworksHost)
}

func TestAFineTuningJobOfFireworks(t *testing.T) {
	t.Parallel()
	tunesAModel(t, fireworksHost, "n_epochs")
}

func TestAnEmbedJobOfCohere(t *testing.T) {
	t.Parallel()
	rows := vectorsFor("embed-english-v3.0", `,"input_type":"search_query"`)
	embedsABatch(t, cohereHost, rows[:strings.LastIndex(strings.TrimSuffix(rows, "\n"), "\n")+1], 1536, 0, true)
}

func TestRowsThatCohereCannotRunAreRefusedByLine(t *testing.T) {
	t.Parallel()
	n := cohereHost.host(t)
	one := `{"custom_id":"a","body":{"model":"embed-english-v3.0","input":"a"}}` + "\n"
	for _, c := range []struct{ rows, endpoint, message string }{
		{rowsFor("command-r"), "/v1/chat/completions", "endpoint must be /v1/embeddings"},
		{"", "/v1/embeddings", "at least one row"},
		{one + `{"custom_id":"b","body":{"model":"embed-english-v3.0","input":["a","b"]}}`, "/v1/embeddings", "line 2: input"},
		{one + `{"custom_id":"b","body":{"model":"embed-multilingual-v3.0","input":"a"}}`, "/v1/embeddings", "line 2: model"},
		{one + `{"custom_id":"b","body":{"model":"embed-english-v3.0","input":"a","input_type":"classification"}}`, "/v1/embeddings", "line 2: input_type"},
		{`{"custom_id":"b","body":{"model":"embed-english-v3.0","input":"a","dimensions":256}}`, "/v1/embeddings", "line 1"},
		{one + "{", "/v1/embeddings", "line 2"},
		{`{"custom_id":"b","body":{"model":"embed-english-v3.0","input":"mock-invalid"}}`, "/v1/embeddings", "does not accept the rows"},
	} {
		body := fmt.Sprintf(`{"input_file_id":%q,"endpoint":%q,"completion_window":"24h"}`, n.upload(n.mine, c.rows), c.endpoint)
		if got := n.call("POST", "/batches", body, as(n.mine)...); got.status != 400 || !strings.Contains(got.body, c.message) {
			t.Errorf("%.90s: %d %s", c.rows, got.status, got.body)
		}
	}
}

func TestAFineTuningJobOfMistral(t *testing.T) {
	t.Parallel()
	tunesAModel(t, mistralHost, "n_epochs")
}

func TestAFineTuningJobOfTogether(t *testing.T) {
	t.Parallel()
	tunesAModel(t, togetherHost, "n_epochs")
}

// Rows may be written as messages for Claude; they are translated on their way.
func TestRowsInAnotherDialectRunOnMistral(t *testing.T) {
	t.Parallel()
	n := mistralHost.host(t)
	file := n.upload(n.mine, `{"custom_id":"a","body":{"model":"mistral-large-latest","max_tokens":20,"messages":[{"role":"user","content":"mock: say=One"}]}}`)
	got := n.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/messages","completion_window":"24h"}`, file), as(n.mine)...)
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	id := got.json(t)["id"].(string)
	n.end(n.mine, id)
	out := n.call("GET", "/batches/"+id+"/output", "", as(n.mine)...)
	if !strings.Contains(out.body, `"type":"message"`) || !strings.Contains(out.body, `"text":"One"`) || !strings.Contains(out.body, `"custom_id":"a"`) {
		t.Errorf("%d %s", out.status, out.body)
	}
}

// Prompts run as prompts where the provider takes them.
func TestPromptsRunOnTogether(t *testing.T) {
	t.Parallel()
	n := togetherHost.host(t)
	file := n.upload(n.mine, fmt.Sprintf(`{"custom_id":"a","url":"/v1/completions","body":{"model":%q,"max_tokens":20,"prompt":"mock: say=One"}}`, togetherHost.model))
	got := n.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/completions","completion_window":"24h"}`, file), as(n.mine)...)
	if got.status != 200 {
		t.Fatalf("%d %s", got.status, got.body)
	}
	id := got.json(t)["id"].(string)
	n.end(n.mine, id)
	if out := n.call("GET", "/batches/"+id+"/output", "", as(n.mine)...); !strings.Contains(out.body, `"object":"text_completion"`) || !strings.Contains(out.body, `"custom_id":"a"`) {
		t.Errorf("%d %s", out.status, out.body)
	}
}

// A file that is too long for memory is streamed to the provider, whether it goes
// as a form or to an address that the provider gives.
func TestALongFileOfRowsIsUploaded(t *testing.T) {
	t.Parallel()
	for _, h := range []jobHost{mistralHost, fireworksHost} {
		n := h.host(t)
		var b strings.Builder
		filler := strings.Repeat("word ", 20_000)
		for i := range 100 {
			fmt.Fprintf(&b, `{"custom_id":"r%d","body":{"model":%q,"max_tokens":10,"messages":[{"role":"user","content":"%s"}]}}`+"\n", i, h.model, filler)
		}
		id := n.make(h, n.mine, n.upload(n.mine, b.String()))["id"].(string)
		if b := n.end(n.mine, id); b["request_counts"].(map[string]any)["completed"] != 100.0 || b["error_file_id"] != nil {
			t.Errorf("%s: %v", h.provider, b)
		}
		n.stop()
	}
}

// A batch that is deleted to be stopped is canceled for good; one that has ended
// is not deleted.
func TestAJobOfFireworksIsStoppedOnce(t *testing.T) {
	t.Parallel()
	n := fireworksHost.host(t)
	file := n.upload(n.mine, rowsFor(fireworksHost.model))
	ended := n.make(fireworksHost, n.mine, file)["id"].(string)
	n.end(n.mine, ended)
	if got := n.call("POST", "/batches/"+ended+"/cancel", "", as(n.mine)...); got.status != 400 || !strings.Contains(got.body, "cannot be cancelled") {
		t.Errorf("%d %s", got.status, got.body)
	}
	if got := n.call("GET", "/batches/"+ended, "", as(n.mine)...).json(t); got["status"] != "completed" {
		t.Errorf("%v", got)
	}
	stopped := n.make(fireworksHost, n.mine, file)["id"].(string)
	n.call("POST", "/batches/"+stopped+"/cancel", "", as(n.mine)...)
	for range 2 {
		if got := n.call("GET", "/batches/"+stopped, "", as(n.mine)...); got.status != 200 || got.json(t)["status"] != "cancelled" || got.json(t)["input_file_id"] != file {
			t.Errorf("%d %s", got.status, got.body)
		}
	}
	if got := n.call("GET", "/batches/"+stopped+"/output", "", as(n.mine)...); got.status != 404 {
		t.Errorf("%d %s", got.status, got.body)
	}
}

func TestAnEmbedJobOfCohereIsCancelledAndIsNobodyElses(t *testing.T) {
	t.Parallel()
	n := cohereHost.host(t)
	rows := vectorsFor(cohereHost.model, "")
	made := n.call("POST", "/batches", fmt.Sprintf(`{"input_file_id":%q,"endpoint":"/v1/embeddings","completion_window":"24h"}`, n.upload(n.mine, rows)), as(n.mine)...)
	id, _ := made.json(t)["id"].(string)
	for _, path := range []string{"/batches/" + id, "/batches/" + id + "/output", "/files/" + id + "_output"} {
		if got := n.call("GET", path, "", as(n.theirs)...); got.status != 404 {
			t.Errorf("%s: %d %s", path, got.status, got.body)
		}
	}
	if got := n.call("POST", "/batches/"+id+"/cancel", "", as(n.mine)...); got.status != 200 || got.json(t)["status"] != "cancelling" {
		t.Errorf("%d %s", got.status, got.body)
	}
	first := n.end(n.mine, id)
	if again := n.end(n.mine, id); first["status"] != "cancelled" || first["cancelled_at"] == nil || again["cancelled_at"] != first["cancelled_at"] {
		t.Errorf("%v\n%v", first, again)
	}
	if list := n.call("GET", "/batches", "", as(n.theirs)...).json(t); len(list["data"].([]any)) != 0 {
		t.Errorf("%v", list)
	}
}

// tunesAModel takes a fine-tuning job through its life.
func tunesAModel(t *testing.T, h jobHost, hyper string) {
	n := h.host(t)
	upload := func(rows string) string {
		return n.id("POST", "/files", form("purpose", "fine-tune", "file", "rows.jsonl:"+rows), as(n.mine, formType...)...)
	}
	talks := upload(`{"messages":[{"role":"system","content":"Be kind."},{"role":"user","content":"Hi"},{"role":"assistant","content":"Hello"}]}` + "\n")
	plain := upload(`{"prompt":"a","completion":"b"}` + "\n")
	made := n.call("POST", "/fine_tuning/jobs", fmt.Sprintf(`{"model":%q,"training_file":%q,"validation_file":%q,"suffix":"mine","hyperparameters":{%q:2}}`, h.model, talks, plain, hyper), as(n.mine)...)
	job := made.json(t)
	id, _ := job["id"].(string)
	if made.status != 200 || job["object"] != "fine_tuning.job" || job["status"] != "queued" || job["training_file"] != talks || job["model"] != h.model {
		t.Fatalf("%d %s", made.status, made.body)
	}
	if got := n.call("GET", "/fine_tuning/jobs/"+id, "", as(n.theirs)...); got.status != 404 {
		t.Errorf("another's: %d %s", got.status, got.body)
	}
	for range 3 {
		job = n.call("GET", "/fine_tuning/jobs/"+id, "", as(n.mine)...).json(t)
	}
	if job["status"] != "succeeded" || job["fine_tuned_model"] == nil || job["created_at"].(float64) > 1e11 || job["validation_file"] != plain {
		t.Errorf("%v", job)
	}
	second := n.id("POST", "/fine_tuning/jobs", fmt.Sprintf(`{"model":%q,"training_file":%q}`, h.model, plain), as(n.mine)...)
	first := n.call("GET", "/fine_tuning/jobs?limit=1", "", as(n.mine)...).json(t)
	next := n.call("GET", "/fine_tuning/jobs?limit=1&after="+second, "", as(n.mine)...).json(t)
	if first["last_id"] != second || first["has_more"] != true || next["last_id"] != id || next["has_more"] != false {
		t.Errorf("%v\n%v", first, next)
	}
	if got := n.call("POST", "/fine_tuning/jobs/"+second+"/cancel", "", as(n.mine)...).json(t); got["status"] != "cancelled" {
		t.Errorf("%v", got)
	}
	for body, problem := range map[string]string{
		fmt.Sprintf(`{"model":"m","training_file":%q,"method":{"type":"dpo"}}`, plain):                      "method.type",
		fmt.Sprintf(`{"model":"m","training_file":%q,"hyperparameters":{"n_epochs":[1]}}`, plain):           "hyperparameters",
		fmt.Sprintf(`{"model":"m","training_file":%q}`, upload("{")):                                        "training_file: line 1",
		fmt.Sprintf(`{"model":"m","training_file":%q}`, upload("")):                                         "at least one example",
		fmt.Sprintf(`{"model":"m","training_file":%q}`, n.upload(n.mine, "{}")):                             "purpose fine-tune",
		fmt.Sprintf(`{"model":"m","training_file":%q,"validation_file":%q}`, plain, n.upload(n.mine, "{}")): "validation_file",
	} {
		if got := n.call("POST", "/fine_tuning/jobs", body, as(n.mine)...); got.status != 400 || !strings.Contains(got.body, problem) {
			t.Errorf("%s: %d %s", body, got.status, got.body)
		}
	}
}

// forwardsABatch checks that files and batches go to a host in OpenAI's shape as they are,
// and that an ended batch is recorded once.
func forwardsABatch(t *testing.T, h jobHost) {
	n := h.host(t)
	rows := rowsFor(h.model)
	file := n.upload(n.mine, rows)
	if got := n.call("GET", "/files/"+file+"/content", "", as(n.mine)...); got.status != 200 || got.body != rows {
		t.Fatalf("%d %s", got.status, got.body)
	}
	id := n.make(h, n.mine, file)["id"].(string)
	if got := n.call("GET", "/batches/"+id, "", as(n.theirs)...); got.status != 404 {
		t.Errorf("another's: %d %s", got.status, got.body)
	}
	b := n.end(n.mine, id)
	if b["status"] != "completed" || b["request_counts"].(map[string]any)["completed"] != 2.0 {
		t.Fatalf("%v", b)
	}
	n.end(n.mine, id)
	if out := n.call("GET", "/batches/"+id+"/output", "", as(n.mine)...); strings.Count(out.body, "A batched answer") != 2 {
		t.Errorf("%s", out.body)
	}
	list := n.call("GET", "/batches?limit=5", "", as(n.mine)...).json(t)
	if len(list["data"].([]any)) != 1 {
		t.Errorf("%v", list)
	}
	if got := n.call("DELETE", "/files/"+file, "", as(n.mine)...).json(t); got["deleted"] != true {
		t.Errorf("%v", got)
	}
	n.booksOfBatch(false)
}

func TestABatchOfGroq(t *testing.T) {
	t.Parallel()
	forwardsABatch(t, jobHost{provider: "groq", key: `"key":"mock-key",`, model: "llama-3.3-70b-versatile", path: "/hosts/groq/openai/v1"})
}

func TestABatchOfAzure(t *testing.T) {
	t.Parallel()
	forwardsABatch(t, jobHost{
		provider: "azure-openai", key: `"key":"mock-key",`, model: "gpt-4o-mini", path: "/hosts/azure/openai",
		configurations: `"azure_auth_mode":"default","azure_resource_name":"res","azure_deployment_config":[{"azure_deployment_name":"gpt-4o-mini","azure_api_version":"2024-10-21","azure_model_slug":"gpt-4o-mini","is_default":true}],`,
	})
}
