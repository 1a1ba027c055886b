package remote

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
)

func params(t testing.TB, text string) map[string]json.RawMessage {
	var p map[string]json.RawMessage
	if err := json.Unmarshal([]byte(text), &p); err != nil {
		t.Fatal(err)
	}
	return p
}

func known(_ context.Context, host string) ([]string, error) {
	if host == "known.example" {
		return []string{"192.0.2.1"}, nil
	}
	return nil, errors.New("no such host")
}

func TestValidURLsChecksAddresses(t *testing.T) {
	t.Parallel()
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.Method != http.MethodHead:
			w.WriteHeader(405)
		case r.URL.Path == "/moved":
			http.Redirect(w, r, "/here", http.StatusFound)
		case r.URL.Path == "/round":
			http.Redirect(w, r, "/round", http.StatusFound)
		case r.URL.Path != "/here":
			w.WriteHeader(404)
		}
	}))
	defer s.Close()
	at := func(path string) string { return s.URL + path }
	for _, c := range []struct {
		params, text string
		pass, errs   bool
	}{
		{`{}`, "see " + at("/here"), true, false}, {`{}`, "see (" + at("/here") + ").", true, false}, {`{}`, "[x](" + at("/here") + ") and " + at("/moved"), true, false}, {`{}`, `{"u":"` + at("/here") + `"}`, true, false},
		{`{}`, at("/gone"), false, false}, {`{}`, at("/here") + " " + at("/gone"), false, false}, {`{}`, at("/round"), false, false}, {`{}`, "https://", false, false}, {`{}`, "nothing", false, false},
		{`{"not":true}`, at("/gone"), true, false}, {`{"not":true}`, at("/here"), false, false}, {`{"not":true}`, "nothing", false, false},
		{`{"onlyDNS":true}`, "https://known.example/x", true, false}, {`{"onlyDNS":true}`, "https://other.example/x", false, false},
		{`{}`, func() string {
			var b strings.Builder
			for i := range 51 {
				fmt.Fprintf(&b, "https://known.example/%d ", i)
			}
			return b.String()
		}(), false, true},
	} {
		v := validURLs(known)(params(t, c.params))(context.Background(), &judge.Subject{Texts: []string{c.text}, Public: s.Client()})
		if v.Pass != c.pass || (v.Err != nil) != c.errs {
			t.Errorf("%s %q: %+v %+v", c.params, c.text, v.Data, v.Err)
		}
	}
}

func TestImagesTakeThePlaceOfTheirAddresses(t *testing.T) {
	t.Parallel()
	var mu sync.Mutex
	var requests []string
	fetch := func(_ context.Context, address string, most int64) (string, string, error) {
		mu.Lock()
		requests = append(requests, address)
		mu.Unlock()
		if strings.Contains(address, "bad") || most == 1 {
			return "", "", errors.New("its host did not answer")
		}
		return "image/png", "QUJD", nil
	}
	for _, c := range []struct{ params, body, want string }{
		{`{}`, `{"messages":[{"role":"user","content":[{"type":"text","text":"x"},{"type":"image_url","image_url":{"url":"https://a/i.png","detail":"low"}}]}]}`, `{"url":"data:image/png;base64,QUJD","detail":"low"}`},
		{`{}`, `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://a/i.png"}}]}]}`, `"source":{"type":"base64","media_type":"image/png","data":"QUJD"}`},
		{`{}`, `{"messages":[{"role":"user","content":[{"type":"tool_result","content":[{"type":"image","source":{"url":"http://a/i.png","type":"url"}}]}]}]}`, `"media_type":"image/png"`},
		{`{}`, `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://a/i.png"}]}]}`, `"image_url":"data:image/png;base64,QUJD"`},
		{`{}`, `{"messages":[{"role":"assistant","tool_calls":[{"function":{"arguments":"{\"image_url\":\"https://a\"}"}}],"content":[{"type":"tool_use","input":{"image_url":"https://a/i.png"}}]}]}`, ``},
		{`{}`, `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,QUJD"}}]}]}`, ``},
		{`{"providers":["openai"]}`, `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://a/i.png"}}]}]}`, ``},
		{`{"providers":["p"]}`, `{"messages":[{"content":[{"type":"image_url","image_url":{"url":"https://a/i.png"}}]}]}`, `QUJD`},
	} {
		v := inlineImages(params(t, c.params))(context.Background(), &judge.Subject{Provider: "p", Request: []byte(c.body), Fetch: fetch})
		if !v.Pass || v.Err != nil || !strings.Contains(string(v.Body), c.want) || c.want == "" && v.Body != nil || c.want != "" && !json.Valid(v.Body) {
			t.Errorf("%s %s: %s %+v", c.params, c.body, v.Body, v.Err)
		}
	}
	requests = nil
	body := `{"messages":[{"content":[{"image_url":{"url":"https://a/bad"}},{"image_url":{"url":"https://a/i"}},{"image_url":{"url":"https://a/i"}}]}]}`
	v := inlineImages(nil)(context.Background(), &judge.Subject{Request: []byte(body), Fetch: fetch})
	slices.Sort(requests)
	if v.Pass || v.Err == nil || strings.Count(string(v.Body), "QUJD") != 2 || !strings.Contains(string(v.Body), "https://a/bad") || !slices.Equal(requests, []string{"https://a/bad", "https://a/i"}) {
		t.Errorf("%+v %s %v", v.Err, v.Body, requests)
	}
	if raw, _ := json.Marshal(v.Data); strings.Contains(string(raw), "https") || !strings.Contains(string(raw), `"image":1`) {
		t.Errorf("%s", raw)
	}
}

// TestWebhooksAreSigned: with a secret, and by it alone.
func TestWebhooksAreSigned(t *testing.T) {
	t.Parallel()
	var got http.Header
	var want string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = r.Header.Clone()
		m := hmac.New(sha256.New, []byte("0123456789abcdef"))
		m.Write([]byte("1700000000."))
		_, _ = io.Copy(m, r.Body)
		want = fmt.Sprintf("t=1700000000,v1=%x", m.Sum(nil))
		_, _ = w.Write([]byte(`{"verdict":true}`))
	}))
	defer s.Close()
	at := time.Unix(1_700_000_000, 0)
	subject := &judge.Subject{Phase: guard.Before, Kind: "chatComplete", Request: []byte(`{}`), Headers: http.Header{"Authorization": {"Bearer x"}, "X-Team": {"t"}}, Client: s.Client()}
	for id, name := range map[string]string{"default.webhook": "webhookURL", "default.log": "logURL"} {
		for _, secret := range []string{"", "0123456789abcdef"} {
			p := params(t, fmt.Sprintf(`{%q:%q,"secret":%q,"forwardHeaders":["authorization","x-team"]}`, name, s.URL, secret))
			v := Makers(func() time.Time { return at }, known)[id](p)(context.Background(), subject)
			if secret == "" {
				want = ""
			}
			if !v.Pass || got.Get(Signature) != want || got.Get("Authorization") != "" || got.Get("X-Team") != "t" {
				t.Errorf("%s with %q: %+v %v", id, secret, v, got)
			}
		}
	}
}
