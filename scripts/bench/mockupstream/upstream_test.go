package main

import (
	"bytes"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"

	"gateway/scripts/bench/loadgen"
)

func listen(t *testing.T) (*upstream, string) {
	t.Helper()
	ln, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	u := newUpstream(0, 0, 100)
	done := make(chan struct{})
	go func() {
		defer close(done)
		_ = u.serve(ln) // ends when the listener is closed
	}()
	t.Cleanup(func() {
		_ = ln.Close()
		<-done
	})
	return u, "http://" + ln.Addr().String()
}

// TestLoadTakesEveryAnswerForGood runs the load generator, which checks each
// answer, on the upstream itself.
func TestLoadTakesEveryAnswerForGood(t *testing.T) {
	u, url := listen(t)
	for _, s := range []loadgen.Spec{
		{Kind: "chat", Body: loadgen.Body("gpt-4o-mini", 1024, false)},
		{Kind: "chat", Body: loadgen.Body("gpt-4o-mini", 100_000, false)},
		{Kind: "stream", Body: loadgen.Body("gpt-4o-mini", 1024, true), Chunks: 100},
	} {
		s.URL, s.Conns, s.Requests = url+"/v1/chat/completions", 4, 200
		r, err := loadgen.Run(s)
		if err != nil || r.Errors > 0 || r.Requests != 200 || r.NoUsage > 0 || r.NoFinish > 0 {
			t.Errorf("%s: %v %+v", s.Kind, err, r)
		}
	}
	if n := u.hits[kindChat].Load(); n != 600 {
		t.Errorf("%d requests counted", n)
	}
	r, err := loadgen.Run(loadgen.Spec{URL: url + "/v1/embeddings", Kind: "embeddings", Body: loadgen.EmbeddingBody("m"), Conns: 1, Requests: 10})
	if err != nil || r.Errors > 0 {
		t.Errorf("embeddings: %v %+v", err, r)
	}
}

func TestMissingChunksAreDetected(t *testing.T) {
	_, url := listen(t)
	get(t, url+"/__ctl?chunks=7")
	s := loadgen.Spec{URL: url + "/v1/chat/completions", Kind: "stream", Body: loadgen.Body("m", 1024, true), Chunks: 100, Conns: 1, Requests: 3}
	if r, err := loadgen.Run(s); err != nil || r.Errors != 3 {
		t.Errorf("%v %+v", err, r)
	}
	s.Chunks = 7
	if r, err := loadgen.Run(s); err != nil || r.Errors != 0 {
		t.Errorf("%v %+v", err, r)
	}
}

func get(t *testing.T, url string, headers ...string) string {
	t.Helper()
	r, err := http.NewRequest(http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(b)
}

func TestReads(t *testing.T) {
	_, url := listen(t)
	if b := get(t, url+"/v1/models"); !strings.Contains(b, `"gpt-4o-mini"`) {
		t.Error(b)
	}
	if b := get(t, url+"/v1/models", "Anthropic-Version", "2023-06-01"); !strings.Contains(b, `"claude-`) {
		t.Error(b)
	}
	// A body of unknown length arrives in chunks.
	resp, err := http.Post(url+"/v1/messages", "application/json", io.MultiReader(strings.NewReader(`{"stream":`), strings.NewReader(` true}`)))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	if err != nil || bytes.Count(b, []byte("content_block_delta")) != 200 || !bytes.Contains(b, []byte("message_stop")) {
		t.Errorf("%v %d bytes", err, len(b))
	}
	if last := get(t, url+"/__last"); !strings.HasSuffix(last, `{"stream": true}`) {
		t.Error(last)
	}
	if b := get(t, url+"/nothing"); !strings.Contains(b, "no such route") {
		t.Error(b)
	}
	if b := get(t, url+"/__stats"); b != `{"chat":0,"embeddings":0,"messages":1,"unknown":1}` {
		t.Error(b)
	}
}

func TestWantsStream(t *testing.T) {
	long := strings.Repeat("x", 10_000)
	for body, want := range map[string]bool{
		`{"stream":true}`:                         true,
		`{"stream" : true}`:                       true,
		`{"stream":false}`:                        false,
		`{"a":"stream"}`:                          false,
		`{"a":"` + long + `","stream":true}`:      true,
		`{"stream":true,"a":"` + long + `"}`:      true,
		`{"messages":"` + long + `","stream":  1`: false,
	} {
		if got := wantsStream([]byte(body)); got != want {
			t.Errorf("%.40s: %v", body, got)
		}
	}
}
