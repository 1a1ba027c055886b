package ingest

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/pricing"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// plain seals nothing.
type plain struct{ seal.Sealer }

func (plain) Seal(_ context.Context, _ seal.Binding, b []byte) ([]byte, error) {
	return append([]byte(nil), b...), nil
}

type storedRecord struct {
	records []usage.Record
	fail    error
}

func (k *storedRecord) Emit(_ context.Context, r *usage.Record) error {
	if k.fail != nil {
		return k.fail
	}
	one := *r
	one.Attempts, one.Bodies = slices.Clone(r.Attempts), slices.Clone(r.Bodies) // the memory is reused
	k.records = append(k.records, one)
	return nil
}

var (
	noon = time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
	one  = Reporter{Scope: store.Scope{Org: "o", Workspace: "w"}, Slug: "ws", KeyID: "k", KeyType: "workspace-service", Bodies: true}
)

func emit(t *testing.T, by Reporter, all ...Exchange) []usage.Record {
	t.Helper()
	sink := &storedRecord{}
	m := Maker{Sink: sink, Sealer: plain{}, Now: func() time.Time { return noon }}
	ids, err := m.Emit(context.Background(), &by, all)
	if err != nil || len(ids) != len(all) || len(sink.records) != len(all) {
		t.Fatalf("%v, %v", ids, err)
	}
	for i, id := range ids {
		if sink.records[i].ID != id {
			t.Errorf("log %s, told %s", sink.records[i].ID, id)
		}
	}
	return sink.records
}

// Usage is read from every response format, complete or in chunks, and priced by the list.
func TestUsageOfEveryResponseFormat(t *testing.T) {
	t.Parallel()
	sse := func(pieces ...string) string {
		return `"` + strings.ReplaceAll("data: "+strings.Join(pieces, "\n\ndata: ")+"\n\n", `"`, `\"`) + `"`
	}
	sse2 := func(pieces ...string) string { return strings.ReplaceAll(sse(pieces...), "\n", `\n`) }
	for name, c := range map[string]struct {
		provider, answer string
		in, out          int64
		model            string
		cost             pricing.NanoDollars
	}{
		"chat":              {"openai", `{"object":"chat.completion","model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100}}`, 1000, 100, "gpt-4o-mini", 210_000},
		"chat, cached":      {"openai", `{"object":"chat.completion","model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":0,"prompt_tokens_details":{"cached_tokens":1000}}}`, 1000, 0, "gpt-4o-mini", 75_000},
		"chat as text":      {"openai", `"{\"model\":\"gpt-4o-mini\",\"choices\":[],\"usage\":{\"prompt_tokens\":1000,\"completion_tokens\":100}}"`, 1000, 100, "gpt-4o-mini", 210_000},
		"chat, list":        {"openai", `[{"object":"chat.completion.chunk","model":"gpt-4o-mini","choices":[{"index":0,"delta":{"content":"a"}}]},{"object":"chat.completion.chunk","model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100}}]`, 1000, 100, "gpt-4o-mini", 210_000},
		"chat, events":      {"openai", sse2(`{"object":"chat.completion.chunk","model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100}}`, `[DONE]`), 1000, 100, "gpt-4o-mini", 210_000},
		"messages":          {"anthropic", `{"type":"message","model":"claude-sonnet-4-5","content":[],"usage":{"input_tokens":10,"cache_read_input_tokens":5,"output_tokens":2}}`, 15, 2, "claude-sonnet-4-5", 61_500},
		"messages, events":  {"anthropic", sse2(`{"type":"message_start","message":{"model":"claude-sonnet-4-5","usage":{"input_tokens":10,"output_tokens":1}}}`, `{"type":"message_delta","delta":{"stop_reason":"end_turn"},"usage":{"output_tokens":2}}`, `{"type":"message_stop"}`), 10, 2, "claude-sonnet-4-5", 60_000},
		"responses":         {"openai", `{"object":"response","model":"gpt-4o-mini","output":[],"usage":{"input_tokens":1000,"output_tokens":100}}`, 1000, 100, "gpt-4o-mini", 210_000},
		"gemini":            {"google", `{"candidates":[],"usageMetadata":{"promptTokenCount":10,"candidatesTokenCount":2},"modelVersion":"gemini-2.5-flash"}`, 10, 2, "gemini-2.5-flash", 8000},
		"model of request":  {"openai", `{"choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100}}`, 1000, 100, "", 210_000},
		"no provider":       {"", `{"model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100}}`, 1000, 100, "gpt-4o-mini", 0},
		"unknown provider":  {"my-own", `{"model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":1000,"completion_tokens":100}}`, 1000, 100, "gpt-4o-mini", 0},
		"nothing":           {"openai", `{}`, 0, 0, "", 0},
		"absurd":            {"openai", `{"model":"gpt-4o-mini","choices":[],"usage":{"prompt_tokens":-7,"completion_tokens":"x"}}`, 0, 0, "gpt-4o-mini", 0},
		"not JSON":          {"openai", `"<html>"`, 0, 0, "", 0},
		"null":              {"openai", `null`, 0, 0, "", 0},
		"another gateway's": {"anthropic", `{"object":"chat.completion","model":"claude-sonnet-4-5","choices":[],"usage":{"prompt_tokens":10,"completion_tokens":2}}`, 10, 2, "claude-sonnet-4-5", 60_000},
	} {
		r := emit(t, one, Exchange{URL: "/v1/chat/completions", Method: "post", Provider: c.provider, Request: []byte(`{"model":"gpt-4o-mini"}`), Response: []byte(c.answer), Status: 200, Duration: time.Second})[0]
		if r.Usage.InputTokens() != c.in || r.Usage.OutputTokens() != c.out || r.Model != c.model || r.Cost != c.cost || r.Priced != (c.cost > 0) {
			t.Errorf("%s: %d in, %d out, %q for %d (priced %t)", name, r.Usage.InputTokens(), r.Usage.OutputTokens(), r.Model, r.Cost, r.Priced)
		}
		if len(r.SettleSubjects) > 0 {
			t.Errorf("%s: counts against budgets", name)
		}
	}
}

