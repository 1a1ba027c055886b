package vendors

import (
	"bytes"
	"cmp"
	"context"
	"crypto/tls"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/egress"
	"gateway/shared/guard"
	"gateway/shared/guard/judge"
	"gateway/shared/provider"
)

// strict is a server that takes requests of one vendor's shape alone, for any host. It tells
// what is wrong with one that it rejects.
type strict struct {
	*httptest.Server
	p       *proof
	calls   atomic.Int64
	refused atomic.Value // text
	sent    atomic.Value // the last body
	answer  atomic.Value // func(w http.ResponseWriter, r *http.Request)
}

// respond has it answer so from now on.
func (s *strict) respond(answer func(http.ResponseWriter, *http.Request)) { s.answer.Store(answer) }

func serve(t *testing.T, p *proof) *strict {
	s := &strict{p: p}
	s.refused.Store("")
	s.Server = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if r.Host == "login.microsoftonline.com" {
			entra(w, r, body)
			return
		}
		s.calls.Add(1)
		why := s.wrong(r, body)
		if err != nil || why != "" {
			s.refused.Store(why)
			w.WriteHeader(http.StatusBadRequest)
			return
		}
		s.sent.Store(body)
		s.answer.Load().(func(http.ResponseWriter, *http.Request))(w, r)
	}))
	t.Cleanup(s.Close)
	return s
}

// entra gives a token for the right secret.
func entra(w http.ResponseWriter, r *http.Request, form []byte) {
	if r.URL.Path != "/the-tenant/oauth2/v2.0/token" || !strings.Contains(string(form), "client_id=the-client&client_secret=the-secret&grant_type=client_credentials&scope=https%3A%2F%2Fcognitiveservices.azure.com%2F.default") {
		w.WriteHeader(http.StatusUnauthorized)
		return
	}
	_, _ = io.WriteString(w, `{"access_token":"entra-token","expires_in":3600}`)
}

// standing are headers that any request may have.
var standing = []string{"Accept", "Accept-Encoding", "Content-Length", "Content-Type", "User-Agent"}

func (s *strict) wrong(r *http.Request, body []byte) string {
	switch p := s.p; {
	case r.Method != http.MethodPost:
		return "the method " + r.Method
	case r.Host != p.host:
		return "the host " + r.Host
	case r.URL.EscapedPath()+query(r) != p.path:
		return "the path " + r.URL.EscapedPath() + query(r)
	case r.Header.Get("Content-Type") != "application/json" && !p.form:
		return "the type of the body"
	}
	for name, want := range s.p.header {
		if got := r.Header.Get(name); got != want && (want != "*" || got == "") {
			return fmt.Sprintf("the header %s: %q", name, got)
		}
	}
	for name := range r.Header {
		if _, ok := s.p.header[name]; !ok && !slices.Contains(standing, name) {
			return "the header " + name
		}
	}
	d := json.NewDecoder(bytes.NewReader(body))
	d.DisallowUnknownFields()
	if !s.p.form {
		if err := d.Decode(reflect.New(reflect.TypeOf(s.p.shape)).Interface()); err != nil {
			return err.Error()
		}
	}
	if s.p.check != nil {
		return s.p.check(r, body)
	}
	return ""
}

func query(r *http.Request) string {
	if r.URL.RawQuery == "" {
		return ""
	}
	return "?" + r.URL.RawQuery
}

