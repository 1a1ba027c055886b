package main

import (
	"bufio"
	"bytes"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
)

// arrived is what the mock provider says it received.
type arrived struct {
	Method   string
	RawPath  string              `json:"raw_path"`
	RawQuery string              `json:"raw_query"`
	Headers  map[string][]string `json:"headers"`
	Text     string              `json:"body"`        // of a body in UTF-8
	Base64   string              `json:"body_base64"` // of any other
}

func echoed(t *testing.T, got reply) arrived {
	t.Helper()
	var a arrived
	if err := json.Unmarshal([]byte(got.body), &a); err != nil {
		t.Fatalf("%d %s", got.status, got.body)
	}
	return a
}

// rawRequest sends a request line as it is given, which net/http would clean.
func (r *running) rawRequest(line, body string, headers ...string) reply {
	r.t.Helper()
	conn, err := net.Dial("tcp", r.g.server.Addr().String())
	if err != nil {
		r.t.Fatal(err)
	}
	defer conn.Close()
	var b bytes.Buffer
	fmt.Fprintf(&b, "%s HTTP/1.1\r\nHost: gateway\r\nX-Gateway-Api-Key: %s\r\nConnection: close\r\nContent-Length: %d\r\n", line, workspaceKey, len(body))
	for i := 0; i+1 < len(headers); i += 2 {
		fmt.Fprintf(&b, "%s: %s\r\n", headers[i], headers[i+1])
	}
	b.WriteString("\r\n" + body)
	if _, err := conn.Write(b.Bytes()); err != nil {
		r.t.Fatal(err)
	}
	raw, err := io.ReadAll(conn)
	if err != nil {
		r.t.Fatal(err)
	}
	resp, err := http.ReadResponse(newReader(raw), nil)
	if err != nil {
		r.t.Fatalf("%v: %s", err, raw)
	}
	defer resp.Body.Close()
	got, err := io.ReadAll(resp.Body)
	if err != nil {
		r.t.Fatal(err)
	}
	return reply{resp.StatusCode, resp.Header, string(got)}
}

//lane:standard
func TestPassThroughIsByteForByte(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, method := range []string{"POST", "PUT", "GET", "DELETE"} {
		for _, c := range []struct{ target, path, query string }{
			{"/v1/proxy/echo//a%2Fb;c=1/./x", "/v1/echo//a%2Fb;c=1/./x", ""},
			{"/v1/echo/q?x=1;2&y=%20&&z", "/v1/echo/q", "x=1;2&y=%20&&z"},
			{"/v1/proxy/echo/e?", "/v1/echo/e", ""},
		} {
			got := r.rawRequest(method+" "+c.target, "", "X-Gateway-Provider", "@mock")
			a := echoed(t, got)
			if a.Method != method || a.RawPath != c.path || a.RawQuery != c.query {
				t.Errorf("%s %s arrived as %s %s?%s", method, c.target, a.Method, a.RawPath, a.RawQuery)
			}
		}
	}
}

//lane:standard
func TestPassThroughBodiesAreUntouched(t *testing.T) {
	t.Parallel()
	r := start(t)
	binary := make([]byte, 300_000)
	for i := range binary {
		binary[i] = byte(i * 7)
	}
	odd := "{ \"model\" :\t\"m\" ,\r\n \"a\":1.50e+01,\"a\":2 }"
	for _, c := range []struct{ name, kind, body string }{
		{"binary", "application/octet-stream", string(binary)},
		{"multipart", "multipart/form-data; boundary=x", "--x\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nm\r\n--x--\r\n"},
		{"odd spacing and a key twice", "application/json", odd},
		{"not JSON", "application/json", `{"broken":`},
		{"empty", "application/json", ""},
	} {
		for _, method := range []string{"POST", "PUT", "GET", "DELETE"} {
			t.Run(c.name+" by "+method, func(t *testing.T) {
				got := r.call(method, "/proxy/echo/x", c.body, "X-Gateway-Provider", "@mock", "Content-Type", c.kind)
				a := echoed(t, got)
				body := []byte(a.Text)
				if a.Base64 != "" {
					var err error
					if body, err = base64.StdEncoding.DecodeString(a.Base64); err != nil {
						t.Fatal(err)
					}
				}
				if string(body) != c.body {
					t.Errorf("%d bytes arrived, %d were sent: %.80q", len(body), len(c.body), body)
				}
				if kind := a.Headers["Content-Type"]; len(kind) != 1 || kind[0] != c.kind {
					t.Errorf("content type %q", kind)
				}
			})
		}
	}
	download := r.call("GET", "/proxy/binary/200000", "", "X-Gateway-Provider", "@mock")
	direct, err := http.Get(r.mockBase() + "/binary/200000")
	if err != nil {
		t.Fatal(err)
	}
	defer direct.Body.Close()
	if want, err := io.ReadAll(direct.Body); err != nil || download.body != string(want) {
		t.Errorf("%d bytes came back, %d are there: %v", len(download.body), len(want), err)
	}
}

