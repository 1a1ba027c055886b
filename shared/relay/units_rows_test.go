package relay_test

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/ledger"
	"gateway/shared/pricing"
	"gateway/shared/provider"
	"gateway/shared/testkit/relaytest"
)

// dollars returns a key with a budget in dollars, in thousandths.
func dollars(g *relaytest.Gateway, thousandths int64) string {
	return g.Key([]string{write}, nil, &ledger.UsageLimit{Type: ledger.Cost, CreditLimit: thousandths * 1_000_000})
}

const (
	veoPath = "/v1/proxy/v1beta/models/veo-3.0-generate-001"
	sora    = `{"model":"sora-2","prompt":"x","seconds":"8","size":"720x1280"}`
	queued  = `{"id":"video_1","object":"video","created_at":1,"status":"queued","model":"sora-2","seconds":"8","size":"720x1280"}`
)

// TestUnitsAreReserved requires that the most that seconds and images may cost has to fit the budget,
// that a video is held until its end is seen, and that what states no number is not sent while a
// budget is in force.
func TestUnitsAreReserved(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	google := `{"provider":"google","api_key":"k"}`
	const veo = `{"instances":[{"prompt":"x"}],"parameters":{"durationSeconds":5}}`
	const form = "--b\r\nContent-Disposition: form-data; name=\"model\"\r\n\r\nsora-2\r\n--b\r\nContent-Disposition: form-data; name=\"seconds\"\r\n\r\n8\r\n--b\r\nContent-Disposition: form-data; name=\"size\"\r\n\r\n720x1280\r\n--b\r\nContent-Disposition: form-data; name=\"image\"; filename=\"a.png\"\r\n\r\nx\r\n--b--\r\n"
	formType := []string{"Content-Type", "multipart/form-data; boundary=b"}
	for _, c := range []struct {
		name, config, path, body string
		limit                    int64 // thousandths of a dollar
		more                     []string
		reply                    string // "": it is not sent
		held                     int64  // nano-dollars
	}{
		{"sora", openAI(""), "/v1/proxy/videos", sora, 1000, nil, queued, 800_000_000},
		{"sora by a form", openAI(""), "/v1/proxy/videos", form, 1000, formType, queued, 800_000_000},
		{"sora beyond the budget", openAI(""), "/v1/proxy/videos", sora, 500, nil, "", 0},
		{"sora by a form beyond the budget", openAI(""), "/v1/proxy/videos", form, 500, formType, "", 0},
		{"sora without seconds", openAI(""), "/v1/proxy/videos", `{"model":"sora-2","prompt":"x"}`, 1000, nil, "", 0},
		{"veo", google, veoPath + ":predictLongRunning", veo, 5000, nil, `{"name":"models/veo-3.0-generate-001/operations/o1"}`, 2_000_000_000},
		{"veo beyond the budget", google, veoPath + ":predictLongRunning", veo, 1000, nil, "", 0},
		{"veo with a decoy", google, veoPath + ":predictLongRunning", `{"instances":[{"prompt":"x","durationSeconds":1}],"duration_seconds":1}`, 3000, nil, "", 0},
		{"images of an unknown operation", openAI(""), "/v1/proxy/anything", `{"model":"dall-e-3","prompt":"x"}`, 1000, nil, "", 0},
		{"a chat with a model priced by images", openAI(""), chatPath, asks("dall-e-3", ""), 1000, nil, "", 0},
		{"moderation is free", openAI(""), "/v1/moderations", `{"model":"omni-moderation-latest","input":"Hello"}`, 1000, nil, `{"id":"m","model":"omni-moderation-latest","results":[]}`, 0},
	} {
		key := dollars(g, c.limit)
		x := exchange{c.name, c.path, c.body, append(on(c.config, "X-Gateway-Api-Key", key), c.more...), nil, 412, "", "", ""}
		if c.reply != "" {
			x.script, x.status = []relaytest.Reply{ok(c.reply)}, 200
		}
		x.run(t, g)
		if state := g.Budget(key); state.Usage != 0 || state.Reserved != c.held {
			t.Errorf("%s: %d used, %d reserved; want %d", c.name, state.Usage, state.Reserved, c.held)
		}
	}
	x := exchange{"without a budget", "/v1/proxy/anything", `{"model":"dall-e-3","prompt":"x"}`, config(openAI("")), []relaytest.Reply{ok(`{}`)}, 200, "", "", ""}
	x.run(t, g)
	x = exchange{"the way out", "/v1/proxy/anything", `{"model":"dall-e-3","prompt":"x"}`, on(openAI(""), "X-Gateway-Api-Key", dollars(g, 1000)), nil, 412, "unbounded_request & budget_settings.unbounded", "", ""}
	x.run(t, g)
}

