package instrumentation

import (
	"fmt"
	"math/rand/v2"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/observe/otlp"
	"gateway/shared/pricing"
)

// TestTableOfSenders checks that each row states its source, that a name means the same in
// all rows, and that each scope and mark finds its own row.
func TestTableOfSenders(t *testing.T) {
	t.Parallel()
	dated := regexp.MustCompile(`\d+\.\d+.*20\d\d-\d\d-\d\d$`)
	meaning := map[string]field{}
	for _, s := range compiled {
		if !dated.MatchString(s.source) {
			t.Errorf("%s: the source %q has no version and date", s.name, s.source)
		}
		for f, names := range s.names {
			for _, name := range names {
				if before, ok := meaning[name]; ok && before != f {
					t.Errorf("%s: %s has two meanings", s.name, name)
				}
				meaning[name] = f
			}
		}
		for _, scope := range s.scopes {
			if got := senderOf(strings.TrimRight(scope, "/.")+map[bool]string{true: "/x", false: ""}[strings.HasSuffix(scope, "/")], func(string) bool { return false }); got.name != s.name && !strings.HasSuffix(scope, ".") {
				t.Errorf("scope %s is read as of %s, not %s", scope, got.name, s.name)
			}
		}
		for _, mark := range s.marks {
			if got := senderOf("unknown", func(m string) bool { return m == mark }); got.name != s.name {
				t.Errorf("mark %s is read as of %s, not %s", mark, got.name, s.name)
			}
		}
	}
	for _, scope := range []string{"airflow", "sentry2", "genai", ""} {
		if got := senderOf(scope, func(string) bool { return false }); got.row != &conventions {
			t.Errorf("scope %s is read as of %s", scope, got.name)
		}
	}
}

type counts = map[pricing.Class]int64

func countsOf(u pricing.Usage) counts {
	got := counts{}
	for class := range pricing.NumClasses {
		if n, ok := u.Get(class); ok {
			got[class] = n
		}
	}
	return got
}

