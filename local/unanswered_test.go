package main

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/shared/pricing"
)

// broken are successes that are none, as the mock makes them, and what of them
// is paid for.
var broken = []struct {
	directives string
	paid       bool
}{
	{"html&status=200", false}, {"empty", false}, {"garbage", false}, {"cut=after:0", false}, {"cut=after:2", false},
	{"wrong-length", true}, {"gzip&wrong-length", true},
}

// answering are the routes of the mock that answer whole, with a model of each.
var answering = []struct{ provider, path, model, body string }{
	{"@mock", "/chat/completions", "gpt-4o-mini", chatBody("m", "Hello", "")},
	{"@mock", "/completions", "gpt-3.5-turbo-instruct", `{"model":"m","prompt":"Hello"}`},
	{"@mock", "/responses", "gpt-4o-mini", `{"model":"m","input":"Hello"}`},
	{"@mock", "/messages", "gpt-4o-mini", chatBody("m", "Hello", `,"max_tokens":50`)},
	{"@mock", "/embeddings", "text-embedding-3-small", `{"model":"m","input":"Hello"}`},
	{"@mock-anthropic", "/messages", "claude-sonnet-4-5", chatBody("m", "Hello", `,"max_tokens":50`)},
	{"@mock-anthropic", "/chat/completions", "claude-sonnet-4-5", chatBody("m", "Hello", "")},
	{"@mock-anthropic", "/responses", "claude-sonnet-4-5", `{"model":"m","input":"Hello"}`},
}

// A success without an answer takes part in retries and fallbacks, by the lists of the
// route, and costs nothing if no part of an answer came. What came is recorded.
func TestSuccessesThatAreNoAnswersAreTriedAgain(t *testing.T) {
	t.Parallel()
	r := start(t).instance(new(atomic.Int64)) // its waits take no time
	type expected struct {
		name             string
		answer, attempts int
		paid             bool
	}
	var all []expected
	for _, a := range answering {
		for _, b := range broken {
			bad := fmt.Sprintf(`"provider":%q,"override_params":{"model":"%s?%s"}`, a.provider, a.model, b.directives)
			good := fmt.Sprintf(`"provider":%q,"override_params":{"model":%q}`, a.provider, a.model)
			for _, c := range []struct {
				config           string
				answer, attempts int
			}{
				{`{"retry":{"attempts":1,"on_status_codes":[502]},` + bad + `}`, 502, 2},
				{`{"retry":{"attempts":1,"on_status_codes":[503]},` + bad + `}`, 502, 1},
				{`{"strategy":{"mode":"fallback","on_status_codes":[502]},"targets":[{` + bad + `},{` + good + `}]}`, 200, 2},
				{`{"strategy":{"mode":"fallback"},"targets":[{` + bad + `},{` + good + `}]}`, 200, 2},
				{`{"strategy":{"mode":"fallback","on_status_codes":[503]},"targets":[{` + bad + `},{` + good + `}]}`, 502, 1},
			} {
				name := a.provider + a.path + " " + c.config
				if got := r.call("POST", a.path, a.body, "X-Gateway-Config", c.config); got.status != c.answer {
					t.Errorf("%s: %d %s", name, got.status, got.body)
				}
				all = append(all, expected{name, c.answer, c.attempts, b.paid})
			}
		}
	}
	records := r.records(len(all))
	for i, rec := range records {
		e := all[i]
		if len(rec.Attempts) != e.attempts || rec.ClientStatus != e.answer {
			t.Errorf("%s: %d attempts, client %d", e.name, len(rec.Attempts), rec.ClientStatus)
			continue
		}
		for j, at := range rec.Attempts {
			last := j == len(rec.Attempts)-1 && e.answer == 200
			if at.Status != 502 && !last || (at.Cost > 0) != (e.paid || last) || at.Usage.Estimated {
				t.Errorf("%s: attempt %d: %+v", e.name, j, at)
			}
		}
	}
	// The bill has what was made of the bodies that nothing came of, too.
	bill := r.mock.Bill()
	for _, rec := range records {
		for _, at := range rec.Attempts {
			for _, row := range bill.Rows {
				if at.Cost > 0 && strings.HasSuffix(at.RequestID, row.ID) && at.Usage.OutputTokens() != row.Output {
					t.Errorf("%s: %d tokens in our books, the bill %+v", rec.Path, at.Usage.OutputTokens(), row)
				}
			}
		}
	}
}

// cutAnswers are beginnings of answers in every shape; made is the number of output tokens
// that they report, or at least what an estimate of their text has.
var cutAnswers = []struct {
	provider, path, answer string
	input, output          int64
	estimated              bool
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
}

