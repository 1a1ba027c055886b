package dataplane

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-lambda-go/events"

	"gateway/shared/app/plane"
	"gateway/shared/host"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// TestRoutesOfJobsNameWhatCarriesThem: a function that would answer every batch with
// "not supported" does not start.
func TestRoutesOfJobsNameWhatCarriesThem(t *testing.T) {
	chats, batches := relay.Route{Operation: provider.Chat}, relay.Route{Operation: provider.BatchesGet}
	if err := checkJobs([]relay.Route{chats}, nil); err != nil {
		t.Error(err)
	}
	if err := checkJobs([]relay.Route{chats, batches}, plane.Jobs()); err != nil {
		t.Error(err)
	}
	if err := checkJobs([]relay.Route{chats, batches}, nil); err == nil || !strings.Contains(err.Error(), "batches_get") {
		t.Errorf("got %v", err)
	}
}

// Pages of listed origins may call the data plane: their preflight requests have no key and are
// answered before the routes. In a row: the variable is the process's.
func TestListedPagesCallTheDataPlane(t *testing.T) {
	const page = "https://app.example.com"
	t.Setenv("GATEWAY_ALLOWED_ORIGINS", page)
	front, err := frontFromEnvironment()
	if err != nil {
		t.Fatal(err)
	}
	stream := host.Stream{Handler: front(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(http.StatusUnauthorized) }))}
	send := func(method, path string, header http.Header) (int, http.Header) {
		t.Helper()
		resp, err := stream.Invoke(t.Context(), events.APIGatewayProxyRequest{HTTPMethod: method, Path: strings.TrimPrefix(path, "/v1"), MultiValueHeaders: header})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.Copy(io.Discard, resp.Body); err != nil {
			t.Fatal(err)
		}
		got := http.Header(resp.MultiValueHeaders)
		if got == nil {
			got = http.Header{}
		}
		for k, v := range resp.Headers {
			got.Set(k, v)
		}
		return resp.StatusCode, got
	}
	for _, c := range []struct {
		method, origin string
		status         int
		allowed        string
	}{
		{"OPTIONS", page, 204, page},
		{"OPTIONS", "https://other.example.com", 401, ""},
		{"POST", page, 401, page}, // of the routes, and readable
		{"POST", "https://other.example.com", 401, ""},
		{"POST", "", 401, ""},
	} {
		header := http.Header{"Access-Control-Request-Method": {"POST"}, "Access-Control-Request-Headers": {"x-gateway-api-key,content-type"}}
		if c.origin != "" {
			header.Set("Origin", c.origin)
		}
		status, got := send(c.method, "/v1/chat/completions", header)
		if status != c.status || got.Get("Access-Control-Allow-Origin") != c.allowed || (status == 204) != (got.Get("Access-Control-Allow-Headers") != "") {
			t.Errorf("%s of %q: %d %v", c.method, c.origin, status, got)
		}
	}
	t.Setenv("GATEWAY_ALLOWED_ORIGINS", "app.example.com")
	if _, err := frontFromEnvironment(); err == nil {
		t.Error("a wrong list is accepted")
	}
}
