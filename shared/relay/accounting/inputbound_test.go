package accounting

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"time"

	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/target"
	"gateway/shared/route/saved"
	"gateway/shared/tenant"
)

// Input that a provider has stored or fetches is bounded by the model's window in every wire
// format, or refused with the field; input that the body contains is bounded by its bytes.
func TestHiddenInputIsBoundedByTheWindow(t *testing.T) {
	t.Parallel()
	const window = 128_000
	for body, field := range map[string]string{
		`{"previous_response_id":"resp_1","input":"x"}`:                                                                    "previous_response_id",
		`{"conversation":"conv_1","input":"x"}`:                                                                            "conversation",
		`{"conversation":{"id":"conv_1"},"input":"x"}`:                                                                     "conversation.id",
		`{"prompt":{"id":"pmpt_1"},"input":"x"}`:                                                                           "prompt.id",
		`{"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]}`:                                 "input[0].content[0].file_id",
		`{"input":[{"role":"user","content":[{"type":"input_file","file_url":"https://a.example/b.pdf"}]}]}`:               "input[0].content[0].file_url",
		`{"tools":[{"type":"file_search","vector_store_ids":["vs_1"]}],"input":"x"}`:                                       "tools[0]",
		`{"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]}`:                           "messages[0].content[0].file.file_id",
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file_id":"file_1"}}]}]}`:       "messages[0].content[0].source.file_id",
		`{"messages":[{"role":"user","content":[{"type":"document","source":{"type":"url","url":"https://a.b/c"}}]}]}`:     "messages[0].content[0].source.url",
		`{"container":"container_1","messages":[]}`:                                                                        "container",
		`{"cachedContent":"cachedContents/1","contents":[]}`:                                                               "cachedContent",
		`{"cached_content":"cachedContents/1","contents":[]}`:                                                              "cached_content",
		`{"contents":[{"parts":[{"fileData":{"fileUri":"https://a.example/files/1"}}]}]}`:                                  "contents[0].parts[0].fileData.fileUri",
		`{"contents":[{"parts":[{"file_data":{"file_uri":"gs://bucket/1"}}]}]}`:                                            "contents[0].parts[0].file_data.file_uri",
		`{"previous_interaction_id":"i_1","input":"x"}`:                                                                    "previous_interaction_id",
		`{"input":[{"role":"user","content":"x"},{"type":"item_reference","id":"msg_1"}]}`:                                 "input[1]",
		`{"input":[{"type":"reasoning","id":"rs_1","summary":[]}]}`:                                                        "input[0]",
		`{"input":[{"type":"image_generation_call","id":"ig_1"}]}`:                                                         "input[0]",
		`{"input":[{"type":"compaction","encrypted_content":"x"}]}`:                                                        "input[0]",
		`{"input":[{"type":"message","id":"msg_1","role":"user","content":"x"}]}`:                                          "",
		`{"tools":[{"type":"mcp","server_label":"x","server_url":"https://a.example"}],"input":"x"}`:                       "tools[0]",
		`{"tools":[{"type":"mcp","server_label":"@gateway-mcp/x"}],"input":"x"}`:                                           "",
		`{"tools":[{"type":"function","name":"f"},{"type":"web_search"}],"input":"x"}`:                                     "tools[1]",
		`{"tools":[{"type":"web\u005fsearch_preview_2025_03_11"}],"input":"x"}`:                                            "tools[0]",
		`{"tools":[{"type":"code_interpreter","container":{"type":"auto"}}],"input":"x"}`:                                  "tools[0]",
		`{"tools":[{"type":"shell","environment":{"type":"container_auto"}}],"input":"x"}`:                                 "tools[0]",
		`{"tools":[{"type":"shell","environment":{"type":"local"}},{"type":"function","name":"web_search"}],"input":"x"}`:  "",
		`{"web_search_options":{},"messages":[]}`:                                                                          "web_search_options",
		`{"search_parameters":{"mode":"auto"},"messages":[]}`:                                                              "search_parameters",
		`{"search_parameters":{"mode":"off"},"messages":[]}`:                                                               "",
		`{"plugins":[{"id":"web"}],"messages":[]}`:                                                                         "plugins[0]",
		`{"mcp_servers":[{"type":"url","url":"","name":"x"}],"messages":[]}`:                                               "mcp_servers",
		`{"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":3}],"messages":[]}`:                        "tools[0]",
		`{"tools":[{"type":"web_fetch_20250910","name":"web_fetch","max_content_tokens":9}],"messages":[]}`:                "tools[0]",
		`{"tools":[{"type":"code_execution_20250825","name":"code_execution"}],"messages":[]}`:                             "tools[0]",
		`{"tools":[{"name":"web_search","input_schema":{"type":"object"}},{"type":"bash_20250124","name":"bash"}]}`:        "",
		`{"tools":[{"googleSearch":{}}],"contents":[]}`:                                                                    "tools[0]",
		`{"tools":[{"google_search":{}}],"contents":[]}`:                                                                   "tools[0]",
		`{"tools":[{"functionDeclarations":[]},{"urlContext":{}}],"contents":[]}`:                                          "tools[1]",
		`{"requests":[{"request":{"tools":[{"url_context":{}}]}}]}`:                                                        "requests[0].request.tools[0]",
		`{"toolConfig":{"tools":[{"systemTool":{"name":"nova_grounding"}}]}}`:                                              "toolConfig.tools[0]",
		`{"tools":[{"functionDeclarations":[{"name":"googleSearch"}]}],"contents":[{"parts":[{"text":"tools"}]}]}`:         "",
		`{"thread_id":"thread_1","assistant_id":"asst_1"}`:                                                                 "thread_id",
		`{"messages":[{"role":"user","content":"Hello"}]}`:                                                                 "",
		`{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA"}}]}]}`: "",
		`{"messages":[{"role":"user","content":"previous_response_id: resp_1"}],"metadata":{"file_id":"x"}}`:               "",
	} {
		in, err := InputBound([]byte(body), nil, func() int64 { return window })
		want := int64(len(body))
		if field != "" {
			want = window
		}
		if err != nil || in != want {
			t.Errorf("%s: %d %v, want %d", body, in, err, want)
		}
		_, err = InputBound([]byte(body), nil, func() int64 { return 0 })
		if f := fault.From(err); (err != nil) != (field != "") || err != nil && (f.Field != field || f.Status() != 412 || !strings.Contains(f.Message, "budget_settings.unbounded")) {
			t.Errorf("%s without a window: %v, want %s", body, err, field)
		}
	}
	image := `{"messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"https://a.example/b.png"}},{"type":"input_image","image_url":"https://a.example/b.png"}]}]}`
	if in, err := InputBound([]byte(image), nil, func() int64 { return 0 }); err != nil || in != int64(len(image))+2*TokensOfImage {
		t.Errorf("two images: %d %v", in, err)
	}
}

