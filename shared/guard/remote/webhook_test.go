package remote

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	var sent, header string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		sent, header = string(body), r.Header.Get("X-Secret")+r.Header.Get("X-Team")+r.Header.Get("X-Other")
		switch r.URL.Path {
		case "/no":
			_, _ = w.Write([]byte(`{"verdict":false,"data":{"why":"x"}}`))
		case "/change":
			_, _ = w.Write([]byte(`{"verdict":true,"transformedData":{"request":{"json":{"a":1}},"response":{"json":{"b":2}}}}`))
		case "/broken":
			w.WriteHeader(500)
			_, _ = w.Write([]byte(`{"error":"x"}`))
		case "/garbage":
			_, _ = w.Write([]byte(`garbage`))
		}
	}))
	defer s.Close()
	check := func(id, path string, phase guard.Phase) judge.Verdict {
		params := map[string]json.RawMessage{}
		for k, v := range map[string]any{"webhookURL": s.URL + path, "logURL": s.URL + path, "headers": `{"X-Secret":"s"}`, "forwardHeaders": []string{"x-team"}} {
			params[k], _ = json.Marshal(v)
		}
		return Makers(time.Now, known)[id](params)(context.Background(), &judge.Subject{Phase: phase, Kind: "chatComplete", Texts: []string{"a", "", "b"}, RequestTexts: []string{"q"}, Status: 200,
			Request: []byte(`{"r":1}`), Response: []byte(`{"s":1}`), Headers: http.Header{"X-Team": {"t"}, "X-Other": {"o"}}, Client: s.Client()})
	}
	if v := check("default.webhook", "/no", guard.Before); v.Pass || v.Err != nil || header != "st" || !strings.Contains(sent, `"text":"a\nb"`) || !strings.Contains(sent, `"response":{"json":{},"text":"","statusCode":null,"isTransformed":false}`) {
		t.Errorf("%+v %s %s", v, header, sent)
	}
	if v := check("default.webhook", "/change", guard.Before); !v.Pass || string(v.Body) != `{"a":1}` {
		t.Errorf("%+v", v)
	}
	if v := check("default.webhook", "/change", guard.After); string(v.Body) != `{"b":2}` || !strings.Contains(sent, `"eventType":"afterRequestHook"`) || !strings.Contains(sent, `"text":"q"`) {
		t.Errorf("%+v %s", v, sent)
	}
	for _, path := range []string{"/broken", "/garbage", "/empty"} {
		if v := check("default.webhook", path, guard.Before); v.Err == nil {
			t.Errorf("%s: %+v", path, v)
		}
	}
	if v := check("default.log", "/empty", guard.After); !v.Pass || v.Err != nil {
		t.Errorf("%+v", v)
	}
	if v := check("default.log", "/broken", guard.After); v.Err == nil {
		t.Errorf("%+v", v)
	}
}

// TestOutagesOfWebhooksAreDistinguishedFromRejections checks which responses are an outage, with which a
// hook that denies passes: none that the length or the content of a text can cause.
func TestOutagesOfWebhooksAreDistinguishedFromRejections(t *testing.T) {
	t.Parallel()
	var status int
	var body string
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		if status/100 == 3 {
			w.Header().Set("Location", "/elsewhere")
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}))
	defer s.Close()
	client := *s.Client()
	client.CheckRedirect = func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }
	for _, c := range []struct {
		status int
		body   string
		closed bool
	}{
		{413, `{"error":"too long"}`, true}, {400, "", true}, {401, "", true}, {422, `{"verdict":true}`, true}, {302, "", true}, {200, "", true}, {200, `{"verdict":"yes"}`, true}, {200, `{"error":"too long"}`, true},
		{500, "", false}, {503, `{"verdict":true}`, false}, {408, "", false}, {425, "", false}, {429, "", false},
	} {
		status, body = c.status, c.body
		address, _ := json.Marshal(s.URL)
		v := Makers(time.Now, known)["default.webhook"](map[string]json.RawMessage{"webhookURL": address})(context.Background(), &judge.Subject{Phase: guard.Before, Texts: []string{"a"}, Request: []byte(`{}`), Client: &client})
		if v.Pass || v.Err == nil || v.Err.FailsClosed() != c.closed {
			t.Errorf("%d %s: %+v", c.status, c.body, v.Err)
		}
	}
	s.Close()
	address, _ := json.Marshal(s.URL)
	if v := Makers(time.Now, known)["default.webhook"](map[string]json.RawMessage{"webhookURL": address})(context.Background(), &judge.Subject{Phase: guard.Before, Texts: []string{"a"}, Request: []byte(`{}`), Client: &client}); v.Err == nil || v.Err.FailsClosed() {
		t.Errorf("a webhook that is down: %+v", v.Err)
	}
}

// TestCredentialsOfWebhooksAreRedacted checks that a service that repeats what it was sent, in an
// error or in its data, shows it to no client and no reader of logs.
func TestCredentialsOfWebhooksAreRedacted(t *testing.T) {
	t.Parallel()
	const token, key, secret = "HOOK-TOKEN-1234567890", "HOOK-KEY-1234567890", "signing-secret-1234567890"
	s := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		repeated, _ := json.Marshal(r.Header.Get("Authorization") + " " + r.Header.Get("X-Api-Key") + " " + secret)
		if r.URL.Path == "/error" {
			w.WriteHeader(401)
			_, _ = w.Write([]byte(`{"error":` + string(repeated) + `}`))
			return
		}
		_, _ = w.Write([]byte(`{"verdict":false,"data":{"seen":` + string(repeated) + `,"accept":"` + r.Header.Get("Accept") + `"}}`))
	}))
	defer s.Close()
	for _, path := range []string{"/error", "/data"} {
		params := map[string]json.RawMessage{}
		for k, v := range map[string]any{"webhookURL": s.URL + path, "secret": secret, "headers": map[string]string{"Authorization": "Bearer " + token, "X-Api-Key": key, "Accept": "application/json"}} {
			params[k], _ = json.Marshal(v)
		}
		v := Makers(time.Now, known)["default.webhook"](params)(context.Background(), &judge.Subject{Phase: guard.Before, Texts: []string{"a"}, Request: []byte(`{}`), Client: s.Client()})
		shown, err := json.Marshal(v)
		if err != nil || !strings.Contains(string(shown), "****") || path == "/data" && !strings.Contains(string(shown), "application/json") {
			t.Errorf("%s: %v %s", path, err, shown)
		}
		for _, c := range []string{token, key, secret} {
			if strings.Contains(string(shown), c) {
				t.Errorf("%s: %s is shown: %s", path, c, shown)
			}
		}
	}
}
