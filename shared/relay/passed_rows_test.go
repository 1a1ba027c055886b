package relay_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"gateway/shared/testkit/relaytest"
)

// TestNativeFormatsThatPassThroughAreBooked requires the usage of requests in a provider's own format
// that pass through: what the response reports, an estimate if it reports nothing, and nothing for
// a count of tokens, under a budget too.
func TestNativeFormatsThatPassThroughAreBooked(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	key := dollars(g, 5000)
	const (
		projects  = "/proxy/v1/projects/proj/locations/us-central1/publishers/"
		vertexAsk = `{"anthropic_version":"vertex-2023-10-16","max_tokens":50,"messages":[{"role":"user","content":"Hi"}]`
		cohere    = `{"provider":"cohere","api_key":"k"}`
		google    = `{"provider":"google","api_key":"k"}`
		counted   = `{"input_tokens":7}`
	)
	bedrock := "/proxy/model/" + bedrockOlder
	for _, c := range []struct {
		config, path, body, reply string
		input, output             int64 // -1: an estimate
	}{
		{cohere, "/proxy/v2/chat", `{"model":"command-r","messages":[{"role":"user","content":"Hi"}]}`, `{"id":"c","message":{"role":"assistant","content":[{"type":"text","text":"Hi"}]},"finish_reason":"COMPLETE","usage":{"billed_units":{"input_tokens":100,"output_tokens":10},"tokens":{"input_tokens":100,"output_tokens":10}}}`, 100, 10},
		{cohere, "/proxy/v2/embed", `{"model":"embed-english-v3.0","texts":["Hi"],"input_type":"search_query","embedding_types":["float"]}`, `{"id":"e","embeddings":{"float":[[0.5]]},"texts":["Hi"],"meta":{"billed_units":{"input_tokens":100}},"response_type":"embeddings_by_type"}`, 100, 0},
		{google, "/proxy/v1beta/models/gemini-2.5-flash:generateContent", geminiAsks, geminiReply, 100, 10},
		{google, "/proxy/v1beta/models/gemini-2.5-flash:streamGenerateContent?alt=sse", geminiAsks, sse(geminiReply), 100, 10},
		{google, "/proxy/v1beta/models/gemini-2.5-flash:countTokens", geminiAsks, `{"totalTokens":7}`, 0, 0},
		{google, "/v1beta/models/gemini-2.5-flash:countTokens", geminiAsks, `{"totalTokens":7}`, 0, 0},
		{google, "/proxy/v1beta/models/gemini-embedding-001:embedContent", `{"content":{"parts":[{"text":"Hi"}]}}`, `{"embedding":{"values":[0.5]}}`, -1, 0},
		{google, "/proxy/v1beta/models/gemini-embedding-001:batchEmbedContents", `{"requests":[{"model":"models/gemini-embedding-001","content":{"parts":[{"text":"Hi"}]}}]}`, `{"embeddings":[{"values":[0.5]}]}`, -1, 0},
		{vertex, projects + "google/models/gemini-2.5-flash:generateContent", geminiAsks, geminiReply, 100, 10},
		{vertex, projects + "google/models/gemini-2.5-flash:countTokens", geminiAsks, `{"totalTokens":7}`, 0, 0},
		{vertex, projects + "google/models/text-embedding-005:predict", `{"instances":[{"content":"Hi"}]}`, `{"predictions":[{"embeddings":{"values":[0.5],"statistics":{"token_count":100}}}]}`, 100, 0},
		{vertex, projects + "anthropic/models/claude-sonnet-4-5@20250929:rawPredict", vertexAsk + "}", claudeReply, 100, 10},
		{vertex, projects + "anthropic/models/claude-sonnet-4-5@20250929:streamRawPredict", vertexAsk + `,"stream":true}`, sse(messageStream(`"input_tokens":100,"output_tokens":1`, `"output_tokens":10`)...), 100, 10},
		{vertex, projects + "anthropic/models/count-tokens:rawPredict", `{"anthropic_version":"vertex-2023-10-16","model":"claude-sonnet-4-5@20250929","messages":[{"role":"user","content":"Hi"}]}`, counted, 0, 0},
		{aws + "}", bedrock + "/converse", converseAsks, converseBody, 100, 10},
		{aws + "}", bedrock + "/invoke", strings.Replace(vertexAsk, "vertex-2023-10-16", "bedrock-2023-05-31", 1) + "}", claudeReply, 100, 10},
		{aws + "}", "/proxy/model/amazon.titan-embed-text-v2:0/invoke", `{"inputText":"Hi"}`, `{"embedding":[0.5],"inputTextTokenCount":100}`, 100, 0},
		{aws + "}", bedrock + "/count-tokens", `{"input":{"converse":` + converseAsks + `}}`, `{"inputTokens":7}`, 0, 0},
		{claude(""), "/proxy/v1/messages", claudeAsked, claudeReply, 100, 10},
		{claude(""), "/proxy/v1/messages/count_tokens", `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"Hi"}]}`, counted, 0, 0},
		{claude(""), "/messages/count_tokens", `{"model":"claude-sonnet-4-5","messages":[{"role":"user","content":"Hi"}]}`, counted, 0, 0},
	} {
		for _, headers := range [][]string{nil, {"X-Gateway-Api-Key", key}} {
			if headers != nil && c.input != 0 {
				continue
			}
			made := ok(c.reply)
			if strings.Contains(c.path, "titan") {
				made.Header = http.Header{"X-Amzn-Bedrock-Input-Token-Count": {"100"}}
			}
			x := exchange{c.path, "/v1" + c.path, c.body, on(c.config, headers...), []relaytest.Reply{made}, 200, "", "", ""}
			_, _, r := x.run(t, g)
			u := r.Usage
			fits := u.InputTokens() == c.input && u.OutputTokens() == c.output && !u.Estimated && (r.Cost > 0) == (c.input > 0)
			if c.input < 0 {
				fits = u.Estimated && u.InputTokens() > 0 && r.Cost > 0
			}
			if !fits {
				t.Errorf("%s: %+v of %s costs %d", c.path, u, r.Model, r.Cost)
			}
		}
	}
}

