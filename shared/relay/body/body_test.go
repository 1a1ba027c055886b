package body

import (
	"maps"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/routes"
	"gateway/shared/tenant"
)

func sent(t *testing.T, rt *routes.Route, method, path, kind, body string) *Body {
	t.Helper()
	b := new(Body)
	b.Req = new(admission.Request)
	arrive(b, rt, method, path, kind, body)
	t.Cleanup(func() { b.Req.End() })
	return b
}

func arrive(b *Body, rt *routes.Route, method, path, kind, body string) {
	req := httptest.NewRequest(method, path, strings.NewReader(body))
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	b.Req.Start(&admission.Dependencies{Now: time.Now, Memory: egress.NewMemory(0)}, req, rt, "", nil, new(egress.Lease))
	b.Req.Principal, b.Req.WS = &identity.Principal{}, &tenant.Effective{}
}

func TestWhatABodyAsksFor(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		slug, model string
		demands     Demands
	}{
		`{}`:                        {"", "", Demands{MaxOutput: routes.DefaultReserveOutput, OutAssumed: true}},
		`{"model":"m"}`:             {"", "m", Demands{MaxOutput: routes.DefaultReserveOutput, OutAssumed: true}},
		`{"model":"@s/m/x"}`:        {"s", "m/x", Demands{MaxOutput: routes.DefaultReserveOutput, OutAssumed: true}},
		`{"max_tokens":7,"n":3}`:    {"", "", Demands{MaxOutput: 21}},
		`{"max_output_tokens":7}`:   {"", "", Demands{MaxOutput: 7}},
		`{"max_tokens":7,"n":1000}`: {"", "", Demands{MaxOutput: 7}},
		`{"stream":true}`:           {"", "", Demands{Stream: true, MaxOutput: routes.DefaultReserveOutput, OutAssumed: true}},
		`{"stream_options":null}`:   {"", "", Demands{MaxOutput: routes.DefaultReserveOutput, OutAssumed: true}},
		`{"max_completion_tokens":0,"max_tokens":9,"stream_options":{"include_usage":true}}`: {"", "", Demands{WantUsage: true}},
	} {
		b := sent(t, &routes.Route{BodyMode: routes.Unified}, http.MethodPost, "/v1/x", "", body)
		if err := b.Read(); err != nil {
			t.Errorf("%s: %v", body, err)
			continue
		}
		if b.Slug != want.slug || b.Model != want.model || b.ClientDemands != want.demands || string(b.In) != body || b.Size != int64(len(body)) {
			t.Errorf("%s: @%s/%s %+v", body, b.Slug, b.Model, b.ClientDemands)
		}
	}
}

func TestBodiesThatAreRefused(t *testing.T) {
	t.Parallel()
	unified := &routes.Route{BodyMode: routes.Unified, MaxBody: 64}
	for name, c := range map[string]struct {
		rt         *routes.Route
		kind, body string
		code       fault.Code
	}{
		"too long":         {unified, "", `{"model":"` + strings.Repeat("m", 64) + `"}`, fault.BodyTooLarge},
		"another type":     {unified, "text/plain", `{}`, fault.InvalidContentType},
		"no type":          {unified, ";", `{}`, fault.InvalidContentType},
		"no object":        {unified, "", `[]`, fault.InvalidRequest},
		"empty model":      {unified, "", `{"model":""}`, fault.InvalidRequest},
		"half a provider":  {unified, "", `{"model":"@s"}`, fault.InvalidRequest},
		"stream of a word": {unified, "", `{"stream":"yes"}`, fault.InvalidRequest},
		"bad text":         {unified, "", "{\"model\":\"\xff\"}", fault.InvalidRequest},
		"bad text through": {&routes.Route{BodyMode: routes.Raw}, "", " {\"model\":\"\xff\"}", fault.InvalidRequest},
	} {
		b := sent(t, c.rt, http.MethodPost, "/v1/x", c.kind, c.body)
		if f := fault.From(b.Read()); f == nil || f.Code != c.code || f.Status() >= 500 {
			t.Errorf("%s: %v", name, f)
		}
	}
}

