package main

import (
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
)

var updateGuarded = flag.Bool("update-guardrails", false, "write the table of what guardrails judge")

// judged is one kind of content of one endpoint, in a request and in a response; "" if the
// endpoint cannot have it. scope is where the check looks, rule what it forbids.
type judged struct {
	endpoint, content, scope, rule string
	path, request, answers         string
	streams                        bool
	streamPath                     string // of streams, where the path asks for them
}

// contents are the rows of the table.
func contents(r *running) []judged {
	const word = "hunter2"
	echo := func(text string) string { return `"mock: echo\n` + text + `"` }
	chat := func(model, messages, more string) string {
		return `{"model":"` + model + `","max_tokens":200,"messages":[` + messages + `]` + more + `}`
	}
	user := func(content string) string { return `{"role":"user","content":` + content + `}` }
	var out []judged
	for _, shape := range []struct{ name, path, model string }{
		{"chatComplete", "/chat/completions", "@mock/gpt-4o"}, {"chatComplete, translated", "/chat/completions", "@mock-anthropic/claude-sonnet-4-5"},
	} {
		add := func(content, scope, rule, request, answers string) {
			out = append(out, judged{shape.name, content, scope, rule, shape.path, request, answers, true, ""})
		}
		tools := `,"tools":[{"type":"function","function":{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}}]`
		call := `{"role":"assistant","tool_calls":[{"id":"call_1","type":"function","function":{"name":"f","arguments":"{\"a\":\"hunter2\"}"}}]}`
		add("text", "last_message", word, chat(shape.model, user(`"hunter2"`), ""), chat(shape.model, user(echo(word)), ""))
		add("several parts", "last_message", word, chat(shape.model, user(`[{"type":"text","text":"a"},{"type":"text","text":"hunter2"}]`), ""), "")
		add("tool arguments", "tool_arguments", "[a-z]", chat(shape.model, user(`"a"`)+","+call+`,{"role":"tool","tool_call_id":"call_1","content":"b"}`, tools), chat(shape.model, user(`"call f"`), tools))
		add("tool results", "tool_results", word, chat(shape.model, user(`"a"`)+","+call+`,{"role":"tool","tool_call_id":"call_1","content":"hunter2"}`, tools), "")
		add("image", "last_message", word, chat(shape.model, user(`[{"type":"image_url","image_url":{"url":"data:image/png;base64,iVBORw0KGgo="}}]`), ""), "")
		add("empty", "last_message", word, chat(shape.model, user(`""`), ""), chat(shape.model, user(`"call f"`), tools))
	}
	add := func(endpoint, path, content, scope, rule, request, answers string, streams bool) {
		out = append(out, judged{endpoint, content, scope, rule, path, request, answers, streams, ""})
	}
	const claude = "@mock-anthropic/claude-sonnet-4-5"
	tools := `,"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}]`
	used := user(`"a"`) + `,{"role":"assistant","content":[{"type":"tool_use","id":"toolu_1","name":"f","input":{"a":"hunter2"}}]},`
	add("messages", "/messages", "text", "last_message", word, chat(claude, user(`"hunter2"`), ""), chat(claude, user(echo(word)), ""), true)
	add("messages", "/messages", "several parts", "last_message", word, chat(claude, user(`[{"type":"text","text":"a"},{"type":"text","text":"hunter2"}]`), ""), "", true)
	add("messages", "/messages", "tool arguments", "tool_arguments", "[a-z]", chat(claude, used+user(`[{"type":"tool_result","tool_use_id":"toolu_1","content":"b"}]`), tools), chat(claude, user(`"call f"`), tools), true)
	add("messages", "/messages", "tool results", "tool_results", word, chat(claude, used+user(`[{"type":"tool_result","tool_use_id":"toolu_1","content":"hunter2"}]`), tools), "", true)
	add("messages", "/messages", "image", "last_message", word, chat(claude, user(`[{"type":"image","source":{"type":"base64","media_type":"image/png","data":"iVBORw0KGgo="}}]`), ""), "", true)
	add("messages", "/messages", "empty", "last_message", word, chat(claude, user(`" "`), ""), chat(claude, user(`"call f"`), tools), true)

	complete := func(prompt string) string {
		return `{"model":"@mock/gpt-3.5-turbo-instruct","max_tokens":200,"prompt":` + prompt + `}`
	}
	add("complete", "/completions", "text", "last_message", word, complete(`"hunter2"`), complete(echo(word)), true)
	add("complete", "/completions", "several parts", "last_message", word, complete(`["a","hunter2"]`), "", true)
	add("complete", "/completions", "empty", "last_message", word, complete(`""`), "", true)

	response := func(input, more string) string { return `{"model":"@mock/gpt-4o","input":` + input + more + `}` }
	tools = `,"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{"type":"string"}},"required":["a"]}}]`
	called := `[{"role":"user","content":"a"},{"type":"function_call","call_id":"call_1","name":"f","arguments":"{\"a\":\"hunter2\"}"},{"type":"function_call_output","call_id":"call_1","output":`
	add("createModelResponse", "/responses", "text", "last_message", word, response(`"hunter2"`, ""), response(echo(word), ""), true)
	add("createModelResponse", "/responses", "several parts", "last_message", word, response(`[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"hunter2"}]}]`, ""), "", true)
	add("createModelResponse", "/responses", "tool arguments", "tool_arguments", "[a-z]", response(called+`"b"}]`, tools), response(`"call f"`, tools), true)
	add("createModelResponse", "/responses", "tool results", "tool_results", word, response(called+`"hunter2"}]`, tools), "", true)
	add("createModelResponse", "/responses", "image", "last_message", word, response(`[{"role":"user","content":[{"type":"input_image","image_url":"data:image/png;base64,iVBORw0KGgo="}]}]`, ""), "", true)
	add("createModelResponse", "/responses", "empty", "last_message", word, response(`""`, ""), response(`"call f"`, tools), true)

	for _, content := range [][2]string{{"text", `"hunter2"`}, {"several parts", `["a","hunter2"]`}, {"empty", `""`}} {
		add("embed", "/embeddings", content[0], "last_message", word, `{"model":"@mock/text-embedding-3-small","input":`+content[1]+`}`, "", false)
	}
	add("moderate", "/moderations", "text", "last_message", word, `{"model":"@mock/omni-moderation-latest","input":"hunter2"}`, "", false)
	add("imageGenerate", "/images/generations", "text", "last_message", word, `{"model":"@mock/gpt-image-1","prompt":"hunter2"}`, "", false)
	add("createSpeech", "/audio/speech", "text", "last_message", word, `{"model":"@mock/tts-1","voice":"alloy","input":"hunter2"}`, "", false)

	out = append(out, nativeContents(echo)...)
	saved := r.prompt(`[{"role":"user","content":"{{say}}"}]`, "")
	add("prompt completions", "/prompts/"+saved+"/completions", "text", "last_message", word, `{"variables":{"say":"hunter2"}}`, `{"variables":{"say":`+echo(word)+`}}`, true)
	add("prompt completions", "/prompts/"+saved+"/completions", "empty", "last_message", word, `{"variables":{}}`, "", true)
	return out
}