// TestSumsAreFactsOfTheSender: cached and reasoning tokens are inside or beside the counts
// as the sender does it; where a part is larger than the whole, or a total decides, that
// counts.
func TestSumsAreFactsOfTheSender(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	claude := m{"gen_ai.operation.name": "chat", "gen_ai.request.model": "claude-sonnet-4-5", "gen_ai.usage.input_tokens": int64(100), "gen_ai.usage.cache_read.input_tokens": int64(800), "gen_ai.usage.cache_creation.input_tokens": int64(200), "gen_ai.usage.output_tokens": int64(60)}
	large := m{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(1000), "gen_ai.usage.cache_read.input_tokens": int64(800), "gen_ai.usage.output_tokens": int64(60), "gen_ai.usage.total_tokens": int64(1060)}
	gemini := m{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(1000), "gen_ai.usage.cache_read.input_tokens": int64(400), "gen_ai.usage.output_tokens": int64(150), "gen_ai.usage.reasoning_tokens": int64(50), "gen_ai.usage.total_tokens": int64(1200)}
	wantClaude := counts{pricing.Input: 100, pricing.CacheRead: 800, pricing.CacheWrite5m: 200, pricing.Output: 60}
	wantGemini := counts{pricing.Input: 600, pricing.CacheRead: 400, pricing.Output: 150, pricing.Reasoning: 50}
	openai := counts{pricing.Input: 600, pricing.CacheRead: 400, pricing.Output: 150, pricing.Reasoning: 50}
	for name, c := range map[string]struct {
		scope string
		attrs m
		want  counts
	}{
		"Traceloop's Anthropic":           {"@traceloop/instrumentation-anthropic", claude, wantClaude},
		"parts larger than the whole":     {"", claude, wantClaude},
		"cache beside by the sender":      {"@traceloop/instrumentation-anthropic", large, counts{pricing.Input: 1000, pricing.CacheRead: 800, pricing.Output: 60}},
		"cache inside by the conventions": {"gen_ai", large, counts{pricing.Input: 200, pricing.CacheRead: 800, pricing.Output: 60}},
		"Traceloop's Google":              {"@traceloop/instrumentation-google-generativeai", gemini, wantGemini},
		"reasoning beside by the total":   {"someone", gemini, wantGemini},
		"cache beside by the total":       {"someone", m{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(1000), "gen_ai.usage.cache_read.input_tokens": int64(400), "gen_ai.usage.output_tokens": int64(10), "gen_ai.usage.total_tokens": int64(1410)}, counts{pricing.Input: 1000, pricing.CacheRead: 400, pricing.Output: 10}},
		"a total that fits nothing":       {"someone", m{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(1000), "gen_ai.usage.cache_read.input_tokens": int64(400), "gen_ai.usage.output_tokens": int64(10), "gen_ai.usage.total_tokens": int64(7)}, counts{pricing.Input: 600, pricing.CacheRead: 400, pricing.Output: 10}},
		"reasoning larger than output":    {"someone", m{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(1), "gen_ai.usage.output_tokens": int64(10), "gen_ai.usage.reasoning.output_tokens": int64(11)}, counts{pricing.Input: 1, pricing.Output: 10, pricing.Reasoning: 11}},
		"Langfuse":                        {"langfuse-sdk", m{"langfuse.observation.type": "generation", "langfuse.observation.usage_details": `{"input":600,"output":150,"total":1200,"input_cached_tokens":400,"output_reasoning_tokens":50}`}, openai},
		"Langfuse without a scope":        {"", m{"langfuse.observation.type": "generation", "langfuse.observation.usage_details": m{"input": int64(600), "output": int64(150), "total": int64(1200), "input_cached_tokens": int64(400), "output_reasoning_tokens": int64(50)}}, openai},
		"OpenInference":                   {"@arizeai/openinference-instrumentation-openai", m{"openinference.span.kind": "LLM", "llm.token_count.prompt": int64(1000), "llm.token_count.prompt_details.cache_read": int64(400), "llm.token_count.completion": int64(200), "llm.token_count.completion_details.reasoning": int64(50)}, openai},
		"OpenInference's Anthropic":       {"", m{"openinference.span.kind": "LLM", "llm.token_count.prompt": int64(1100), "llm.token_count.prompt_details.cache_read": int64(800), "llm.token_count.prompt_details.cache_write": int64(200), "llm.token_count.completion": int64(60)}, wantClaude},
		"AI SDK 6":                        {"ai", m{"ai.operationId": "ai.generateText.doGenerate", "gen_ai.usage.input_tokens": int64(1000), "gen_ai.usage.output_tokens": int64(200), "ai.usage.cachedInputTokens": int64(400), "ai.usage.reasoningTokens": int64(50)}, openai},
		"AI SDK 6, embeddings":            {"ai", m{"ai.operationId": "ai.embed.doEmbed", "ai.usage.tokens": int64(1000)}, counts{pricing.Input: 1000, pricing.Output: 0}},
		"LangSmith":                       {"langsmith", m{"langsmith.span.kind": "llm", "gen_ai.usage.input_tokens": int64(1000), "gen_ai.usage.output_tokens": int64(200), "gen_ai.usage.input_token_details": `{"cache_read":400}`, "gen_ai.usage.output_token_details": `{"reasoning":50}`}, openai},
		"Mastra, one hour":                {"@mastra/otel-exporter", m{"mastra.span.type": "model_inference", "gen_ai.usage.input_tokens": int64(1100), "gen_ai.usage.cache_read.input_tokens": int64(800), "gen_ai.usage.cache_creation.1h_input_tokens": int64(200), "gen_ai.usage.output_tokens": int64(60)}, counts{pricing.Input: 100, pricing.CacheRead: 800, pricing.CacheWrite5m: 0, pricing.CacheWrite1h: 200, pricing.Output: 60}},
		"Google ADK":                      {"gcp.vertex.agent", m{"gen_ai.system": "gcp.vertex.agent", "gen_ai.request.model": "gemini-2.5-flash", "gen_ai.usage.input_tokens": int64(1000), "gen_ai.usage.output_tokens": int64(150), "gcp.vertex.agent.llm_response": `{"content":{},"usageMetadata":{"promptTokenCount":1000,"cachedContentTokenCount":400,"candidatesTokenCount":150,"thoughtsTokenCount":50,"totalTokenCount":1200}}`}, wantGemini},
		"Sentry":                          {"@sentry/node", m{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(1100), "gen_ai.usage.output_tokens": int64(60), "gen_ai.usage.input_tokens.cached": int64(800), "gen_ai.usage.input_tokens.cache_write": int64(200)}, wantClaude},
		"Anthropic's SDK":                 {"com.anthropic.sdk.typescript", m{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(1100), "gen_ai.usage.output_tokens": int64(60), "gen_ai.usage.cache_read.input_tokens": int64(800), "gen_ai.usage.cache_write.input_tokens": int64(200), "anthropic.usage.cache_creation.ephemeral_5m_input_tokens": int64(200), "anthropic.usage.cache_creation.ephemeral_1h_input_tokens": int64(0)}, wantClaude},
		"usage of an unknown operation":   {"", m{"gen_ai.operation.name": "ponder", "gen_ai.usage.input_tokens": int64(9)}, counts{pricing.Input: 9, pricing.Output: 0}},
	} {
		got := countsOf(Read(&otlp.ReceivedSpan{Scope: c.scope, Attrs: attrs(c.attrs)}).Usage)
		for class, n := range c.want {
			if n == 0 && got[class] == 0 {
				got[class] = 0
			}
		}
		if diff := cmp.Diff(c.want, got); diff != "" {
			t.Errorf("%s:\n%s", name, diff)
		}
	}
}

