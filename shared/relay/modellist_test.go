package relay

import (
	"strings"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/provider"
)

func TestListsOfEveryShapeBecomeOne(t *testing.T) {
	t.Parallel()
	p, _ := provider.ByID("openai")
	const want = `{"object":"list","data":[{"id":"a","object":"model","created":7,"owned_by":"openai"},{"id":"b","object":"model","created":0,"owned_by":"me"}],"provider":"openai"}`
	const google = `{"models":[{"name":"models/a","displayName":"a","supportedGenerationMethods":["generateContent","countTokens"]},{"name":"models/b","displayName":"b","supportedGenerationMethods":["generateContent","countTokens"]}]}`
	for _, body := range []string{
		`{"data":[{"id":"a","created":7},{"id":"b","owned_by":"me"}]}`,
		`{"models":[{"name":"models/a","created":7},{"name":"b","owned_by":"me"}]}`,
		`[{"id":"a","created":7},{"id":"b","owned_by":"me"}]`,
		`{"data":[{"object":"no name"},{"id":"a","created":7},{"object":"no name"},{"id":"b","owned_by":"me"}]}`,
	} {
		if got, err := OpenAIModels([]byte(body), p); err != nil || strings.NewReplacer(`,"name":"models/a"`, "", `,"name":"b"`, "").Replace(string(got)) != want {
			t.Errorf("%s: %v\n%s", body, err, got)
		}
		if got, err := GoogleModels([]byte(body), p, ""); err != nil || string(got) != google {
			t.Errorf("%s: %v\n%s", body, err, got)
		}
		if got, err := GoogleModels([]byte(body), p, "%62"); err != nil || !strings.HasPrefix(string(got), `{"name":"models/b"`) {
			t.Errorf("%s: %v\n%s", body, err, got)
		}
	}
	// The clients of a provider require fields of its own (OpenRouter's SDK rejects a list without).
	const own = `{"id":"openai/gpt-4o","object":"model","created":7,"owned_by":"openai","architecture":{"modality":"text"},"context_length":128000,"name":"GPT-4o"}`
	if got, err := OpenAIModels([]byte(`{"data":[{"id":"openai/gpt-4o","name":"GPT-4o","context_length":128000,"created":7,"architecture":{"modality":"text"}}]}`), p); err != nil || !strings.Contains(string(got), own) {
		t.Errorf("%v\n%s", err, got)
	}
	for _, path := range []string{"c", "%", "a%2Fb"} {
		if got, err := GoogleModels([]byte(`{"data":[{"id":"a"}]}`), p, path); err == nil {
			t.Errorf("%s: %s", path, got)
		}
	}
	if got, err := GoogleModels([]byte(`{"data":[{"id":7}]}`), p, ""); !fault.Is(err, fault.InvalidProviderResponse) {
		t.Errorf("%v %s", err, got)
	}
	if got, err := OpenAIModels([]byte(`<html>`), p); err == nil {
		t.Errorf("a page became %s", got)
	}
}