// The answer's length may be announced, or not; it may be compressed.
func TestReceivedPartOfACutResponseIsRecorded(t *testing.T) {
	t.Parallel()
	r := start(t)
	var text []byte
	for range 500 {
		text = append(text, "word"[len(text)%4])
	}
	var body atomic.Pointer[[]byte]
	var length atomic.Bool
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "application/json")
		b := *body.Load()
		if length.Load() {
			w.Header().Set("Content-Length", fmt.Sprint(len(b)+500))
		}
		_, _ = w.Write(b)
		w.(http.Flusher).Flush()
		panic(http.ErrAbortHandler)
	}))
	defer host.Close()
	saved := map[string]bool{}
	var n int
	var names []string
	for i, c := range cutAnswers {
		if !saved[c.provider] {
			saved[c.provider] = true
			r.save("cut-"+c.provider, fmt.Sprintf(`"ai_provider_id":%q,"key":"sk-cut","configurations":{"custom_host":%q}`, c.provider, host.URL+"/v1"))
		}
		request := `{"model":"MODEL","messages":[{"role":"user","content":"Hello you"}],"max_tokens":900}`
		switch c.path {
		case "/completions":
			request = `{"model":"MODEL","prompt":"Hello you","max_tokens":900}`
		case "/responses", "/embeddings":
			request = `{"model":"MODEL","input":"Hello you"}`
		}
		answer := []byte(replaced(c.answer, "TEXT", string(text)))
		body.Store(&answer)
		for _, announced := range []bool{false, true} {
			length.Store(announced)
			got := r.call("POST", c.path, replaced(request, "MODEL", "@cut-"+c.provider+"/gpt-4o-mini"))
			if got.status != 502 {
				t.Errorf("%d: %d %s", i, got.status, got.body)
			}
			n++
			names = append(names, fmt.Sprint(c.provider, c.path, " ", c.answer, " announced ", announced))
		}
	}
	for i, rec := range r.records(n) {
		c := cutAnswers[i/2]
		u := rec.Usage
		ok := u.InputTokens() == c.input && u.OutputTokens() == c.output
		if c.estimated {
			ok = u.InputTokens() >= c.input && u.OutputTokens() >= c.output && u.OutputTokens() <= 200
		}
		if !ok || u.Estimated != c.estimated || u.N(pricing.Requests) != 1 {
			t.Errorf("%s: %+v", names[i], u)
		}
	}
}

func replaced(s, old, with string) string {
	for i := 0; i+len(old) <= len(s); i++ {
		if s[i:i+len(old)] == old {
			return s[:i] + with + s[i+len(old):]
		}
	}
	return s
}

// A whole answer of another shape is none. Nothing of it is charged.
func TestAnswersOfAnotherShapeAreTriedElsewhere(t *testing.T) {
	t.Parallel()
	r := start(t)
	var body atomic.Pointer[string]
	host := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		_, _ = io.Copy(io.Discard, req.Body)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, *body.Load())
	}))
	defer host.Close()
	for id, dialect := range map[string]string{"other-openai": "openai", "other-anthropic": "anthropic"} {
		r.save(id, fmt.Sprintf(`"ai_provider_id":%q,"key":"sk-other","configurations":{"custom_host":%q}`, dialect, host.URL+"/v1"))
	}
	var names []string
	for _, answer := range []string{`{}`, `[]`, `{"ok":true}`, `null`, `"text"`, ``, `  `, `<html></html>`, `{"error":{"message":"no","type":"server_error"}}`, `{"type":"error","error":{"type":"overloaded_error","message":"busy"}}`} {
		body.Store(&answer)
		for _, id := range []string{"@other-openai", "@other-anthropic"} {
			for _, a := range []struct{ path, body string }{
				{"/chat/completions", chatBody("m", "Hello", `,"max_tokens":50`)}, {"/chat/completions", chatBody("m", "Hello", `,"stream":true,"max_tokens":50`)},
				{"/messages", chatBody("m", "Hello", `,"max_tokens":50`)}, {"/messages", chatBody("m", "Hello", `,"max_tokens":50,"stream":true`)},
				{"/responses", `{"model":"m","input":"Hello"}`}, {"/responses", `{"model":"m","input":"Hello","stream":true}`},
				{"/completions", `{"model":"m","prompt":"Hello"}`}, {"/embeddings", `{"model":"m","input":"Hello"}`},
			} {
				model := "gpt-4o-mini"
				if a.path == "/embeddings" {
					model = "text-embedding-3-small"
				} else if a.path == "/completions" {
					model = "gpt-3.5-turbo-instruct"
				}
				if id == "@other-anthropic" && (a.path == "/embeddings" || a.path == "/completions") {
					continue
				}
				name := fmt.Sprintf("%s%s %s for %s", id, a.path, a.body, answer)
				config := fmt.Sprintf(`{"strategy":{"mode":"fallback"},"targets":[{"provider":%q,"override_params":{"model":%q}},{"provider":"@mock","override_params":{"model":%q}}]}`, id, model, model)
				if got := r.call("POST", a.path, a.body, "X-Gateway-Config", config); got.status != 200 {
					t.Errorf("%s: %d %s", name, got.status, got.body)
				}
				names = append(names, name)
			}
		}
	}
	records := r.records(len(names))
	for i, rec := range records {
		if len(rec.Attempts) != 2 || rec.Attempts[0].Status < 429 || rec.Attempts[0].Cost != 0 || rec.Attempts[0].Usage.IsReported() {
			t.Errorf("%s: %+v", names[i], rec.Attempts)
		}
	}
	if got, want := booked(records), billed(r); got != want {
		t.Errorf("our books %+v\nthe bill  %+v", got, want)
	}
}
