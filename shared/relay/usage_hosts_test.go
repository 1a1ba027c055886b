package relay_test

import (
	"bytes"
	"encoding/base64"
	"net/http"
	"strings"
	"testing"

	"github.com/aws/aws-sdk-go-v2/aws/protocol/eventstream"

	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/testkit/relaytest"
)

// hostAnswer is what a host answers on paths with a suffix.
type hostAnswer struct {
	plain  string
	events []string    // data of server-sent events
	frames [][2]string // type and payload of AWS's event stream
	header map[string]string
}

// reply returns the response, as a stream where the request asks for one or the path has no other.
func (a *hostAnswer) reply(streams bool) relaytest.Reply {
	out := relaytest.Reply{Status: http.StatusOK, Header: http.Header{}}
	for name, value := range a.header {
		out.Header.Set(name, value)
	}
	switch {
	case a.frames != nil:
		out.Header.Set("Content-Type", "application/vnd.amazon.eventstream")
		out.Body = string(frames(a.frames))
	case streams || a.plain == "":
		for _, data := range a.events {
			out.Body += namedEvent(data)
		}
	default:
		out.Body = a.plain
	}
	return out
}

func frames(of [][2]string) []byte {
	var out bytes.Buffer
	for _, f := range of {
		m := eventstream.Message{Payload: []byte(f[1])}
		m.Headers.Set(":message-type", eventstream.StringValue("event"))
		m.Headers.Set(":event-type", eventstream.StringValue(f[0]))
		m.Headers.Set(":content-type", eventstream.StringValue("application/json"))
		if err := eventstream.NewEncoder().Encode(&out, m); err != nil {
			panic(err)
		}
	}
	return out.Bytes()
}

// chunks are the pieces of Anthropic's events within AWS's event stream.
func chunks(events ...string) (out [][2]string) {
	for _, e := range events {
		out = append(out, [2]string{"chunk", `{"bytes":"` + base64.StdEncoding.EncodeToString([]byte(e)) + `"}`})
	}
	return out
}

// hostRow is a host with the answers whose usage has a form of its own.
type hostRow struct {
	name, slug, model string
	answers           map[string]hostAnswer
	nano              int64
	classes           map[pricing.Class]int64 // besides what the sum of money tells
	more              []hostCall              // besides the calls of the chat shape
	only              bool                    // no others than those
}

type hostCall struct{ path, body string }

func chatAnswer(model, usage, beside string) string {
	return `{"id":"c","object":"chat.completion","created":1,"model":"` + model + `","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"` + beside + `}]` + usage + `}`
}

func chatEvents(model, inChoice, usage string) []string {
	head := `{"id":"c","object":"chat.completion.chunk","created":1,"model":"` + model + `","choices":[{"index":0,"delta":`
	return []string{head + `{"role":"assistant","content":"Hi"},"finish_reason":null}]}`, head + `{},"finish_reason":"stop"` + inChoice + `}]` + usage + `}`, "[DONE]"}
}

func claudeEvents(start, end, metrics string) []string {
	out := []string{message(start)}
	return append(append(out, textEvents...), `{"type":"message_delta","delta":{"stop_reason":"end_turn","stop_sequence":null},"usage":{`+end+`}}`, `{"type":"message_stop"`+metrics+`}`)
}

func claudeAnswer(usage string) string {
	return `{"id":"msg_1","type":"message","role":"assistant","model":"` + sonnet + `","content":[{"type":"text","text":"Hi"}],"stop_reason":"end_turn","stop_sequence":null,"usage":{` + usage + `}}`
}

const (
	bedrockCommand = "cohere.command-text-v14"
	bedrockSonnet  = "anthropic.claude-sonnet-4-5-20250929-v1:0"
	cachedClaude   = `"input_tokens":10,"cache_read_input_tokens":100,"cache_creation_input_tokens":20,"output_tokens":5`
	claudeNano     = 10*sonnetIn + 100*sonnetRead + 20*sonnet5m + 5*sonnetOut
	converseUsage  = `"usage":{"inputTokens":10,"outputTokens":5,"totalTokens":135,"cacheReadInputTokens":100,"cacheReadInputTokenCount":100,"cacheWriteInputTokens":20,"cacheWriteInputTokenCount":20}`
	geminiUsage    = `"usageMetadata":{"promptTokenCount":110,"cachedContentTokenCount":100,"candidatesTokenCount":5,"thoughtsTokenCount":7,"totalTokenCount":122,"trafficType":"ON_DEMAND","promptTokensDetails":[{"modality":"TEXT","tokenCount":110}]}`
	geminiNano     = 10*flashIn + 100*flashCached + 12*flashOut
)

