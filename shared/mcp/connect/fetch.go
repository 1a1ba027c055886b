package connect

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/egress"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// Bounds of what authorization servers answer.
const (
	maxDocument = 64 << 10 // bytes
	maxDepth    = 16
	askTime     = 10 * time.Second
)

// document reads a JSON document; ok is false where the address has none.
func document(ctx context.Context, via http.RoundTripper, address string, into any) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, upstream.Fail(0, "an address that the server names for its sign-in cannot be called")
	}
	req.Header.Set("Accept", "application/json")
	resp, err := via.RoundTrip(req)
	if err != nil {
		return false, upstream.Unreachable("the authorization server", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 == 4 || resp.StatusCode/100 == 3 {
		return false, nil
	}
	if resp.StatusCode != http.StatusOK {
		return false, upstream.Fail(resp.StatusCode, "the authorization server answers with status %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(egress.CapBody(resp.Body, maxDocument))
	if err != nil || wire.CheckStrict(raw, maxDepth) != nil || json.Unmarshal(raw, into) != nil {
		return false, upstream.Fail(resp.StatusCode, "the authorization server describes itself in a form that cannot be read")
	}
	return true, nil
}

// refusal is an error of OAuth.
type refusal struct {
	Code string `json:"error"`
}

// post sends a form, or JSON, and reads a JSON answer. code is the error that the
// authorization server names when it refuses; nothing else of a refusal is kept.
func post(ctx context.Context, via http.RoundTripper, address, media, body string, by func(*http.Request), into any) (code string, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return "", upstream.Fail(0, "an address of the authorization server cannot be called")
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set("Accept", "application/json")
	if by != nil {
		by(req)
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		return "", upstream.Unreachable("the authorization server", err)
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(egress.CapBody(resp.Body, maxDocument))
	if err != nil || wire.CheckStrict(raw, maxDepth) != nil {
		return "", upstream.Fail(resp.StatusCode, "the authorization server answers with status %d in a form that cannot be read", resp.StatusCode)
	}
	if resp.StatusCode/100 == 2 {
		if json.Unmarshal(raw, into) != nil {
			return "", upstream.Fail(resp.StatusCode, "the authorization server's answer has members of other types than the protocol's")
		}
		return "", nil
	}
	var r refusal
	if json.Unmarshal(raw, &r) != nil || r.Code == "" || resp.StatusCode >= 500 || resp.StatusCode == http.StatusTooManyRequests {
		return "", upstream.Fail(resp.StatusCode, "the authorization server answers with status %d", resp.StatusCode)
	}
	return r.Code, upstream.Fail(resp.StatusCode, "the authorization server refuses with %s", shown(r.Code))
}

// shown is an error code of OAuth as it may stand in a text.
func shown(code string) string {
	if len(code) > 64 || strings.ContainsFunc(code, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }) {
		return "an error of its own"
	}
	return code
}

const formType = "application/x-www-form-urlencoded"

// asClient adds to a request of the token endpoint who the gateway is.
func (c *Client) asClient(form url.Values) func(*http.Request) {
	switch c.Method {
	case methodBasic:
		return func(r *http.Request) { r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret)) }
	case methodPost:
		form.Set("client_secret", c.Secret)
	}
	form.Set("client_id", c.ID)
	return nil
}
