package dialect_test

import (
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/golden"
)

// half are the providers' dialects that can be read and written as a client's, but
// in which no route asks.
var half = map[string]bool{"gemini": true, "cohere": true, "converse": true}

// TestADialectHasOnlyItsRoles: what only providers speak has none of the methods
// of a client's dialect, and what clients speak has all.
func TestADialectHasOnlyItsRoles(t *testing.T) {
	t.Parallel()
	for name, d := range golden.Providers {
		_, reads := d.(chat.RequestReader)
		_, answers := d.(chat.AnswerWriter)
		_, fails := d.(chat.ErrorWriter)
		_, whole := d.(chat.Spoken)
		switch client := golden.Clients[name] != nil; {
		case client && !whole:
			t.Errorf("clients speak %s, which lacks a role", name)
		case !client && !half[name] && (reads || answers || fails):
			t.Errorf("only providers speak %s: it reads requests %v, writes answers %v, writes errors %v", name, reads, answers, fails)
		}
	}
}