func TestRecordFields(t *testing.T) {
	t.Parallel()
	x := Exchange{URL: "https://u:p@host/v1/messages?key=s#f", Method: "post", Status: 200, Duration: 2 * time.Second, TraceID: "t", SpanID: "s", ParentSpanID: "p", SpanName: "n", Metadata: map[string]string{"_user": "me"}}
	r := emit(t, one, x)[0]
	if r.Path != "https://host/v1/messages" || r.Endpoint != "messages" || r.Method != "POST" || r.EndUser != "me" || r.TraceID != "t" || r.SpanID != "s" || r.ParentSpanID != "p" || r.SpanName != "n" {
		t.Errorf("%+v", r)
	}
	if !r.Start.Equal(noon.Add(-2*time.Second)) || r.Duration != 2*time.Second || r.Workspace != "w" || r.WorkspaceSlug != "ws" || r.KeyID != "k" {
		t.Errorf("%+v", r)
	}
	x = Exchange{URL: "%zz?key=s", Status: 500}
	if r = emit(t, one, x)[0]; r.Path != "%zz" || r.Endpoint != otherEndpoint || !r.Priced || r.TraceID != r.ID {
		t.Errorf("%+v", r)
	}
}

// A log that is reported again is the same one; another workspace cannot replace it.
func TestIDsOfTheTellersChoice(t *testing.T) {
	t.Parallel()
	x := Exchange{ID: "mine", Created: noon, URL: "/", Status: 200}
	other, later := one, x
	other.Scope.Workspace = "w2"
	later.Created = noon.Add(time.Second)
	id := func(by Reporter, x Exchange) string { return emit(t, by, x)[0].ID }
	if a, b := id(one, x), id(one, x); a != b {
		t.Errorf("%s and %s", a, b)
	}
	if a := id(one, x); a == id(other, x) || a == id(one, later) {
		t.Error("two logs of one id")
	}
	x.ID = ""
	if a, b := id(one, x), id(one, x); a == b {
		t.Error("logs without an id are one")
	}
}

func TestBodiesAreStoredAsTheWorkspaceAllows(t *testing.T) {
	t.Parallel()
	x := Exchange{URL: "/", Status: 200, Request: []byte(`{"q":1}`), Response: []byte(`"text"`), RequestHeaders: map[string]string{"authorization": "Bearer s", "x-a": "b"}, ResponseHeaders: map[string]string{"set-cookie": "c"}}
	quiet, failed := one, x
	quiet.Bodies, failed.Status = false, 500
	for name, c := range map[string]struct {
		by   Reporter
		x    Exchange
		want *usage.Bodies
	}{
		"full":                 {one, x, &usage.Bodies{Request: []byte(`{"q":1}`), RequestHeaders: []byte(`{"Authorization":"*****","X-A":"b"}`), Response: []byte("text"), ResponseHeaders: []byte(`{"Set-Cookie":"*****"}`)}},
		"metrics":              {quiet, x, nil},
		"metrics of a failure": {quiet, failed, &usage.Bodies{Request: []byte{}, RequestHeaders: []byte{}, Response: []byte("text"), ResponseHeaders: []byte(`{"Set-Cookie":"*****"}`)}},
	} {
		r := emit(t, c.by, c.x)[0]
		if c.want == nil {
			if len(r.Bodies) > 0 {
				t.Errorf("%s: %q", name, r.Bodies)
			}
			continue
		}
		got, err := usage.DecodeBodies(r.Bodies)
		if err != nil {
			t.Fatal(err)
		}
		for what, pair := range map[string][2][]byte{"request": {got.Request, c.want.Request}, "its headers": {got.RequestHeaders, c.want.RequestHeaders}, "answer": {got.Response, c.want.Response}, "its headers ": {got.ResponseHeaders, c.want.ResponseHeaders}} {
			if diff := cmp.Diff(string(pair[1]), string(pair[0])); diff != "" {
				t.Errorf("%s: %s: %s", name, what, diff)
			}
		}
	}
}

