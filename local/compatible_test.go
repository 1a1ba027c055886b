package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"sync"
	"testing"

	"gateway/local/mockprovider"
	"gateway/shared/provider"
)

// compatible is one address with a mock provider for every host of the OpenAI shape; the
// first segment of the path says which host is meant.
type compatible struct {
	*httptest.Server
	mu    sync.Mutex
	mocks map[string]*mockprovider.Server
	last  map[string]string // the body that came last, by host
}

func newCompatible(t *testing.T) *compatible {
	c := &compatible{mocks: map[string]*mockprovider.Server{}, last: map[string]string{}}
	c.Server = httptest.NewServer(c)
	t.Cleanup(c.Close)
	return c
}

func (c *compatible) mock(id string) *mockprovider.Server {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.mocks[id] == nil {
		c.mocks[id] = mockprovider.New(mockprovider.Options{})
	}
	return c.mocks[id]
}

func (c *compatible) body(id string) (body map[string]any, raw string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	_ = json.Unmarshal([]byte(c.last[id]), &body)
	return body, c.last[id]
}

// ServeHTTP takes a request to the operation at the end of its path, whatever
// the host has before it, and checks that the key came.
func (c *compatible) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	path, _, _ := strings.Cut(r.RequestURI, "?")
	id, _, _ := strings.Cut(strings.TrimPrefix(path, "/"), "/")
	raw, _ := io.ReadAll(r.Body)
	c.mu.Lock()
	c.last[id] = string(raw)
	c.mu.Unlock()
	if !strings.HasSuffix(r.Header.Get("Authorization"), "mock-key") && r.Header.Get("Api-Key") != "mock-key" {
		http.Error(w, `{"error":{"message":"no key came"}}`, http.StatusUnauthorized)
		return
	}
	for _, op := range []string{"/chat/completions", "/completions", "/embeddings"} {
		if strings.HasSuffix(path, op) {
			in := httptest.NewRequest(r.Method, "http://mock/v1"+op, strings.NewReader(strings.Replace(string(raw), `"tool_choice":"any"`, `"tool_choice":"required"`, 1)))
			in.RequestURI = "/v1" + op
			in.Header = r.Header.Clone()
			in.Header.Set("Authorization", "Bearer mock-key")
			c.mock(id).ServeHTTP(w, in.WithContext(r.Context()))
			return
		}
	}
	http.Error(w, `{"error":{"message":"no such path: `+path+`"}}`, http.StatusNotFound)
}