// TestAHostOfTheCallerEndsNoJobOfAnother requires that what a video and a background response may
// cost stays reserved if another host of the caller's says that they have failed.
func TestAHostOfTheCallerEndsNoJobOfAnother(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	key := dollars(g, 20_000)
	for _, c := range []struct{ path, body, made, read, failed string }{
		{"/v1/proxy/videos", sora, queued, "/v1/proxy/videos/video_1", strings.Replace(queued, "queued", "failed", 1)},
		{responsesAt, `{"model":"gpt-4o-mini","input":"x","background":true,"max_output_tokens":700000}`, `{"id":"resp_1","object":"response","background":true,"status":"queued","model":"gpt-4o-mini","output":[],"usage":null}`, responsesAt + "/resp_1", `{"id":"resp_1","object":"response","background":true,"status":"failed","model":"gpt-4o-mini","output":[],"usage":null}`},
	} {
		at := func(host string) []string {
			return on(openAI(`,"custom_host":"https://`+host+`.example/v1"`), "X-Gateway-Api-Key", key)
		}
		x := exchange{c.path, c.path, c.body, at("first"), []relaytest.Reply{ok(c.made)}, 200, "", "", ""}
		x.run(t, g)
		before := g.Budget(key).Reserved
		g.Script(ok(c.failed))
		if got := g.Do("GET", c.read, "", at("other")...); got.Status != 200 {
			t.Errorf("%s: %d %s", c.read, got.Status, got.Body)
		}
		if after := g.Budget(key).Reserved; before == 0 || after < before {
			t.Errorf("%s: %d reserved, then %d", c.path, before, after)
		}
		g.Records()
		g.Calls()
	}
}

// TestInteractionsAreBookedAndOwned requires that interactions of Gemini are recorded by what their
// responses tell, once, and belong to the workspace that made them.
func TestInteractionsAreBookedAndOwned(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	g.Provider("google", "k", provider.Integration{AIProviderID: "google"})
	theirs := g.Workspace("theirs")
	done := func(id string) string {
		return `{"id":"` + id + `","model":"gemini-2.5-flash","status":"completed","usage":{"total_input_tokens":1000,"total_cached_tokens":400,"total_output_tokens":200,"total_thought_tokens":50,"total_tool_use_tokens":30,"total_tokens":1280,"input_tokens_by_modality":[{"modality":"audio","tokens":100}],"grounding_tool_count":[{"type":"google_search","count":2}]}}`
	}
	begun := func(id string) string {
		return `{"event_type":"interaction.created","interaction":{"id":"` + id + `","status":"in_progress"}}`
	}
	stream := "data: " + begun("stream_1") + "\n\ndata: " + `{"event_type":"step.delta","delta":{"type":"text","text":"Hi"}}` + "\n\ndata: " + `{"event_type":"interaction.completed","interaction":` + done("stream_1") + "}\n\n"
	const at, all = "/v1/v1beta/interactions", "input=530 cache_read=400 audio_in=100 output=200 reasoning=50 web_searches=2 "
	for _, c := range []struct{ method, path, body, reply, usage string }{
		{"POST", at, `{"model":"gemini-2.5-flash","input":"x"}`, done("plain_1"), all},
		{"GET", at + "/plain_1", "", done("plain_1"), ""},
		{"POST", at, `{"model":"gemini-2.5-flash","input":"x","stream":true}`, stream, all},
		{"POST", at + "/stream_1/cancel", "", done("stream_1"), ""},
		{"POST", at, `{"model":"gemini-2.5-flash","input":"x","previous_interaction_id":"stream_1"}`, done("next_1"), all},
		{"POST", at, `{"model":"gemini-2.5-flash","input":"x","background":true}`, `{"id":"later_1","model":"gemini-2.5-flash","status":"in_progress"}`, ""},
		{"GET", at + "/later_1", "", done("later_1"), all},
		{"GET", at + "/later_1", "", done("later_1"), ""},
		{"POST", at, `{"model":"gemini-2.5-flash","input":"x","stream":true}`, "data: " + begun("broken_1") + "\n\n", ""}, // the read reports its usage
		{"GET", at + "/broken_1", "", done("broken_1"), all},
	} {
		g.Script(ok(c.reply))
		got := g.Do(c.method, c.path, c.body, "X-Gateway-Provider", "@google")
		r := g.Record()
		have := ""
		for class := range pricing.NumClasses {
			if n, known := r.Usage.Get(class); known && class != pricing.Requests {
				have += fmt.Sprintf("%s=%d ", class, n)
			}
		}
		if got.Status != 200 || have != c.usage || r.Cost > 0 != (c.usage != "") {
			t.Errorf("%s %s %s: %d, %s, cost %d", c.method, c.path, c.body, got.Status, have, r.Cost)
		}
	}
	g.Calls()
	for _, c := range [][3]string{
		{"GET", at + "/stream_1", ""}, {"GET", at + "/later_1", ""}, {"POST", at + "/later_1/cancel", ""}, {"DELETE", at + "/stream_1", ""},
		{"GET", "/v1/proxy/v1beta/interactions/stream_1", ""}, {"POST", at, `{"model":"gemini-2.5-flash","input":"x","previous_interaction_id":"stream_1"}`},
	} {
		if got := g.Do(c[0], c[1], c[2], "X-Gateway-Provider", "@google", "X-Gateway-Api-Key", theirs); got.Status != 404 || len(g.Calls()) > 0 {
			t.Errorf("%s %s %s of another workspace: %d %s", c[0], c[1], c[2], got.Status, got.Body)
		}
	}
}
