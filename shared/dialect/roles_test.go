package dialect_test

import (
	"testing"

	"gateway/shared/chat"
	"gateway/shared/testkit/golden"
)

// half are the dialects of providers that can also be read and written as a client's,
// although clients use them on no route.
var half = map[string]bool{"gemini": true, "cohere": true, "converse": true}

// TestADialectHasOnlyItsRoles: a dialect that only providers speak has none of the methods
// of a client's dialect; a dialect that clients speak has all of them.
func TestADialectHasOnlyItsRoles(t *testing.T) {
	t.Parallel()
	for name, d := range golden.Providers {
		_, reads := d.(chat.RequestReader)
		_, answers := d.(chat.ResponseWriter)
		_, fails := d.(chat.ErrorWriter)
		_, whole := d.(chat.TwoWayDialect)
		switch client := golden.Clients[name] != nil; {
		case client && !whole:
			t.Errorf("clients speak %s, which lacks a role", name)
		case !client && !half[name] && (reads || answers || fails):
			t.Errorf("only providers speak %s: it reads requests %v, writes answers %v, writes errors %v", name, reads, answers, fails)
		}
	}
}
