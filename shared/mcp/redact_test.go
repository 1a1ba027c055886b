package mcp

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

// repeating returns a server that echoes all header values of the request in every string of
// every message: JSON-RPC errors, results, notifications, challenges.
func repeating(t *testing.T, transport string) *httptest.Server {
	t.Helper()
	var posted chan []byte
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		message := ""
		for name, v := range r.Header {
			message += name + " is " + strings.Join(v, ",") + "; "
			if user, password, ok := r.BasicAuth(); ok {
				message += user + " " + password
			}
		}
		if transport == TransportSSE && r.Method == http.MethodGet {
			posted = make(chan []byte, 16)
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprint(w, "event: endpoint\ndata: /post\n\n")
			w.(http.Flusher).Flush()
			for {
				select {
				case m := <-posted:
					fmt.Fprintf(w, "event: message\ndata: %s\n\n", m)
					w.(http.Flusher).Flush()
				case <-r.Context().Done():
					return
				}
			}
		}
		raw, _ := io.ReadAll(r.Body)
		var m Message
		_ = json.Unmarshal(raw, &m)
		text, _ := json.Marshal(message)
		answer := fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"result":{"protocolVersion":"2025-11-25","capabilities":{},"serverInfo":{"name":%s,"version":"1"},"instructions":%s,"content":[{"type":"text","text":%s}]}}`, m.ID, text, text, text)
		if m.Method == "fails" {
			answer = fmt.Sprintf(`{"jsonrpc":"2.0","id":%s,"error":{"code":-32000,"message":%s,"data":{"why":[%s]}}}`, m.ID, text, text)
		}
		w.Header()["Www-Authenticate"] = []string{`Bearer scope="` + r.Header.Get("Authorization") + `"`}
		switch {
		case len(m.ID) == 0:
			w.WriteHeader(http.StatusAccepted)
		case transport == TransportSSE:
			posted <- []byte(answer)
			w.WriteHeader(http.StatusAccepted)
		case m.Method == "streams":
			w.Header().Set("Content-Type", "text/event-stream")
			fmt.Fprintf(w, "data: {\"jsonrpc\":\"2.0\",\"method\":\"notifications/message\",\"params\":{\"data\":%s}}\n\ndata: %s\n\n", text, answer)
		default:
			w.Header().Set("Content-Type", "application/json")
			_, _ = io.WriteString(w, answer)
		}
	}))
	t.Cleanup(func() { s.CloseClientConnections(); s.Close() })
	return s
}

// Each kind of message is read through each way of reading messages.
func TestMessagesOfServersAreRedacted(t *testing.T) {
	t.Parallel()
	const token, password, custom, passed = "MCP-SECRET-ERR-123", "the-\"password\"", "custom-secret-value", "forwarded-secret"
	check := func(what string, texts ...any) {
		t.Helper()
		raw, err := json.Marshal(texts)
		if err != nil {
			t.Fatal(err)
		}
		for _, secret := range []string{token, "password", custom, passed, base64.StdEncoding.EncodeToString([]byte("user:" + password))} {
			if strings.Contains(string(raw), secret) {
				t.Errorf("%s repeats %q: %s", what, secret, raw)
			}
		}
		if strings.Contains(what, "Next") && !strings.Contains(string(raw), "seen by all") {
			t.Errorf("%s: a public header of the client is missing: %s", what, raw)
		}
	}
	basic := "Basic " + base64.StdEncoding.EncodeToString([]byte("user:"+password))
	for _, auth := range []string{"Bearer " + token, basic} {
		for _, transport := range []string{"", TransportSSE} {
			up := &Upstream{URL: repeating(t, transport).URL, Transport: transport, RoundTripper: http.DefaultTransport, Client: []string{"X-Session-Token", "X-Note"}, Headers: http.Header{
				"Authorization": {auth}, "X-Custom": {custom}, "X-Session-Token": {passed}, "X-Note": {"seen by all"},
			}}
			ctx := context.Background()
			s, err := up.Connect(ctx, nil)
			if err != nil {
				t.Fatal(err)
			}
			check(transport+" hello", string(s.Hello))
			for _, method := range []string{"tools/list", "streams", "fails"} {
				result, err := s.Call(ctx, method, nil)
				check(transport+" "+method, string(result), fmt.Sprint(err), err)
			}
			s.Close()
			if transport == TransportSSE {
				continue
			}
			for _, method := range []string{"tools/list", "streams", "fails"} {
				x, err := up.Send(ctx, http.MethodPost, nil, []byte(`{"jsonrpc":"2.0","id":1,"method":"`+method+`"}`))
				if err != nil {
					t.Fatal(err)
				}
				check("challenges", x.Challenges)
				for {
					raw, err := x.Next()
					if err != nil {
						break
					}
					check("Next of "+method, string(raw))
				}
				x.Close()
			}
		}
	}
}