// client calls the server, whatever host is named.
func (s *strict) client() *http.Client {
	pool := s.Client().Transport.(*http.Transport).TLSClientConfig.RootCAs
	t := &http.Transport{TLSClientConfig: &tls.Config{RootCAs: pool, ServerName: "example.com"}, DisableCompression: true,
		DialContext: func(ctx context.Context, _, _ string) (net.Conn, error) {
			var d net.Dialer
			return d.DialContext(ctx, "tcp", s.Listener.Addr().String())
		}}
	return &http.Client{Transport: t, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
}

// responding responds with a body.
func responding(status int, body string) func(http.ResponseWriter, *http.Request) {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// proof is what is known of a vendor's wire, from the vendor's side.
type proof struct {
	id     string
	params string // without credentials
	creds  string
	kind   string // "": chatComplete
	behind bool
	texts  []string // nil: one text
	saved  bool
	form   bool // the body is no JSON
	// of the client, where they are others than usual
	request, response string

	host, path string
	header     map[string]string // "*": any value
	shape      any               // what the body is decoded into: other fields are rejected
	check      func(r *http.Request, body []byte) string
	golden     string // the body

	passes []string // answers
	fails  map[string]string
	bodies map[string]string // answers; the body that comes of them, where redact is set
	masks  map[string]string // answers; the texts that come of them, with / between, where redact is set
	wrong  []string          // responses of status 200 that cannot be understood
}

const (
	sampleText = "mail ann@example.com 🙂 now"
	answerText = "write to bob@example.com"
	request    = `{"model":"m","messages":[{"role":"system","content":"be kind"},{"role":"user","content":"` + sampleText + `"}]}`
)

func (p *proof) subject(s *strict, more string) *judge.Subject {
	return p.subjectFor(s.client(), more)
}

func (p *proof) subjectFor(client *http.Client, more string) *judge.Subject {
	raw := map[string]json.RawMessage{"timeout": json.RawMessage("60000")} // machines may be slow
	for _, text := range []string{p.params, more, `{"credentials":` + p.creds + `}`} {
		if text != "" && text != `{"credentials":}` {
			if err := json.Unmarshal([]byte(text), &raw); err != nil {
				panic(err)
			}
		}
	}
	sub := &judge.Subject{Phase: guard.Before, Kind: p.kind, Provider: "openai", Model: "m", TraceID: "the-trace", Texts: p.texts, Request: json.RawMessage(cmp.Or(p.request, request)), Metadata: map[string]string{"_user": "ann"},
		Parameters: raw, Client: client, Saved: p.saved}
	if sub.Kind == "" {
		sub.Kind = "chatComplete"
	}
	if p.behind {
		sub.Phase, sub.Status, sub.RequestTexts = guard.After, 200, []string{sampleText}
		sub.Response = json.RawMessage(cmp.Or(p.response, `{"choices":[{"index":0,"message":{"role":"assistant","content":"`+answerText+`"}}]}`))
	}
	if sub.Texts == nil {
		sub.Texts = []string{sampleText}
		if p.behind {
			sub.Texts = []string{answerText}
		}
	}
	return sub
}

func (p *proof) run(s *strict, more string) judge.Verdict {
	sub := p.subject(s, more)
	d := Deps{Now: func() time.Time { return time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC) }}
	d.Signer = provider.NewTokens(s.client().Transport, d.Now)
	return Makers(d)[p.id](sub.Parameters)(context.Background(), sub)
}

// TestWires asks a strict server of each vendor's shape, and has it respond in all ways.
func TestWires(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for i := range proofs {
		p := &proofs[i]
		seen[p.id] = true
		t.Run(p.name(), func(t *testing.T) {
			t.Parallel()
			s := serve(t, p)
			for _, one := range p.passes {
				s.respond(responding(200, one))
				v := p.run(s, "")
				if !v.Pass || v.Err != nil || v.Texts != nil || v.Body != nil {
					t.Errorf("%s: %s %s", one, verdictText(v), s.refused.Load())
				}
			}
			p.sends(t, s)
			for one, finding := range p.fails {
				s.respond(responding(200, one))
				v := p.run(s, "")
				if v.Pass || v.Err != nil || !strings.Contains(verdictText(v), `"`+finding+`"`) {
					t.Errorf("%s: %s %s", one, verdictText(v), s.refused.Load())
				}
				hides(t, p, v)
			}
			for one, want := range p.masks {
				s.respond(responding(200, one))
				v := p.run(s, `{"redact":true}`)
				if !v.Pass || v.Err != nil || texts(v) != want {
					t.Errorf("%s: %s %q %s", one, verdictText(v), texts(v), s.refused.Load())
				}
				hides(t, p, v)
			}
			for one, want := range p.bodies {
				s.respond(responding(200, one))
				v := p.run(s, `{"redact":true}`)
				if !v.Pass || v.Err != nil || string(v.Body) != want {
					t.Errorf("%s: %s %s %s", one, verdictText(v), v.Body, s.refused.Load())
				}
			}
			p.breaks(t, s)
		})
	}
	for _, w := range wires {
		if !seen[w.id] {
			t.Errorf("%s has no proof", w.id)
		}
	}
}

func (p *proof) name() string {
	n := p.id
	if p.behind {
		n += "_behind"
	}
	return n + "_" + p.kind
}

// sends compares the body with the one that is known to be right.
func (p *proof) sends(t *testing.T, s *strict) {
	if p.form {
		return
	}
	sent, _ := s.sent.Load().([]byte)
	if string(sent) != p.golden {
		t.Errorf("sent\n%s\nnot\n%s", sent, p.golden)
	}
}

// breaks has the vendor fail in all ways: each is an error of the check.
func (p *proof) breaks(t *testing.T, s *strict) {
	for name, answer := range map[string]func(http.ResponseWriter, *http.Request){
		"401": responding(401, `{"error":"the key the-key is wrong"}`), "403": responding(403, ``), "429": responding(429, `{}`), "500": responding(500, `<html>`), "503": responding(503, ``),
		"redirect": func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "https://elsewhere.example/", http.StatusFound)
		},
		"garbage": responding(200, `{"a`), "empty": responding(200, ``), "another form": responding(200, `[[]]`), "null": responding(200, `null`), "text": responding(200, `"ok"`), "number": responding(200, `5`),
		"an error": responding(200, `{"error":{"message":"no"}}`), "nothing": responding(200, `{}`),
		"cut": func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Length", "1000")
			_, _ = io.WriteString(w, `{"action":`)
		},
		"late": func(_ http.ResponseWriter, r *http.Request) { <-r.Context().Done(); panic(http.ErrAbortHandler) },
	} {
		s.respond(answer)
		more := ""
		if name == "late" {
			more = `{"timeout":300}`
		}
		v := p.run(s, more)
		if v.Pass || v.Err == nil || v.Texts != nil || v.Body != nil {
			t.Errorf("%s: %s", name, verdictText(v))
			continue
		}
		if name == "late" && v.Err.Name != "TimeoutError" {
			t.Errorf("late: %s", verdictText(v))
		}
		hides(t, p, v)
	}
	for _, one := range p.wrong {
		s.respond(responding(200, one))
		if v := p.run(s, ""); v.Pass || v.Err == nil {
			t.Errorf("%s: %s", one, verdictText(v))
		}
	}
}

