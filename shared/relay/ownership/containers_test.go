package ownership

import (
	"slices"
	"strings"
	"testing"
)

// Containers are found in complete responses and in events, including the end of a long stream.
func TestContainersOfMessages(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string][]string{
		`{"id":"msg_1","container":{"id":"container_1","expires_at":"x"}}`:      {"container_1"},
		`{"type":"message_start","message":{"container":{"id":"container_1"}}}`: {"container_1"},
		`{"type":"message_delta","delta":{"container":{"id":"container_1"}}}`:   {"container_1"},
		`{"container":null}`: nil, `{"container":{"id":7}}`: nil, `{"content":[{"text":"\"container\""}]}`: nil, `["container"]`: nil,
	} {
		if got := Containers([]byte(answer)); !slices.Equal(got, want) {
			t.Errorf("%s: %q", answer, got)
		}
	}
	var noted []string
	w := WatchContainers(func(ids ...string) error { noted = append(noted, ids...); return nil })
	piece := "event: content_block_delta\ndata: {\"delta\":{\"text\":\"" + strings.Repeat("a", 1000) + "\"}}\n\n"
	end := "event: message_delta\ndata: {\"delta\":{\"container\":{\"id\":\"container_1\"}}}\n\n"
	for _, part := range []string{strings.Repeat(piece, 400), end[:60], end[60:], end} {
		if err := w.Feed([]byte(part)); err != nil {
			t.Fatal(err)
		}
	}
	if !slices.Equal(noted, []string{"container_1"}) {
		t.Errorf("%q", noted)
	}
}
