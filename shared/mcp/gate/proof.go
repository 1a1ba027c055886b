package gate

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"strconv"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/bearer"
	"gateway/shared/mcp"
	"gateway/shared/mcp/oauthserver"
)

// maxRules bounds what is kept of validations in the process.
const maxRules = 1000

// proof is a token of the organisation's own identity provider that was found good.
type proof struct {
	raw       string
	token     *bearer.Token
	who       string // whom it names, among those who use one key
	tolerance time.Duration
}

// over tells whether the token has expired. A service that is asked about a token may name
// no end.
func (p *proof) over(now time.Time) bool {
	end, ok := p.token.Claims["exp"].(float64)
	return ok && !now.Before(time.Unix(int64(end), 0).Add(p.tolerance))
}

// proven checks the token that clients of the server must bring besides their key, where
// it wants one. ok is false where the request was answered.
func proven(v *visit) (ok bool, err error) {
	of := v.facts.Integration
	if !of.Validates() {
		return true, nil
	}
	_, conf, err := v.host.opener.Configuration(v.call.Context, of.Record, v.facts.Server.Record.Scope)
	if err != nil || conf.JWT == nil {
		return err == nil, err
	}
	rules := v.host.rulesOf(conf.JWT)
	raw := bearer.Of(v.call.Request.Header, conf.JWT.Header())
	if raw != "" && isGatewayCredential(v, raw) {
		return unproven(v, fault.Unauthorized, conf.JWT, "The header holds a credential of the gateway and no token of the organisation's identity provider")
	}
	t, why, err := v.host.proofs.Check(v.call.Context, validationClient(v), rules, raw)
	switch {
	case err != nil:
		return false, fault.New(fault.ServiceUnavailable, strings.ToLower(conf.JWT.Header()), "The token cannot be checked now").WithCause(err)
	case t == nil:
		return unproven(v, fault.Unauthorized, conf.JWT, why)
	}
	failed, err := rules.Claims.Judge(t)
	switch {
	case err != nil:
		return false, err
	case len(failed.Missing) > 0:
		return unproven(v, fault.Unauthorized, conf.JWT, "Missing required claims: "+strings.Join(failed.Missing, ", "))
	case len(failed.Mismatched) > 0:
		return unproven(v, fault.Unauthorized, conf.JWT, "Claims that differ between header and payload: "+strings.Join(failed.Mismatched, ", "))
	case len(failed.Wrong) > 0:
		return unproven(v, fault.NotAllowed, conf.JWT, "Claims with values that are not allowed: "+strings.Join(failed.Wrong, ", "))
	}
	v.proof = &proof{raw, t, whoOf(t, raw), rules.Tolerance}
	return true, nil
}

// whoOf names the person of a token, the same when it is renewed; a token that names nobody
// stands for itself.
func whoOf(t *bearer.Token, raw string) string {
	issuer, _ := t.Claims["iss"].(string)
	subject, _ := t.Claims["sub"].(string)
	if subject == "" {
		issuer, subject = "", raw
	}
	sum := sha256.Sum256([]byte(issuer + "\x00" + subject))
	return hex.EncodeToString(sum[:16])
}

// isGatewayCredential tells whether a value is a key or token of the gateway, which no other host may
// see. What the organisation's own identity provider signed is none, also where it is
// what the caller is known by.
func isGatewayCredential(v *visit, raw string) bool {
	if oauthserver.IsOurs(raw) {
		return true
	}
	own, _, err := identity.Token(v.call.Request.Header)
	return err == nil && own == raw && !(v.call.Caller.Type == identity.SignedToken && strings.Count(raw, ".") == 2)
}

// validationClient calls the hosts that a validation names. Redirects are not followed.
func validationClient(v *visit) *http.Client {
	return &http.Client{Transport: v.call.Via, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// rulesOf gives the rules of a validation, made once for all that say the same.
func (h *Host) rulesOf(j *mcp.JWTValidation) *bearer.Rules {
	print := j.Print()
	h.mu.Lock()
	defer h.mu.Unlock()
	r := h.rules[print]
	if r == nil {
		if len(h.rules) >= maxRules {
			clear(h.rules)
		}
		r = j.Rules()
		h.rules[print] = r
	}
	return r
}

// unproven rejects a request for its token, as RFC 6750 says, with a body like that of an
// OAuth error and not a message of the protocol: clients read it as the refusal of the
// connection. It does not name the gateway's own sign-in, which issues no such token.
func unproven(v *visit, code fault.Code, j *mcp.JWTValidation, why string) (bool, error) {
	f := fault.New(code, strings.ToLower(j.Header()), why)
	v.note.Code, v.note.Decision = int64(f.Status()), "token"
	said, name := "unauthorized", "invalid_token"
	if f.Status() == http.StatusForbidden {
		said, name = "forbidden", "insufficient_scope"
	}
	raw, err := json.Marshal(map[string]string{"error": said, "error_description": why, "field": f.Field, "trace_id": v.call.TraceID})
	if err != nil {
		return false, err
	}
	v.call.Header().Set("WWW-Authenticate", `Bearer error=`+strconv.Quote(name))
	unread(v)
	v.call.Send(f.Status(), "application/json", raw, f)
	return false, nil
}
