package relay

import (
	"testing"

	"gateway/shared/provider"
)

func TestListsOfEveryShapeBecomeOne(t *testing.T) {
	t.Parallel()
	p, _ := provider.ByID("openai")
	const want = `{"object":"list","data":[{"id":"a","object":"model","created":7,"owned_by":"openai"},{"id":"b","object":"model","created":0,"owned_by":"me"}],"provider":"openai"}`
	for _, body := range []string{
		`{"data":[{"id":"a","created":7},{"id":"b","owned_by":"me"}]}`,
		`{"models":[{"name":"models/a","created":7},{"name":"b","owned_by":"me"}]}`,
		`[{"id":"a","created":7},{"id":"b","owned_by":"me"}]`,
		`{"data":[{"id":"a","created":7},{"object":"no name"},{"id":"b","owned_by":"me"}]}`,
	} {
		if got, err := OpenAIModels([]byte(body), p); err != nil || string(got) != want {
			t.Errorf("%s: %v\n%s", body, err, got)
		}
	}
	if got, err := OpenAIModels([]byte(`<html>`), p); err == nil {
		t.Errorf("a page became %s", got)
	}
}
