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
	ask := func(id, path string, phase guard.Phase) judge.Verdict {
		params := map[string]json.RawMessage{}
		for k, v := range map[string]any{"webhookURL": s.URL + path, "logURL": s.URL + path, "headers": `{"X-Secret":"s"}`, "forwardHeaders": []string{"x-team"}} {
			params[k], _ = json.Marshal(v)
		}
		return Makers(time.Now, known)[id](params)(context.Background(), &judge.Subject{Phase: phase, Kind: "chatComplete", Texts: []string{"a", "", "b"}, RequestTexts: []string{"q"}, Status: 200,
			Request: []byte(`{"r":1}`), Response: []byte(`{"s":1}`), Headers: http.Header{"X-Team": {"t"}, "X-Other": {"o"}}, Client: s.Client()})
	}
	if v := ask("default.webhook", "/no", guard.Before); v.Pass || v.Err != nil || header != "st" || !strings.Contains(sent, `"text":"a\nb"`) || !strings.Contains(sent, `"response":{"json":{},"text":"","statusCode":null,"isTransformed":false}`) {
		t.Errorf("%+v %s %s", v, header, sent)
	}
	if v := ask("default.webhook", "/change", guard.Before); !v.Pass || string(v.Body) != `{"a":1}` {
		t.Errorf("%+v", v)
	}
	if v := ask("default.webhook", "/change", guard.After); string(v.Body) != `{"b":2}` || !strings.Contains(sent, `"eventType":"afterRequestHook"`) || !strings.Contains(sent, `"text":"q"`) {
		t.Errorf("%+v %s", v, sent)
	}
	for _, path := range []string{"/broken", "/garbage", "/empty"} {
		if v := ask("default.webhook", path, guard.Before); v.Err == nil {
			t.Errorf("%s: %+v", path, v)
		}
	}
	if v := ask("default.log", "/empty", guard.After); !v.Pass || v.Err != nil {
		t.Errorf("%+v", v)
	}
	if v := ask("default.log", "/broken", guard.After); v.Err == nil {
		t.Errorf("%+v", v)
	}
}
