package oauthserver

import (
	"path/filepath"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// TestAccessTokensActForTheirUser checks that a client which its user let in acts for this
// user at servers where each user signs in, although no key is stored for the token.
func TestAccessTokensActForTheirUser(t *testing.T) {
	t.Parallel()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	v, err := resource.NewLoader(resource.New(s, resource.Embedded())).Fresh(t.Context(), "o")
	if err != nil {
		t.Fatal(err)
	}
	a, err := decode(store.Item{"id": "ABC", "org": "o", "ws": "w", "user": "ann", "server": "s"})
	if err != nil {
		t.Fatal(err)
	}
	rank, personal, err := identity.Granted(t.Context(), v, a.who)
	if err != nil || !personal || a.who.UserID != "ann" || rank.IsHigherThan(identity.RankMember) {
		t.Errorf("the token acts for its user: %v, with the rank %q, %v", personal, rank, err)
	}
}
