package chain

import (
	"context"
	"flag"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/content"
)

var update = flag.Bool("update", false, "write golden files")

// The word that is searched, and bodies of each endpoint that have it in one place alone. What
// an endpoint cannot say has no body.
const secretWord = "hunter2"

type cell struct{ kind, content, request, answer string }

// cells are the contents of each endpoint.
var cells = []cell{
	{"chatComplete", "text", `{"messages":[{"role":"user","content":"hunter2"}]}`, `{"choices":[{"message":{"role":"assistant","content":"hunter2"}}]}`},
	{"chatComplete", "several parts", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"hunter2"}]}]}`, `{"choices":[{"message":{"content":"a","refusal":null}},{"message":{"content":"hunter2"}}]}`},
	{"chatComplete", "tool arguments", `{"messages":[{"role":"assistant","tool_calls":[{"function":{"name":"f","arguments":"{\"a\":\"hunter2\"}"}}]}]}`, `{"choices":[{"message":{"content":null,"tool_calls":[{"function":{"name":"f","arguments":"{\"a\":\"hunter2\"}"}}]}}]}`},
	{"chatComplete", "tool results", `{"messages":[{"role":"tool","tool_call_id":"c","content":"hunter2"}]}`, ``},
	{"chatComplete", "image", `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://hunter2"}}]}]}`, `{"choices":[{"message":{"content":null,"images":[{"type":"image_url"}]}}]}`},
	{"chatComplete", "system", `{"messages":[{"role":"developer","content":"hunter2"},{"role":"user","content":"a"}]}`, ``},
	{"chatComplete", "reasoning", `{"messages":[{"role":"assistant","reasoning_content":"hunter2","content":"a"}]}`, `{"choices":[{"message":{"content":"a","reasoning_content":"hunter2"}}]}`},
	{"chatComplete", "before the last", `{"messages":[{"role":"user","content":"hunter2"},{"role":"user","content":"a"}]}`, ``},
	{"chatComplete", "empty", `{"messages":[]}`, `{"choices":[{"message":{"content":""}}]}`},
	{"complete", "text", `{"prompt":"hunter2"}`, `{"choices":[{"text":"hunter2"}]}`},
	{"complete", "several parts", `{"prompt":["a","hunter2"]}`, `{"choices":[{"text":"a"},{"text":"hunter2"}]}`},
	{"complete", "empty", `{"prompt":""}`, `{"choices":[{"text":""}]}`},
	{"messages", "text", `{"messages":[{"role":"user","content":"hunter2"}]}`, `{"role":"assistant","content":[{"type":"text","text":"hunter2"}]}`},
	{"messages", "several parts", `{"messages":[{"role":"user","content":[{"type":"text","text":"a"},{"type":"text","text":"hunter2"}]}]}`, `{"content":[{"type":"text","text":"a"},{"type":"text","text":"hunter2"}]}`},
	{"messages", "tool arguments", `{"messages":[{"role":"assistant","content":[{"type":"tool_use","id":"c","name":"f","input":{"a":"hunter2"}}]}]}`, `{"content":[{"type":"tool_use","id":"c","name":"f","input":{"a":"hunter2"}}]}`},
	{"messages", "tool results", `{"messages":[{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"hunter2"}]}]}`, `{"content":[{"type":"web_search_tool_result","tool_use_id":"c","content":[{"type":"text","text":"hunter2"}]}]}`},
	{"messages", "image", `{"messages":[{"role":"user","content":[{"type":"image","source":{"type":"url","url":"https://hunter2"}}]}]}`, ``},
	{"messages", "system", `{"system":"hunter2","messages":[{"role":"user","content":"a"}]}`, ``},
	{"messages", "reasoning", `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"hunter2"},{"type":"text","text":"a"}]}]}`, `{"content":[{"type":"thinking","thinking":"hunter2"},{"type":"text","text":"a"}]}`},
	{"messages", "before the last", `{"messages":[{"role":"user","content":"hunter2"},{"role":"user","content":"a"}]}`, ``},
	{"messages", "empty", `{"messages":[]}`, `{"content":[]}`},
	{"createModelResponse", "text", `{"input":"hunter2"}`, `{"output":[{"type":"message","role":"assistant","content":[{"type":"output_text","text":"hunter2"}]}]}`},
	{"createModelResponse", "several parts", `{"input":[{"role":"user","content":[{"type":"input_text","text":"a"},{"type":"input_text","text":"hunter2"}]}]}`, `{"output":[{"type":"message","content":[{"type":"output_text","text":"a"}]},{"type":"message","content":[{"type":"output_text","text":"hunter2"}]}]}`},
	{"createModelResponse", "tool arguments", `{"input":[{"type":"function_call","name":"f","arguments":"{\"a\":\"hunter2\"}"}]}`, `{"output":[{"type":"function_call","name":"f","arguments":"{\"a\":\"hunter2\"}"}]}`},
	{"createModelResponse", "tool results", `{"input":[{"type":"function_call_output","call_id":"c","output":"hunter2"}]}`, `{"output":[{"type":"function_call_output","call_id":"c","output":"hunter2"}]}`},
	{"createModelResponse", "image", `{"input":[{"role":"user","content":[{"type":"input_image","image_url":"https://hunter2"}]}]}`, `{"output":[{"type":"image_generation_call","result":"hunter2"}]}`},
	{"createModelResponse", "system", `{"instructions":"hunter2","input":"a"}`, ``},
	{"createModelResponse", "reasoning", `{"input":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hunter2"}]}]}`, `{"output":[{"type":"reasoning","summary":[{"type":"summary_text","text":"hunter2"}]}]}`},
	{"createModelResponse", "before the last", `{"input":[{"role":"user","content":"hunter2"},{"role":"user","content":"a"}]}`, ``},
	{"createModelResponse", "empty", `{"input":""}`, `{"output":[]}`},
	{"embed", "text", `{"input":"hunter2"}`, ``},
	{"embed", "several parts", `{"input":["a","hunter2"]}`, ``},
	{"embed", "empty", `{"input":""}`, ``},
	{"moderate", "text", `{"input":"hunter2"}`, ``},
	{"rerank", "text", `{"query":"hunter2"}`, ``},
	{"imageGenerate", "text", `{"prompt":"hunter2"}`, ``},
	{"createSpeech", "text", `{"input":"hunter2"}`, ``},
	{"mcp", "tool arguments", `{"name":"f","arguments":{"a":{"b":"hunter2"}}}`, ``},
	{"mcp", "text", ``, `{"content":[{"type":"text","text":"hunter2"}]}`},
	{"mcp", "embedded resource", ``, `{"content":[{"type":"resource","resource":{"uri":"file:///a","text":"hunter2"}}]}`},
	{"mcp", "structure", ``, `{"content":[],"structuredContent":{"a":"hunter2"}}`},
	{"agent", "text", `{"message":{"parts":[{"kind":"text","text":"hunter2"}],"metadata":{"text":"x"}}}`, ``},
	{"agent", "structure", `{"message":{"parts":[{"data":{"a":"hunter2"}}]}}`, ``},
	{"agent", "artifact", ``, `{"artifactUpdate":{"artifact":{"parts":[{"text":"hunter2"}]}}}`},
	{"agent", "message", ``, `{"kind":"task","status":{"message":{"parts":[{"kind":"text","text":"hunter2"}]}}}`},
	{"agent", "older content", ``, `{"msg":{"content":[{"text":"hunter2"}]}}`},
	{"agent", "list in a structure", ``, `{"parts":[{"data":[[{"a":"hunter2"}]]}]}`},
	{"agent", "empty", `{"message":{"parts":[]}}`, `{"kind":"task"}`},
	{"mcp", "empty", `{"name":"f"}`, `{"content":[]}`},
}

