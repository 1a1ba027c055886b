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

// Limits of responses from authorization servers.
const (
	maxDocument    = 64 << 10 // bytes
	maxDepth       = 16
	requestTimeout = 10 * time.Second
)

// document fetches a JSON object. ok is false if the address serves no readable JSON.
func document(ctx context.Context, via http.RoundTripper, address string, into any) (ok bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return false, upstream.Fail(0, "an address in the server's sign-in metadata is invalid")
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
		return false, upstream.Fail(resp.StatusCode, "the authorization server responded with status %d", resp.StatusCode)
	}
	raw, err := io.ReadAll(egress.CapBody(resp.Body, maxDocument))
	return err == nil && wire.CheckStrict(raw, maxDepth) == nil && json.Unmarshal(raw, into) == nil, nil
}

// post sends a body and returns the status, media type and body of the response.
func post(ctx context.Context, via http.RoundTripper, address, media, body string, by func(*http.Request)) (status int, as string, raw []byte, err error) {
	ctx, cancel := context.WithTimeout(ctx, requestTimeout)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, address, strings.NewReader(body))
	if err != nil {
		return 0, "", nil, upstream.Fail(0, "an address of the authorization server is invalid")
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

// requestToken posts a form to a token endpoint. If the endpoint rejected the request, only the
// error code of the response is set.
func requestToken(ctx context.Context, via http.RoundTripper, address string, form url.Values, by func(*http.Request)) (tokenresponse.Response, error) {
	status, media, raw, err := post(ctx, via, address, "application/x-www-form-urlencoded", form.Encode(), by)
	if err != nil {
		return tokenresponse.Response{}, err
	}
	got, err := tokenresponse.Read(media, raw)
	switch {
	case status >= 500 || status == http.StatusTooManyRequests || status/100 != 2 && got.Error == "":
		return tokenresponse.Response{}, upstream.Fail(status, "the authorization server responded with status %d", status)
	case got.Error != "":
		return got, upstream.Fail(status, "the authorization server returned the error %s", shown(got.Error))
	case err != nil:
		return tokenresponse.Response{}, upstream.Fail(status, "the authorization server returned no usable token")
	}
	return got, nil
}

// shown returns an OAuth error code that is safe to show.
func shown(code string) string {
	if len(code) > 64 || strings.ContainsFunc(code, func(r rune) bool { return (r < 'a' || r > 'z') && (r < '0' || r > '9') && r != '_' }) {
		return "an error of its own"
	}
	return code
}

// authenticate adds the client authentication to a token request.
func (c *Client) authenticate(form url.Values) func(*http.Request) {
	switch c.Method {
	case methodBasic:
		return func(r *http.Request) { r.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret)) }
	case methodPost:
		form.Set("client_secret", c.Secret)
	}
	form.Set("client_id", c.ID)
	return nil
}