// TestUsageIsNeverNegative tries combinations of counts under the names of every row.
func TestUsageIsNeverNegative(t *testing.T) {
	t.Parallel()
	random := rand.New(rand.NewPCG(1, 2))
	for range 20_000 {
		s := &compiled[random.IntN(len(compiled))]
		span := otlp.ReceivedSpan{Attrs: []otlp.Attr{{Key: "gen_ai.operation.name", Value: "chat"}}}
		if len(s.scopes) > 0 {
			span.Scope = s.scopes[0]
		}
		for f := input; f <= imageOut; f++ {
			for _, r := range []*row{s.row, &conventions} {
				for _, name := range r.names[f] {
					if random.IntN(2) == 0 && !strings.Contains(name, "#") {
						span.Attrs = append(span.Attrs, otlp.Attr{Key: name, Value: int64(random.IntN(2000)) - 10})
					}
				}
			}
		}
		for class, n := range countsOf(Read(&span).Usage) {
			if n < 0 {
				t.Fatalf("%s: %d of %s: %v", s.name, n, class, span.Attrs)
			}
		}
	}
}

func TestStatusOfFailures(t *testing.T) {
	t.Parallel()
	exception := func(kind, text string) []otlp.ReceivedEvent {
		return []otlp.ReceivedEvent{{Name: "exception", Attrs: []otlp.Attr{{Key: "exception.type", Value: kind}, {Key: "exception.message", Value: text}}}}
	}
	type m = map[string]any
	for name, c := range map[string]struct {
		span  otlp.ReceivedSpan
		attrs m
		want  int
		text  string
	}{
		"success":                       {otlp.ReceivedSpan{}, m{}, 200, ""},
		"status as such":                {otlp.ReceivedSpan{Status: otlp.StatusError, Message: "no"}, m{"http.response.status_code": int64(429)}, 429, "no"},
		"status without an error":       {otlp.ReceivedSpan{}, m{"http.response.status_code": "503"}, 503, ""},
		"a text that begins with one":   {otlp.ReceivedSpan{Status: otlp.StatusError, Message: "429 Too many"}, m{"error.type": "Error"}, 429, "429 Too many"},
		"behind the name of an error":   {otlp.ReceivedSpan{}, m{"langfuse.observation.level": "ERROR", "langfuse.observation.status_message": "Error: 404 No such model"}, 404, "Error: 404 No such model"},
		"text of an exception":          {otlp.ReceivedSpan{Status: otlp.StatusOK, Events: exception("Error", "500 The server had an error")}, m{}, 500, "500 The server had an error"},
		"code in JSON":                  {otlp.ReceivedSpan{Status: otlp.StatusError, Message: `got status: {"error":{"code":429,"status":"RESOURCE_EXHAUSTED","message":"x"}}`}, m{}, 429, ""},
		"name in JSON":                  {otlp.ReceivedSpan{Status: otlp.StatusError, Message: `{"error":{"type":"overloaded_error"}}`}, m{}, 529, ""},
		"type of an exception":          {otlp.ReceivedSpan{Status: otlp.StatusOK, Events: exception("RateLimitError", "slow down")}, m{}, 429, "slow down"},
		"type of an error":              {otlp.ReceivedSpan{Status: otlp.StatusError}, m{"error.type": "AuthenticationError"}, 401, "AuthenticationError"},
		"type of an error, as a number": {otlp.ReceivedSpan{}, m{"error.type": "403"}, 403, "403"},
		"level":                         {otlp.ReceivedSpan{}, m{"langfuse.observation.level": "ERROR"}, 500, ""},
		"finish reason":                 {otlp.ReceivedSpan{Status: otlp.StatusOK}, m{"gen_ai.response.finish_reasons": `["error"]`}, 500, ""},
		"a stream that broke off":       {otlp.ReceivedSpan{Status: otlp.StatusError}, m{"http.response.status_code": int64(200), "error.type": "client_error"}, 500, "client_error"},
		"a number that is no status":    {otlp.ReceivedSpan{Status: otlp.StatusError, Message: "4290 things"}, m{}, 500, "4290 things"},
		"a level that is no error":      {otlp.ReceivedSpan{}, m{"langfuse.observation.level": "WARNING"}, 200, ""},
	} {
		c.span.Attrs = attrs(c.attrs)
		x := Read(&c.span)
		if x.Status != c.want {
			t.Errorf("%s: %d, want %d", name, x.Status, c.want)
		}
		if c.text != "" && !strings.Contains(string(x.Response()), fmt.Sprintf(`"error":%q`, c.text)) {
			t.Errorf("%s: %s", name, x.Response())
		}
	}
}

