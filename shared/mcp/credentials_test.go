package mcp

import (
	"context"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"
	"time"

	"gateway/shared/resource"
	"gateway/shared/store"
)

// While one caller waits for a token endpoint that does not respond, another caller may abort.
// The next caller fetches the token for all of them.
func TestTokenFetchSurvivesCanceledCallers(t *testing.T) {
	t.Parallel()
	requested, respond := make(chan struct{}), make(chan string)
	issuer := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		_ = r.ParseForm() // reads to the end, so that a client disconnect is noticed
		select {
		case requested <- struct{}{}:
		case <-r.Context().Done():
			return
		}
		select {
		case body := <-respond:
			w.Header().Set("Content-Type", "application/json")
			_, _ = w.Write([]byte(body))
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(func() { issuer.CloseClientConnections(); issuer.Close() })
	o := &Opener{Transport: http.DefaultTransport, Now: time.Now}
	rec := &resource.Record{Scope: store.Scope{Org: "o", Workspace: "w"}, ID: "i"}
	token := func(ctx context.Context) (string, error) {
		return o.token(ctx, rec, &Integration{URL: "https://mcp.example.com"}, &OAuthMetadata{TokenEndpoint: issuer.URL, ClientID: "c", ClientSecret: "s"})
	}
	first, giveUp := context.WithCancel(t.Context())
	var wg sync.WaitGroup
	wg.Go(func() {
		if got, err := token(first); err == nil {
			t.Errorf("the first is given %q", got)
		}
	})
	<-requested
	left, leave := context.WithCancel(t.Context())
	leave()
	if got, err := token(left); err == nil {
		t.Errorf("one that left is given %q", got)
	}
	for range 5 {
		wg.Go(func() {
			if got, err := token(t.Context()); err != nil || got != "t" {
				t.Errorf("another: %q, %v", got, err)
			}
		})
	}
	giveUp()
	<-requested
	respond <- `{"access_token":"t","token_type":"bearer"}`
	wg.Wait()
}