// Tools of the provider that state how often they are used and what they add have a bound without
// a window: the input is read again with each use.
func TestToolsThatStateTheirBoundHaveOne(t *testing.T) {
	t.Parallel()
	body := `{"messages":[],"tools":[{"type":"web_fetch_20250910","name":"web_fetch","max_uses":3,"max_content_tokens":1000}]}`
	n := int64(len(body))
	for window, want := range map[int64]int64{0: 4*n + 6*1000, 200_000: 4*n + 6*1000, 5000: 5000} {
		if in, err := InputBound([]byte(body), nil, func() int64 { return window }); err != nil || in != want {
			t.Errorf("window %d: %d %v, want %d", window, in, err, want)
		}
	}
	huge := strings.Replace(strings.Replace(body, "1000", "1099511627776", 1), `":3`, `":1099511627776`, 1)
	if in, err := InputBound([]byte(huge), nil, func() int64 { return 0 }); err != nil || in < 1<<50 {
		t.Errorf("%d %v", in, err)
	}
}

// Earlier turns with known usage have their recorded size; a conversation, to which others may
// add, and unknown turns have the window.
func TestTurnsThatWereSeenAreBoundedByTheirUsage(t *testing.T) {
	t.Parallel()
	const window = 128_000
	seen := func(id string) (int64, bool) { return 700, id == "resp_1" }
	for body, turns := range map[string]int64{
		`{"previous_response_id":"resp_1","input":"x"}`:                        700,
		`{"previous_interaction_id":"resp_1","input":"x"}`:                     700,
		`{"previous_response_id":"resp_2","input":"x"}`:                        -1,
		`{"conversation":"resp_1","input":"x"}`:                                -1,
		`{"conversation":{"id":"resp_1"},"input":"x"}`:                         -1,
		`{"input":[{"previous_response_id":"resp_1"}]}`:                        -1, // not where it has a meaning
		`{"previous_response_id":"resp_1","prompt":{"id":"p"},"input":"x"}`:    -1,
		`{"previous_response_id":"resp_1","input":[{"file_id":"file-1"}]}`:     -1,
		`{"previous_response_id":"resp_1","previous_response_id":"resp_2"}`:    -1,
		`{"metadata":{"previous_response_id":"resp_1"},"input":"x","a":"_id"}`: 0,
	} {
		want := int64(len(body)) + turns
		if turns < 0 {
			want = window
		}
		if in, err := InputBound([]byte(body), seen, func() int64 { return window }); err != nil || in != want {
			t.Errorf("%s: %d %v, want %d", body, in, err, want)
		}
	}
}

