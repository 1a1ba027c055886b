package main

import (
	"io"
	"net/http"
	"strings"
	"testing"

	"gateway/functions/assembly"
	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/pricing"
	"gateway/shared/relay"
)

// late answers like canned, but leaves the first body for later, as a transport
// does whose provider answers before it has read the request.
type late struct {
	canned
	first io.ReadCloser
}

func (l *late) RoundTrip(req *http.Request) (*http.Response, error) {
	if l.first == nil {
		l.first, req.Body = req.Body, nil
	}
	return l.canned.RoundTrip(req)
}

func TestBodyInTransitIsNotOverwrittenByTheNextRequest(t *testing.T) {
	t.Parallel()
	r := start(t)
	g := r.g
	answer := canned{"application/json", []byte(`{"id":"x","object":"chat.completion","created":1,"model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"a"},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`)}
	transport := &late{canned: answer}
	mux := relay.NewMux(relay.New(relay.Options{
		Loader: g.core.Loader, Auth: g.core.Auth, Ledger: g.core.Ledger, Prices: pricing.Default(), Sink: g.stores.Journal,
		Sealer: g.core.Sealer, Store: g.core.Store, Egress: g.core.Egress, Transport: transport,
		Dialects: []chat.Provider{openai.Chat{}},
	}), assembly.DataPlane())
	send := func(word string) {
		req, err := http.NewRequest("POST", "http://gateway/v1/chat/completions", strings.NewReader(chatBody("@mock/gpt-4o-mini", strings.Repeat(word, 1000), "")))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Content-Type", "application/json")
		req.Header.Set("X-Gateway-Api-Key", workspaceKey)
		w := &recorder{h: http.Header{}}
		mux.ServeHTTP(w, req)
		if w.status != http.StatusOK {
			t.Fatalf("%d %s", w.status, w.body.Bytes())
		}
	}
	send("mine ")
	for range 50 {
		send("other")
	}
	sent, err := io.ReadAll(transport.first)
	if want := chatBody("gpt-4o-mini", strings.Repeat("mine ", 1000), ""); err != nil || string(sent) != want {
		t.Errorf("the provider gets %.200q, %v", sent, err)
	}
}