// TestNamesOfEverySender reads what is not a count under the names that senders use.
func TestNamesOfEverySender(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	for name, c := range map[string]struct {
		scope         string
		attrs         m
		session, user string
		meta          string
		stream        bool
		first         time.Duration
		request       string
	}{
		"conventions":              {"", m{"gen_ai.conversation.id": "s", "enduser.id": "u"}, "s", "u", "", false, 0, ""},
		"the first ones":           {"", m{"session.id": "s", "gen_ai.conversation.id": "other", "user.id": "u", "enduser.id": "other", "langfuse.session.id": "other"}, "s", "u", "", false, 0, ""},
		"Traceloop":                {"@traceloop/instrumentation-openai", m{"traceloop.association.properties.session_id": "s", "traceloop.association.properties.user_id": "u", "traceloop.association.properties.team": "red"}, "s", "u", "red", false, 0, ""},
		"AI SDK":                   {"ai", m{"ai.operationId": "ai.streamText.doStream", "ai.telemetry.metadata.sessionId": "s", "ai.telemetry.metadata.userId": "u", "ai.telemetry.metadata.team": "red", "ai.response.msToFirstChunk": 104.5, "ai.prompt.messages": `[{"role":"user"}]`}, "s", "u", "red", true, 104500 * time.Microsecond, `"messages":[{"role":"user"}]`},
		"AI SDK 7":                 {"gen_ai", m{"gen_ai.client.operation.time_to_first_chunk": 0.25, "ai.settings.context.sessionId": "s", "ai.settings.context.userId": "u", "ai.settings.context.team": "red"}, "s", "u", "red", true, 250 * time.Millisecond, ""},
		"LangSmith":                {"langsmith", m{"langsmith.metadata.session_id": "s", "langsmith.metadata.user_id": "u", "langsmith.metadata.team": "red", "gen_ai.prompt": `{"messages":[]}`}, "s", "u", "red", false, 0, `"messages":{"messages":[]}`},
		"Langfuse":                 {"langfuse-sdk", m{"langfuse.session.id": "s", "langfuse.user.id": "u", "langfuse.trace.metadata.team": "red", "langfuse.observation.completion_start_time": `"2026-11-20T12:00:00.250Z"`, "langfuse.observation.input": "hi"}, "s", "u", "red", false, 250 * time.Millisecond, `"messages":"hi"`},
		"Mastra":                   {"@mastra/otel-exporter", m{"mastra.metadata.sessionId": "s", "mastra.metadata.userId": "u", "mastra.metadata.team": "red"}, "s", "u", "red", false, 0, ""},
		"Google ADK":               {"gcp.vertex.agent", m{"gcp.vertex.agent.session_id": "s", "gcp.vertex.agent.llm_request": `{"contents":[]}`}, "s", "", "", false, 0, `"messages":{"contents":[]}`},
		"OpenInference":            {"", m{"openinference.span.kind": "LLM", "session.id": "s", "user.id": "u", "metadata": `{"team":"red"}`, "llm.input_messages.0.message.role": "user", "llm.input_messages.0.message.content": "hi"}, "s", "u", "red", false, 0, `"messages":[{"content":"hi","role":"user"}]`},
		"OpenInference for Vercel": {"ai", m{"metadata.team": "red", "session.id": "s", "user.id": "u"}, "s", "u", "red", false, 0, ""},
		"Sentry":                   {"@sentry/node", m{"gen_ai.conversation.id": "s", "user.id": "u", "gen_ai.request.messages": `[{"role":"user"}]`}, "s", "u", "", false, 0, `"messages":[{"role":"user"}]`},
	} {
		at := time.Date(2026, 11, 20, 12, 0, 0, 0, time.UTC)
		x := Read(&otlp.ReceivedSpan{Scope: c.scope, Attrs: attrs(c.attrs), Start: at, End: at.Add(time.Second)})
		if x.Session != c.session || x.User != c.user || x.Metadata["team"] != c.meta || x.Stream != c.stream || x.FirstByte != c.first || !strings.Contains(string(x.Request()), c.request) {
			t.Errorf("%s: %q %q %v %t %s %s", name, x.Session, x.User, x.Metadata, x.Stream, x.FirstByte, x.Request())
		}
	}
}