func geminiAnswer(usage string) string {
	return `{"candidates":[{"content":{"role":"model","parts":[{"text":"Hi"}]},"finishReason":"STOP"}],"modelVersion":"` + flash + `","responseId":"r",` + usage + `}`
}

var moonshotUsage = `"usage":{"prompt_tokens":1000,"completion_tokens":7,"total_tokens":1007,"cached_tokens":960}`

var perplexityUsage = `,"usage":{"prompt_tokens":33,"completion_tokens":7163,"total_tokens":7196,"search_context_size":"low","citation_tokens":20016,"num_search_queries":18,"reasoning_tokens":73997,"cost":{"input_tokens_cost":0.0,"output_tokens_cost":0.057,"citation_tokens_cost":0.04,"reasoning_tokens_cost":0.222,"search_queries_cost":0.09,"total_cost":0.409}}`

var hostRows = []hostRow{
	{name: "cached at the top level", slug: "moonshot", model: "kimi-k2.5", nano: 141_000, classes: map[pricing.Class]int64{pricing.CacheRead: 960},
		answers: map[string]hostAnswer{"": {plain: chatAnswer("kimi-k2.5", ","+moonshotUsage, ""), events: chatEvents("kimi-k2.5", "", ","+moonshotUsage)}}},
	{name: "in a choice", slug: "moonshot", model: "kimi-k2.5", nano: 141_000, classes: map[pricing.Class]int64{pricing.CacheRead: 960},
		answers: map[string]hostAnswer{"": {plain: chatAnswer("kimi-k2.5", "", ","+moonshotUsage), events: chatEvents("kimi-k2.5", ","+moonshotUsage, "")}}},
	{name: "in a choice and beside it", slug: "moonshot", model: "kimi-k2.5", nano: 141_000, classes: map[pricing.Class]int64{pricing.CacheRead: 960},
		answers: map[string]hostAnswer{"": {plain: chatAnswer("kimi-k2.5", ","+moonshotUsage, ","+moonshotUsage), events: chatEvents("kimi-k2.5", ","+moonshotUsage, ","+moonshotUsage)}}},
	{name: "in x_groq", slug: "groq", model: "llama-3.3-70b-versatile", nano: 10*590 + 5*790,
		answers: map[string]hostAnswer{"": {
			plain:  chatAnswer("llama-3.3-70b-versatile", `,"usage":{"queue_time":0.1,"prompt_tokens":10,"prompt_time":0.1,"completion_tokens":5,"completion_time":0.1,"total_tokens":15,"total_time":0.2},"x_groq":{"id":"req_1"}`, ""),
			events: chatEvents("llama-3.3-70b-versatile", "", `,"x_groq":{"id":"req_1","usage":{"queue_time":0.1,"prompt_tokens":10,"completion_tokens":5,"total_tokens":15}}`)}}},
	{name: "reasoning beside", slug: "x-ai", model: "grok-4-1-fast", nano: 10*200 + 100*50 + (5+300)*500, classes: map[pricing.Class]int64{pricing.Reasoning: 300},
		answers: map[string]hostAnswer{"": {
			plain:  chatAnswer("grok-4-1-fast", `,"usage":{"prompt_tokens":110,"completion_tokens":5,"total_tokens":415,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":300},"num_sources_used":0}`, ""),
			events: chatEvents("grok-4-1-fast", "", `,"usage":{"prompt_tokens":110,"completion_tokens":5,"total_tokens":415,"prompt_tokens_details":{"cached_tokens":100},"completion_tokens_details":{"reasoning_tokens":300}}`)}}},
	{name: "reasoning and citations beside the total", slug: "perplexity-ai", model: "sonar-deep-research", nano: (33+20016)*2000 + 7163*8000 + 73997*3000 + 18*5_000_000,
		classes: map[pricing.Class]int64{pricing.Reasoning: 73997, pricing.Output: 7163, pricing.WebSearches: 18},
		answers: map[string]hostAnswer{"": {plain: chatAnswer("sonar-deep-research", perplexityUsage, ""), events: chatEvents("sonar-deep-research", "", perplexityUsage)}}},
	{name: "behind a chunk without choices", slug: "azure-openai", model: "gpt-4o-mini", nano: 10*miniIn + 100*miniCached + 5*miniOut,
		answers: map[string]hostAnswer{"": {
			plain: chatAnswer("gpt-4o-mini-2024-07-18", `,"prompt_filter_results":[],"usage":{"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"prompt_tokens_details":{"cached_tokens":100,"audio_tokens":0}}`, `,"content_filter_results":{}`),
			events: append([]string{`{"id":"","object":"","created":0,"model":"","choices":[],"prompt_filter_results":[{"prompt_index":0,"content_filter_results":{}}]}`},
				chatEvents("gpt-4o-mini-2024-07-18", "", `,"usage":{"prompt_tokens":110,"completion_tokens":5,"total_tokens":115,"prompt_tokens_details":{"cached_tokens":100,"audio_tokens":0}}`)...)}}},
	{name: "of Gemini", slug: "vertex-ai", model: flash, nano: geminiNano, classes: map[pricing.Class]int64{pricing.Reasoning: 7},
		answers: map[string]hostAnswer{
			":generateContent":       {plain: geminiAnswer(geminiUsage)},
			":streamGenerateContent": {events: []string{`{"candidates":[{"content":{"role":"model","parts":[{"text":"H"}]}}],"usageMetadata":{"trafficType":"ON_DEMAND"},"modelVersion":"` + flash + `","responseId":"r"}`, geminiAnswer(geminiUsage)}},
		},
		more: []hostCall{
			{"/proxy/v1/projects/p1/locations/europe-west4/publishers/google/models/" + flash + ":generateContent", `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`},
			{"/proxy/v1/projects/p1/locations/europe-west4/publishers/google/models/" + flash + ":streamGenerateContent?alt=sse", `{"contents":[{"role":"user","parts":[{"text":"Hello"}]}]}`},
		}},
	{name: "of Claude", slug: "vertex-ai", model: "anthropic." + sonnet, nano: claudeNano,
		answers: map[string]hostAnswer{
			":rawPredict":       {plain: claudeAnswer(cachedClaude)},
			":streamRawPredict": {events: claudeEvents(strings.Replace(cachedClaude, `"output_tokens":5`, `"output_tokens":1`, 1), `"output_tokens":5`, "")},
		}},
	{name: "of Converse and InvokeModel", slug: "bedrock", model: bedrockSonnet, nano: claudeNano,
		answers: map[string]hostAnswer{
			"/converse":                    {plain: `{"output":{"message":{"role":"assistant","content":[{"text":"Hi"}]}},"stopReason":"end_turn","metrics":{"latencyMs":1},` + converseUsage + `}`},
			"/converse-stream":             {frames: [][2]string{{"messageStart", `{"role":"assistant"}`}, {"contentBlockDelta", `{"contentBlockIndex":0,"delta":{"text":"Hi"}}`}, {"contentBlockStop", `{"contentBlockIndex":0}`}, {"messageStop", `{"stopReason":"end_turn"}`}, {"metadata", `{` + converseUsage + `,"metrics":{"latencyMs":1}}`}}},
			"/invoke":                      {plain: claudeAnswer(cachedClaude), header: map[string]string{"X-Amzn-Bedrock-Input-Token-Count": "10", "X-Amzn-Bedrock-Output-Token-Count": "5", "X-Amzn-Bedrock-Cache-Read-Input-Token-Count": "100", "X-Amzn-Bedrock-Cache-Write-Input-Token-Count": "20"}},
			"/invoke-with-response-stream": {frames: chunks(claudeEvents(strings.Replace(cachedClaude, `"output_tokens":5`, `"output_tokens":1`, 1), `"output_tokens":5`, `,"amazon-bedrock-invocationMetrics":{"inputTokenCount":10,"outputTokenCount":5,"invocationLatency":1,"firstByteLatency":1,"cacheReadInputTokenCount":100,"cacheWriteInputTokenCount":20}`)...)},
		},
		more: []hostCall{
			{"/proxy/model/" + bedrockSonnet + "/converse", `{"messages":[{"role":"user","content":[{"text":"Hello"}]}]}`},
			{"/proxy/model/" + bedrockSonnet + "/converse-stream", `{"messages":[{"role":"user","content":[{"text":"Hello"}]}]}`},
			{"/proxy/model/" + bedrockSonnet + "/invoke", `{"anthropic_version":"bedrock-2023-05-31","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`},
			{"/proxy/model/" + bedrockSonnet + "/invoke-with-response-stream", `{"anthropic_version":"bedrock-2023-05-31","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`},
		}},
	{name: "in headers", slug: "bedrock", model: bedrockCommand, nano: 10*1500 + 5*2000, only: true,
		answers: map[string]hostAnswer{"/invoke": {plain: `{"id":"x","generations":[{"id":"y","text":"Hi","finish_reason":"COMPLETE"}],"prompt":"Hello"}`, header: map[string]string{"X-Amzn-Bedrock-Input-Token-Count": "10", "X-Amzn-Bedrock-Output-Token-Count": "5"}},
			"/invoke-with-response-stream": {frames: chunks(`{"is_finished":false,"text":"Hi"}`, `{"is_finished":true,"finish_reason":"COMPLETE","amazon-bedrock-invocationMetrics":{"inputTokenCount":10,"outputTokenCount":5,"invocationLatency":1,"firstByteLatency":1}}`)}},
		more: []hostCall{
			{"/chat/completions", `{"model":"MODEL","messages":[{"role":"user","content":"Hello"}]}`},
			{"/chat/completions", `{"model":"MODEL","messages":[{"role":"user","content":"Hello"}],"stream":true}`},
			{"/messages", `{"model":"MODEL","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]}`},
			{"/proxy/model/" + bedrockCommand + "/invoke", `{"prompt":"Hello"}`},
			{"/proxy/model/" + bedrockCommand + "/invoke-with-response-stream", `{"prompt":"Hello","stream":true}`},
		}},
}