// TestValuesArePutBackIntoStreams requires that a client gets the values for which the provider got
// tokens, whole and streamed, in each format, however the stream is cut.
func TestValuesArePutBackIntoStreams(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	const mail = "write to ann@example.com or bob@example.com, not to ann@example.com again"
	const tokens = "write to {{EMAIL_ADDRESS_1}} or {{EMAIL_ADDRESS_2}}, not to {{EMAIL_ADDRESS_1}} again"
	const restore = `"input_guardrails":[{"gateway.pii":{"categories":["EMAIL_ADDRESS"],"redact":true,"restore":true}}]`
	pieces := func(size int) (all []string) {
		for rest := tokens; rest != ""; {
			n := min(size, len(rest))
			all, rest = append(all, rest[:n]), rest[n:]
		}
		return all
	}
	for _, kind := range spoken {
		for _, more := range []string{"", `,"output_guardrails":[{"regexReplace":{"rule":"/not to/g","redactText":"never to"},"stream":"window"}]`} {
			want := mail
			if more != "" {
				want = strings.ReplaceAll(mail, "not to", "never to")
			}
			h := config(`{"provider":"` + kind.provider + `","api_key":"k",` + restore + more + `}`)
			body := strings.Replace(kind.body, "TEXT", mail, 1)
			x := exchange{kind.provider + kind.path + more, kind.path, body + "}", h, []relaytest.Reply{ok(strings.Replace(kind.plain, "TEXT", tokens, 1))}, 200, want, "{{EMAIL_ADDRESS_2}} & !ann@", ""}
			x.run(t, g)
			for _, size := range []int{1, 3, 17, 200} {
				if kind.path == responsesAt && size < 200 {
					continue // its deltas are repeated as a whole
				}
				var events strings.Builder
				for _, block := range strings.SplitAfter(kind.stream, "\n\n") {
					if !strings.Contains(block, "TEXT") || kind.path == responsesAt {
						events.WriteString(strings.ReplaceAll(block, "TEXT", tokens))
						continue
					}
					if kind.path == "/v1/completions" {
						block = strings.Replace(block, `"finish_reason":"stop"`, `"finish_reason":null`, 1)
					}
					for _, part := range pieces(size) {
						events.WriteString(strings.Replace(block, "TEXT", part, 1))
					}
				}
				x := exchange{fmt.Sprint(kind.provider, kind.path, more, size), kind.path, body + `,"stream":true}`, h, []relaytest.Reply{ok(events.String())}, 200, "!{{EMAIL", "", ""}
				got, _, _ := x.run(t, g)
				if joined := text(got.Body); kind.path != responsesAt && strings.TrimSpace(joined) != want || !strings.Contains(joined+got.Body, want) {
					t.Errorf("%s: %q", x.name, joined)
				}
			}
		}
	}
}

