package host_test

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/aws/aws-lambda-go/events"
	"github.com/aws/aws-lambda-go/lambda"

	"gateway/shared/host/originauth"
	"gateway/shared/host/runtimeapi"
)

// TestMain also is the function under test: the library ends its process when the Runtime API
// closes, so each function runs in a separate process.
func TestMain(m *testing.M) {
	if name := os.Getenv("HOST_TEST_FUNCTION"); name != "" {
		lambda.Start(functions()[name])
		return
	}
	os.Exit(m.Run())
}

// start runs a function of functions() in its own process.
func start(t *testing.T, name string) *runtimeapi.Environment {
	t.Helper()
	e, err := runtimeapi.Start(os.Args[0], append(runtimeapi.HostEnv(), "HOST_TEST_FUNCTION="+name), testLog{t})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := e.Stop(); err != nil {
			t.Error(err)
		}
	})
	return e
}

// testLog shows a function's output with the test.
type testLog struct{ t *testing.T }

func (l testLog) Write(p []byte) (int, error) {
	l.t.Logf("function: %s", bytes.TrimRight(p, "\n"))
	return len(p), nil
}

// event is a REST API event as the stage v1 sends it.
func event(method, path string, change ...func(*events.APIGatewayProxyRequest)) []byte {
	ev := events.APIGatewayProxyRequest{
		Resource: "/{path+}", HTTPMethod: method, Path: path,
		MultiValueHeaders: map[string][]string{"Host": {"api.example.com"}, "X-Forwarded-For": {"203.0.113.9, 130.176.1.1"}, originauth.Header: {"new-secret"}},
	}
	ev.RequestContext.Stage, ev.RequestContext.Path = "v1", "/v1"+path
	ev.RequestContext.Identity.SourceIP = "130.176.1.1"
	for _, f := range change {
		f(&ev)
	}
	raw, err := json.Marshal(ev)
	if err != nil {
		panic(err) // its fields are plain
	}
	return raw
}

// invoke sends an event and wants a response to begin.
func invoke(t *testing.T, e *runtimeapi.Environment, ev []byte, timeout time.Duration) *runtimeapi.Response {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	a, err := e.Invoke(ctx, ev, timeout)
	if err != nil {
		t.Fatal(err)
	}
	return a
}

func readAll(t *testing.T, a *runtimeapi.Response) string {
	t.Helper()
	b, err := io.ReadAll(a.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

// settled waits until the function has polled for its next event.
func settled(t *testing.T, a *runtimeapi.Response) {
	t.Helper()
	select {
	case <-a.Settled:
	case <-time.After(time.Minute):
		t.Fatal("the function does not ask for the next event")
	}
}

// seen is what the echoing functions report about their request.
type seen struct {
	Method, Path, Escaped, URI, Query, Remote, Host, Body string
	Header                                                http.Header
	Length                                                int64
}

func look(r *http.Request) seen {
	b, _ := io.ReadAll(r.Body)
	return seen{r.Method, r.URL.Path, r.URL.EscapedPath(), r.RequestURI, r.URL.RawQuery, r.RemoteAddr, r.Host, string(b), r.Header, r.ContentLength}
}

func echo(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", "1") // the hosts see to it
	_ = json.NewEncoder(w).Encode(look(r))
}

func decodeSeen(t *testing.T, body string) (s seen) {
	t.Helper()
	if err := json.Unmarshal([]byte(body), &s); err != nil {
		t.Fatalf("%v in %s", err, body)
	}
	return s
}

// bodyOf gives the response of a buffered function.
func bodyOf(t *testing.T, a *runtimeapi.Response) events.APIGatewayProxyResponse {
	t.Helper()
	var out events.APIGatewayProxyResponse
	if err := json.Unmarshal([]byte(readAll(t, a)), &out); err != nil {
		t.Fatal(err)
	}
	if out.IsBase64Encoded {
		plain, err := base64.StdEncoding.DecodeString(out.Body)
		if err != nil {
			t.Fatal(err)
		}
		out.Body = string(plain)
	}
	return out
}

func isFunctionError(err error) bool {
	var f *runtimeapi.FunctionError
	return errors.As(err, &f)
}

func withHeader(name string, values ...string) func(*events.APIGatewayProxyRequest) {
	return func(ev *events.APIGatewayProxyRequest) { ev.MultiValueHeaders[name] = values }
}

func contains(t *testing.T, text string, parts ...string) {
	t.Helper()
	for _, p := range parts {
		if !strings.Contains(text, p) {
			t.Errorf("%q is missing in %q", p, text)
		}
	}
}
