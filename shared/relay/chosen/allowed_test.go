package chosen

import (
	"net/url"
	"strings"
	"testing"

	"gateway/shared/fault"
)

func TestOtherModelsOfABodyAreFound(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"a","models":["b"]}`:                                    "models[0] b",
		`{"model":"a","tools":[{"type":"image_generation","model":"b"}]}`: "tools[0].model b",
		`{"requests":[{"custom_id":"1","params":{"model":"b"}}]}`:         "requests[0].params.model b",
		`{"requests":[{"model":"models/b"}]}`:                             "requests[0].model b",
		`{"data_source":{"model":"b"}}`:                                   "data_source.model b",
		`{"modelId":"arn:aws:bedrock:us-east-1::foundation-model/b"}`:     "modelId b",
		`{"fallback_model":"b"}`:                                          "fallback_model b",
		`{"fallbacks":[{"model":"b"}]}`:                                   "fallbacks[0].model b",
		`{"model":"a","metadata":{"model":"b"}}`:                          "",
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

func TestRowsInFilesAreFound(t *testing.T) {
	t.Parallel()
	const rows = `{"input_file_id":"file-1","endpoint":"/v1/chat/completions"}`
	for path, want := range map[string]string{
		"/batches": "input_file_id", "/v1//batches/": "input_file_id", "/%62atches": "input_file_id", "/openai/v1/Batches": "input_file_id",
		"/batches/b/cancel": "", "/fine_tuning/jobs": "",
	} {
		if got := rowsInFile(path, []byte(rows)); got != want {
			t.Errorf("%s: %q, want %q", path, got, want)
		}
	}
	if got := rowsInFile("/messages/batches", []byte(`{"requests":[{"custom_id":"a","params":{"model":"m"}}]}`)); got != "" {
		t.Errorf("rows in the body: %q", got)
	}
}