func TestUnstorableRequestsAreReported(t *testing.T) {
	t.Parallel()
	m := Maker{Sink: &storedRecord{fail: errors.New("full")}, Sealer: plain{}, Now: time.Now}
	if ids, err := m.Emit(context.Background(), &one, make([]Exchange, 2)); err == nil || len(ids) > 0 {
		t.Errorf("%v, %v", ids, err)
	}
	m.Sink = nil
	if _, err := m.Emit(context.Background(), &one, make([]Exchange, 1)); err == nil {
		t.Error("nobody took it")
	}
}

// Whatever a response is, reading it ends, and nothing in it counts below nothing.
func FuzzMeter(f *testing.F) {
	for _, s := range []string{`{"usage":{"prompt_tokens":1}}`, `[{"type":"message_start"},{"usage":1}]`, `"data: {}\n\nevent: x\ndata: [DONE]"`, `{"type":"a\nb"}`, `[]`, `{"usageMetadata":{}}`, `{"stopReason":"x","output":{}}`} {
		f.Add([]byte(s))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		got := meter(&Exchange{Response: body})
		if u := got.Usage.Bounded(); u.InputTokens() < 0 || u.OutputTokens() < 0 {
			t.Errorf("%d in, %d out", u.InputTokens(), u.OutputTokens())
		}
		modelIn(body)
	})
}

// TestReportedCallsArePriced: the model decides where a span names no provider, the service
// tier counts, and the sender's price is used for a model without one.
func TestReportedCallsArePriced(t *testing.T) {
	t.Parallel()
	openai := func() (u pricing.Usage) {
		u.Set(pricing.Input, 600)
		u.Set(pricing.CacheRead, 400)
		u.Set(pricing.Output, 150)
		u.Set(pricing.Reasoning, 50)
		return u
	}
	claude := func() (u pricing.Usage) {
		u.Set(pricing.Input, 100)
		u.Set(pricing.CacheRead, 800)
		u.Set(pricing.CacheWrite5m, 200)
		u.Set(pricing.Output, 60)
		return u
	}
	for name, c := range map[string]struct {
		provider string
		seen     ReportedUsage
		want     pricing.NanoDollars
		as       string
		priced   bool
	}{
		"OpenAI":                {"openai", ReportedUsage{Model: "gpt-5-mini", Usage: openai()}, 560_000, "openai", true},
		"OpenAI, flex":          {"openai", ReportedUsage{Model: "gpt-5-mini", Usage: openai(), Mode: pricing.Flex}, 280_000, "openai", true},
		"Claude":                {"anthropic", ReportedUsage{Model: "claude-sonnet-4-5", Usage: claude()}, 2_190_000, "anthropic", true},
		"OpenAI by its model":   {"", ReportedUsage{Model: "gpt-5-mini", Usage: openai()}, 560_000, "openai", true},
		"Claude by its model":   {"", ReportedUsage{RequestedModel: "claude-sonnet-4-5", Usage: claude()}, 2_190_000, "anthropic", true},
		"Gemini by its model":   {"", ReportedUsage{RequestedModel: "gemini-2.5-flash", Usage: openai()}, 692_000, "google", true},
		"unknown model":         {"", ReportedUsage{RequestedModel: "own-1", Usage: openai()}, 0, "", false},
		"the sender's price":    {"", ReportedUsage{RequestedModel: "own-1", Usage: openai(), Reported: 77}, 77, "", true},
		"ours before another":   {"openai", ReportedUsage{Model: "gpt-5-mini", Usage: openai(), Reported: 77}, 560_000, "openai", true},
		"unknown provider":      {"my-own", ReportedUsage{Model: "gpt-5-mini", Usage: openai()}, 0, "my-own", false},
		"unknown, with a price": {"my-own", ReportedUsage{Model: "gpt-5-mini", Usage: openai(), Reported: 77}, 77, "my-own", true},
	} {
		c.seen.Endpoint = "chatComplete"
		r := emit(t, one, Exchange{URL: "/otel/v1/traces", Method: "POST", Provider: c.provider, Status: 200, Duration: time.Second, Reported: &c.seen})[0]
		if r.Cost != c.want || r.Provider != c.as || r.Priced != c.priced {
			t.Errorf("%s: %d for %q (priced %t), want %d", name, r.Cost, r.Provider, r.Priced, c.want)
		}
	}
}
