package target

import (
	"net/url"
	"strings"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/form"
	"gateway/shared/relay/ownership"
)

func TestOtherModelsOfABodyAreFound(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"a","models":["b"]}`:                                      "models[0] b",
		`{"model":"a","tools":[{"type":"image_generation","model":"b"}]}`:   "tools[0].model b",
		`{"requests":[{"custom_id":"1","params":{"model":"b"}}]}`:           "requests[0].params.model b",
		`{"requests":[{"model":"models/b"}]}`:                               "requests[0].model b",
		`{"data_source":{"model":"b"}}`:                                     "data_source.model b",
		`{"modelId":"arn:aws:bedrock:us-east-1::foundation-model/b"}`:       "modelId b",
		`{"fallback_model":"b"}`:                                            "fallback_model b",
		`{"fallbacks":[{"model":"b"}]}`:                                     "fallbacks[0].model b",
		`{"model":"a","fallbacks":["b"]}`:                                   "fallbacks[0] b",
		`{"model":"a","fallbacks":"b"}`:                                     "fallbacks b",
		`{"model":"a","context_window_fallbacks":[{"a":["b"]}]}`:            "context_window_fallbacks[0].a[0] b",
		`{"model":"a","fallbacks":[{"model":"b","stop":"c"}]}`:              "fallbacks[0].model b",
		`{"batch":{"requests":[{"request":{"parameters":{"model":"b"}}}]}}`: "batch.requests[0].request.parameters.model b",
		`{"model":"a","metadata":{"model":"b"}}`:                            "",
	} {
		found, err := otherModels([]byte(body))
		got := ""
		for _, r := range found {
			got = r.Field + " " + r.ID
		}
		if err != nil || len(found) > 1 || got != want {
			t.Errorf("%s: %q %v, want %q", body, got, err, want)
		}
	}
	if _, err := otherModels([]byte("{")); fault.From(err).Code != fault.ModelNotAllowed {
		t.Errorf("a body that cannot be read: %v", err)
	}
}

func TestModelsOutsideOfAPassedBodyAreFound(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]string{
		"/engines/Big/completions": "Big", "/openai/deployments/Big/chat/completions?x=y": "Big", "//v1/%65ngines/Big/completions": "Big",
		"/deployments%2FBig/chat/completions": "Big", "/chat/completions": "", "/deployments/a": "", "/accounts/a/deployments": "",
	} {
		if got := strings.Join(pathModels(path), " "); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	for query, want := range map[string]string{"model=a": "a", "Model_ID=a": "a", "x=1": "", "voice=model": ""} {
		values, _ := url.ParseQuery(query)
		if got := strings.Join(queryModels(values), " "); got != want {
			t.Errorf("%s: %q, want %q", query, got, want)
		}
	}
}

// TestRowsInFilesAreFound holds each way in which a batch names the file of its rows, at every
// provider that has one.
func TestRowsInFilesAreFound(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ path, body, want string }{
		{"/batches", `{"input_file_id":"file-1","endpoint":"/v1/chat/completions"}`, "input_file_id"},
		{"/v1//batches/", `{"input_file_id":"file-1"}`, "input_file_id"},
		{"/%62atches", `{"input_f\u0069le_id":"file-1"}`, "input_file_id"},
		{"/openai/v1/Batches", `{"input_file_id":"file-1"}`, "input_file_id"},
		{"/v1/batch/jobs", `{"input_files":["id-1"],"model":"m","endpoint":"/v1/chat/completions"}`, "input_files[0]"},
		{"/v2/batches", `{"name":"x","input_dataset_id":"d","model":"m"}`, "input_dataset_id"},
		{"/v1/embed-jobs", `{"dataset_id":"d","model":"m"}`, "dataset_id"},
		{"/v1beta/models/m:batchGenerateContent", `{"batch":{"input_config":{"file_name":"files/abc"}}}`, "batch.input_config.file_name"},
		{"/v1beta/models/m:asyncBatchEmbedContent", `{"batch":{"inputConfig":{"fileName":"files/abc"}}}`, "batch.inputConfig.fileName"},
		{"/v1beta/models/m:batchGenerateContent", `{"src":"files/abc"}`, "src"},
		{"/v1/projects/p/locations/l/batchPredictionJobs", `{"model":"m","inputConfig":{"gcsSource":{"uris":["gs://b/o"]}}}`, "inputConfig.gcsSource.uris[0]"},
		{"/v1/projects/p/locations/l/batchPredictionJobs", `{"inputConfig":{"bigquerySource":{"inputUri":"bq://a.b.c"}}}`, "inputConfig.bigquerySource.inputUri"},
		{"/model-invocation-job", `{"modelId":"m","inputDataConfig":{"s3InputDataConfig":{"s3Uri":"s3://b/o"}}}`, "inputDataConfig.s3InputDataConfig.s3Uri"},
		{"/v1/accounts/a/batchInferenceJobs", `{"model":"m","inputDatasetId":"d"}`, "inputDatasetId"},

		{"/batches", `{"input_files":["a"],"input_file_id":"file-1"}`, "input_files[0]"},
		{"/batches", `{"input_file_id":"file-1","input_files":["a"]}`, "input_files[0]"},

		{"/batches/b/cancel", `{"input_file_id":"file-1"}`, ""},
		{"/fine_tuning/jobs", `{"training_file":"file-1"}`, ""},
		{"/messages/batches", `{"requests":[{"custom_id":"a","params":{"model":"m"}}]}`, ""},
		{"/messages/batches", `{"requests":[{"params":{"messages":[{"content":[{"type":"document","source":{"type":"file","file_id":"f"}}]}]}}]}`, ""},
		{"/v1beta/models/m:batchGenerateContent", `{"batch":{"inputConfig":{"requests":{"requests":[{"request":{"contents":[{"parts":[{"fileData":{"fileUri":"files/abc"}}]}]}}]}}}}`, ""},
	} {
		if got := RowsFile(c.path, []byte(c.body)); got != c.want {
			t.Errorf("%s %s: %q, want %q", c.path, c.body, got, c.want)
		}
	}
}

func TestModelsOfFormsAreFound(t *testing.T) {
	t.Parallel()
	for field, want := range map[string]string{
		"model": "m", "models[]": "m", "fallback_model": "m", "options[model]": "m", "fallbacks": "m", "prompt": "", "file_id": "",
	} {
		body := "--b\r\nContent-Disposition: form-data; name=\"" + field + "\"\r\n\r\nm\r\n--b--"
		f, err := form.ReadForm(strings.NewReader(body), "b", int64(len(body)), nil)
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, r := range modelsInForm(f) {
			got += r.ID
		}
		if got != want {
			t.Errorf("%s: %q, want %q", field, got, want)
		}
	}
}

// A part that is a file is no model, whatever its provider takes it for.
func TestFilesNamedLikeAModelAreFound(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]bool{"model": true, "Model": true, "fallback_model": true, "file": false, "image": false} {
		body := "--b\r\nContent-Disposition: form-data; name=\"" + name + "\"; filename=\"x\"\r\n\r\nbig\r\n--b--"
		f, err := form.ReadForm(strings.NewReader(body), "b", int64(len(body)), nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := modelFile(f); (got == name) != want {
			t.Errorf("%s: %q", name, got)
		}
	}
}

// TestRequestsThatRunTheModelOfAHost lists which passed-through requests without a model may run
// one that the host chooses.
func TestRequestsThatRunTheModelOfAHost(t *testing.T) {
	t.Parallel()
	p, _ := provider.ByID("openai")
	for request, want := range map[string]bool{
		"POST /chat/completions": true, "POST /v1/responses": true, "POST /audio/speech": true, "PUT /anything": true, "POST /models/a:generate": true,
		"POST /threads/runs": true, "POST /a/../chat/completions": true, "POST /files/x/..%2f..%2fchat/completions": true, "POST /videos": true, "POST /evals/e/runs": false,
		"GET /chat/completions": false, "DELETE /files/a": false, "POST /files": false, "POST /uploads": false, "POST /containers": false,
		"POST /vector_stores": false, "POST /vector_stores/v/search": false, "POST /threads": false, "POST /threads/t/runs": false, "POST /batches/b/cancel": false,
	} {
		method, path, _ := strings.Cut(request, " ")
		at := ownership.PathOf(path)
		if got := mayRunModel(method, path, &at, p); got != want {
			t.Errorf("%s: %v", request, got)
		}
	}
}
