package relay

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/guard/judge"
	"gateway/shared/guard/remote"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/routes"
)

var (
	onePNG = append([]byte("\x89PNG\r\n\x1a\n"), make([]byte, 40)...)
	onePDF = []byte("%PDF-1.7\n1 0 obj\n")
)

// failing is a transport that gives no response, and counts.
type failing struct{ n atomic.Int64 }

func (f *failing) RoundTrip(*http.Request) (*http.Response, error) {
	f.n.Add(1)
	return nil, context.DeadlineExceeded
}

func TestMediaOfARequest(t *testing.T) {
	var hits atomic.Int64
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		hits.Add(1)
		switch r.URL.Path {
		case "/a.png":
			_, _ = w.Write(onePNG)
		case "/b.pdf":
			_, _ = w.Write(onePDF)
		default:
			w.WriteHeader(http.StatusNotFound)
		}
	}))
	t.Cleanup(s.Close)
	p, _ := egress.ParseAllow("127.0.0.0/8")
	transport := egress.NewHTTP1(p)
	t.Cleanup(transport.CloseIdleConnections)
	newCall := func(rt http.RoundTripper) *call {
		c := newCall()
		c.relay, c.req.Route = &Relay{Options: Options{Transport: rt, Egress: p, Now: time.Now}}, &routes.Route{}
		c.req.Lease = new(egress.Lease)
		c.req.Req = httptest.NewRequest("POST", "/", nil)
		c.req.Ctx = c.req.Req.Context()
		c.target.Choice.Traits.NeedsMediaBytes, c.target.Choice.Traits.MediaHosts = true, []string{"files.example"}
		return c
	}
	image := func(address string, at int) chat.Part {
		return chat.Part{Kind: chat.Image, At: at, Media: &chat.Media{URL: address, Detail: "low"}}
	}
	conversation := func(parts ...chat.Part) *chat.Request {
		return &chat.Request{Messages: []chat.Message{{Role: chat.User, At: 0, IsString: true, Parts: []chat.Part{{Kind: chat.Text, Text: "x"}}}, {Role: chat.User, At: 1, Parts: parts}}}
	}

	c := newCall(transport)
	inResult := chat.Part{Kind: chat.Result, At: 3, Result: &chat.ToolResult{CallID: "c", Parts: []chat.Part{image(s.URL+"/a.png", 0)}}}
	r := conversation(image(s.URL+"/a.png", 0), image(s.URL+"/b.pdf", 1), image("https://a.files.example/x", 2), inResult, image("gs://b/c", 4))
	for range 2 { // of two targets
		err := withMediaBytes(c.relay, &c.target, &c.out, &c.log, r, func() error {
			got := r.Messages[1].Parts
			if got[0].Media.MIME != "image/png" || got[0].Media.URL != "" || got[0].Media.Detail != "low" || got[1].Kind != chat.Document || got[2].Media.URL == "" || got[4].Media.URL == "" {
				t.Errorf("%+v", got)
			}
			if m := got[3].Result.Parts[0].Media; m.Data != got[0].Media.Data {
				t.Errorf("%+v", m)
			}
			return nil
		})
		if err != nil {
			t.Fatal(err)
		}
		if r.Messages[1].Parts[0].Media.URL == "" || r.Messages[1].Parts[3].Result.Parts[0].Media.URL == "" {
			t.Error("the addresses were lost for targets that read them")
		}
	}
	if hits.Load() != 2 || c.out.media.Documents != int64(len(onePDF)) {
		t.Errorf("%d requests, %d bytes of documents", hits.Load(), c.out.media.Documents)
	}

	bad := conversation(image(s.URL+"/a.png", 0), chat.Part{Kind: chat.Text, Text: "x", At: 1}, image(s.URL+"/none", 2))
	for range 2 {
		err := withMediaBytes(newCall(transport).relay, &newCall(transport).target, &newCall(transport).out, &newCall(transport).log, bad, func() error { t.Error("encoded"); return nil })
		if f := fault.From(err); f.Status() != 400 || f.Field != "messages[1].content[2]" || !strings.Contains(f.Message, "404") {
			t.Errorf("%v", err)
		}
	}
	var many []chat.Part
	for i := range body.MaxMedia + 1 {
		many = append(many, image(s.URL+"/a.png?"+strings.Repeat("i", i), i))
	}
	down := new(failing)
	if f := fault.From(withMediaBytes(newCall(down).relay, &newCall(down).target, &newCall(down).out, &newCall(down).log, conversation(many...), nil)); f.Field != "messages[1].content[100]" || down.n.Load() != 0 {
		t.Errorf("%v after %d requests", f, down.n.Load())
	}
	imagined := newCall(down)
	imagined.req.DryRun = true
	if err := withMediaBytes(imagined.relay, &imagined.target, &imagined.out, &imagined.log, conversation(image("https://x.example/a.png", 0)), func() error { return nil }); err != nil || down.n.Load() != 0 {
		t.Errorf("%v after %d requests", err, down.n.Load())
	}
	gone := newCall(transport)
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	gone.req.Req = gone.req.Req.WithContext(ctx)
	if f := fault.From(withMediaBytes(gone.relay, &gone.target, &gone.out, &gone.log, conversation(image(s.URL+"/a.png", 0)), nil)); f.Code != fault.RequestTimeout {
		t.Errorf("%v", f)
	}
}

