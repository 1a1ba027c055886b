package mcp

import (
	"bytes"
	"encoding/json"
	"io"
	"net/http"
	"testing"
)

// FuzzMessage checks that a decoded message is exactly one of request, notification and
// response, and that encoding preserves it.
func FuzzMessage(f *testing.F) {
	for _, m := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}`, `{"jsonrpc":"2.0","method":"notifications/initialized"}`,
		`{"jsonrpc":"2.0","id":"a","result":{}}`, `{"jsonrpc":"2.0","id":1,"error":{"code":-32601,"message":"no"}}`,
		`{"jsonrpc":"2.0","id":1.5}`, `{"jsonrpc":"2.0","id":null,"result":null}`, `{"jsonrpc":"1.0"}`, `[]`, `null`, ``,
	} {
		f.Add([]byte(m))
	}
	f.Fuzz(func(t *testing.T, raw []byte) {
		m, bad := ReadMessage(raw)
		if bad != nil {
			return
		}
		n := 0
		for _, is := range []bool{m.IsRequest(), m.IsNotification(), m.IsResponse()} {
			if is {
				n++
			}
		}
		if n > 1 {
			t.Fatalf("%s is %d things at once", raw, n)
		}
		written, err := json.Marshal(m)
		if err != nil {
			t.Fatal(err)
		}
		again, bad := ReadMessage(written)
		if bad != nil {
			t.Fatalf("%s is not read again: %v", written, bad)
		}
		if again.IsRequest() != m.IsRequest() || again.IsNotification() != m.IsNotification() || again.Method != m.Method {
			t.Errorf("%s is read as %s", raw, written)
		}
	})
}

// requestID stands for the id of the request in responses.
const requestID = "7777"

// server returns canned responses in order, and repeats the last one.
type server struct {
	media   string
	answers [][]byte
}

func (s *server) RoundTrip(r *http.Request) (*http.Response, error) {
	body := s.answers[0]
	if len(s.answers) > 1 {
		s.answers = s.answers[1:]
	}
	var m Message
	if r.Body != nil {
		if err := json.NewDecoder(r.Body).Decode(&m); err != nil && r.Method == http.MethodPost {
			return nil, err
		}
	}
	body = bytes.ReplaceAll(body, []byte(requestID), m.ID)
	resp := &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {s.media}}, Body: io.NopCloser(bytes.NewReader(body)), Request: r}
	return resp, nil
}

// FuzzResponses inspects a server with arbitrary responses: the result is limited, has keys,
// and the inspection ends.
func FuzzResponses(f *testing.F) {
	const hello = `{"jsonrpc":"2.0","id":7777,"result":{"protocolVersion":"2025-06-18","capabilities":{"tools":{},"resources":{}},"serverInfo":{"name":"s","version":"1","icons":[]}}}`
	for _, list := range []string{
		`{"jsonrpc":"2.0","id":7777,"result":{"tools":[{"name":"a","inputSchema":{}},{"name":""},{"title":1}],"resources":[{"uri":"a:b"}],"resourceTemplates":[],"nextCursor":"x"}}`,
		`{"jsonrpc":"2.0","id":7777,"result":{"tools":[1]}}`, `{"jsonrpc":"2.0","id":7777,"error":{"code":-32601,"message":"no"}}`, `{"jsonrpc":"2.0","id":3,"result":{}}`, `{`, ``,
	} {
		f.Add(false, []byte(hello), []byte(list))
		f.Add(true, []byte("event: message\ndata: "+hello+"\n\n"), []byte(": wait\n\ndata: "+list+"\r\n\r\n"))
	}
	f.Fuzz(func(t *testing.T, stream bool, first, then []byte) {
		s := &server{"application/json", [][]byte{first, nil, then}}
		if stream {
			s.media = "text/event-stream"
		}
		snap, err := Inspect(t.Context(), &Upstream{URL: "https://tools.example.com/mcp", Transport: "http", RoundTripper: s})
		if err != nil {
			if len(err.Error()) > 1000 && len(first)+len(then) < 500 {
				t.Errorf("a refusal of %d characters", len(err.Error()))
			}
			return
		}
		if len(snap.Found) > MaxCapabilities {
			t.Errorf("%d capabilities are kept", len(snap.Found))
		}
		for _, c := range snap.Found {
			if c.Key == "" || len(c.Shape) > maxShape || !json.Valid(c.Shape) {
				t.Errorf("%+v is kept", c)
			}
		}
		if m := snap.Metadata; len([]rune(m.ServerName)) > maxText || len(m.Icons) > maxIcons || len(m.Capabilities) > maxIcons {
			t.Errorf("%+v is kept", m)
		}
	})
}
