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

// maxRules is the number of cached validation rules.
const maxRules = 1000

// verifiedToken is a valid token of the organisation's identity provider.
type verifiedToken struct {
	raw       string
	token     *bearer.Token
	subject   string // identifies the user among those who share a key
	tolerance time.Duration
}

// expired reports whether the token has expired. An introspected token may have no expiry.
func (p *verifiedToken) expired(now time.Time) bool {
	end, ok := p.token.Claims["exp"].(float64)
	return ok && !now.Before(time.Unix(int64(end), 0).Add(p.tolerance))
}

// verifyToken checks the token that clients of the server must send in addition to their key,
// if one is required. ok is false if a response was sent.
func verifyToken(v *requestState) (ok bool, err error) {
	of := v.facts.Integration
	if !of.RequiresToken() {
		return true, nil
	}
	_, conf, err := v.host.opener.Configuration(v.call.Context, of.Record, v.facts.Server.Record.Scope)
	if err != nil || conf.JWT == nil {
		return err == nil, err
	}
	rules := v.host.rulesOf(conf.JWT)
	raw := bearer.Of(v.call.Request.Header, conf.JWT.Header())
	if raw != "" && isGatewayCredential(v, raw) {
		return rejectToken(v, fault.Unauthorized, conf.JWT, "The header holds a credential of the gateway and no token of the organisation's identity provider")
	}
	t, why, err := v.host.proofs.Check(v.call.Context, validationClient(v), rules, raw)
	switch {
	case err != nil:
		return false, fault.New(fault.ServiceUnavailable, strings.ToLower(conf.JWT.Header()), "The token cannot be checked now").WithCause(err)
	case t == nil:
		return rejectToken(v, fault.Unauthorized, conf.JWT, why)
	}
	failed, err := rules.Claims.Judge(t)
	switch {
	case err != nil:
		return false, err
	case len(failed.Missing) > 0:
		return rejectToken(v, fault.Unauthorized, conf.JWT, "Missing required claims: "+strings.Join(failed.Missing, ", "))
	case len(failed.Mismatched) > 0:
		return rejectToken(v, fault.Unauthorized, conf.JWT, "Claims that differ between header and payload: "+strings.Join(failed.Mismatched, ", "))
	case len(failed.Wrong) > 0:
		return rejectToken(v, fault.NotAllowed, conf.JWT, "Claims with values that are not allowed: "+strings.Join(failed.Wrong, ", "))
	}
	v.token = &verifiedToken{raw, t, tokenSubject(t, raw), rules.Tolerance}
	return true, nil
}

// tokenSubject identifies the user of a token across renewals. A token without a subject
// identifies itself.
func tokenSubject(t *bearer.Token, raw string) string {
	issuer, _ := t.Claims["iss"].(string)
	subject, _ := t.Claims["sub"].(string)
	if subject == "" {
		issuer, subject = "", raw
	}
	sum := sha256.Sum256([]byte(issuer + "\x00" + subject))
	return hex.EncodeToString(sum[:16])
}

// isGatewayCredential reports whether a value is a key or token of the gateway, which must not
// be sent to other hosts. A token that the organisation's identity provider signed is none,
// even if it authenticates the caller.
func isGatewayCredential(v *requestState, raw string) bool {
	if oauthserver.IsOurs(raw) {
		return true
	}
	own, _, err := identity.Token(v.call.Request.Header)
	return err == nil && own == raw && !(v.call.Caller.Type == identity.SignedToken && strings.Count(raw, ".") == 2)
}

// validationClient returns a client for the hosts of a validation. It does not follow
// redirects.
func validationClient(v *requestState) *http.Client {
	return &http.Client{Transport: v.call.Via, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// rulesOf returns the cached rules of a validation.
func (h *Host) rulesOf(j *mcp.JWTValidation) *bearer.Rules {
	print := j.Fingerprint()
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

// rejectToken rejects a request for its token, as RFC 6750 specifies. The body is an OAuth
// error instead of a message of the protocol, because clients treat it as a failed connection.
// It does not refer to the gateway's authorization server, which issues no such token.
func rejectToken(v *requestState, code fault.Code, j *mcp.JWTValidation, why string) (bool, error) {
	f := fault.New(code, strings.ToLower(j.Header()), why)
	v.record.Code, v.record.Decision = int64(f.Status()), "token"
	said, name := "unauthorized", "invalid_token"
	if f.Status() == http.StatusForbidden {
		said, name = "forbidden", "insufficient_scope"
	}
	raw, err := json.Marshal(map[string]string{"error": said, "error_description": why, "field": f.Field, "trace_id": v.call.TraceID})
	if err != nil {
		return false, err
	}
	v.call.Header().Set("WWW-Authenticate", `Bearer error=`+strconv.Quote(name))
	parseRejected(v)
	v.call.Send(f.Status(), "application/json", raw, f)
	return false, nil
}
