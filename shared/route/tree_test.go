package route

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestInheritance(t *testing.T) {
	tree := compile(t, `{
		"retry":{"attempts":2,"on_status_codes":[500]},"cache":{"mode":"simple","max_age":600},"request_timeout":2000,
		"custom_host":"https://root","forward_headers":["x-root"],"strict_open_ai_compliance":false,
		"cb_config":{"failure_threshold":2,"cooldown_interval":30000},
		"override_params":{"a":1,"b":{"x":1}},"default_params":{"d":1},"drop_params":["r"],
		"input_guardrails":["pg-root"],"output_guardrails":["pg-out"],"fetch_integrated_models":true,
		"api_key":"root-key","provider":"openai","name":"root","weight":7,
		"strategy":{"mode":"fallback"},"targets":[
			{"strategy":{"mode":"single"},"request_timeout":5000,"override_params":{"b":2,"c":3},"drop_params":["m"],"targets":[
				{"provider":"@leaf","request_timeout":10000,"retry":{"attempts":1},"cache":{"mode":"semantic","embedder":{"provider":"@vectors","model":"m"}},"custom_host":"https://leaf","forward_headers":[],
				 "strict_open_ai_compliance":true,"override_params":{"a":9},"drop_params":["l"],"input_guardrails":[],"after_request_hooks":[{"id":"pg-hook"}],
				 "cb_config":{"failure_threshold":9,"cooldown_interval":60000}}]},
			{"virtual_key":"vk"}]}`, Strict)
	leaves := tree.Leaves()
	if len(leaves) != 2 || tree.Mode() != "fallback" {
		t.Fatalf("%d leaves, mode %s", len(leaves), tree.Mode())
	}
	deep, flat := leaves[0], leaves[1]
	if deep.Path != "config.targets[0].targets[0]" || deep.Slug != "leaf" || deep.Weight != 1 || deep.Name != "" || deep.APIKey != "" || deep.Provider != "" {
		t.Errorf("what is never inherited: %+v", deep)
	}
	if deep.Timeout != 10*time.Second || deep.Retry.Attempts != 1 || len(deep.Retry.Codes) != len(defaultRetryCodes) || deep.Cache.Mode != "semantic" || deep.Cache.MaxAge != 0 {
		t.Errorf("objects replace, they do not merge: %+v %+v %+v", deep, deep.Retry, deep.Cache)
	}
	if deep.CustomHost != "https://leaf" || len(deep.Forward) != 0 || deep.Lenient || len(deep.Input) != 0 || deep.Breaker.Threshold != 9 {
		t.Errorf("the nearest definition wins: %+v", deep)
	}
	if diff := cmp.Diff([]Guardrail{{Field: "targets[0].targets[0].after_request_hooks[0]", Slug: "pg-hook", Form: FormHook}}, deep.Output); diff != "" {
		t.Error(diff)
	}
	if flat.Slug != "vk" || flat.Timeout != 2*time.Second || flat.Retry.Attempts != 2 || flat.Cache.MaxAge != 10*time.Minute || flat.CustomHost != "https://root" || !flat.Lenient || flat.Breaker.Threshold != 2 || !flat.FetchIntegrated {
		t.Errorf("inherited: %+v", flat)
	}
	if diff := cmp.Diff([]Guardrail{{Field: "input_guardrails[0]", Slug: "pg-root", Form: FormGuardrail}}, flat.Input); diff != "" {
		t.Error(diff)
	}
	for _, c := range []struct {
		leaf *Leaf
		want string
	}{
		{deep, `{"c":3,"b":2,"a":9,"d":1,"k":1}`},
		{flat, `{"b":{"x":1},"a":1,"d":1,"l":1,"m":1,"k":1}`},
	} {
		got, err := c.leaf.Apply(nil, []byte(`{"l":1,"m":1,"r":1,"k":1}`))
		if err != nil {
			t.Fatal(err)
		}
		if !sameJSON(t, string(got), c.want) {
			t.Errorf("%s: got %s, want %s", c.leaf.Path, got, c.want)
		}
	}
	marked := compile(t, `{"prompt_cache":{"ttl":"1h"},"strategy":{"mode":"fallback"},"targets":[{"provider":"@a"},{"provider":"@b","prompt_cache":{}},{"provider":"@c","prompt_cache":{"mode":"off"}}]}`, Strict).Leaves()
	if a, b := marked[0].PromptCache, marked[1].PromptCache; a == nil || !a.Hour || b == nil || b.Hour || marked[2].PromptCache != nil {
		t.Errorf("markers of targets: %+v %+v %+v", a, b, marked[2].PromptCache)
	}
	timed := compile(t, `{"first_token_timeout":1000,"stream_idle_timeout":2000,"first_event_hold_ms":3000,"strategy":{"mode":"single"},"targets":[{"provider":"@a"},{"provider":"@b","first_token_timeout":5,"stream_idle_timeout":0,"first_event_hold_ms":0}]}`, Strict).Leaves()
	if l := timed[0]; l.FirstToken != time.Second || l.Idle != 2*time.Second || l.Hold != 3*time.Second {
		t.Errorf("inherited: %+v", l)
	}
	if l := timed[1]; l.FirstToken != 5*time.Millisecond || l.Idle != 0 || l.Hold != 0 {
		t.Errorf("the nearest definition wins: %+v", l)
	}
	if l := Single().Leaves()[0]; l.Hold != MaxHold || l.FirstToken != 0 || l.Idle != 0 {
		t.Errorf("without a config: %+v", l)
	}
	off := compile(t, `{"request_timeout":2000,"targets":[{"provider":"@a","request_timeout":0}]}`, Strict)
	if off.Leaves()[0].Timeout != 0 {
		t.Error("0 switches an inherited timeout off")
	}
}