// headersFor are those of a request to a host, with a fitting value for each
// field that its address needs.
func (c *compatible) headersFor(p *provider.Provider) []string {
	h := []string{"X-Gateway-Strict-Open-Ai-Compliance", "false", "X-Gateway-Provider", p.ID, "Authorization", "Bearer mock-key", "X-Gateway-Custom-Host", c.URL + "/" + p.ID}
	for _, f := range p.Fields {
		value := "x"
		switch {
		case f.Form == provider.BaseURL:
			value = c.URL + "/" + p.ID
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

// odd holds every member that a host may want otherwise.
const odd = `{"model":"gpt-4o-mini","max_completion_tokens":40,"seed":7,"user":"u","logit_bias":{"1":1},"logprobs":true,"top_logprobs":1,"presence_penalty":0.1,"frequency_penalty":0.1,
"parallel_tool_calls":false,"service_tier":"auto","store":false,"tool_choice":"required","tools":[{"type":"function","function":{"name":"now","parameters":{"type":"object","properties":{}}}}],
"messages":[{"role":"developer","content":"Be brief."},{"role":"user","content":"Hello"}]}`

// TestEveryCompatibleHost asks every host of the OpenAI shape for everything that it has.
// The books agree with the bill; what a host wants in another form is changed and reported.
//
//lane:exhaustive
func TestEveryCompatibleHost(t *testing.T) {
	t.Parallel()
	r := start(t)
	hosts := newCompatible(t)
	requested := map[string]int{}
	total := 0
	for _, p := range provider.All() {
		if p.Dialect != provider.OpenAIChat || !p.Serves(provider.Chat) {
			continue
		}
		headers := hosts.headersFor(p)
		send := func(path, body string) reply {
			t.Helper()
			got := r.call("POST", path, body, headers...)
			requested[p.ID]++
			total++
			if got.status != 200 {
				t.Errorf("%s %s: %d %s", p.ID, path, got.status, got.body)
			}
			return got
		}
		got := send("/chat/completions", strings.ReplaceAll(odd, "\n", ""))
		body, raw := hosts.body(p.ID)
		if got.status == 200 {
			checkQuirks(t, p, body, raw, got.header.Get("X-Gateway-Translation"))
		}
		if plain := send("/chat/completions", chatBody("gpt-4o-mini", "mock: echo\nHello", `,"max_tokens":50`)); !strings.Contains(plain.body, "Hello") {
			t.Errorf("%s: %s", p.ID, plain.body)
		}
		if p.Quirks.StreamUsage {
			streamed := send("/chat/completions", chatBody("gpt-4o-mini", "mock: split-utf8\nHello", `,"stream":true`))
			if s, err := mockprovider.ReadOpenAIStream([]byte(streamed.body)); err != nil || !strings.Contains(s.Text, "東京") {
				t.Errorf("%s: %v: %s", p.ID, err, streamed.body)
			}
		} else {
			// Without usage in the stream the accounting can but estimate, so the bill of
			// this one is not compared.
			before := hosts.mock(p.ID).Bill()
			streamed := r.call("POST", "/chat/completions", chatBody("gpt-4o-mini", "mock: echo\nHello", `,"stream":true`), headers...)
			if _, raw := hosts.body(p.ID); streamed.status != 200 || !strings.Contains(streamed.body, "[DONE]") || strings.Contains(raw, "stream_options") || hosts.mock(p.ID).Bill().Total.Requests != before.Total.Requests+1 {
				t.Errorf("%s: %d %s\nsent %s", p.ID, streamed.status, streamed.body, raw)
			}
			total++
		}
		if p.DialectOf(provider.Completions) == provider.OpenAICompletions {
			send("/completions", `{"model":"gpt-3.5-turbo-instruct","prompt":"mock: echo\nHello","max_tokens":9}`)
		}
		if p.DialectOf(provider.Embeddings) == provider.OpenAI {
			send("/embeddings", `{"model":"text-embedding-3-small","input":["one","two"]}`)
		}
	}
	if len(requested) < 50 {
		t.Errorf("only %d hosts", len(requested))
	}
	books := map[string][2]int64{}
	for _, rec := range r.records(total) {
		if p, _ := provider.ByID(rec.Provider); rec.Stream && !p.Quirks.StreamUsage {
			continue
		}
		b := books[rec.Provider]
		b[0] += rec.Usage.InputTokens()
		b[1] += rec.Usage.OutputTokens()
		books[rec.Provider] = b
	}
	for id := range requested {
		p, _ := provider.ByID(id)
		var bill [2]int64
		for _, row := range hosts.mock(id).Bill().Rows {
			if row.Stream && !p.Quirks.StreamUsage {
				continue
			}
			bill[0] += row.Input + row.CacheRead
			bill[1] += row.Output + row.Reasoning
		}
		if books[id] != bill || bill[0] == 0 || bill[1] == 0 {
			t.Errorf("%s: books %v, bill %v", id, books[id], bill)
		}
	}
}

// checkQuirks holds what a host got against its row of the catalog.
func checkQuirks(t *testing.T, p *provider.Provider, body map[string]any, raw, reported string) {
	t.Helper()
	q := &p.Quirks
	expect := func(what string, ok bool) {
		t.Helper()
		if !ok {
			t.Errorf("%s: %s: %s\ntold %q", p.ID, what, raw, reported)
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
