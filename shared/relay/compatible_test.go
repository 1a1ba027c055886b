package relay_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"gateway/shared/provider"
	"gateway/shared/testkit/relaytest"
)

// headersFor are those of a request to a host, with a fitting value for each field that its address
// needs.
func headersFor(p *provider.Provider) []string {
	host := "https://" + p.ID + ".example/" + p.ID
	h := []string{"X-Gateway-Strict-Open-Ai-Compliance", "false", "X-Gateway-Provider", p.ID, "X-Gateway-Custom-Host", host, "Authorization", "Bearer mock-key"}
	for _, f := range p.Fields {
		value := "x"
		switch {
		case f.Form == provider.BaseURL:
			value = host
		case f.Form == provider.List, f.Need != "always", f.Name == "azure_auth_mode":
			continue
		case f.Values != nil:
			value = f.Values[0]
		}
		h = append(h, "X-Gateway-"+strings.ReplaceAll(f.Name, "_", "-"), value)
	}
	if p.Auth.Scheme == provider.SigV4Auth {
		h = append(h, "X-Gateway-Aws-Auth-Type", "apiKey")
	}
	return h
}

// everyField holds every field that a host may want otherwise.
const everyField = `{"model":"gpt-4o-mini","max_completion_tokens":40,"seed":7,"user":"u","logit_bias":{"1":1},"logprobs":true,"top_logprobs":1,"presence_penalty":0.1,"frequency_penalty":0.1,"parallel_tool_calls":false,"service_tier":"auto","store":false,"tool_choice":"required","tools":[{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],"messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":"Hello"}]}`

// TestEveryCompatibleHost asks every host with OpenAI's format for everything that it has. What a
// host wants in another form is changed and reported, its key is sent, and the usage is recorded.
func TestEveryCompatibleHost(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	hosts := 0
	for _, p := range provider.All() {
		if p.Dialect != provider.OpenAIChat || !p.Serves(provider.Chat) {
			continue
		}
		hosts++
		headers := append(headersFor(p), "X-Gateway-Api-Key", g.Key([]string{write}, nil, nil))
		send := func(path, body, made, has string) relaytest.Call {
			t.Helper()
			x := exchange{p.ID + path, "/v1" + path, body, headers, []relaytest.Reply{ok(made)}, 200, has, "mock-key", "200"}
			_, calls, r := x.run(t, g)
			if estimated := strings.Contains(body, `"stream":true`) && !p.Quirks.StreamUsage; r.Usage.Estimated != estimated || !estimated && r.Usage.InputTokens() != 100 || r.Provider != p.ID {
				t.Errorf("%s: %s, %+v", x.name, r.Provider, r.Usage)
			}
			if len(calls) != 1 {
				return relaytest.Call{}
			}
			at, _, _ := strings.Cut(calls[0].URL, "?")
			if !strings.HasSuffix(at, path) {
				t.Errorf("%s: called at %s", x.name, at)
			}
			return calls[0]
		}
		g.Script(ok(reply))
		got := g.Do("POST", chatPath, everyField, headers...)
		if calls := g.Calls(); got.Status != 200 || len(calls) != 1 {
			t.Errorf("%s: %d %s", p.ID, got.Status, got.Body)
		} else {
			checkQuirks(t, p, calls[0].Body, got.Header.Get("X-Gateway-Translation"))
		}
		g.Records()
		send("/chat/completions", asks("gpt-4o-mini", `,"max_tokens":50`), reply, "Hello")
		last := lastChunk + "}"
		if p.Quirks.StreamUsage {
			last = lastChunk + strings.Replace(shortly, `"prompt_tokens":10`, `"prompt_tokens":100`, 1) + "}"
		}
		streamed := send("/chat/completions", asks("gpt-4o-mini", `,"stream":true`), sse(piece("Hello", ""), last, ended), "Hello & [DONE]")
		if strings.Contains(streamed.Body, "stream_options") != p.Quirks.StreamUsage {
			t.Errorf("%s: sent %s", p.ID, streamed.Body)
		}
		if p.DialectOf(provider.Completions) == provider.OpenAICompletions {
			send("/completions", `{"model":"gpt-3.5-turbo-instruct","prompt":"Hello","max_tokens":9}`, strings.Replace(spoken[3].plain, `"prompt_tokens":1,`, `"prompt_tokens":100,`, 1), "text_completion")
		}
		if p.DialectOf(provider.Embeddings) == provider.OpenAI {
			send("/embeddings", `{"model":"text-embedding-3-small","input":["one","two"]}`, `{"object":"list","model":"m","data":[{"object":"embedding","index":0,"embedding":[0.5]},{"object":"embedding","index":1,"embedding":[0.5]}],"usage":{"prompt_tokens":100,"total_tokens":100}}`, `"index":1`)
		}
	}
	if hosts < 50 {
		t.Errorf("only %d hosts", hosts)
	}
}

// checkQuirks compares what a host got with its row of the catalog.
func checkQuirks(t *testing.T, p *provider.Provider, raw, reported string) {
	t.Helper()
	var body map[string]any
	if err := json.Unmarshal([]byte(raw), &body); err != nil {
		t.Fatal(err)
	}
	q := &p.Quirks
	expect := func(what string, holds bool) {
		t.Helper()
		if !holds {
			t.Errorf("%s: %s: %s\nreported %q", p.ID, what, raw, reported)
		}
	}
	role := body["messages"].([]any)[0].(map[string]any)["role"]
	expect("role", role == map[bool]string{true: "developer", false: "system"}[q.Developer])
	_, long := body["max_completion_tokens"]
	_, short := body["max_tokens"]
	expect("bound", long == !q.OnlyMaxTokens && short == q.OnlyMaxTokens)
	expect("tool_choice", body["tool_choice"] == map[bool]string{true: "any", false: "required"}[q.RequiredIsAny])
	for _, name := range []string{"seed", "user", "logit_bias", "logprobs", "top_logprobs", "presence_penalty", "frequency_penalty", "parallel_tool_calls", "service_tier", "store"} {
		to := name
		for _, rename := range q.Rename {
			if rename.From == name {
				to = rename.To
			}
		}
		_, there := body[to]
		dropped := slices.Contains(q.Drop, name)
		expect(name, there == !dropped && strings.Contains(reported, name+" (") == dropped)
	}
	expect("model", fmt.Sprint(body["model"]) == "gpt-4o-mini")
}