func verdictText(v judge.Verdict) string {
	raw, _ := json.Marshal(v.Data)
	out := string(raw)
	if v.Err != nil {
		out += " " + v.Err.Name + ": " + v.Err.Message
	}
	return out
}

// hides looks for credentials and parts of the text in what is told.
func hides(t *testing.T, p *proof, v judge.Verdict) {
	for _, secret := range []string{"the-key", "the-secret", "entra-token", "ann@example", "bob@example"} {
		if strings.Contains(verdictText(v), secret) {
			t.Errorf("%s tells %s: %s", p.id, secret, verdictText(v))
		}
	}
}

func texts(v judge.Verdict) string {
	var out []string
	for _, s := range v.Texts {
		if s == nil {
			out = append(out, "")
			continue
		}
		out = append(out, *s)
	}
	return strings.Join(out, "/")
}

// refuse takes addresses of the public alone.
func refuse(raw, field string) (*url.URL, error) { return egress.Policy{}.CheckURL(raw, field) }

type roundTrip func(*http.Request) (*http.Response, error)

func (f roundTrip) RoundTrip(r *http.Request) (*http.Response, error) { return f(r) }

func reader(s string) io.ReadCloser { return io.NopCloser(strings.NewReader(s)) }

// signer gives a token at once.
type signer struct{}

func (signer) Get(context.Context, string, provider.Fetch) (string, error) { return "token", nil }
func (signer) Now() time.Time                                              { return time.Unix(0, 0) }
