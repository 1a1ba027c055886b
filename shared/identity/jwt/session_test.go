package jwt_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/jwt"
)

// The time that an organization gives to sessions counts from the claim iat, also for
// tokens that were found good before it was set.
func TestTokenExceedingMaxAgeIsRejected(t *testing.T) {
	t.Parallel()
	h := newInstallation(t, nil)
	keys := set(jwk("k1", &signing().PublicKey))
	h.use(map[string]jwt.Settings{org: {Set: keys}})
	began := h.now()
	long := map[string]any{"exp": began.Add(30 * 24 * time.Hour).Unix(), "iat": began.Unix()}
	token, silent := h.good(long), h.good(map[string]any{"exp": long["exp"]})
	verify := func(token, refused string) {
		t.Helper()
		_, err := h.v.Verify(context.Background(), token, identity.AuthenticationAttempt{})
		switch f := fault.From(err); {
		case refused == "" && err != nil, refused != "" && err == nil:
			t.Errorf("%v", err)
		case err != nil && (f.Status() != 401 || !strings.Contains(f.Message, refused)):
			t.Errorf("%d %s", f.Status(), f.Message)
		}
	}
	verify(token, "")
	verify(silent, "")
	h.use(map[string]jwt.Settings{org: {Set: keys, MaxAge: 15 * time.Minute}})
	verify(token, "")
	verify(silent, "iat is missing")
	h.pass(15*time.Minute + 4*time.Second)
	verify(token, "")
	h.pass(2 * time.Second)
	verify(token, "more than 900 seconds ago")
	verify(h.good(map[string]any{"iat": h.now().Unix()}), "")
	h.use(map[string]jwt.Settings{org: {Set: keys}})
	verify(token, "")
	verify(silent, "")
}
