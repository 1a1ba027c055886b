package main

import (
	"context"
	"fmt"
	"strings"
	"testing"

	sdk "github.com/modelcontextprotocol/go-sdk/mcp"
)

// TestToolRunsEndWithTheirBudget: if the rest of the budget cannot pay the model to read a
// result, the run ends before the next turn, and what was made until then is recorded.
func TestToolRunsEndWithTheirBudget(t *testing.T) {
	t.Parallel()
	r := start(t)
	up, s := mcpServer(t, stateless)
	sdk.AddTool(s, &sdk.Tool{Name: "long"}, func(context.Context, *sdk.CallToolRequest, textArgs) (*sdk.CallToolResult, any, error) {
		return &sdk.CallToolResult{Content: []sdk.Content{&sdk.TextContent{Text: strings.Repeat("many words ", 40_000)}}}, nil, nil
	})
	r.registerMCP("files", up.URL, "")
	models := []string{"@mock/gpt-4o", "@mock-anthropic/claude-sonnet-4-5"}
	for i, c := range toolRequests {
		for _, stream := range []bool{false, true} {
			made := r.admin("POST", "/api-keys/workspace/service", fmt.Sprintf(`{"name":"short of money","workspace_id":%q,"scopes":["completions.write","mcp.invoke"],"usage_limits":{"type":"tokens","credit_limit":40000}}`, r.workspace()))
			trace := fmt.Sprintf("%s with a budget %t", c.name, stream)
			more := fmt.Sprintf(`,"stream":%t%s`, stream, map[string]string{"responses": `,"max_output_tokens":300`}[c.name])
			got := r.call("POST", c.path, c.body(models[i], "mock: call=long {\"text\":\"hey\"}\nGo.", serverTool("files", ""), more),
				"X-Gateway-Beta", toolsHeader, "X-Gateway-Api-Key", made["key"].(string), "X-Gateway-Trace-Id", trace)
			all := events(got.body)
			switch {
			case !stream && (got.status != 412 || !strings.Contains(got.body, "short of money")):
				t.Errorf("%s: %d %.600s", trace, got.status, got.body)
			case stream && (got.status != 200 || len(all) == 0 || !strings.Contains(all[len(all)-1], `"type":"error"`) && !strings.Contains(all[len(all)-1], `"type":"response.failed"`) || !strings.Contains(all[len(all)-1], "short of money") || !strings.Contains(got.body, "many words")):
				t.Errorf("%s: %d %.600s", trace, got.status, got.body)
			}
			tokens, calls, refused := int64(0), 0, 0 // beside the request and three pages of tools
			for _, rec := range r.traced(trace, 7) {
				switch {
				case rec.ParentSpanID == "":
				case rec.Call != nil && rec.Call.Method == "tools/call":
					calls++
				case rec.Call == nil && rec.ClientStatus == 412:
					if refused++; len(rec.Attempts) != 0 || rec.Usage.IsReported() {
						t.Errorf("%s: the refused turn: %+v", trace, rec)
					}
				case rec.Call == nil:
					tokens += rec.Usage.InputTokens() + rec.Usage.OutputTokens()
				}
			}
			if calls != 1 || refused != 1 || tokens == 0 {
				t.Errorf("%s: %d calls, %d refused turns, %d tokens", trace, calls, refused, tokens)
			}
			id, _ := made["id"].(string)
			eventually(t, func() error {
				limits, _ := r.admin("GET", "/api-keys/"+id, "")["usage_limits"].(map[string]any)
				if used := fmt.Sprint(limits["current_usage"]); used != fmt.Sprint(tokens) {
					return fmt.Errorf("%s: %s tokens are counted, %d were used", trace, used, tokens)
				}
				return nil
			})
		}
	}
}

// TestToolRunsWantSignIn: a server that the user has to sign in at first fails the request
// with the address; after it the run is made, with the user's own token.
func TestToolRunsWantSignIn(t *testing.T) {
	t.Parallel()
	l := newLobby(t)
	for _, speaks := range []string{stateless, sessions} {
		a := newAuthority(t, speaks)
		slug := "private-" + speaks
		l.ofAuthority(a, slug)
		made := l.admin("POST", "/api-keys/workspace/user", fmt.Sprintf(`{"name":"of a user","workspace_id":"default","user_id":%q,"scopes":["mcp.invoke","completions.write"]}`, l.userOf("bea")))
		if made["key"] != nil {
			t.Errorf("the key of a user is shown to who made it: %v", made)
		}
		key := l.as(l.session, "POST", "/api-keys/"+made["id"].(string)+"/collect", "").json(t)["key"].(string)
		for _, c := range toolRequests {
			send := func(stream bool) reply {
				return l.call("POST", c.path, c.body("@mock/gpt-4o", "mock: call=tool1 {\"text\":\"hey\"}\nGo.", serverTool(slug, ""), fmt.Sprintf(`,"stream":%t`, stream)),
					"X-Gateway-Beta", toolsHeader, "X-Gateway-Api-Key", key)
			}
			for _, stream := range []bool{false, true} {
				got := send(stream)
				l.wants(c.name+" before", got, 424, "tools[0].server_label", l.base+"/oauth/upstream-connect?link=")
				if strings.Contains(got.header.Get("Content-Type"), "event-stream") {
					t.Errorf("%s: %v", c.name, got.header)
				}
				if c.name != "messages" || !stream {
					continue
				}
				_, link, _ := strings.Cut(got.body, "open ")
				link, _, _ = strings.Cut(link, `"`)
				back, jar := l.connectAt(strings.ReplaceAll(link, `\u0026`, "&"), l.session)
				l.wants("back", l.hop(back, jar), 200, "You are signed in")
			}
		}
		for _, c := range toolRequests {
			for _, stream := range []bool{false, true} {
				got := l.call("POST", c.path, c.body("@mock/gpt-4o", "mock: call=tool1 {\"text\":\"hey\"}\nGo.", serverTool(slug, ""), fmt.Sprintf(`,"stream":%t`, stream)),
					"X-Gateway-Beta", toolsHeader, "X-Gateway-Api-Key", key)
				l.wants(c.name+" after", got, 200, "said hey")
			}
		}
	}
}