// TestMessagesInEvents reads messages that earlier conventions put into events.
func TestMessagesInEvents(t *testing.T) {
	t.Parallel()
	x := Read(&otlp.ReceivedSpan{Attrs: attrs(map[string]any{"gen_ai.request.model": "m"}), Events: []otlp.ReceivedEvent{
		{Name: "gen_ai.system.message", Attrs: attrs(map[string]any{"content": "be brief"})},
		{Name: "gen_ai.user.message", Attrs: attrs(map[string]any{"content": "hi"})},
		{Name: "gen_ai.choice", Attrs: attrs(map[string]any{"index": int64(0), "message": map[string]any{"content": "ho"}})},
	}})
	if got, want := string(x.Request()), `{"messages":[{"role":"system","content":"be brief"},{"role":"user","content":"hi"}],"model":"m"}`; got != want {
		t.Error(got)
	}
	if got, want := string(x.Response()), `{"messages":[{"index":0,"message":{"content":"ho"}}]}`; got != want {
		t.Error(got)
	}
}

func TestUnreadableCallsAreReported(t *testing.T) {
	t.Parallel()
	type m = map[string]any
	for name, c := range map[string]struct {
		attrs m
		note  string
	}{
		"unknown names":       {m{"acme.llm.prompt_tokens": int64(7)}, "looks like a model call, but its attributes are unknown"},
		"unknown operation":   {m{"gen_ai.operation.name": "ponder", "gen_ai.request.model": "m"}, "looks like a model call, but its attributes are unknown"},
		"no usage":            {m{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m"}, "reports no usage"},
		"no model":            {m{"gen_ai.operation.name": "chat", "gen_ai.usage.input_tokens": int64(7)}, "names no model"},
		"a call":              {m{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "gen_ai.usage.input_tokens": int64(7)}, ""},
		"a call that failed":  {m{"gen_ai.operation.name": "chat", "gen_ai.request.model": "m", "error.type": "429"}, ""},
		"a tool":              {m{"gen_ai.operation.name": "execute_tool", "gen_ai.request.model": "m"}, ""},
		"something else":      {m{"http.request.method": "GET", "tokens": "many"}, ""},
		"an agent's own word": {m{"openinference.span.kind": "AGENT", "llm.model_name": "m"}, ""},
	} {
		x := Read(&otlp.ReceivedSpan{Attrs: attrs(c.attrs)})
		if x.Note != c.note || x.Metadata[NoteKey] != c.note {
			t.Errorf("%s: %q %v", name, x.Note, x.Metadata)
		}
	}
}

// TestReportedCost keeps the sender's price, and only a plausible one.
func TestReportedCost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		key   string
		value any
		want  pricing.NanoDollars
	}{
		"conventions":   {"gen_ai.usage.cost", 0.0025, 2_500_000},
		"OpenInference": {"llm.cost.total", "0.0025", 2_500_000},
		"Langfuse":      {"langfuse.observation.cost_details", `{"input":0.001,"output":0.0015,"total":0.0025}`, 2_500_000},
		"nothing":       {"gen_ai.usage.cost", 0.0, 0},
		"negative":      {"gen_ai.usage.cost", -1.0, 0},
		"absurd":        {"gen_ai.usage.cost", 1e300, 0},
	} {
		x := Read(&otlp.ReceivedSpan{Attrs: []otlp.Attr{{Key: c.key, Value: c.value}, {Key: "gen_ai.request.model", Value: "m"}}})
		if x.Cost != c.want || x.HasCost != (c.want > 0) || strings.Contains(string(x.Response()), "reported_cost_usd") != x.HasCost {
			t.Errorf("%s: %d %s", name, x.Cost, x.Response())
		}
	}
}