//lane:standard
func TestWhatReachesAProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	got := r.call("POST", "/proxy/echo/x", `{}`, "X-Gateway-Provider", "@mock", "X-Custom", "kept", "Cookie", "a=b", "X-Forwarded-For", "1.2.3.4",
		"X-Amz-Security-Token", "no", "X-Gateway-Metadata", `{"a":"b"}`, "Openai-Organization", "org")
	h := echoed(t, got).Headers
	for _, name := range []string{"Cookie", "X-Forwarded-For", "X-Amz-Security-Token", "X-Gateway-Metadata", "X-Gateway-Api-Key", "X-Gateway-Provider"} {
		if h[name] != nil {
			t.Errorf("%s reached the provider", name)
		}
	}
	if h["X-Custom"] == nil || h["Authorization"][0] != "Bearer mock-key-of-this-gateway" {
		t.Errorf("headers %v", h)
	}
	// A gateway key that came in Authorization stays here.
	bare := r.call("GET", "/proxy/echo/x", "", "X-Gateway-Api-Key", "", "Authorization", "Bearer "+workspaceKey, "X-Gateway-Provider", "openai", "X-Gateway-Custom-Host", r.mockBase())
	if strings.Contains(bare.body, workspaceKey) {
		t.Errorf("the gateway's key reached the provider: %s", bare.body)
	}
	// On unified routes only what is asked for is forwarded.
	r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "x", ""), "X-Custom", "1", "X-Other", "2", "X-Gateway-Forward-Headers", "x-custom")
	last := http.Header(r.mock.Requests(1)[0].Headers)
	if last.Get("X-Custom") != "1" || last.Get("X-Other") != "" {
		t.Errorf("forwarded headers: %v", last)
	}
}

func TestPassThroughStreamsAreMetered(t *testing.T) {
	t.Parallel()
	r := start(t)
	body := chatBody("gpt-4o-mini", "Hello", `,"stream":true,"stream_options":{"include_usage":true}`)
	got := r.call("POST", "/proxy/chat/completions", body, "X-Gateway-Provider", "@mock")
	if got.status != 200 || !strings.Contains(got.body, "[DONE]") {
		t.Fatalf("%d %s", got.status, got.body)
	}
	if got, want := booked(r.records(1)), billed(r); got != want {
		t.Errorf("our books %+v, the bill %+v", got, want)
	}
	missing := r.call("GET", "/proxy/models/mock-missing", "", "X-Gateway-Provider", "@mock")
	if missing.status != 404 || !strings.Contains(missing.body, `"error"`) || strings.Contains(missing.body, "openai error") {
		t.Errorf("a provider's error through pass-through: %d %s", missing.status, missing.body)
	}
}

func TestTraceMetadataAndTimeout(t *testing.T) {
	t.Parallel()
	r := start(t)
	got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "x", `,"user":"ada"`),
		"X-Gateway-Trace-Id", "my-trace", "X-Gateway-Span-Id", "s1", "X-Gateway-Parent-Span-Id", "p1", "X-Gateway-Span-Name", "step",
		"X-Gateway-Metadata", `{"team":"blue","n":3,"deep":{"x":1}}`, "Baggage", "team=red,colour=green")
	if got.header.Get("X-Gateway-Trace-Id") != "my-trace" {
		t.Errorf("trace id %q", got.header.Get("X-Gateway-Trace-Id"))
	}
	slow := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "mock: delay=3s", ""), "X-Gateway-Request-Timeout", "50")
	if slow.status != 408 || !strings.Contains(slow.body, "50ms") {
		t.Errorf("%d %s", slow.status, slow.body)
	}
	for _, rec := range r.records(2) {
		if rec.TraceID != "my-trace" {
			continue
		}
		want := map[string]string{"team": "blue", "n": "3", "colour": "green", "_user": "ada"}
		if rec.SpanID != "s1" || rec.ParentSpanID != "p1" || rec.SpanName != "step" || rec.EndUser != "ada" || fmt.Sprint(rec.Metadata) != fmt.Sprint(want) {
			t.Errorf("record %+v", rec)
		}
	}
}

func newReader(b []byte) *bufio.Reader { return bufio.NewReader(bytes.NewReader(b)) }