func TestWhoServesALeaf(t *testing.T) {
	for _, c := range []struct {
		raw                          string
		slug, provider, model, deflt string
	}{
		{`{"provider":"@a"}`, "a", "", "", ""},
		{`{"provider":"openai","api_key":"k"}`, "", "openai", "", ""},
		{`{"virtual_key":"vk"}`, "vk", "", "", ""},
		{`{"virtual_key":"@vk"}`, "vk", "", "", ""},
		{`{"provider":"@a","virtual_key":"vk"}`, "a", "", "", ""},
		{`{"override_params":{"model":"m"}}`, "", "", "m", ""},
		{`{"override_params":{"model":"@s/a/b"}}`, "s", "", "a/b", ""},
		{`{"provider":"@a","override_params":{"model":"@s/m"}}`, "s", "", "m", ""},
		{`{"provider":"openai","default_params":{"model":"@s/m"}}`, "", "openai", "", "m"},
		{`{"default_params":{"model":"@s/m"}}`, "s", "", "", "m"},
		{`{"retry":{"attempts":1}}`, "", "", "", ""},
	} {
		l := compile(t, c.raw, Strict).Leaves()[0]
		if l.Slug != c.slug || l.Provider != c.provider || l.Model != c.model || l.DefaultModel != c.deflt {
			t.Errorf("%s: %+v", c.raw, l)
		}
	}
}

func TestSlugsOfATree(t *testing.T) {
	for raw, want := range map[string][]string{
		`{"strategy":{"mode":"fallback"},"targets":[{"provider":"@a"},{"provider":"@b"},{"virtual_key":"a"},{"provider":"openai"}]}`: {"a", "b"},
		`{"strategy":{"mode":"fallback"},"targets":[{"provider":"@a"},{"passthrough":true}]}`:                                        nil,
		`{"cache":"simple"}`: nil,
	} {
		if diff := cmp.Diff(want, compile(t, raw, Strict).Slugs()); diff != "" {
			t.Errorf("%s: %s", raw, diff)
		}
	}
	none := Single()
	w := none.Start(Context{})
	leaf, f := w.Next(Outcome{})
	if f != nil || leaf.Path != "config" || !leaf.IsUnchanged() || w.Slugs() != nil || w.Mode() != "single" || w.FetchIntegrated() {
		t.Errorf("a request without a config: %+v %v", leaf, f)
	}
}