func TestWindowsAreFoundByAnyNameOfAModel(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		provider, model string
		want            int64
	}{{"openai", "gpt-4o", 128_000}, {"azure-openai", "gpt-4o", 128_000}, {"openai", "ft:gpt-4o:acme:x:1", 128_000}, {"openai", "nobody-knows-this-model", 0}} {
		if got := ContextWindow(c.provider, "my-deployment", c.model); got != c.want {
			t.Errorf("%s of %s: %d", c.model, c.provider, got)
		}
	}
}

// The bound of a batch is the sum over its rows, by model; rows with hidden input have the
// window of their model or have no bound.
func TestABatchIsBoundedByItsRows(t *testing.T) {
	t.Parallel()
	row := func(id, url, body string) string {
		return fmt.Sprintf(`{"custom_id":%q,"method":"POST","url":%q,"body":%s}`+"\n", id, url, body)
	}
	chat := `{"model":"gpt-4o","max_tokens":100,"n":2,"messages":[]}`
	other := `{"model":"@mine/gpt-4o-mini","max_completion_tokens":7,"messages":[]}`
	bare := `{"max_tokens":5,"messages":[]}`
	file := row("1", "/v1/chat/completions", chat) + row("2", "/v1/chat/completions", chat) + "\n" + row("3", "/v1/chat/completions", other) + row("4", "/v1/chat/completions", bare)
	rows := func(file, model string, window int64) ([]BatchRows, error) {
		sum := NewBatchSum(model, func(string) int64 { return window })
		for line := range strings.Lines(file) {
			if line = strings.TrimSpace(line); line != "" {
				sum.Add([]byte(line))
			}
		}
		return sum.Rows()
	}
	got, err := rows(file, "default", 0)
	want := []BatchRows{{"default", int64(len(bare)), 5, int64(len(bare)), false}, {"gpt-4o", 2 * int64(len(chat)), 400, int64(len(chat)), false}, {"gpt-4o-mini", int64(len(other)), 7, int64(len(other)), false}}
	if err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
		t.Errorf("%+v %v, want %+v", got, err, want)
	}
	vectors := `{"model":"text-embedding-3-small","input":"x"}`
	if got, err = rows(row("1", "/v1/embeddings", vectors), "", 0); err != nil || got[0] != (BatchRows{"text-embedding-3-small", int64(len(vectors)), 0, int64(len(vectors)), false}) {
		t.Errorf("%+v %v", got, err)
	}
	open := row("1", "/v1/responses", `{"model":"gpt-4o","input":"x"}`)
	if got, err = rows(open, "", 0); err != nil || !got[0].Assumed || got[0].Out == 0 {
		t.Errorf("%+v %v", got, err)
	}
	held := row("1", "/v1/responses", `{"model":"gpt-4o","max_output_tokens":9,"previous_response_id":"resp_1","input":"x"}`)
	if got, err = rows(held, "", 128_000); err != nil || got[0].In != 128_000 {
		t.Errorf("%+v %v", got, err)
	}
	for _, bad := range []string{held, "{", row("1", "/v1/responses", `{"model":7}`)} {
		if _, err := rows(bad, "", 0); err == nil {
			t.Errorf("%s has a bound", bad)
		}
	}
}