// TestWhatGuardrailsJudge: each kind of content of each endpoint, in requests and responses
// and in each form of streams, is shown to the hooks once, even if there is nothing in it.
//
//lane:exhaustive
func TestWhatGuardrailsJudge(t *testing.T) {
	t.Parallel()
	r := start(t)
	var out strings.Builder
	fmt.Fprintf(&out, "%-25s %-15s %-7s %-13s %s\n", "endpoint", "content", "side", "answer", "outcome")
	type tried struct {
		judged
		side, how string
		got       reply
	}
	var all []tried
	try := func(c *judged, side, how, body string) {
		hook := fmt.Sprintf(`{"regexMatch":{"rule":%q,"not":true,"scope":%q},"deny":true`, c.rule, c.scope)
		list := map[string]string{"before": "input_guardrails", "behind": "output_guardrails"}[side]
		path := c.path
		if how != "plain" {
			if c.streamPath != "" {
				path = c.streamPath
			} else {
				body = strings.TrimSuffix(body, "}") + `,"stream":true}`
			}
			if side == "behind" {
				hook += fmt.Sprintf(`,"stream":%q`, how)
			}
		}
		config := `{"` + list + `":[` + hook + `}]}`
		if c.streamPath != "" {
			config = `{"provider":"@mock",` + config[1:]
		}
		all = append(all, tried{*c, side, how, r.call("POST", path, body, "x-gateway-config", config, "x-gateway-strict-open-ai-compliance", "false")})
	}
	for _, c := range contents(r) {
		try(&c, "before", "plain", c.request)
		if c.streams {
			try(&c, "before", "stream", c.request)
		}
		if c.answers == "" {
			continue
		}
		for _, how := range []string{"plain", "after", "hold", "window"} {
			try(&c, "behind", how, c.answers)
		}
	}
	records := r.byTime(len(all))
	for i := range all {
		c, reported := &all[i], records[i].Guards
		outcome := "shown: nothing to see"
		switch {
		case c.got.status == 446:
			outcome = "denied"
		case strings.Contains(c.got.body, `[{"verdict":false,"id"`):
			outcome = "told after its end"
		case len(reported) == 1 && reported[0].Denied:
			outcome = "in the log alone"
		case c.got.status != 200 && c.got.status != 400:
			t.Errorf("%s, %s, %s, %s: %d %.200s", c.endpoint, c.content, c.side, c.how, c.got.status, c.got.body)
		}
		if len(reported) != 1 {
			t.Errorf("%s, %s, %s, %s: an empty cell: %v, %d %.300s", c.endpoint, c.content, c.side, c.how, reported, c.got.status, c.got.body)
		}
		if text := c.content != "image" && c.content != "empty"; text && strings.HasPrefix(outcome, "shown") {
			t.Errorf("%s, %s, %s, %s: nobody saw it: %d %.300s", c.endpoint, c.content, c.side, c.how, c.got.status, c.got.body)
		}
		fmt.Fprintf(&out, "%-25s %-15s %-7s %-13s %s\n", c.endpoint, c.content, c.side, c.how, outcome)
	}
	out.WriteString(passedCells(r))
	out.WriteString(realtimeCells(r))
	out.WriteString(mcpCells(t))
	const name = "testdata/guardrails.txt"
	if *updateGuarded {
		if err := os.WriteFile(name, []byte(out.String()), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(name); err != nil || string(want) != out.String() {
		t.Errorf("%v: what guardrails judge is not what %s says: got\n%s", err, name, out.String())
	}
}
