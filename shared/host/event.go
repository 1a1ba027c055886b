package host

import (
	"bytes"
	"context"
	"encoding/base64"
	"io"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"strings"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/fault"
	"gateway/shared/host/originauth"
)

// stagePrefix is the API's stage, which clients see as the version segment.
const stagePrefix = "/v1"

// proxyHeaders is the prefix of headers that only the platform's adapter may set.
const proxyHeaders = "x-golambdaproxy-"

// newRequest builds the request of a REST API (v1) event from the edge.
func newRequest(ctx context.Context, ev *events.APIGatewayProxyRequest, d *originauth.Verifier) (*http.Request, error) {
	req := &http.Request{
		Method: ev.HTTPMethod, Proto: "HTTP/1.1", ProtoMajor: 1, ProtoMinor: 1,
		Header: eventHeader(ev), Body: http.NoBody,
		RemoteAddr: remoteAddr(ev.RequestContext.Identity.SourceIP),
	}
	req = req.WithContext(ctx)
	if err := verifyOrigin(d, req); err != nil {
		return nil, err
	}
	body, err := eventBody(ev)
	if err != nil {
		return nil, err
	}
	if req.URL, err = eventURL(ev); err != nil {
		return nil, err
	}
	req.RequestURI, req.Host = req.URL.RequestURI(), req.Header.Get("Host")
	req.Header.Del("Host") // as net/http does
	if len(body) > 0 {
		req.Body, req.ContentLength = newBody(body), int64(len(body))
	}
	return req, nil
}

// eventPath returns the escaped path sent by the client, below /v1. requestContext.path
// has the stage in front; path has not.
func eventPath(ev *events.APIGatewayProxyRequest) string {
	path := ev.RequestContext.Path
	if path != stagePrefix && !strings.HasPrefix(path, stagePrefix+"/") {
		path = stagePrefix + ev.Path
	}
	return path
}

// eventURL preserves valid escapes of the path. A path with invalid escapes was unescaped
// by the platform.
func eventURL(ev *events.APIGatewayProxyRequest) (*url.URL, error) {
	path := eventPath(ev)
	if strings.ContainsFunc(path, func(r rune) bool { return r < ' ' || r == 0x7f }) {
		return nil, fault.Invalid("path", "must not contain control characters")
	}
	u := &url.URL{Path: path, RawQuery: eventQuery(ev)}
	if strings.ContainsFunc(path, func(r rune) bool { return r == ' ' || r == '?' || r == '#' || r > 0x7e }) {
		return u, nil
	}
	plain, err := url.PathUnescape(path)
	if err != nil {
		return nil, fault.Invalid("path", "has a percent sign without two hexadecimal digits")
	}
	if plain != path {
		u.Path, u.RawPath = plain, path
	}
	return u, nil
}

func eventBody(ev *events.APIGatewayProxyRequest) ([]byte, error) {
	if !ev.IsBase64Encoded {
		return []byte(ev.Body), nil
	}
	body, err := base64.StdEncoding.DecodeString(ev.Body)
	if err != nil {
		return nil, fault.Invalid("body", "is not valid base64")
	}
	return body, nil
}

// eventHeader prefers the multi-value form; both name each header once.
func eventHeader(ev *events.APIGatewayProxyRequest) http.Header {
	h := make(http.Header, len(ev.MultiValueHeaders)+len(ev.Headers))
	for name, values := range ev.MultiValueHeaders {
		if !reserved(name) {
			key := http.CanonicalHeaderKey(name)
			h[key] = append(h[key], values...)
		}
	}
	if len(h) > 0 {
		return h
	}
	for name, value := range ev.Headers {
		if !reserved(name) {
			h.Add(name, value)
		}
	}
	return h
}

func reserved(header string) bool {
	return len(header) >= len(proxyHeaders) && strings.EqualFold(header[:len(proxyHeaders)], proxyHeaders)
}

// eventQuery rebuilds the query. API Gateway loses the order of parameters and decodes
// them; only the container forwards it exactly.
func eventQuery(ev *events.APIGatewayProxyRequest) string {
	q := url.Values(ev.MultiValueQueryStringParameters)
	if len(q) == 0 {
		q = make(url.Values, len(ev.QueryStringParameters))
		for k, v := range ev.QueryStringParameters {
			q.Set(k, v)
		}
	}
	return q.Encode()
}

// RequireEdge returns a handler that passes h only requests from the edge, with the caller's
// address as seen by the edge, for hosts of a load balancer. The secret is removed.
func RequireEdge(d *originauth.Verifier, h http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if err := verifyOrigin(d, r); err != nil {
			f := fault.From(err)
			f.SetHeaders(w.Header())
			w.Header().Set("Content-Type", "application/json")
			w.WriteHeader(f.Status())
			_, _ = w.Write(f.DataBody(false)) // the caller may have disconnected
			return
		}
		h.ServeHTTP(w, r)
	})
}

// verifyOrigin admits a request or returns the fault of its rejection. It sets the
// caller's address from the header, which is trusted only from the edge.
func verifyOrigin(d *originauth.Verifier, r *http.Request) error {
	if err := d.Verify(r.Context(), r.Header); err != nil {
		return err
	}
	if d != nil {
		if ip := clientIP(r.Header); ip != "" {
			r.RemoteAddr = remoteAddr(ip)
		}
	}
	r.Header.Del(originauth.Header)
	return nil
}

// remoteAddr formats an address like http.Request.RemoteAddr; the port is unknown.
func remoteAddr(ip string) string { return net.JoinHostPort(ip, "0") }

// clientIP returns the caller's address as seen by the edge: the second from the right of
// X-Forwarded-For, or "".
func clientIP(h http.Header) string {
	hops := strings.Split(strings.Join(h.Values("X-Forwarded-For"), ","), ",")
	if len(hops) < 2 {
		return ""
	}
	ip, err := netip.ParseAddr(strings.TrimSpace(hops[len(hops)-2]))
	if err != nil {
		return ""
	}
	return ip.Unmap().WithZone("").String()
}

// body is a request body in memory.
type body struct{ *bytes.Reader }

func newBody(b []byte) io.ReadCloser { return body{bytes.NewReader(b)} }

func (body) Close() error { return nil }
