package oauthclient

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/egress"
	"gateway/shared/mcp/tokenresponse"
	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// Bounds of what authorization servers answer.
const (
	maxDocument = 64 << 10 // bytes
	maxDepth    = 16
	askTime     = 10 * time.Second
)

// document reads a JSON object; ok is false where the address has none, but a page or
// something else that cannot be read.
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
	return err == nil && wire.CheckStrict(raw, maxDepth) == nil && json.Unmarshal(raw, into) == nil, nil
}

// post sends a body and returns the status, the media type and the body of the response.
func post(ctx context.Context, via http.RoundTripper, address, media, body string, by func(*http.Request)) (status int, as string, raw []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, upstream.Fail(0, "an address of the authorization server cannot be called")
	}
	req.Header.Set("Content-Type", media)
	req.Header.Set("Accept", "application/json")
	if by != nil {
		by(req)
	}
	resp, err := via.RoundTrip(req)
	if err != nil {
		return 0, "", nil, upstream.Unreachable("the authorization server", err)
	}
	defer resp.Body.Close()
	if raw, err = io.ReadAll(egress.CapBody(resp.Body, maxDocument)); err != nil {
		return 0, "", nil, upstream.Fail(resp.StatusCode, "the authorization server's response with status %d cannot be read", resp.StatusCode)
	}
	return resp.StatusCode, resp.Header.Get("Content-Type"), raw, nil
}

// askToken posts a form to a token endpoint. A response whose error code is set was refused
// with it; nothing else of a refusal is kept.
func askToken(ctx context.Context, via http.RoundTripper, address string, form url.Values, by func(*http.Request)) (tokenresponse.Response, error) {
	status, media, raw, err := post(ctx, via, address, "application/x-www-form-urlencoded", form.Encode(), by)
	if err != nil {
		return tokenresponse.Response{}, err
	}
	got, err := tokenresponse.Read(media, raw)
	switch {
	case status >= 500 || status == http.StatusTooManyRequests || status/100 != 2 && got.Error == "":
		return tokenresponse.Response{}, upstream.Fail(status, "the authorization server answers with status %d", status)
	case got.Error != "":
		return got, upstream.Fail(status, "the authorization server refuses with %s", shown(got.Error))
	case err != nil:
		return tokenresponse.Response{}, upstream.Fail(status, "the authorization server gives no token that can be used")
	}
	return got, nil
}

// shown is an error code of OAuth as it may stand in a text.
func shown(code string) string {
	if len(code) > 64 || strings.ContainsFunc(code, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }) {
		return "an error of its own"
	}
	return code
}

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
