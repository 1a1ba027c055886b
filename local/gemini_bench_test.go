package main

import (
	"context"
	"net/http"
	"os"
	"strings"
	"testing"

	"gateway/functions/assembly"
	"gateway/shared/app/plane"
	"gateway/shared/pricing"
	"gateway/shared/relay"
)

// BenchmarkGemini is BenchmarkRelay for conversations that are translated to
// Gemini.
func BenchmarkGemini(b *testing.B) {
	b.Setenv("GATEWAY_ADMIN_KEY", adminKey)
	b.Setenv("GATEWAY_WORKSPACE_KEY", workspaceKey)
	dir, err := os.MkdirTemp("", "bench")
	if err != nil {
		b.Fatal(err)
	}
	defer os.RemoveAll(dir)
	o, err := parse([]string{"-addr", "127.0.0.1:0", "-data", dir})
	if err != nil {
		b.Fatal(err)
	}
	g, err := open(context.Background(), o)
	if err != nil {
		b.Fatal(err)
	}
	defer g.close()
	for _, c := range []struct{ name, method, message, more string }{
		{"1 KB", ":generateContent", strings.Repeat("words ", 150), ""},
		{"stream of 100", ":streamGenerateContent?alt=sse&", "mock: chunks=100", `,"stream":true`},
	} {
		b.Run(c.name, func(b *testing.B) {
			path := "/v1beta/models/gemini-2.5-flash" + c.method
			if !strings.Contains(path, "?") {
				path += "?"
			}
			r := relay.New(relay.Options{
				Loader: g.core.Loader, Auth: g.core.Auth, Ledger: g.core.Ledger, Prices: pricing.Default(), Sink: g.stores.Journal,
				Sealer: g.core.Sealer, Store: g.core.Store, Egress: g.core.Egress, Dialects: plane.Dialects(),
				Transport: recorded(b, g, path+"key=mock-x", `{"contents":[{"role":"user","parts":[{"text":"`+c.message+`"}]}]}`),
			})
			mux := relay.NewMux(r, assembly.DataPlane())
			body := chatBody("gemini-2.5-flash", c.message, c.more)
			b.ReportAllocs()
			for b.Loop() {
				req, _ := http.NewRequest("POST", "http://gateway/v1/chat/completions", strings.NewReader(body))
				req.Header["Content-Type"] = []string{"application/json"}
				req.Header["X-Gateway-Api-Key"] = []string{workspaceKey}
				req.Header["X-Gateway-Provider"] = []string{"google"}
				req.Header["Authorization"] = []string{"Bearer mock-x"}
				w := &recorder{h: http.Header{}}
				mux.ServeHTTP(w, req)
				if w.status != 200 {
					b.Fatalf("%d %s", w.status, w.body.Bytes())
				}
			}
		})
	}
}
