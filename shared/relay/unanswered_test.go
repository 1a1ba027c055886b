package relay_test

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"golang.org/x/tools/txtar"

	"gateway/shared/pricing"
	"gateway/shared/testkit/relaytest"
)

// anthropicAsks is a request of Messages with a bound.
const anthropicAsks = `{"model":"m","messages":[{"role":"user","content":"Hi"}],"max_tokens":50`

// whole are requests without their closing brace, with the provider and the model of a target and
// what it responds.
var whole = []struct{ provider, path, model, body, reply string }{
	{"openai", "/v1/chat/completions", "gpt-4o-mini", anthropicAsks, reply},
	{"openai", "/v1/completions", "gpt-3.5-turbo-instruct", `{"model":"m","prompt":"Hi"`, `{"id":"c","object":"text_completion","created":1,"model":"m","choices":[{"index":0,"text":"Hello","finish_reason":"stop","logprobs":null}],"usage":{"prompt_tokens":100,"completion_tokens":10,"total_tokens":110}}`},
	{"openai", "/v1/responses", "gpt-4o-mini", `{"model":"m","input":"Hi"`, responseBody},
	{"openai", "/v1/messages", "gpt-4o-mini", anthropicAsks, reply},
	{"openai", "/v1/embeddings", "text-embedding-3-small", `{"model":"m","input":"Hi"`, `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[0.5]}],"usage":{"prompt_tokens":100,"total_tokens":100}}`},
	{"anthropic", "/v1/messages", "claude-sonnet-4-5", anthropicAsks, claudeReply},
	{"anthropic", "/v1/chat/completions", "claude-sonnet-4-5", anthropicAsks, claudeReply},
	{"anthropic", "/v1/responses", "claude-sonnet-4-5", `{"model":"m","input":"Hi"`, claudeReply},
}

const responseBody = `{"id":"resp_1","object":"response","created_at":1,"status":"completed","error":null,"model":"m","output":[{"type":"message","id":"msg_1","status":"completed","role":"assistant","content":[{"type":"output_text","text":"Hello","annotations":[]}]}],"usage":{"input_tokens":100,"output_tokens":10,"total_tokens":110}}`

// TestSuccessesThatAreNoAnswersAreTriedAgain requires that a success without a response takes part
// in retries and fallbacks, by the statuses that the config names, and costs nothing unless a
// part of a response came.
func TestSuccessesThatAreNoAnswersAreTriedAgain(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	for _, a := range whole {
		var packed bytes.Buffer
		w := gzip.NewWriter(&packed)
		_, _ = w.Write([]byte(a.reply))
		_ = w.Close()
		bad := fmt.Sprintf(`"provider":%q,"api_key":"k","override_params":{"model":%q}`, a.provider, a.model)
		for kind, b := range map[string]struct {
			relaytest.Reply
			paid bool
		}{
			"a page":            {relaytest.Reply{Status: 200, Header: http.Header{"Content-Type": {"text/html"}}, Body: "<html></html>"}, false},
			"nothing":           {ok(""), false},
			"garbage":           {ok(`{"id":`), false},
			"cut at once":       {relaytest.Reply{Status: 200, Cut: true}, false},
			"cut early":         {relaytest.Reply{Status: 200, Body: `{"`, Cut: true}, false},
			"cut late":          {relaytest.Reply{Status: 200, Body: a.reply, Cut: true}, true},
			"compressed and so": {relaytest.Reply{Status: 200, Header: http.Header{"Content-Encoding": {"gzip"}}, Body: packed.String(), Cut: true}, true},
		} {
			for _, c := range []struct {
				config   string
				status   int
				attempts string
			}{
				{`{"retry":{"attempts":1,"on_status_codes":[502]},` + bad + `}`, 502, "502 502"},
				{`{"retry":{"attempts":1,"on_status_codes":[503]},` + bad + `}`, 502, "502"},
				{`{"strategy":{"mode":"fallback","on_status_codes":[502]},"targets":[{` + bad + `},{` + bad + `}]}`, 200, "502 200"},
				{`{"strategy":{"mode":"fallback"},"targets":[{` + bad + `},{` + bad + `}]}`, 200, "502 200"},
				{`{"strategy":{"mode":"fallback","on_status_codes":[503]},"targets":[{` + bad + `},{` + bad + `}]}`, 502, "502"},
			} {
				x := exchange{kind + " of " + a.provider + a.path + " " + c.config, a.path, a.body + "}", config(c.config), nil, c.status, "", "", c.attempts}
				for status := range strings.FieldsSeq(c.attempts) {
					x.script = append(x.script, map[string]relaytest.Reply{"502": b.Reply, "200": ok(a.reply)}[status])
				}
				_, _, r := x.run(t, g)
				for i, at := range r.Attempts {
					if (at.Cost > 0) != (b.paid || at.Status == 200) || at.Usage.Estimated {
						t.Errorf("%s: attempt %d: %+v", x.name, i, at)
					}
				}
			}
		}
	}
}

