package onlambda

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/url"
	"runtime"
	"strings"
	"unicode/utf8"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/fault"
	"gateway/shared/host/placement"
)

const (
	hostOS   = runtime.GOOS
	hostArch = runtime.GOARCH
)

// Event is the REST API event (v1) of a request to a route of the stage v1.
func (s *Shim) Event(r *http.Request, route placement.Route) ([]byte, error) {
	body, err := io.ReadAll(io.LimitReader(r.Body, maxBody+1))
	if err != nil {
		return nil, fault.Invalid("body", "is cut off")
	}
	if len(body) > maxBody {
		return nil, fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes", maxBody)
	}
	path := strings.TrimPrefix(r.URL.EscapedPath(), "/v1")
	h := r.Header.Clone()
	h.Set("Host", r.Host)
	s.forwarded(h, r)
	ev := events.APIGatewayProxyRequest{
		Resource: route.Path, Path: path, HTTPMethod: r.Method,
		Headers: first(h), MultiValueHeaders: h, Body: string(body),
	}
	if query, err := url.ParseQuery(r.URL.RawQuery); err == nil && len(query) > 0 {
		ev.MultiValueQueryStringParameters, ev.QueryStringParameters = query, first(query)
	}
	if !utf8.Valid(body) {
		ev.Body, ev.IsBase64Encoded = base64.StdEncoding.EncodeToString(body), true
	}
	rc := &ev.RequestContext
	rc.Stage, rc.Path, rc.ResourcePath, rc.HTTPMethod = "v1", "/v1"+path, route.Path, r.Method
	rc.DomainName, rc.Protocol, rc.Identity.SourceIP = r.Host, r.Proto, "127.0.0.1"
	rc.AccountID, rc.APIID = "000000000000", "local"
	return json.Marshal(ev)
}

// first returns the last value of each name, as API Gateway does.
func first(values map[string][]string) map[string]string {
	out := make(map[string]string, len(values))
	for k, v := range values {
		if len(v) > 0 {
			out[k] = v[len(v)-1]
		}
	}
	return out
}

// decoded returns the bytes of a base64 answer; an answer that is not base64 is left as it
// is.
func decoded(text string) []byte {
	b, err := base64.StdEncoding.DecodeString(text)
	if err != nil {
		return []byte(text)
	}
	return b
}
