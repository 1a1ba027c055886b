package relay

import (
	"bytes"
	"errors"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/cache"
	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/openai"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
	"gateway/shared/tenant"
	"gateway/shared/wire"
)

// asking is a request as far as the cache looks at it.
func asking(endpoint string) *call {
	c := newCall()
	c.Relay = &Relay{Options: Options{Cache: &cache.Cache{}}}
	c.Route = &routes.Route{Endpoint: endpoint, Shape: routes.Unified, Client: openai.Chat{}}
	c.Req = &http.Request{Method: http.MethodPost, Header: http.Header{}}
	c.Org, c.In = &tenant.Organisation{}, []byte(`{}`)
	return c
}

func TestWhatMayBeCached(t *testing.T) {
	yes, no := true, false
	for name, c := range map[string]struct {
		endpoint string
		change   func(c *call)
		want     bool
	}{
		"chat":                   {"chatComplete", nil, true},
		"embeddings":             {"embed", nil, true},
		"counting":               {"messagesCountTokens", nil, true},
		"speech":                 {"createSpeech", nil, false},
		"a file":                 {"uploadFile", nil, false},
		"a batch":                {"createBatch", nil, false},
		"an edit of an image":    {"imageEdit", nil, false},
		"pass-through":           {"chatComplete", func(c *call) { c.Route.Shape = routes.Raw }, false},
		"a list":                 {"chatComplete", func(c *call) { c.Route.Shape = routes.Listing }, false},
		"GET":                    {"chatComplete", func(c *call) { c.Req.Method = http.MethodGet }, false},
		"a form":                 {"chatComplete", func(c *call) { c.To.ContentType = "multipart/form-data; boundary=b" }, false},
		"no cache":               {"chatComplete", func(c *call) { c.Cache = nil }, false},
		"debug off":              {"chatComplete", func(c *call) { c.Ask.NoBodies = true }, false},
		"debug enforced":         {"chatComplete", func(c *call) { c.Ask.NoBodies, c.Org.Settings.EnforceDebug = true, &yes }, true},
		"debug refused":          {"chatComplete", func(c *call) { c.Org.Settings.EnforceDebug = &no }, false},
		"a response":             {"createModelResponse", func(c *call) { c.In = []byte(`{"background":false}`) }, true},
		"one in the background":  {"createModelResponse", func(c *call) { c.In = []byte(`{"background":true}`) }, false},
		"one that is not clear":  {"createModelResponse", func(c *call) { c.In = []byte(`{"Background":true}`) }, false},
		"one that is not object": {"createModelResponse", func(c *call) { c.In = []byte(`[]`) }, false},
	} {
		got := asking(c.endpoint)
		if c.change != nil {
			c.change(got)
		}
		if may := got.mayCache([]byte(`{}`)); may != c.want {
			t.Errorf("%s: %v, want %v", name, may, c.want)
		}
	}
	if asking("chatComplete").mayCache(nil) {
		t.Error("a request without a body")
	}
}

func TestWithoutACacheNothingIsDone(t *testing.T) {
	c, leaf, body := asking("chatComplete"), &route.Leaf{}, []byte(`{}`)
	c.Cache = nil
	allocs := testing.AllocsPerRun(100, func() {
		if a, err := c.lookUp(leaf, body); a != nil || err != nil || c.caching != nil {
			t.Fatal(a, err)
		}
		c.gather(nil)
		c.keepStream(&answer{})
	})
	if allocs != 0 {
		t.Errorf("%v allocations", allocs)
	}
}

// gathered puts a stream together and gives the answer in the dialect; ok is
// false when it cannot be kept.
func gathered(t *testing.T, d chat.Spoken, stream string, chunk int) (string, bool) {
	t.Helper()
	c := asking("chatComplete")
	c.Route.Client, c.caching = d, &caching{}
	a := &answer{}
	c.gather(a)
	for in := []byte(stream); len(in) > 0; {
		n := min(chunk, len(in))
		a.gather.feed(bytes.Clone(in[:n]))
		in = in[n:]
	}
	g := a.gather
	if g.lost || g.parser.End(g.onEvent) != nil || g.dec.End() != nil {
		return "", false
	}
	return string(d.EncodeResponse(nil, g.into.Response(), &chat.Options{Strict: true, ID: "x", Model: "m"})), true
}

const (
	openaiStream = `data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"role":"assistant","content":""},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"Grü"},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{"content":"ße"},"finish_reason":null}]}

data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[{"index":0,"delta":{},"finish_reason":"stop"}]}

data: {"id":"c1","object":"chat.completion.chunk","created":7,"model":"m","choices":[],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}}

data: [DONE]

`
	anthropicStream = `event: message_start
data: {"type":"message_start","message":{"id":"m1","type":"message","role":"assistant","model":"m","content":[],"stop_reason":null,"stop_sequence":null,"usage":{"input_tokens":3,"output_tokens":1}}}

event: content_block_start
data: {"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}

event: content_block_delta
data: {"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"Grüße"}}

event: content_block_stop
data: {"type":"content_block_stop","index":0}

event: message_delta
data: {"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{"output_tokens":2}}

event: message_stop
data: {"type":"message_stop"}

`
)