// TestReceivedPartOfACutResponseIsRecorded requires the usage of the beginnings of responses in
// every format: what they report, or at least an estimate of their text.
func TestReceivedPartOfACutResponseIsRecorded(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	text := strings.Repeat("word", 125)
	for _, c := range []struct {
		provider, path, reply string
		input, output         int64
		estimated             bool
	}{
		{"openai", "/chat/completions", `{"id":"c","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"TEXT`, 1, 100, true},
		{"openai", "/chat/completions", `{"id":"c","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"TEXT"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":11,"total_tokens":18}`, 7, 11, false},
		{"openai", "/chat/completions", `{"id":"c","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"TEXT"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"comple`, 7, 100, true},
		{"openai", "/chat/completions", `{"id":"c","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"TEXT"},"finish_reason":"stop"}],"usage":{"prompt_tokens":7,"completion_tokens":1`, 7, 100, true},
		{"openai", "/completions", `{"id":"c","model":"gpt-3.5-turbo-instruct","choices":[{"index":0,"text":"TEXT`, 1, 100, true},
		{"openai", "/responses", `{"id":"c","object":"response","status":"completed","model":"gpt-4o-mini","output":[{"type":"message","id":"m","status":"completed","role":"assistant","content":[{"type":"output_text","annotations":[],"text":"TEXT`, 1, 100, true},
		{"openai", "/responses", `{"id":"c","object":"response","status":"completed","model":"gpt-4o-mini","output":[],"usage":{"input_tokens":7,"output_tokens":11,"total_tokens":18},"user"`, 7, 11, false},
		{"openai", "/embeddings", `{"object":"list","data":[{"object":"embedding","index":0,"embedding":[0.1,0.2`, 1, 0, true},
		{"openai", "/messages", `{"id":"c","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"TEXT`, 1, 100, true},
		{"anthropic", "/messages", `{"id":"c","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"TEXT`, 1, 100, true},
		{"anthropic", "/messages", `{"id":"c","type":"message","role":"assistant","model":"claude-sonnet-4-5","usage":{"input_tokens":7,"output_tokens":11},"content":[{"type":"text","text":"TEXT`, 7, 11, false},
		{"anthropic", "/chat/completions", `{"id":"c","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"TEXT`, 1, 100, true},
		{"google", "/chat/completions", `{"candidates":[{"content":{"role":"model","parts":[{"text":"TEXT`, 1, 100, true},
		{"google", "/chat/completions", `{"candidates":[{"content":{"role":"model","parts":[{"text":"TEXT"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":11,"totalTokenCount":18},"modelVers`, 7, 11, false},
		{"cohere", "/chat/completions", `{"id":"c","message":{"role":"assistant","content":[{"type":"text","text":"TEXT`, 1, 100, true},
	} {
		body := `{"model":"gpt-4o-mini","messages":[{"role":"user","content":"Hello you"}],"max_tokens":900}`
		switch c.path {
		case "/completions":
			body = `{"model":"gpt-4o-mini","prompt":"Hello you","max_tokens":900}`
		case "/responses", "/embeddings":
			body = `{"model":"gpt-4o-mini","input":"Hello you"}`
		}
		part := strings.Replace(c.reply, "TEXT", text, 1)
		x := exchange{c.provider + c.path + " " + c.reply, "/v1" + c.path, body, config(`{"provider":"` + c.provider + `","api_key":"k"}`), []relaytest.Reply{{Status: 200, Body: part, Cut: true}}, 502, "", "", "502"}
		_, _, r := x.run(t, g)
		u := r.Usage
		fits := u.InputTokens() == c.input && u.OutputTokens() == c.output
		if c.estimated {
			fits = u.InputTokens() >= c.input && u.OutputTokens() >= c.output && u.OutputTokens() <= 200
		}
		if !fits || u.Estimated != c.estimated || u.N(pricing.Requests) != 1 {
			t.Errorf("%s: %+v", x.name, u)
		}
	}
}

