package main

import (
	"bytes"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
)

// A provider may respond before it has read the body of what is passed through to it. Its
// response is the client's, whole, however early it comes. In a row: it sets the environment.
func TestResponsesBeforeTheBodyIsRead(t *testing.T) {
	const answer = "the answer came early, and it is whole"
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		wire := http.NewResponseController(w)
		if err := wire.EnableFullDuplex(); err != nil {
			t.Error(err)
		}
		w.Header().Set("Content-Type", "text/plain")
		_, _ = io.WriteString(w, answer[:10])
		_ = wire.Flush()
		if strings.HasSuffix(r.URL.Path, "/leaves") { // all is said before anything is read
			_, _ = io.WriteString(w, answer[10:])
			_ = wire.Flush()
		}
		if n, err := io.Copy(io.Discard, r.Body); err != nil || n != r.ContentLength && r.ContentLength >= 0 {
			t.Errorf("%d of %d bytes arrived: %v", n, r.ContentLength, err)
		}
		if strings.HasSuffix(r.URL.Path, "/reads") {
			_, _ = io.WriteString(w, answer[10:])
		}
	}))
	t.Cleanup(host.Close)
	inBothVariants(t, func(t *testing.T, r *running) {
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 16}}
		t.Cleanup(client.CloseIdleConnections)
		for _, size := range []int{5_000, 60_000} {
			for _, path := range []string{"/reads", "/leaves"} {
				for _, announced := range []bool{true, false} {
					body := bytes.Repeat([]byte("x"), size)
					send := func() error {
						var from io.Reader = bytes.NewReader(body)
						if !announced {
							from = io.MultiReader(from) // its length is not known
						}
						req, err := http.NewRequest("POST", r.base+"/proxy/some"+path, from)
						if err != nil {
							return err
						}
						for name, value := range map[string]string{"Content-Type": "application/octet-stream", "X-Gateway-Api-Key": workspaceKey, "X-Gateway-Provider": "openai", "X-Gateway-Custom-Host": host.URL, "Authorization": "Bearer k"} {
							req.Header.Set(name, value)
						}
						res, err := client.Do(req)
						if err != nil {
							return err
						}
						defer res.Body.Close()
						got, err := io.ReadAll(res.Body)
						if err != nil || res.StatusCode != http.StatusOK || string(got) != answer {
							return fmt.Errorf("%d %q %w", res.StatusCode, got, err)
						}
						return nil
					}
					var all sync.WaitGroup
					var next, failed atomic.Int64
					const calls = 300
					for range 8 {
						all.Go(func() {
							for next.Add(1) <= calls {
								if err := send(); err != nil && failed.Add(1) == 1 {
									t.Errorf("%d bytes to %s, length told: %t: %v", size, path, announced, err)
								}
							}
						})
					}
					all.Wait()
					if n := failed.Load(); n > 0 {
						t.Errorf("%d bytes to %s, length told: %t: %d of %d calls failed", size, path, announced, n, calls)
					}
				}
			}
		}
	})
}
