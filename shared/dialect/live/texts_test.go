package live

import (
	"slices"
	"testing"
)

func TestTextsAreFound(t *testing.T) {
	t.Parallel()
	names := map[string]bool{"text": false, "response": true}
	for name, c := range map[string]struct {
		message string
		want    []string
	}{
		"plain":        {`{"text":"a","type":"b"}`, []string{"a"}},
		"a list":       {`{"text":["a",{"type":"b"}]}`, []string{"a"}},
		"escaped name": {`{"te\u0078t":"a"}`, []string{"a"}},
		"an answer":    {`{"response":{"rows":[{"note":"a","n":1}]},"id":"b"}`, []string{"a"}},
		"no settings":  {`{"audio":{"response":{"text":"a"},"output":{"voice":"b"}}}`, []string{"a"}},
		"none":         {`{"audio":"a"}`, nil},
	} {
		if got := Texts([]byte(c.message), names); !slices.Equal(got, c.want) {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