// calls are the requests of a row: in the shape of chat, in that of Messages, and passed through
// where the host takes it, plain and streamed.
func (h *hostRow) calls() (all []hostCall) {
	if !h.only {
		for _, stream := range []string{"", `,"stream":true`} {
			body := `{"model":"` + h.model + `","max_tokens":50,"messages":[{"role":"user","content":"Hello"}]` + stream + `}`
			all = append(all, hostCall{"/chat/completions", body}, hostCall{"/messages", body})
			if len(h.more) == 0 && h.slug != "vertex-ai" && h.slug != "azure-openai" {
				all = append(all, hostCall{"/proxy/chat/completions", body})
			}
		}
	}
	for _, c := range h.more {
		all = append(all, hostCall{c.path, strings.Replace(c.body, "MODEL", h.model, 1)})
	}
	return all
}

// TestHostsAreBookedAsTheyBill requires the cost of what hosts report in a form of their own:
// natively, translated and passed through, plain and streamed.
func TestHostsAreBookedAsTheyBill(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	for slug, fields := range map[string]map[string]any{
		"moonshot": nil, "groq": nil, "x-ai": nil, "perplexity-ai": nil,
		"azure-openai": {"azure_auth_mode": "default", "azure_resource_name": "res", "azure_deployment_config": []map[string]string{{"azure_deployment_name": "gpt-4o-mini", "alias": "gpt-4o-mini", "azure_api_version": "v1"}}},
		"vertex-ai":    {"vertex_auth_type": "basic", "vertex_region": "europe-west4", "vertex_project_id": "p1"},
		"bedrock":      {"aws_auth_type": "apiKey", "aws_region": "us-east-1"},
	} {
		g.Provider(slug, "k", provider.Integration{AIProviderID: slug, Configurations: fields})
	}
	for i := range hostRows {
		row := &hostRows[i]
		for _, c := range row.calls() {
			g.Respond(func(call relaytest.Call) relaytest.Reply {
				path, _, _ := strings.Cut(call.URL, "?")
				best, found := "", false
				for suffix := range row.answers {
					if strings.HasSuffix(path, suffix) && len(suffix) >= len(best) {
						best, found = suffix, true
					}
				}
				if !found {
					t.Errorf("%s was called at %s", row.name, path)
				}
				a := row.answers[best]
				return a.reply(strings.Contains(call.Body, `"stream":true`))
			})
			got := g.Do("POST", "/v1"+c.path, c.body, "X-Gateway-Provider", "@"+row.slug)
			if got.Status != 200 {
				t.Errorf("%s, %s by %s: %d %s", row.slug, row.name, c.path, got.Status, got.Body)
			}
			r := g.Record()
			if int64(r.Cost) != row.nano || !r.Priced || r.Usage.Estimated {
				t.Errorf("%s, %s by %s: cost %d; want %d; priced %t: %+v", row.slug, row.name, c.path, r.Cost, row.nano, r.Priced, r.Usage)
			}
			for class, n := range row.classes {
				if r.Usage.N(class) != n {
					t.Errorf("%s, %s by %s: %d of class %v, want %d", row.slug, row.name, c.path, r.Usage.N(class), class, n)
				}
			}
		}
	}
}
