package route

import (
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

const fullExample = `{"retry":{"attempts":2},"request_timeout":8000,"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.plan":{"$eq":"pro"}},"then":"pro"}],"default":"std"},"targets":[{"name":"pro","strategy":{"mode":"fallback","on_status_codes":[429,500]},"targets":[{"provider":"@a"},{"provider":"@b","override_params":{"model":"m"}}]},{"name":"std","strategy":{"mode":"loadbalance","sticky":{"enabled":true,"hash_fields":["metadata._user"],"ttl":600}},"targets":[{"provider":"@c","weight":3},{"provider":"@d","weight":1}]}]}`

func mustParse(t testing.TB, raw string, mode Mode) *Config {
	t.Helper()
	c, details := Parse([]byte(raw), mode)
	if len(details) > 0 {
		t.Fatalf("%s: %v", raw, details)
	}
	return c
}

func targets(n int, item string) string {
	return "[" + strings.TrimSuffix(strings.Repeat(item+",", n), ",") + "]"
}

// TestParseErrors: strict and lenient list the fields at fault in both modes.
func TestParseErrors(t *testing.T) {
	deep := `{"provider":"@a"}`
	for range MaxNesting + 1 {
		deep = `{"strategy":{"mode":"single"},"targets":[` + deep + `]}`
	}
	both := func(fields ...string) [2][]string { return [2][]string{fields, fields} }
	onSave := func(fields ...string) [2][]string { return [2][]string{fields, nil} }
	for _, c := range []struct {
		name, raw string
		want      [2][]string // strict, lenient
	}{
		{"full example", fullExample, both()},
		{"saved provider", `{"provider":"@slug"}`, both()},
		{"model of a saved provider", `{"override_params":{"model":"@slug/m"}}`, both()},
		{"null fields are absent", `{"provider":"@a","retry":null,"targets":null,"weight":null}`, both()},
		{"camelCase hooks", `{"provider":"@a","beforeRequestHooks":[{"id":"pg-1"}],"afterRequestHooks":[],"inputGuardrails":["pg-2"]}`, both()},
		{"provider fields", `{"provider":"azure-openai","api_key":"k","resource_name":"r","azure_api_version":"v1","deployments":[{"deployment_id":"d","alias":"a","api_version":"1"}]}`, both()},

		{"not an object", `[]`, both("")},
		{"not JSON", `{`, both("")},
		{"property twice", `{"retry":{"attempts":1,"attempts":2}}`, both("retry.attempts")},
		{"nothing", `{}`, onSave("")},
		{"only a name", `{"name":"x"}`, onSave("")},
		{"unknown property", `{"provider":"@a","retries":1}`, onSave("retries")},
		{"unknown nested properties", `{"provider":"@a","retry":{"attempts":1,"x":1},"cache":{"mode":"simple","y":1},"strategy":{"mode":"single","z":1},"targets":[{"provider":"@a","q":1}]}`, onSave("retry.x", "cache.y", "strategy.z", "targets[0].q")},
		{"old version", `{"mode":"single","options":[]}`, both("mode", "options")},
		{"all errors at once", `{"weight":-1,"provider":"nobody","retry":{},"cache":{"mode":"x"},"request_timeout":"5","cb_config":{}}`,
			both("cb_config.cooldown_interval", "cb_config.failure_threshold", "cache.mode", "provider", "request_timeout", "retry.attempts", "weight")},

		{"strategy without a mode", `{"strategy":{},"targets":[{"provider":"@a"}]}`, both("strategy.mode")},
		{"unknown strategy", `{"strategy":{"mode":"random"},"targets":[{"provider":"@a"}]}`, both("strategy.mode")},
		{"strategy of another type", `{"strategy":"fallback","targets":[{"provider":"@a"}]}`, both("strategy")},
		{"mode of another type", `{"strategy":{"mode":1},"targets":[{"provider":"@a"}]}`, both("strategy.mode")},
		{"strategy without targets", `{"strategy":{"mode":"fallback"}}`, both("targets")},
		{"strategy with no target", `{"strategy":{"mode":"fallback"},"targets":[]}`, both("targets")},
		{"targets without a strategy", `{"targets":[{"provider":"@a"},{"provider":"@b"}]}`, both("strategy")},
		{"one target without a strategy", `{"targets":[{"provider":"@a"}]}`, both()},
		{"target that is not an object", `{"strategy":{"mode":"single"},"targets":["@a"]}`, both("targets[0]")},
		{"nested path", `{"strategy":{"mode":"single"},"targets":[{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@a","weight":"1"}]}]}`, both("targets[0].targets[0].weight")},
		{"names twice", `{"strategy":{"mode":"single"},"targets":[{"name":"a","provider":"@a"},{"name":"a","provider":"@a"}]}`, onSave("targets[1].name")},
		{"too many targets", `{"strategy":{"mode":"loadbalance"},"targets":` + targets(101, `{"provider":"@a"}`) + `}`, both("targets")},
		{"as many as allowed", `{"strategy":{"mode":"loadbalance"},"targets":` + targets(100, `{"provider":"@a"}`) + `}`, both()},
		{"more under conditions", `{"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.a":1},"then":"d"}],"default":"d"},"targets":[{"name":"d","provider":"@a"},` + targets(999, `{"provider":"@a"}`)[1:] + `}`, both()},
		{"too many nested", `{"strategy":{"mode":"single"},"targets":[{"strategy":{"mode":"loadbalance"},"targets":` + targets(51, `{"provider":"@a"}`) + `}]}`, both("targets[0].targets")},
		{"too deep", deep, both(strings.TrimSuffix(strings.Repeat("targets[0].", MaxNesting), ".") + ".targets")},
		{"too many in all", `{"strategy":{"mode":"conditional","conditions":[{"query":{},"then":"x"}],"default":"x"},"targets":` + targets(200, `{"name":"x","strategy":{"mode":"single"},"targets":`+targets(50, `{"provider":"@a"}`)+`}`) + `}`, both("*")},

		{"conditional without conditions", `{"strategy":{"mode":"conditional","default":"a"},"targets":[{"name":"a","provider":"@a"}]}`, both("strategy.conditions")},
		{"conditional without default", `{"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.a":1},"then":"a"}]},"targets":[{"name":"a","provider":"@a"}]}`, onSave("strategy.default")},
		{"condition without parts", `{"strategy":{"mode":"conditional","conditions":[{}],"default":"a"},"targets":[{"name":"a","provider":"@a"}]}`, both("strategy.conditions[0].query", "strategy.conditions[0].then")},
		{"condition naming no target", `{"strategy":{"mode":"conditional","conditions":[{"query":{"metadata.a":1},"then":"b"}],"default":"c"},"targets":[{"name":"a","provider":"@a"}]}`, onSave("strategy.conditions[0].then", "strategy.default")},
		{"query of another type", condition(`"x"`), both("strategy.conditions[0].query")},
		{"unknown operator", condition(`{"metadata.a":{"$like":"x"}}`), onSave("strategy.conditions[0].query.metadata.a.$like")},
		{"unknown field", condition(`{"headers.a":"x"}`), onSave("strategy.conditions[0].query.headers.a")},
		{"field too deep", condition(`{"metadata.a.b":"x"}`), onSave("strategy.conditions[0].query.metadata.a.b")},
		{"look-around", condition(`{"metadata.a":{"$regex":"(?=x)"}}`), onSave("strategy.conditions[0].query.metadata.a.$regex")},
		{"back-reference", condition(`{"metadata.a":{"$regex":"(a)\\1"}}`), onSave("strategy.conditions[0].query.metadata.a.$regex")},
		{"$in without an array", condition(`{"metadata.a":{"$in":"x"}}`), onSave("strategy.conditions[0].query.metadata.a.$in")},
		{"$and without an array", condition(`{"$and":{"metadata.a":1}}`), both("strategy.conditions[0].query.$and")},
		{"array as a value", condition(`{"metadata.a":[1]}`), onSave("strategy.conditions[0].query.metadata.a")},

		{"retry of too many", `{"provider":"@a","retry":{"attempts":6}}`, onSave("retry.attempts")},
		{"retry of a fraction", `{"provider":"@a","retry":{"attempts":1.5}}`, onSave("retry.attempts")},
		{"retry below zero", `{"provider":"@a","retry":{"attempts":-1}}`, onSave("retry.attempts")},
		{"retry as text", `{"provider":"@a","retry":{"attempts":"3"}}`, both("retry.attempts")},
		{"retry statuses", `{"provider":"@a","retry":{"attempts":1,"on_status_codes":[429,"500",9]}}`, both("retry.on_status_codes[1]", "retry.on_status_codes[2]")},
		{"cache as text", `{"provider":"@a","cache":"simple"}`, both()},
		{"cache without a mode", `{"provider":"@a","cache":{"max_age":60}}`, both("cache.mode")},
		{"semantic cache without an embedder", `{"provider":"@a","cache":{"mode":"semantic"}}`, onSave("cache.embedder")},
		{"semantic cache as text", `{"provider":"@a","cache":"semantic"}`, onSave("cache.embedder")},
		{"embedder without a model", `{"provider":"@a","cache":{"mode":"semantic","embedder":{"provider":"@e"}}}`, both("cache.embedder.model")},
		{"embedder without a provider", `{"provider":"@a","cache":{"mode":"semantic","embedder":{"model":"m"}}}`, both("cache.embedder.provider")},
		{"embedder that is not saved", `{"provider":"@a","cache":{"mode":"semantic","embedder":{"provider":"openai","model":"m"}}}`, both("cache.embedder.provider")},
		{"embedder as text", `{"provider":"@a","cache":{"mode":"semantic","embedder":"@e/m"}}`, both("cache.embedder")},
		{"cache threshold", `{"provider":"@a","cache":{"mode":"simple","threshold":1.5}}`, both("cache.threshold")},
		{"cache age as text", `{"provider":"@a","cache":{"mode":"simple","max_age":"60"}}`, both("cache.max_age")},
		{"timeout below zero", `{"provider":"@a","request_timeout":-1}`, both("request_timeout")},
		{"timeout of a fraction", `{"provider":"@a","request_timeout":1.5}`, both("request_timeout")},
		{"timeout of a tiny fraction", `{"provider":"@a","request_timeout":1e-400}`, both("request_timeout")},
		{"breaker by rate", `{"provider":"@a","cb_config":{"failure_threshold_percentage":50,"minimum_requests":10,"cooldown_interval":30000}}`, both()},
		{"breaker bounds", `{"provider":"@a","cb_config":{"failure_threshold":0,"cooldown_interval":29999,"failure_threshold_percentage":101,"minimum_requests":0}}`,
			both("cb_config.cooldown_interval", "cb_config.failure_threshold", "cb_config.failure_threshold_percentage", "cb_config.minimum_requests")},
		{"forward itself", `{"provider":"@a","forward_headers":["X-Gateway-Forward-Headers"]}`, both("forward_headers")},
		{"forward metadata headers", `{"provider":"@a","forward_headers":["metadata-flavor"]}`, both("forward_headers")},
		{"forward what is no header", `{"provider":"@a","forward_headers":["a b"]}`, both("forward_headers")},
		{"forward as text", `{"provider":"@a","forward_headers":"x-a, x-b"}`, onSave("forward_headers")},
		{"custom host", `{"provider":"openai","custom_host":"ftp://x"}`, both("custom_host")},
		{"custom host with user info", `{"provider":"openai","custom_host":"https://u:p@x"}`, both("custom_host")},
		{"provider by a wrong name", `{"provider":"OpenAI "}`, both("provider")},
		{"provider without a slug", `{"provider":"@"}`, both("provider")},
		{"vertex without a region", `{"provider":"vertex-ai","api_key":"k"}`, both("vertex_region")},
		{"vertex", `{"provider":"vertex-ai","vertex_region":"global","vertex_service_account_json":{"project_id":"p"}}`, both()},
		{"drop paths", `{"provider":"@a","drop_params":["a","a.b[0].c","messages[*].content[*].x","[0]","a..b","a[x]","a[",""]}`, both("drop_params[3]", "drop_params[4]", "drop_params[5]", "drop_params[6]", "drop_params[7]")},
		{"model of another type", `{"override_params":{"model":5}}`, both("override_params.model")},
		{"model without a name", `{"targets":[{"default_params":{"model":"@slug"}}]}`, both("targets[0].default_params.model")},
		{"params of another type", `{"provider":"@a","override_params":[1]}`, both("override_params")},
		{"guardrails of another type", `{"provider":"@a","input_guardrails":[1],"output_guardrails":"x"}`, both("input_guardrails[0]", "output_guardrails")},
		{"hook without an id", `{"provider":"@a","before_request_hooks":[{"type":"guardrail"}]}`, both("before_request_hooks[0].id")},
		{"strategies by figures", `{"strategy":{"mode":"latency","explore":0.04,"min_observations":5,"tie_break":"order"},"targets":[{"provider":"@a"}]}`, both()},
		{"explore out of range", `{"strategy":{"mode":"latency","explore":0.6},"targets":[{"provider":"@a"}]}`, both("strategy.explore")},
		{"no observation", `{"strategy":{"mode":"latency","min_observations":0},"targets":[{"provider":"@a"}]}`, both("strategy.min_observations")},
		{"too many observations", `{"strategy":{"mode":"latency","min_observations":101},"targets":[{"provider":"@a"}]}`, onSave("strategy.min_observations")},
		{"tie-break", `{"strategy":{"mode":"cost","tie_break":"random"},"targets":[{"provider":"@a"}]}`, both("strategy.tie_break")},
		{"figures of other modes", `{"strategy":{"mode":"fallback","explore":0.1,"tie_break":"order"},"targets":[{"provider":"@a"}]}`, onSave("strategy.explore", "strategy.tie_break")},
		{"sticky fields", `{"strategy":{"mode":"loadbalance","sticky":{"enabled":true,"hash_fields":["user"],"ttl":0}},"targets":[{"provider":"@a"}]}`, both("strategy.sticky.hash_fields[0]", "strategy.sticky.ttl")},
		{"sticky fields that no request has", `{"strategy":{"mode":"loadbalance","sticky":{"enabled":true,"hash_fields":["params.","params.a.b","metadata.a.b","metadata"]}},"targets":[{"provider":"@a"}]}`,
			onSave("strategy.sticky.hash_fields[0]", "strategy.sticky.hash_fields[1]", "strategy.sticky.hash_fields[3]")},
		{"sticky for ever", `{"strategy":{"mode":"loadbalance","sticky":{"enabled":true,"hash_fields":["metadata.a"],"ttl":99999999}},"targets":[{"provider":"@a"}]}`, onSave("strategy.sticky.ttl")},
		{"timeouts of streams", `{"provider":"@a","first_token_timeout":600000,"stream_idle_timeout":0,"first_event_hold_ms":20000}`, both()},
		{"timeouts of streams out of bounds", `{"provider":"@a","first_token_timeout":600001,"stream_idle_timeout":-1,"first_event_hold_ms":20001}`, both("first_token_timeout", "stream_idle_timeout", "first_event_hold_ms")},
		{"markers for prompts", `{"provider":"@a","prompt_cache":{"mode":"auto","ttl":"1h"}}`, both()},
		{"markers for prompts, alone", `{"prompt_cache":{}}`, both()},
		{"markers for prompts that cannot be", `{"provider":"@a","prompt_cache":{"mode":"always","ttl":"2h"}}`, both("prompt_cache.mode", "prompt_cache.ttl")},
		{"markers for prompts of other types", `{"provider":"@a","prompt_cache":{"mode":1,"ttl":3600}}`, both("prompt_cache.mode", "prompt_cache.ttl")},
		{"timeouts of streams of other types", `{"provider":"@a","first_token_timeout":"5","stream_idle_timeout":1.5,"first_event_hold_ms":true}`, both("first_token_timeout", "stream_idle_timeout", "first_event_hold_ms")},
		{"timeouts in a target", `{"strategy":{"mode":"single"},"targets":[{"provider":"@a","first_token_timeout":-5}]}`, both("targets[0].first_token_timeout")},
		{"weight that is not a number", `{"strategy":{"mode":"single"},"targets":[{"provider":"@a","weight":NaN}]}`, both("targets[0].weight")},
		{"weight without bound", `{"strategy":{"mode":"single"},"targets":[{"provider":"@a","weight":1e999}]}`, both("targets[0].weight")},
		{"weight as text", `{"strategy":{"mode":"single"},"targets":[{"provider":"@a","weight":"-1"}]}`, both("targets[0].weight")},
		{"ten thousand targets", `{"strategy":{"mode":"loadbalance"},"targets":` + targets(10_000, `{"provider":"@a"}`) + `}`, both("targets")},
		{"too many conditions", `{"strategy":{"mode":"conditional","conditions":` + targets(1001, `{"query":{},"then":"a"}`) + `,"default":"a"},"targets":[{"name":"a","provider":"@a"}]}`, onSave("strategy.conditions")},
		{"too many statuses", `{"provider":"@a","retry":{"attempts":1,"on_status_codes":` + targets(1001, `429`) + `}}`, onSave("retry.on_status_codes")},
		{"too many values", condition(`{"metadata.a":{"$in":` + targets(1001, `1`) + `}}`), onSave("strategy.conditions[0].query.metadata.a.$in")},
		{"regex that grows without bound", condition(`{"metadata.a":{"$regex":"(a{1000}){1000}"}}`), onSave("strategy.conditions[0].query.metadata.a.$regex")},
		{"regex that is too long", condition(`{"metadata.a":{"$regex":"` + strings.Repeat("a", 1001) + `"}}`), onSave("strategy.conditions[0].query.metadata.a.$regex")},
		{"regex that is not closed", condition(`{"metadata.a":{"$regex":"[a"}}`), onSave("strategy.conditions[0].query.metadata.a.$regex")},
		{"stream that is no flag", `{"provider":"@a","override_params":{"stream":"true"},"default_params":{"stream":1}}`, both("override_params.stream", "default_params.stream")},
		{"passthrough with targets", `{"passthrough":true,"strategy":{"mode":"single"},"targets":[{"provider":"@a"}]}`, onSave("passthrough")},
		{"not UTF-8", "{\"provider\":\"@a\xff\"}", both("provider")},
		{"sticky without fields", `{"strategy":{"mode":"loadbalance","sticky":{"enabled":true}},"targets":[{"provider":"@a"}]}`, onSave("strategy.sticky.hash_fields")},
	} {
		t.Run(c.name, func(t *testing.T) {
			for mode, want := range c.want {
				cfg, details := Parse([]byte(c.raw), Mode(mode))
				var got []string
				for _, d := range details {
					got = append(got, d.Field)
					if d.Message == "" {
						t.Errorf("%s has no message", d.Field)
					}
				}
				if len(want) == 1 && want[0] == "*" && len(got) > 0 {
					continue
				}
				slices.Sort(got)
				slices.Sort(want)
				if cmp.Diff(want, got) != "" && len(want)+len(got) > 0 {
					t.Errorf("mode %d: got %q, want %q (%v)", mode, got, want, details)
				}
				if (cfg == nil) != (len(details) > 0) {
					t.Error("a config comes exactly when there is no error")
				}
			}
		})
	}
}

func condition(query string) string {
	return `{"strategy":{"mode":"conditional","conditions":[{"query":` + query + `,"then":"a"}],"default":"a"},"targets":[{"name":"a","provider":"@a"}]}`
}

func TestParseReadsEveryField(t *testing.T) {
	c := mustParse(t, `{
		"provider":"openai","api_key":"k","weight":2.5,"name":"n","prompt_id":"pp-1",
		"openai_project":"p","custom_headers":{"x":"y"},
		"override_params":{"b":1,"a":{"x":2}},"default_params":{"c":null},"drop_params":["d"],
		"retry":{"attempts":3,"on_status_codes":[429],"use_retry_after_header":true},
		"cache":{"mode":"semantic","max_age":5,"embedder":{"provider":"@vectors","model":"text-embedding-3-small"},"threshold":0.9},"request_timeout":7000,"first_token_timeout":5000,"stream_idle_timeout":6000,"first_event_hold_ms":700,
		"cb_config":{"failure_threshold":2,"cooldown_interval":60000,"failure_status_codes":[503]},
		"custom_host":"https://h/v1","forward_headers":["x-a","X-B"],"strict_open_ai_compliance":false,
		"input_mutators":[{"id":"m"}],"input_guardrails":["pg-1",{"default.contains":{"words":["x"]},"deny":true}],"before_request_hooks":[{"id":"pg-0"}],
		"output_guardrails":[],"fetch_integrated_models":true,"on_status_codes":[429]}`, Strict)
	timeout, token, idle, hold, host, strict := int64(7000), int64(5000), int64(6000), int64(700), "https://h/v1", false
	want := &Config{
		Path: "config", Provider: "openai", APIKey: "k", Weight: 2.5, Name: "n", PromptID: "pp-1",
		Fields:         map[string]any{"openai_project": "p", "custom_headers": map[string]any{"x": "y"}},
		OverrideParams: []Param{{"b", []byte("1")}, {"a", []byte(`{"x":2}`)}}, DefaultParams: []Param{{"c", []byte("null")}}, DropParams: []string{"d"},
		Retry: &Retry{Attempts: 3, Codes: []int{429}, UseRetryAfter: true},
		Cache: &Cache{Mode: "semantic", MaxAge: MinCacheAge, Embedder: &CacheEmbedder{"vectors", "text-embedding-3-small"}, Threshold: 0.9}, RequestTimeout: &timeout, FirstToken: &token, StreamIdle: &idle, Hold: &hold,
		Breaker:    &Breaker{Threshold: 2, Cooldown: time.Minute, Codes: []int{503}},
		CustomHost: &host, ForwardHeaders: []string{"X-A", "X-B"}, StrictOpenAI: &strict,
		Input: []Guardrail{
			{Field: "before_request_hooks[0]", Slug: "pg-0", Form: FormHook}, {Field: "input_guardrails[0]", Slug: "pg-1", Form: FormGuardrail},
			{Field: "input_guardrails[1]", Raw: []byte(`{"default.contains":{"words":["x"]},"deny":true}`), Form: FormGuardrail}, {Field: "input_mutators[0]", Slug: "m", Form: FormMutator},
		},
		Output: []Guardrail{}, FetchIntegratedModels: true,
	}
	if diff := cmp.Diff(want, c); diff != "" {
		t.Error(diff)
	}
}

func TestLimitsAreReportedInPlainNumbers(t *testing.T) {
	_, details := Parse([]byte(`{"strategy":{"mode":"loadbalance"},"targets":[{"provider":"@a","weight":1e99},{"provider":"@a","cb_config":{"failure_threshold_percentage":100.5,"cooldown_interval":30000}}]}`), Strict)
	if len(details) != 2 || details[0].Message != "must be at most 2147483647" || details[1].Message != "must be at most 100" {
		t.Errorf("%v", details)
	}
}

func TestParseAppliesBoundsInline(t *testing.T) {
	for raw, want := range map[string]int{"9": 5, "1e99": 5, "-3": 0, "2.9": 2, "0": 0} {
		c := mustParse(t, `{"retry":{"attempts":`+raw+`}}`, Lenient)
		if c.Retry.Attempts != want {
			t.Errorf("attempts %s: %d, want %d", raw, c.Retry.Attempts, want)
		}
	}
	for raw, want := range map[string]time.Duration{"1": MinCacheAge, "60": time.Minute, "99999999": MaxCacheAge} {
		c := mustParse(t, `{"cache":{"mode":"simple","max_age":`+raw+`}}`, Strict)
		if c.Cache.MaxAge != want {
			t.Errorf("max_age %s: %v, want %v", raw, c.Cache.MaxAge, want)
		}
	}
	c := mustParse(t, `{"retry":{"attempts":1}}`, Strict)
	if !slices.Equal(c.Retry.Codes, []int{429, 500, 502, 503, 504, 529}) {
		t.Errorf("default retry statuses: %v", c.Retry.Codes)
	}
}

func TestRefsAndHosts(t *testing.T) {
	c := mustParse(t, `{"strategy":{"mode":"fallback"},"input_guardrails":["pg-1"],"targets":[
		{"provider":"@a","output_guardrails":["pg-2","pg-1"]},{"virtual_key":"vk"},{"override_params":{"model":"@b/m"}},{"default_params":{"model":"@c/m"}},
		{"provider":"openai","custom_host":"https://h1"},{"provider":"azure-ai","azure_foundry_url":"https://h2","prompt_id":"pp"},
		{"strategy":{"mode":"single"},"cache":{"mode":"semantic","embedder":{"provider":"@e","model":"m"}},"after_request_hooks":[{"id":"pg-3"}],"targets":[{"provider":"@a"}]}]}`, Strict)
	want := Refs{
		Providers: []Ref{
			{"targets[0].provider", "a"}, {"targets[1].virtual_key", "vk"}, {"targets[2].override_params.model", "b"}, {"targets[3].default_params.model", "c"},
			{"targets[6].cache.embedder.provider", "e"}, {"targets[6].targets[0].provider", "a"},
		},
		Guardrails: []Ref{{"input_guardrails[0]", "pg-1"}, {"targets[0].output_guardrails[0]", "pg-2"}, {"targets[0].output_guardrails[1]", "pg-1"}, {"targets[6].after_request_hooks[0]", "pg-3"}},
		Prompts:    []Ref{{"targets[5].prompt_id", "pp"}},
	}
	if diff := cmp.Diff(want, c.Refs()); diff != "" {
		t.Error(diff)
	}
	hosts := []Host{{"targets[4].custom_host", "https://h1"}, {"targets[5].azure_foundry_url", "https://h2"}}
	if diff := cmp.Diff(hosts, c.Hosts()); diff != "" {
		t.Error(diff)
	}
}

func FuzzParse(f *testing.F) {
	f.Add([]byte(fullExample), []byte(`{"model":"m","messages":[{"content":"x"}]}`))
	f.Add([]byte(`{"provider":"@a","drop_params":["messages[*].content","a.b[0]"],"override_params":{"x":1},"default_params":{"y":2}}`), []byte(`{"y":null,"a":{"b":[1,2]}}`))
	f.Add([]byte(condition(`{"$or":[{"metadata.a":{"$in":[1,"x"]}},{"params.m":{"$gt":"5"}}]}`)), []byte(`{}`))
	f.Fuzz(func(t *testing.T, raw, body []byte) {
		strict, details := Parse(raw, Strict)
		lenient, lenientDetails := Parse(raw, Lenient)
		if len(details) == 0 && len(lenientDetails) > 0 {
			t.Fatalf("saved but refused inline: %v", lenientDetails)
		}
		if lenient == nil {
			return
		}
		for _, c := range []*Config{strict, lenient} {
			if c == nil {
				continue
			}
			tree, details := c.Compile()
			if len(details) > 0 {
				t.Fatalf("parsed but not compiled: %v", details)
			}
			w := tree.Start(Context{})
			for n := 0; ; n++ {
				leaf, fault := w.Next(Outcome{Status: 500})
				if leaf == nil || fault != nil {
					break
				}
				if n > len(tree.Leaves()) {
					t.Fatal("the walk does not end")
				}
				if out, err := leaf.Apply(nil, body); err == nil {
					if _, err := leaf.Apply(nil, out); err != nil {
						t.Fatalf("the edited body %q is refused: %v", out, err)
					}
				}
			}
			_ = fmt.Sprint(c.Refs(), c.Hosts())
		}
	})
}

func TestConfigsOfTheGuideCanBeSaved(t *testing.T) {
	guide, err := os.ReadFile("../../functions/docs/guides/routing.md")
	if err != nil {
		t.Fatal(err)
	}
	blocks := strings.Split(string(guide), "```json\n")[1:]
	if len(blocks) < 2 {
		t.Fatalf("the guide shows %d configs", len(blocks))
	}
	for i, block := range blocks {
		text, _, closed := strings.Cut(block, "```")
		if !closed {
			t.Fatal("a block does not end")
		}
		c, details := Parse([]byte(text), Strict)
		if c == nil {
			t.Fatal(i, details)
		}
		if _, details := c.Compile(); len(details) > 0 {
			t.Error(i, details)
		}
	}
}
