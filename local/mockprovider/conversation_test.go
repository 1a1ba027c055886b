package mockprovider

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"
)

// TestPlainAndStreamSayTheSame runs each request both ways, through the
// grammar, and compares words, calls, finish reason and usage.
func TestPlainAndStreamSayTheSame(t *testing.T) {
	openAI := map[string]string{
		"words":        chat("Hello", `,"stream_options":null`),
		"echo":         chat("mock: echo\nsay it back: \"ünï\\code\"", ""),
		"said":         chat("mock: say=one two three", ""),
		"chunks":       chat("mock: chunks=50", ""),
		"tools":        chat("What is the weather in Paris?", `,"tools":[`+clockTool+`,`+weatherTool+`]`),
		"zero args":    chat("call clock_now", `,"tools":[`+weatherTool+`,`+clockTool+`]`),
		"parallel":     chat("mock: parallel", `,"tools":[`+weatherTool+`,`+clockTool+`]`),
		"interleaved":  chat("mock: tools=3 interleave", `,"tools":[`+weatherTool+`]`),
		"named":        chat("x", `,"tools":[`+weatherTool+`,`+clockTool+`],"tool_choice":{"type":"function","function":{"name":"clock_now"}}`),
		"required":     chat("x", `,"tools":[`+weatherTool+`],"tool_choice":"required"`),
		"none":         chat("x", `,"tools":[`+weatherTool+`],"tool_choice":"none"`),
		"functions":    chat("x", `,"functions":[{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}}}}]`),
		"n":            chat("x", `,"n":3`),
		"cut short":    chat("x", `,"max_completion_tokens":3`),
		"call cut":     chat("x", `,"max_tokens":3,"tools":[`+weatherTool+`]`),
		"stop":         chat("mock: say=alpha beta gamma", `,"stop":["beta"]`),
		"schema":       chat("x", `,"response_format":{"type":"json_schema","json_schema":{"name":"p","schema":`+person+`}}`),
		"json":         chat("as json", `,"response_format":{"type":"json_object"}`),
		"refusal":      chat("mock: refuse", ""),
		"unicode":      chat("mock: split-utf8", ""),
		"logprobs":     chat("x", `,"logprobs":true,"top_logprobs":3`),
		"reasoning":    `{"model":"gpt-5-mini","messages":[{"role":"developer","content":"be brief"},{"role":"user","content":"x"}]}`,
		"reasoning up": `{"model":"mock-thinking","messages":[{"role":"user","content":"x"}]}`,
		"image":        `{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"text","text":"what"},{"type":"image_url","image_url":{"url":"data:image/png;base64,aGk="}}]}]}`,
	}
	_, url := start(t, Options{})
	for name, body := range openAI {
		t.Run("openai "+name, func(t *testing.T) {
			plain := post(t, url, "/v1/chat/completions", strings.Replace(body, `,"stream_options":null`, "", 1))
			v := decode(t, plain.body)
			if plain.status != 200 {
				t.Fatalf("%d %s", plain.status, plain.body)
			}
			body = strings.TrimSuffix(strings.Replace(body, `,"stream_options":null`, "", 1), "}") + `,"stream":true,"stream_options":{"include_usage":true}}`
			stream := post(t, url, "/v1/chat/completions", body)
			got, err := ReadOpenAIStream(stream.body)
			if err != nil {
				t.Fatalf("%v\n%s", err, stream.body)
			}
			msg := at(v, "choices", 0, "message")
			want, _ := at(msg, "content").(string)
			if r, ok := at(msg, "refusal").(string); ok {
				want = r
			}
			if got.Text != want || got.Finish != at(v, "choices", 0, "finish_reason") {
				t.Errorf("stream %q %s, plain %q %v", got.Text, got.Finish, want, at(v, "choices", 0, "finish_reason"))
			}
			if float64(got.Prompt) != at(v, "usage", "prompt_tokens") || float64(got.Completion) != at(v, "usage", "completion_tokens") {
				t.Errorf("usage of the stream %d+%d, plain %v", got.Prompt, got.Completion, v["usage"])
			}
			calls, _ := at(msg, "tool_calls").([]any)
			if f := at(msg, "function_call"); f != nil {
				calls = []any{map[string]any{"function": f}}
			}
			if len(calls) != len(got.Calls) {
				t.Fatalf("%d calls in the stream, %d plain", len(got.Calls), len(calls))
			}
			for i, c := range got.Calls {
				if c.Name != at(calls[i], "function", "name") || c.Arguments != at(calls[i], "function", "arguments") {
					t.Errorf("call %d: %+v, plain %v", i, c, calls[i])
				}
			}
			if n, _ := v["choices"].([]any); got.Choices != len(n) {
				t.Errorf("%d choices in the stream, %d plain", got.Choices, len(n))
			}
		})
	}
	uses := `,"tools":[` + weatherUse + `,` + clockUse + `]`
	anthropic := map[string]string{
		"words":     claude("Hello", ""),
		"tools":     claude("What is the weather?", uses),
		"zero args": claude("call clock_now", uses),
		"parallel":  claude("mock: parallel", uses),
		"serial":    claude("mock: parallel", uses+`,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`),
		"any":       claude("x", uses+`,"tool_choice":{"type":"any"}`),
		"none":      claude("x", uses+`,"tool_choice":{"type":"none"}`),
		"stop":      claude("mock: say=alpha beta gamma", `,"stop_sequences":["gam","beta"]`),
		"cut short": strings.Replace(claude("x", ""), "1000", "3", 1),
		"call cut":  strings.Replace(claude("x", uses), "1000", "3", 1),
		"refusal":   claude("mock: refuse", ""),
		"schema":    claude("x", `,"output_config":{"format":{"type":"json_schema","schema":`+person+`}}`),
		"thinking":  strings.Replace(claude("x", `,"thinking":{"type":"enabled","budget_tokens":1024}`), "1000", "2000", 1),
		"adaptive":  claude("x", `,"thinking":{"type":"adaptive","display":"omitted"}`+uses),
		"redacted":  claude("mock: redacted", `,"thinking":{"type":"adaptive"}`),
		"system":    claude("x", `,"system":[{"type":"text","text":"be brief","cache_control":{"type":"ephemeral"}}]`),
		"pinged":    claude("mock: ping", ""),
	}
	for name, body := range anthropic {
		t.Run("anthropic "+name, func(t *testing.T) {
			plain := post(t, url, "/v1/messages", body)
			v := decode(t, plain.body)
			if plain.status != 200 {
				t.Fatalf("%d %s", plain.status, plain.body)
			}
			stream := post(t, url, "/v1/messages", strings.TrimSuffix(body, "}")+`,"stream":true}`)
			got, err := ReadAnthropicStream(stream.body)
			if err != nil {
				t.Fatalf("%v\n%s", err, stream.body)
			}
			var said, thought, signature string
			var calls []StreamCall
			for _, b := range v["content"].([]any) {
				switch at(b, "type") {
				case "text":
					said += at(b, "text").(string)
				case "thinking":
					thought, signature = at(b, "thinking").(string), at(b, "signature").(string)
				case "redacted_thinking":
					signature = at(b, "data").(string)
				case "tool_use":
					args, _ := json.Marshal(at(b, "input"))
					calls = append(calls, StreamCall{Name: at(b, "name").(string), Arguments: string(args)})
				}
			}
			if got.Text != said || got.Thinking != thought || got.Signature != signature || got.Finish != v["stop_reason"] {
				t.Errorf("stream %+v\nplain %s", got, plain.body)
			}
			if float64(got.Completion) != at(v, "usage", "output_tokens") {
				t.Errorf("output of the stream %d, plain %v", got.Completion, v["usage"])
			}
			if len(calls) != len(got.Calls) {
				t.Fatalf("%d calls in the stream, %d plain", len(got.Calls), len(calls))
			}
			for i, c := range got.Calls {
				var a, b any
				_ = json.Unmarshal([]byte(calls[i].Arguments), &b)
				if err := json.Unmarshal([]byte(c.Arguments), &a); err == nil && fmt.Sprint(a) != fmt.Sprint(b) || c.Name != calls[i].Name {
					t.Errorf("call %d: %+v, plain %+v", i, c, calls[i])
				}
			}
		})
	}
}