func TestStreamsArePutTogether(t *testing.T) {
	for name, c := range map[string]struct {
		dialect chat.Spoken
		stream  string
		end     string
		terms   []string
	}{
		"openai":    {openai.Chat{}, openaiStream, `"finish_reason":"stop"`, []string{`"content":"Grüße"`, `"finish_reason":"stop"`, `"total_tokens":5`, `"id":"c1"`, `"created":7`}},
		"anthropic": {anthropic.Messages{}, anthropicStream, "event: message_stop", []string{`"text":"Grüße"`, `"stop_reason":"end_turn"`, `"output_tokens":2`, `"input_tokens":3`, `"id":"m1"`}},
	} {
		whole, ok := gathered(t, c.dialect, c.stream, 1<<20)
		if !ok {
			t.Fatalf("%s cannot be kept", name)
		}
		for _, term := range c.terms {
			if !strings.Contains(whole, term) {
				t.Errorf("%s: no %s in %s", name, term, whole)
			}
		}
		for chunk := 1; chunk < 40; chunk += 3 {
			if got, ok := gathered(t, c.dialect, c.stream, chunk); !ok || got != whole {
				t.Errorf("%s in pieces of %d: %s %v", name, chunk, got, ok)
			}
		}
		// A stream that is cut before the answer is at its end is not kept.
		for cut := 0; cut < strings.Index(c.stream, c.end); cut += 7 {
			if got, ok := gathered(t, c.dialect, c.stream[:cut], 64); ok {
				t.Fatalf("%s, cut at %d, gave %s", name, cut, got)
			}
		}
	}
}

func TestStreamsThatCannotBeKept(t *testing.T) {
	for name, stream := range map[string]string{
		"logprobs": strings.Replace(openaiStream, `"delta":{"content":"Grü"},`, `"delta":{"content":"Grü"},"logprobs":{"content":[{"token":"Grü","logprob":-0.1,"bytes":null,"top_logprobs":[]}]},`, 1),
		"too long": strings.Replace(openaiStream, "Grü", strings.Repeat("Grü", cache.MaxBody/4), 1),
		"an error": strings.Replace(openaiStream, `data: [DONE]`, `data: {"error":{"message":"overloaded","type":"server_error"}}`, 1),
		"no JSON":  strings.Replace(openaiStream, `data: [DONE]`, `data: {`, 1),
	} {
		if got, ok := gathered(t, openai.Chat{}, stream, 512); ok {
			t.Errorf("%s: %.200s", name, got)
		}
	}
}

// Where a hidden tool gives the answer, other text is no part of it.
func TestTextBesideAHiddenToolIsNotKept(t *testing.T) {
	text := func(s string, answer bool) *chat.Delta {
		return &chat.Delta{Kind: chat.DeltaText, Answer: answer, JSON: wire.AppendJSONString(nil, s)}
	}
	g := &gathering{hidden: true}
	g.add(text("Let me see", false))
	g.add(text(`{"a":1}`, true))
	r := g.into.Response()
	if len(r.Choices) != 1 || r.Choices[0].Text() != `{"a":1}` {
		t.Errorf("%+v", r)
	}
	c := asking("chatComplete")
	c.caching = &caching{}
	g = &gathering{hidden: true}
	g.add(text("I will not", false))
	c.keepStream(&answer{turn: &turn{gather: g}}) // would reach for the store if it were kept
}

func TestWhatIsWhole(t *testing.T) {
	const good = `{"id":"x","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":"x"},"finish_reason":"stop"}]}`
	c := asking("chatComplete")
	for body, want := range map[string]bool{good: true, good + "x": false, `{}`: false, `[]`: false, ``: false, `{"error":{"message":"x"}}`: false, "<html>": false} {
		if got := c.whole([]byte(body)); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
	c.Route.Client = nil
	for body, want := range map[string]bool{`{}`: true, " \n{}": true, `{}{`: false, `"x"`: false} {
		if got := c.whole([]byte(body)); got != want {
			t.Errorf("%q: %v", body, got)
		}
	}
}

func TestNamespaceIsChecked(t *testing.T) {
	c := asking("chatComplete")
	for _, v := range []string{strings.Repeat("n", maxNamespace+1), "a\tb"} {
		c.Req.Header[headerCacheNamespace] = []string{v}
		_, err := c.lookUp(&route.Leaf{Cache: &route.Cache{Mode: "simple"}}, []byte(`{}`))
		var f interface{ Status() int }
		if !errors.As(err, &f) || f.Status() != http.StatusBadRequest || !strings.Contains(err.Error(), "namespace") {
			t.Errorf("%q: %v", v, err)
		}
	}
}
