package standin

import (
	"fmt"
	"net/http"
	"net/http/httputil"
	"net/url"
	"regexp"
)

// StandInHeader is a header in the responses of One. Tests use it to verify what serves an
// endpoint.
const StandInHeader = "X-Stand-In"

var scope = regexp.MustCompile(`Credential=[^/]+/\d{8}/[a-z0-9-]+/([a-z0-9]+)/aws4_request`)

// One is a single endpoint for all services, for AWS_ENDPOINT_URL. It finds the service by
// the name for which a request is signed.
func (s *Services) One() (http.Handler, error) {
	services := map[string]http.Handler{}
	e := s.Endpoints()
	for service, endpoint := range map[string]string{
		"dynamodb": e["AWS_ENDPOINT_URL_DYNAMODB"], "sqs": e["AWS_ENDPOINT_URL_SQS"], "s3": e["AWS_ENDPOINT_URL_S3"], "kms": e["AWS_ENDPOINT_URL_KMS"],
	} {
		to, err := url.Parse(endpoint)
		if err != nil {
			return nil, err
		}
		services[service] = &httputil.ReverseProxy{
			Rewrite:   func(p *httputil.ProxyRequest) { p.SetURL(to); p.Out.Host = to.Host },
			Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		}
	}
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set(StandInHeader, "dynoxide")
		m := scope.FindStringSubmatch(r.Header.Get("Authorization"))
		if m == nil || services[m[1]] == nil {
			http.Error(w, fmt.Sprintf("no service stands in for %q", m), http.StatusNotFound)
			return
		}
		services[m[1]].ServeHTTP(w, r)
	}), nil
}