func TestToolLoopEndsInWords(t *testing.T) {
	_, url := start(t, Options{})
	ask := `{"role":"user","content":"What is the weather?"}`
	first := decode(t, post(t, url, "/v1/chat/completions", `{"model":"m","tools":[`+weatherTool+`],"messages":[`+ask+`]}`).body)
	msg, _ := json.Marshal(at(first, "choices", 0, "message"))
	id := at(first, "choices", 0, "message", "tool_calls", 0, "id").(string)
	second := decode(t, post(t, url, "/v1/chat/completions", `{"model":"m","tools":[`+weatherTool+`],"messages":[`+ask+`,`+string(msg)+`,{"role":"tool","tool_call_id":"`+id+`","content":"21 degrees"}]}`).body)
	if got := at(second, "choices", 0, "message", "content"); got != "The tool says: 21 degrees" {
		t.Errorf("%v", second)
	}
}

func TestThinkingMustComeBackAsItWent(t *testing.T) {
	_, url := start(t, Options{})
	head := `{"model":"claude-sonnet-4-5","max_tokens":2000,"thinking":{"type":"enabled","budget_tokens":1024},"tools":[` + weatherUse + `],"messages":[{"role":"user","content":%s}`
	turn := func(t *testing.T, directive string) (id string, blocks []map[string]any) {
		r := post(t, url, "/v1/messages", fmt.Sprintf(head, quoted("weather "+directive))+`]}`)
		for _, b := range decode(t, r.body)["content"].([]any) {
			blocks = append(blocks, b.(map[string]any))
		}
		if len(blocks) != 2 || blocks[1]["type"] != "tool_use" {
			t.Fatalf("%s", r.body)
		}
		return blocks[1]["id"].(string), blocks
	}
	reply := func(t *testing.T, id string, blocks ...map[string]any) reply {
		b, err := json.Marshal(blocks)
		if err != nil {
			t.Fatal(err)
		}
		return post(t, url, "/v1/messages", fmt.Sprintf(head, quoted("weather"))+`,{"role":"assistant","content":`+string(b)+`},{"role":"user","content":[{"type":"tool_result","tool_use_id":"`+id+`","content":"ok"}]}]}`)
	}
	for _, shown := range []string{"", "\nmock: redacted"} {
		id, b := turn(t, shown)
		if r := reply(t, id, b...); r.status != 200 {
			t.Errorf("unchanged blocks: %d %s", r.status, r.body)
		}
	}
	id, b := turn(t, "")
	_, redacted := turn(t, "\nmock: redacted")
	change := func(b map[string]any, key string, v any) map[string]any {
		out := map[string]any{}
		for k, x := range b {
			out[k] = x
		}
		if out[key] = v; v == nil {
			delete(out, key)
		}
		return out
	}
	for name, c := range map[string]struct {
		blocks []map[string]any
		says   string
	}{
		"text altered":      {[]map[string]any{change(b[0], "thinking", "else"), b[1]}, "Invalid `signature` in `thinking` block"},
		"text removed":      {[]map[string]any{change(b[0], "thinking", ""), b[1]}, "Invalid `signature`"},
		"signature altered": {[]map[string]any{change(b[0], "signature", "c2ln"), b[1]}, "Invalid `signature`"},
		"signature missing": {[]map[string]any{change(b[0], "signature", nil), b[1]}, "signature: Field required"},
		"data altered":      {[]map[string]any{change(redacted[0], "data", "c2ln"), b[1]}, "Invalid `data`"},
		"thinking left out": {[]map[string]any{b[1]}, "Expected `thinking` or `redacted_thinking`, but found `tool_use`"},
		"thinking not first": {[]map[string]any{{"type": "text", "text": "so"}, b[0], b[1]},
			"Expected `thinking` or `redacted_thinking`, but found `text`"},
		"with a field more": {[]map[string]any{change(b[0], "cache_control", map[string]string{"type": "ephemeral"}), b[1]}, "Extra inputs"},
	} {
		t.Run(name, func(t *testing.T) {
			r := reply(t, id, c.blocks...)
			if r.status != 400 || !strings.Contains(string(r.body), c.says) {
				t.Errorf("%d %s; want %q", r.status, r.body, c.says)
			}
		})
	}
}

