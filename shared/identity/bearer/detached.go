package bearer

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"net/http"
	"slices"
	"strings"

	golangjwt "github.com/golang-jwt/jwt/v5"

	"gateway/shared/wire"
)

// Detached is a JWS signature without its payload; both parts are in base64url.
type Detached struct{ Protected, Signature string }

// asymmetric lists the signature algorithms with public keys.
var asymmetric = []string{"RS256", "RS384", "RS512", "PS256", "PS384", "PS512", "ES256", "ES384", "ES512", "EdDSA"}

// maxProtected is the size limit of a protected header in bytes.
const maxProtected = 8 << 10

// Head returns fields of the protected header. ok is false for a signature that cannot be
// verified: it does not name its key, uses another algorithm, or requires an unknown extension.
func (d *Detached) Head() (alg, kid, jku string, ok bool) {
	text, err := base64.RawURLEncoding.DecodeString(d.Protected)
	var h map[string]json.RawMessage
	if err != nil || len(text) > maxProtected || wire.CheckStrict(text, 8) != nil || json.Unmarshal(text, &h) != nil {
		return "", "", "", false
	}
	for name, to := range map[string]*string{"alg": &alg, "kid": &kid, "jku": &jku} {
		_ = json.Unmarshal(h[name], to) // another type counts as absent
	}
	return alg, kid, jku, h["crit"] == nil && kid != "" && slices.Contains(asymmetric, alg)
}

// Detached reports whether a signature signs one of several forms of a payload, using the key
// set at an address. known is false if the set has no such key; err is set if the set could not
// be read.
func (c *Checker) Detached(ctx context.Context, client *http.Client, uri string, d *Detached, forms ...[]byte) (good, known bool, err error) {
	alg, kid, _, ok := d.Head()
	sig, wrong := base64.RawURLEncoding.DecodeString(strings.TrimRight(d.Signature, "="))
	if !ok || wrong != nil {
		return false, false, nil
	}
	public, err := c.keys.find(ctx, client, &Rules{JWKSURI: uri}, c.keys.set(uri), kid, alg, nil)
	if err != nil || public == nil {
		return false, false, err
	}
	method := golangjwt.GetSigningMethod(alg)
	for _, form := range forms {
		if method.Verify(d.Protected+"."+base64.RawURLEncoding.EncodeToString(form), sig, public) == nil {
			return true, true, nil
		}
	}
	return false, true, nil
}