// TestResponsesOfAnotherFormatAreTriedElsewhere requires that a complete response of another format
// is none, and costs nothing.
func TestResponsesOfAnotherFormatAreTriedElsewhere(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	for _, other := range []string{`{}`, `[]`, `{"ok":true}`, `null`, `"text"`, ``, `  `, `<html></html>`, `{"error":{"message":"no","type":"server_error"}}`, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`} {
		for _, a := range whole {
			for _, stream := range []string{"", `,"stream":true`} {
				if stream != "" && (a.path == "/v1/embeddings" || a.path == "/v1/completions") {
					continue
				}
				target := fmt.Sprintf(`{"provider":%q,"api_key":"k","override_params":{"model":%q}}`, a.provider, a.model)
				x := exchange{other + " of " + a.provider + a.path + stream, a.path, a.body + stream + "}", config(fallback(target, target)), []relaytest.Reply{ok(other), ok(a.reply)}, 200, "Hello", "", ""}
				if a.path == "/v1/embeddings" {
					x.has = "0.5"
				}
				_, _, r := x.run(t, g)
				if len(r.Attempts) != 2 || r.Attempts[0].Status < 429 || r.Attempts[0].Cost != 0 || r.Attempts[0].Usage.IsReported() || r.Cost == 0 {
					t.Errorf("%s: %+v", x.name, r.Attempts)
				}
			}
		}
	}
}

// TestFailuresInsideASuccessFallBack sends every failure inside a 200 to clients of each format,
// plain and streamed: the next target responds, and without one the client gets an error.
func TestFailuresInsideASuccessFallBack(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	cases, _ := filepath.Glob("../dialect/openai/testdata/answers/failed-*.txtar")
	if len(cases) < 9 {
		t.Fatalf("only %d cases", len(cases))
	}
	clients := []struct{ name, path, stream, body string }{
		{"chat", "/v1/chat/completions", "", anthropicAsks}, {"messages", "/v1/messages", "", anthropicAsks}, {"responses", "/v1/responses", "", `{"model":"m","input":"Hi"`},
		{"gemini", "/v1/v1beta/models/m:generateContent", "/v1/v1beta/models/m:streamGenerateContent?alt=sse", geminiAsks[:len(geminiAsks)-1]},
		{"converse", "/v1/model/m/converse", "/v1/model/m/converse-stream", converseAsks[:len(converseAsks)-1]},
		{"cohere", "/v1/v2/chat", "", anthropicAsks}, {"completions", "/v1/completions", "", `{"model":"m","prompt":"Hi"`},
	}
	const target = `{"provider":"deepinfra","api_key":"k"}`
	streamed := sse(piece("Hello", ""), lastChunk+shortly+"}", ended)
	for _, path := range cases {
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files := map[string]string{}
		for _, f := range txtar.Parse(raw).Files {
			files[f.Name] = string(f.Data)
		}
		name := strings.TrimSuffix(filepath.Base(path), ".txtar")
		if name == "failed-after-text" {
			continue // the client has read a part of it
		}
		for _, c := range clients {
			for _, stream := range []bool{false, true} {
				bad, good, at, body := files["upstream_response.json"], reply, c.path, c.body
				if stream {
					bad, good = files["upstream_response.sse"], streamed
					if c.stream == "" {
						body += `,"stream":true`
					} else {
						at = c.stream
					}
				}
				if bad == "" {
					continue
				}
				failed := relaytest.Reply{Status: 200, Body: bad, Header: http.Header{"Content-Type": {map[bool]string{false: "application/json", true: "text/event-stream"}[stream]}}}
				where := fmt.Sprintf("%s to %s, stream %t", name, c.name, stream)
				x := exchange{where, at, body + "}", config(fallback(target, target)), []relaytest.Reply{failed, ok(good)}, 200, "Hello", "", ""}
				if _, _, r := x.run(t, g); len(r.Attempts) != 2 || r.Attempts[0].Status < 400 || r.Attempts[1].Status != 200 {
					t.Errorf("%s: attempts %+v", where, r.Attempts)
				}
				g.Script(failed)
				if alone := g.Do("POST", at, body+"}", config(target)...); alone.Status != 502 && alone.Status != 429 {
					t.Errorf("%s, alone: %d %.300s", where, alone.Status, alone.Body)
				}
				g.Records()
				g.Calls()
			}
		}
	}
}

// TestPassedThroughResponsesThatBreakOffAreBooked requires the usage that came, otherwise an estimate
// that is marked as one; what never was a response costs nothing.
func TestPassedThroughResponsesThatBreakOffAreBooked(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	words := strings.Repeat("word ", 400)
	said := `{"id":"1","model":"gpt-4o-mini","choices":[{"index":0,"message":{"role":"assistant","content":"` + words
	for _, c := range []struct {
		name, provider, path, part string
		in, least                  int64 // input, 0: an estimate; output at least
		estimated                  bool
	}{
		{"within the text", "openai", "chat/completions", said, 0, 300, true},
		{"after the text", "openai", "chat/completions", said + `"},"finish_reason":"stop"}]`, 0, 300, true},
		{"a version of the path", "openai", "v1/chat/completions", said, 0, 300, true},
		{"after the usage", "openai", "chat/completions", said + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,"completion_tokens":500,"total_tokens":511}`, 11, 500, false},
		{"within the usage", "openai", "chat/completions", said + `"},"finish_reason":"stop"}],"usage":{"prompt_tokens":11,`, 11, 300, true},
		{"messages", "anthropic", "messages", `{"id":"1","type":"message","role":"assistant","model":"claude-sonnet-4-5","content":[{"type":"text","text":"` + words, 0, 300, true},
		{"an error", "openai", "chat/completions", `{"error":{"message":"` + words, -1, 0, false},
		{"before the text", "openai", "chat/completions", `{"id":"1","model":"gpt-4o-mini","choices":[`, -1, 0, false},
	} {
		g.Script(relaytest.Reply{Status: 200, Body: c.part, Cut: true})
		g.Do("POST", "/v1/proxy/"+c.path, `{"model":"gpt-4o-mini","max_tokens":900,"messages":[{"role":"user","content":"Tell me many words"}]}`, config(`{"provider":"`+c.provider+`","api_key":"k"}`)...)
		r := g.Record()
		in, out := r.Usage.InputTokens(), r.Usage.OutputTokens()
		if c.in < 0 && (in != 0 || out != 0) || c.in > 0 && in != c.in || c.in == 0 && in == 0 || out < c.least || out > 2*c.least || r.Usage.Estimated != c.estimated {
			t.Errorf("%s: %d in, %d out, estimated %t: %+v", c.name, in, out, r.Usage.Estimated, r.Usage)
		}
	}
}