// TestMediaAreFetchedForProvidersThatTakeBytes requires that the bytes of a web address are fetched
// once for such a provider, in each client format, and that what cannot be had is named.
func TestMediaAreFetchedForProvidersThatTakeBytes(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	picture := "\x89PNG\r\n\x1a\n" + strings.Repeat("\x00", 64)
	data, pdf := base64.StdEncoding.EncodeToString([]byte(picture)), base64.StdEncoding.EncodeToString([]byte("%PDF-1.7\nHello"))
	const base = "https://93.184.216.34"
	cat, paper := base+"/cat.png?X-Amz-Signature=ab@c", base+"/paper"
	var fetched atomic.Int64
	g.Respond(func(c relaytest.Call) relaytest.Reply {
		if !strings.HasPrefix(c.URL, base) {
			if strings.Contains(c.Body, `"temperature":0.5`) {
				return failure(500, broken)
			}
			if strings.Contains(c.URL, "bedrock") {
				return ok(converseBody)
			}
			if strings.Contains(c.URL, "generativelanguage") {
				return ok(geminiReply)
			}
			return ok(reply)
		}
		fetched.Add(1)
		for _, secret := range []string{"Authorization", "X-Gateway-Api-Key", "Cookie", "X-Goog-Api-Key", "X-Amz-Date"} {
			if c.Header.Get(secret) != "" {
				t.Errorf("%s was sent to a host of the web", secret)
			}
		}
		kind := func(of, body string) relaytest.Reply {
			return relaytest.Reply{Status: 200, Body: body, Header: http.Header{"Content-Type": {of}}}
		}
		switch {
		case strings.Contains(c.URL, "/cat.png"):
			return kind("image/png", picture)
		case strings.Contains(c.URL, "/paper"):
			return kind("application/pdf", "%PDF-1.7\nHello")
		case strings.Contains(c.URL, "/page.png"):
			return kind("text/html", "<html><body>Sign in</body></html>")
		}
		return failure(404, "")
	})
	chat := func(addresses ...string) string {
		parts := `{"type":"text","text":"x"}`
		for _, a := range addresses {
			parts += `,{"type":"image_url","image_url":{"url":"` + a + `"}}`
		}
		return `{"model":"` + bedrockOlder + `","max_tokens":50,"messages":[{"role":"user","content":[` + parts + `]}]}`
	}
	const google = `{"provider":"google","api_key":"k","override_params":{"model":"gemini-2.5-flash"}}`
	for _, c := range []struct {
		path, config, body string
		status             int
		says               string // in the call or, if there is none, in the response
		fetched            int64  // -1: any number
	}{
		{chatPath, aws + "}", chat(cat, paper, cat), 200, `"image":{"format":"png","source":{"bytes":"` + data + ` & "document":{"format":"pdf" & ` + pdf + ` & !` + base, 2},
		{messagesPath, aws + "}", `{"model":"` + bedrockOlder + `","max_tokens":50,"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"` + cat + `"}},{"type":"document","source":{"type":"url","url":"` + paper + `"}},{"type":"text","text":"x"}]}]}`, 200, `"bytes":"` + data + ` & "format":"pdf" & !` + base, 2},
		{responsesAt, aws + "}", `{"model":"` + bedrockOlder + `","input":[{"role":"user","content":[{"type":"input_image","image_url":"` + cat + `"},{"type":"input_file","file_url":"` + paper + `"},{"type":"input_text","text":"x"}]}]}`, 200, `"bytes":"` + data + ` & ` + pdf, 2},
		{chatPath, google, chat(cat, paper), 200, `"inlineData":{"mimeType":"image/png","data":"` + data + ` & "mimeType":"application/pdf" & !` + base, 2},
		{chatPath, openAI(""), chat(cat), 200, cat, 0},
		{chatPath, google, chat("https://www.youtube.com/watch?v=1"), 200, "https://www.youtube.com/watch?v=1", 0},
		{chatPath, google, chat("https://generativelanguage.googleapis.com/v1beta/files/abc"), 200, "v1beta/files/abc", 0},
		{chatPath, google, chat("gs://bucket/cat.png"), 200, "gs://bucket/cat.png", 0},
		{chatPath, fallback(aws+`,"override_params":{"temperature":0.5}}`, google), chat(cat), 200, `"inlineData"`, 1}, // two targets
		{chatPath, aws + "}", chat(cat, base+"/none.png"), 400, `"param":"messages[0].content[2]" & status 404 & "code":"invalid_request"`, -1},
		{chatPath, google, chat(cat, base+"/page.png"), 400, `"param":"messages[0].content[2]" & web page`, -1},
		{chatPath, aws + "}", chat(cat, "http://169.254.169.254/latest/meta-data/"), 400, `"param":"messages[0].content[2]" & must not be reached & blocked_host`, -1},
		{chatPath, google, chat(cat, "https://10.0.0.1/a.png"), 400, "must not be reached & blocked_host", -1},
		{chatPath, aws + "}", chat(cat, "https://a%zz/"), 400, "malformed", -1},
		{responsesAt, aws + "}", `{"model":"` + bedrockOlder + `","input":[{"role":"user","content":[{"type":"input_image","image_url":"` + base + `/none.png"}]}]}`, 400, `"param":"input[0].content[0]"`, -1},
	} {
		fetched.Store(0)
		got := g.Do("POST", c.path, c.body, config(c.config)...)
		where := got.Body
		for _, call := range g.Calls() {
			if !strings.HasPrefix(call.URL, base) {
				if c.status != 200 {
					t.Errorf("%s: the provider was called", c.body)
				}
				where = call.Body
			}
		}
		if bad := parts(where, c.says); got.Status != c.status || bad != "" || c.fetched >= 0 && fetched.Load() != c.fetched {
			t.Errorf("%s %s: %d, %d fetched, %q in %s", c.path, c.body, got.Status, fetched.Load(), bad, where)
		}
		g.Records()
	}
}
