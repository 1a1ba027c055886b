package live

import (
	"slices"
	"testing"
)

// Texts are found where they stand, and are put back there.
func TestTextsAreFoundAndPutBack(t *testing.T) {
	t.Parallel()
	names := map[string]bool{"text": false, "response": true}
	for name, c := range map[string]struct {
		message string
		want    []string
		retold  string
	}{
		"plain":        {`{"text":"a","type":"b"}`, []string{"a"}, `{"text":"A","type":"b"}`},
		"a list":       {`{"text":["a",{"type":"b"}]}`, []string{"a"}, `{"text":["A",{"type":"b"}]}`},
		"escaped name": {`{"te\u0078t":"a"}`, []string{"a"}, `{"text":"A"}`},
		"an answer":    {`{"response":{"rows":[{"note":"a","n":1}]},"id":"b"}`, []string{"a"}, `{"id":"b","response":{"rows":[{"n":1,"note":"A"}]}}`},
		"no settings":  {`{"audio":{"response":{"text":"a"},"output":{"voice":"b"}}}`, []string{"a"}, `{"audio":{"output":{"voice":"b"},"response":{"text":"A"}}}`},
		"none":         {`{"audio":"a"}`, nil, `{"audio":"a"}`},
	} {
		if got := Texts([]byte(c.message), names); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
		if got := string(Retold([]byte(c.message), names, map[string]string{"a": "A", "b": "B"})); got != c.retold && c.want != nil {
			t.Errorf("%s: %s, want %s", name, got, c.retold)
		}
	}
}
