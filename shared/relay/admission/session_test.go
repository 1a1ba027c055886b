package admission

import (
	"net/http"
	"testing"
)

// TestSessionHeaders: a session is read from the headers of several clients, that of a coding
// agent first.
func TestSessionHeaders(t *testing.T) {
	t.Parallel()
	for _, name := range append(sessions[:], sessionID) {
		h := http.Header{}
		h.Set(name, "s-1")
		var got Headers
		if err := got.Read(h); err != nil || got.Session != "s-1" {
			t.Errorf("%s: %q", name, got.Session)
		}
		h.Set(sessionID, "first")
		got = Headers{}
		if err := got.Read(h); err != nil || got.Session != "first" {
			t.Errorf("%s: %q", name, got.Session)
		}
	}
}