func TestOmittedThinkingComesBackBySignature(t *testing.T) {
	_, url := start(t, Options{})
	r := post(t, url, "/v1/messages", claude("x", `,"thinking":{"type":"adaptive","display":"omitted"}`))
	b := at(decode(t, r.body), "content", 0)
	if at(b, "thinking") != "" || at(b, "signature") == "" {
		t.Fatalf("%s", r.body)
	}
	block, _ := json.Marshal(b)
	next := `{"model":"claude-sonnet-4-5","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + string(block) + `,{"type":"text","text":"y"}]},{"role":"user","content":"z"}]}`
	if r := post(t, url, "/v1/messages", next); r.status != 200 {
		t.Errorf("%d %s", r.status, r.body)
	}
}

func TestPromptCacheClasses(t *testing.T) {
	now := time.Unix(1_700_000_000, 0)
	s, url := start(t, Options{Now: func() time.Time { return now }})
	long := strings.Repeat("cached words ", 600) // 1950 tokens
	body := func(ttl, question string) string {
		return `{"model":"claude-sonnet-4-5","max_tokens":5,"system":[{"type":"text","text":"` + long + `","cache_control":{"type":"ephemeral"` + ttl + `}}],"messages":[{"role":"user","content":"` + question + `"}]}`
	}
	type classes struct{ in, write5m, write1h, read float64 }
	ask := func(b string) classes {
		u := at(decode(t, post(t, url, "/v1/messages", b).body), "usage")
		return classes{at(u, "input_tokens").(float64), at(u, "cache_creation", "ephemeral_5m_input_tokens").(float64),
			at(u, "cache_creation", "ephemeral_1h_input_tokens").(float64), at(u, "cache_read_input_tokens").(float64)}
	}
	for i, c := range []struct {
		body string
		wait time.Duration
		want classes
	}{
		{body("", "abcd"), 0, classes{5, 1950, 0, 0}},
		{body("", "abcdefgh"), 0, classes{6, 0, 0, 1950}},
		{body("", "abcd"), 6 * time.Minute, classes{5, 1950, 0, 0}},
		{body(`,"ttl":"1h"`, "abcd"), 6 * time.Minute, classes{5, 0, 1950, 0}},
		{body(`,"ttl":"1h"`, "abcd"), 50 * time.Minute, classes{5, 0, 0, 1950}},
		{strings.Replace(body("", "abcd"), long, "short", 1), 0, classes{7, 0, 0, 0}},
	} {
		now = now.Add(c.wait)
		if got := ask(c.body); got != c.want {
			t.Errorf("request %d: %+v, want %+v", i, got, c.want)
		}
	}
	if total := s.Bill().Total; total.CacheWrite5m != 3900 || total.CacheWrite1h != 1950 || total.CacheRead != 3900 {
		t.Errorf("%+v", total)
	}
}

func TestCountTokensIsWhatMessagesCharge(t *testing.T) {
	_, url := start(t, Options{})
	counted := `"model":"claude-sonnet-4-5","system":"be brief","tools":[` + weatherUse + `],"messages":[{"role":"user","content":[{"type":"text","text":"hello there"},{"type":"image","source":{"type":"url","url":"https://example.com/x.png"}}]}]`
	n := at(decode(t, post(t, url, "/v1/messages/count_tokens", `{`+counted+`}`).body), "input_tokens")
	in := at(decode(t, post(t, url, "/v1/messages", `{"max_tokens":9,`+counted+`}`).body), "usage", "input_tokens")
	if n == nil || n != in {
		t.Errorf("counted %v, charged %v", n, in)
	}
	if r := post(t, url, "/v1/messages/count_tokens", `{"max_tokens":9,`+counted+`}`); r.status != 400 {
		t.Errorf("max_tokens while counting: %d", r.status)
	}
}

func TestNearTextsHaveNearVectors(t *testing.T) {
	dot := func(a, b string) (sum float64) {
		x, y := embed(a, 1536), embed(b, 1536)
		for i := range x {
			sum += float64(x[i]) * float64(y[i])
		}
		return sum
	}
	if d := dot("The red fox.", "the red FOX"); d < 0.999 {
		t.Errorf("same words: %f", d)
	}
	if near, far := dot("a very red fox", "a very red dog"), dot("a very red fox", "completely other things here"); near < 0.5 || far > 0.3 {
		t.Errorf("near %f, far %f", near, far)
	}
}