// consulted runs a hook that denies the word; it must be asked whatever there is to
// judge.
func consulted(t *testing.T, c *cell, phase guard.Phase, scope string) bool {
	t.Helper()
	h := hook(fmt.Sprintf(`{"contains":{"words":[%q],"operator":"none","scope":%q},"deny":true}`, secretWord, scope))
	in := &Call{Kind: c.kind, Request: []byte(c.request), Now: time.Now}
	if phase == guard.After {
		in.Response, in.Status = []byte(c.answer), 200
	}
	o := Hooks{h}.Run(context.Background(), phase, in)
	if len(o.Results) != 1 || len(o.Results[0].Checks) != 1 || o.Results[0].Checks[0].Error != nil {
		t.Errorf("%s, %s, %s: not asked: %+v", c.kind, c.content, scope, o.Results)
	}
	return o.Denied
}

// TestScopesOfEachEndpoint: for each endpoint, direction and content which scopes see it. A
// check is asked for each of them, also where there is nothing to see.
func TestScopesOfEachEndpoint(t *testing.T) {
	t.Parallel()
	var out strings.Builder
	fmt.Fprintf(&out, "%-20s %-7s %-16s seen by\n", "endpoint", "side", "content")
	for i := range cells {
		c := &cells[i]
		for _, side := range []struct {
			name  string
			phase guard.Phase
			body  string
		}{{"before", guard.Before, c.request}, {"after", guard.After, c.answer}} {
			if side.body == "" {
				continue
			}
			var seen []string
			for _, scope := range content.Scopes {
				if consulted(t, c, side.phase, scope) {
					seen = append(seen, scope)
				}
			}
			if len(seen) == 0 && c.content != "image" && c.content != "empty" {
				t.Errorf("%s %s, %s: nobody sees it", c.kind, side.name, c.content)
			}
			fmt.Fprintf(&out, "%-20s %-7s %-16s %s\n", c.kind, side.name, c.content, strings.Join(append(seen, map[bool]string{true: "nobody: it has no text"}[len(seen) == 0]), " "))
		}
	}
	const name = "testdata/coverage.txt"
	got := []byte(strings.ReplaceAll(out.String(), " \n", "\n"))
	if *update {
		if err := os.WriteFile(name, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if want, err := os.ReadFile(name); err != nil || string(want) != string(got) {
		t.Errorf("%v: got\n%s", err, got)
	}
}

// TestPassThroughIsJudgedByRequestType: and by nothing else.
func TestPassThroughIsJudgedByRequestType(t *testing.T) {
	t.Parallel()
	c := &Call{Kind: "proxy", Passed: true, Now: time.Now}
	if o := (Hooks{hook(`{"contains":{"words":["x"]},"deny":true}`)}).Run(context.Background(), guard.Before, c); len(o.Results) != 0 || o.Denied {
		t.Errorf("%+v", o)
	}
	for kind, denied := range map[string]bool{"proxy": true, "embed": false} {
		o := Hooks{hook(`{"contains":{"words":["x"]},"allowedRequestTypes":{"blockedTypes":["` + kind + `"]},"deny":true}`)}.Run(context.Background(), guard.Before, c)
		if len(o.Results) != 1 || len(o.Results[0].Checks) != 1 || o.Denied != denied {
			t.Errorf("%s: %+v", kind, o)
		}
	}
}