// TestFetchesEndWithTheirCaller: an image for a check ends with the check's own timeout, and
// media for a provider end with the client, at a host that never answers.
func TestFetchesEndWithTheirCaller(t *testing.T) {
	over := make(chan struct{})
	s := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		select {
		case <-over:
		case <-r.Context().Done():
		}
	}))
	t.Cleanup(s.Close)
	t.Cleanup(func() { close(over) })
	p, _ := egress.ParseAllow("127.0.0.0/8")
	transport := egress.NewHTTP1(p)
	t.Cleanup(transport.CloseIdleConnections)
	short, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()
	for name, c := range map[string]struct {
		client context.Context
		fetch  func(*call) error
	}{
		"timeoutMs of inlineImageUrls": {t.Context(), func(c *call) error {
			check := remote.Makers(time.Now, nil)["default.inlineImageUrls"](map[string]json.RawMessage{"timeoutMs": json.RawMessage("20")})
			body := `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"` + s.URL + `/x.png"}}]}]}`
			if v := check(admission.ClientContext(&c.req), &judge.Subject{Request: json.RawMessage(body), Fetch: images(c.relay, &c.req)}); v.Err != nil {
				return errors.New(v.Err.Message)
			}
			return nil
		}},
		"an image of a check whose client leaves": {short, func(c *call) error {
			_, _, err := images(c.relay, &c.req)(admission.ClientContext(&c.req), s.URL+"/x.png", 1000)
			return err
		}},
		"media whose client leaves": {short, func(c *call) error {
			c.target.Choice.Traits.NeedsMediaBytes = true
			r := &chat.Request{Messages: []chat.Message{{Role: chat.User, Parts: []chat.Part{{Kind: chat.Image, Media: &chat.Media{URL: s.URL + "/x.png"}}}}}}
			return withMediaBytes(c.relay, &c.target, &c.out, &c.log, r, func() error { return nil })
		}},
	} {
		in := newCall()
		in.relay, in.req.Route = &Relay{Options: Options{Transport: transport, Egress: p, Now: time.Now}}, &routes.Route{}
		in.req.Lease = new(egress.Lease)
		in.req.Req = httptest.NewRequest("POST", "/", nil).WithContext(c.client)
		in.req.Ctx = &egress.Lane{Context: context.Background(), Tenant: "org"} // of the request: it outlives the client
		done := make(chan error, 1)
		go func() { done <- c.fetch(in) }()
		select {
		case err := <-done:
			if err == nil {
				t.Errorf("%s: it was fetched", name)
			}
		case <-time.After(25 * time.Second): // less than media have by themselves
			t.Errorf("%s: it goes on", name)
		}
	}
}