// tiered is a bill of a model with prices by the size of the prompt, in dollars per token.
func tiered(t *testing.T, prices string) *Bill {
	t.Helper()
	own, bad := pricing.ParseCustom([]byte(prices), "pricing_config")
	if len(bad) > 0 {
		t.Fatal(bad)
	}
	tg := &target.Target{Req: &admission.Request{Caller: admission.Caller{Org: &tenant.Organisation{}}, StartTime: time.Now()}, Body: &body.Body{}}
	tg.Choice.Model, tg.Choice.Target.Provider = "m", &provider.Provider{ID: "openai"}
	tg.Choice.Saved = &saved.Provider{Prices: map[string]*pricing.Custom{"m": own}}
	return &Bill{Target: tg, Prices: pricing.Default()}
}

// What is reserved covers what any size of the prompt up to the bound costs, at exact limits and
// where longer prompts have lower prices.
func TestBoundsCoverEveryTier(t *testing.T) {
	t.Parallel()
	const token = `"pay_as_you_go":{"request_token":{"price":%s}}`
	price := func(cents, above string) string {
		return strings.TrimSuffix("{"+fmt.Sprintf(token, cents)+above, ",") + "}"
	}
	for name, prices := range map[string]string{
		"longer is dearer":   "[" + price("100", "") + "," + price("300", `,"above_tokens":1000`) + "," + price("500", `,"above_tokens":2000`) + "]",
		"longer is cheaper":  "[" + price("500", "") + "," + price("300", `,"above_tokens":1000`) + "," + price("100", `,"above_tokens":2000`) + "]",
		"the middle is dear": "[" + price("100", "") + "," + price("500", `,"above_tokens":1000`) + "," + price("1", `,"above_tokens":2000`) + "]",
	} {
		b := tiered(t, prices)
		for _, most := range []int64{1, 999, 1000, 1001, 1999, 2000, 2001, 5000} {
			bound := mostBelow(b, "m", most, "", true, func(p pricing.Price) pricing.NanoDollars { return p.Bound(most, 0) })
			for _, in := range []int64{1, 999, 1000, 1001, 1999, 2000, 2001, 5000} {
				var u pricing.Usage
				u.Set(pricing.Input, in)
				if cost := b.costOf(u); in <= most && cost > bound {
					t.Errorf("%s: %d of at most %d tokens cost %d, and %d are reserved", name, in, most, cost, bound)
				}
			}
		}
		b.rows = []BatchRows{{Model: "m", In: 6000, Prompt: 600}} // ten small rows
		reserved, _ := boundOfRows(b)
		var u pricing.Usage
		u.Set(pricing.Input, 6000)
		b.Reported.OfRows(u, 10)
		if cost := b.costOf(u); cost > reserved.Cost || cost != 6000*b.costOf(oneToken()) {
			t.Errorf("%s: ten rows of 600 tokens cost %d, reserved are %d", name, cost, reserved.Cost)
		}
	}
	// Sums of the largest amounts do not become negative.
	huge := tiered(t, price("900000", ""))
	huge.rows = []BatchRows{{Model: "m", In: 1 << 60, Prompt: 1 << 60}, {Model: "m", In: 1 << 60, Prompt: 1 << 60}}
	if reserved, _ := boundOfRows(huge); reserved.Cost != math.MaxInt64 {
		t.Errorf("%d are reserved for rows without a limit", reserved.Cost)
	}
}

func oneToken() (u pricing.Usage) {
	u.Set(pricing.Input, 1)
	return u
}

// costOf is what a use is charged.
func (b *Bill) costOf(u pricing.Usage) pricing.NanoDollars {
	before := b.Spending.Cost
	b.Charge(u)
	return b.Spending.Cost - before
}