// A passed-through body is read as far as possible, and never rejected for its content.
func TestBodiesOfPassThrough(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		kind, body, model string
		unread, held      bool
	}{
		"JSON":          {"application/json", `{"model":"m"}`, "m", false, true},
		"half an at":    {"application/json", `{"model":"@s"}`, "", false, true},
		"no JSON":       {"application/json", `{"model"`, "", true, true},
		"another type":  {"audio/mpeg", "sound", "", true, false},
		"a list":        {"application/json", `[1]`, "", true, true},
		"a broken type": {";;", "x", "", true, false},
	} {
		b := sent(t, &routes.Route{BodyMode: routes.Raw}, http.MethodPost, "/v1/x", c.kind, c.body)
		if err := b.Read(); err != nil || b.Model != c.model || b.UnknownModel != c.unread || (b.In != nil) != c.held {
			t.Errorf("%s: %v, model %q, unread %t, held %t", name, err, b.Model, b.UnknownModel, b.In != nil)
		}
	}
}

func TestTheVariableOfAPath(t *testing.T) {
	t.Parallel()
	for escaped, want := range map[string]struct{ slug, id, raw string }{
		"a%20b":   {"", "a b", "/files/a%20b"},
		"@s/b":    {"s", "b", "/files/b"},
		"@s%2Fb":  {"s", "b", "/files/b"},
		"@s":      {"", "", ""},
		"a%00b":   {"", "", ""},
		"%zz":     {"", "", ""},
		"x%2Fy%2": {"", "", ""},
	} {
		b := sent(t, &routes.Route{BodyMode: routes.Resource}, http.MethodGet, "/v1/files/x", "", "")
		b.Req.PathID, b.Req.Req.RequestURI = escaped, "/v1/files/"+escaped+"?a=b"
		err := b.Read()
		if want.id == "" {
			if f := fault.From(err); f == nil || f.Field != "id" {
				t.Errorf("%s: %v", escaped, err)
			}
			continue
		}
		if err != nil || b.Slug != want.slug || b.ID != want.id || b.RawPath() != want.raw {
			t.Errorf("%s: @%s/%s at %s, %v", escaped, b.Slug, b.ID, b.RawPath(), err)
		}
	}
}

// Metadata: workspace over key over request; the record of a rejection has it too.
func TestMetadataIsThereWhateverTheBodyIs(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]map[string]string{
		`{"user":"ada"}`: {"_user": "ada", "a": "space", "b": "key", "c": "request"},
		`{"user":`:       {"_user": "id", "a": "space", "b": "key", "c": "request"},
	} {
		b := sent(t, &routes.Route{BodyMode: routes.Unified}, http.MethodPost, "/v1/x", "", body)
		b.Req.Principal.UserID = "id"
		b.Req.Headers.Metadata = map[string]string{"a": "request", "b": "request", "c": "request"}
		b.Req.Principal.Defaults.Metadata = map[string]string{"a": "key", "b": "key"}
		b.Req.WS.Defaults.Metadata = map[string]string{"a": "space"}
		_ = b.Read()
		if !maps.Equal(b.Metadata, want) {
			t.Errorf("%s: %v", body, b.Metadata)
		}
	}
}

// A finished body leaves its memory, but none of its content.
func TestMemoryIsUsedAgain(t *testing.T) {
	t.Parallel()
	rt := &routes.Route{BodyMode: routes.Unified}
	b := new(Body)
	b.Req = new(admission.Request)
	arrive(b, rt, http.MethodPost, "/v1/x", "", `{"model":"m","user":"ada"}`)
	if err := b.Read(); err != nil {
		t.Fatal(err)
	}
	if v, ok := b.AsParams()("model"); !ok || string(v) != `"m"` {
		t.Errorf("a condition reads %s", v)
	}
	left := b.TakeMemory(true)
	*b = Body{}
	b.Req = new(admission.Request)
	b.Reuse(left)
	arrive(b, rt, http.MethodPost, "/v1/x", "", `{}`)
	defer b.Req.End()
	if err := b.Read(); err != nil || b.Model != "" || len(b.Metadata) != 0 {
		t.Errorf("%v, model %q, metadata %v", err, b.Model, b.Metadata)
	}
	if v, ok := b.AsParams()("model"); ok {
		t.Errorf("a condition reads %s", v)
	}
}
