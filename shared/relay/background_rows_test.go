package relay_test

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/ledger"
	"gateway/shared/testkit/relaytest"
)

// TestResponsesInTheBackgroundAreBookedOnce requires that a response that is made in the background
// is recorded once, by the first response that tells its usage, on the gateway's own routes and passed
// through; and that one that was made at once is not recorded again when it is read.
func TestResponsesInTheBackgroundAreBookedOnce(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	const cost = 100*150 + 50*600 // nano-dollars of gpt-4o-mini
	key := dollars(g, 5000)
	h := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", relaytest.Saved}
	all := []struct {
		name, base, body string
		read             string // query of the reads
		booked           []int  // 1 for each response that costs
	}{
		{"own", "/responses", `"background":true`, "", []int{0, 0, 0, 1, 0}},
		{"own, read streamed", "/responses", `"background":true`, "?stream=true", []int{0, 1, 0, 0, 0}},
		{"own, streamed", "/responses", `"background":true,"stream":true`, "", []int{1, 0, 0, 0, 0}},
		{"own, at once", "/responses", `"background":false`, "", []int{1, 0, 0, 0, 0}},
		{"raw", "/proxy/responses", `"background":true`, "", []int{0, 0, 0, 1, 0}},
		{"raw, read streamed", "/proxy/responses", `"background":true`, "?stream=true", []int{0, 1, 0, 0, 0}},
		{"raw, streamed", "/proxy/v1/responses", `"background":true,"stream":true`, "", []int{1, 0, 0, 0, 0}},
		{"raw, at once", "/proxy/responses", `"store":true`, "", []int{1, 0, 0, 0, 0}},
	}
	for i, c := range all {
		id := fmt.Sprintf("resp_b%d", i)
		for j, booked := range c.booked {
			method, path, body, query := "GET", "/v1"+c.base+"/"+id+c.read, "", c.read
			if j == 0 {
				method, path, body = "POST", "/v1"+c.base, `{"model":"gpt-4o-mini","input":"Hello",`+c.body+`}`
				query = strings.Repeat("x", strings.Count(c.body, "stream"))
			}
			made := laterObject(id, map[bool]string{true: "completed", false: "in_progress"}[j > 2 || !strings.Contains(c.body, `"background":true`)])
			if !strings.Contains(c.body, `"background":true`) {
				made = strings.Replace(made, `"background":true`, `"background":false`, 1)
			}
			if query != "" {
				made = laterStream(id, true)
			}
			g.Script(ok(made))
			got := g.Do(method, path, body, h...)
			r := g.Record()
			if got.Status != 200 || int64(r.Cost) != int64(booked)*cost || r.Usage.Estimated || r.Usage.TotalTokens() != int64(booked)*150 {
				t.Errorf("%s, %d: %d costs %d, %+v", c.name, j, got.Status, r.Cost, r.Usage)
			}
		}
	}
	if state := g.Budget(key); state.Usage != int64(len(all))*cost {
		t.Errorf("the budget has spent %d", state.Usage)
	}
}

// TestBackgroundResponsesHoldTheirReservation requires that a response in the background holds what it
// may cost until it is recorded, so that further ones are rejected once the budget has no room.
func TestBackgroundResponsesHoldTheirReservation(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	const cost = 100*150 + 50*600
	for n, base := range []string{responsesAt, "/v1/proxy/responses"} {
		key := dollars(g, 1000)
		h := []string{"X-Gateway-Api-Key", key, "X-Gateway-Provider", relaytest.Saved}
		for i, status := range []int{200, 200, 412} { // 60 cents a million output tokens: each is bounded at 0.42 dollars
			x := exchange{fmt.Sprint(base, i), base, `{"model":"gpt-4o-mini","input":"x","background":true,"max_output_tokens":700000}`, h, nil, status, "", "", ""}
			if status == 200 {
				x.script = []relaytest.Reply{ok(laterObject(fmt.Sprintf("resp_h%d%d", n, i), "queued"))}
			}
			x.run(t, g)
		}
		if state := g.Budget(key); state.Usage != 0 || state.Reserved < 840_000_000 || state.Reserved > 850_000_000 {
			t.Errorf("%s: while they are made: %+v", base, state)
		}
		for i := range 2 {
			for _, status := range []string{"in_progress", "completed", "completed"} {
				id := fmt.Sprintf("resp_h%d%d", n, i)
				g.Script(ok(laterObject(id, status)))
				g.Do("GET", base+"/"+id, "", h...)
			}
		}
		if state := g.Budget(key); state.Usage != 2*cost || state.Reserved != 0 || state.Status != "active" {
			t.Errorf("%s: afterwards: %+v", base, state)
		}
		g.Records()
		g.Calls()
	}
}

// TestContextOfTheProviderReservesTheWindow requires that a request whose input is stored at the
// provider or fetched by it reserves the model's window, or is rejected if that is unknown.
func TestContextOfTheProviderReservesTheWindow(t *testing.T) {
	t.Parallel()
	g := relaytest.New(t, familyRoutes)
	key := g.Key([]string{write}, nil, &ledger.UsageLimit{Type: ledger.Tokens, CreditLimit: 100_000})
	for _, c := range []struct{ path, body string }{
		{responsesAt, `"max_output_tokens":16,"input":"x","previous_response_id":"resp_1"`},
		{responsesAt, `"max_output_tokens":16,"input":"x","conversation":"conv_1"`},
		{responsesAt, `"max_output_tokens":16,"input":[{"role":"user","content":[{"type":"input_file","file_id":"file-1"}]}]`},
		{"/v1/proxy/responses", `"max_output_tokens":16,"input":"x","previous_response_id":"resp_1"`},
		{chatPath, `"max_tokens":16,"messages":[{"role":"user","content":[{"type":"file","file":{"file_id":"file-1"}}]}]`},
	} {
		for model, code := range map[string]string{"gpt-4o": "budget_exhausted", "nobody-knows-this-model": "unbounded_request"} {
			x := exchange{c.path + model, c.path, `{"model":"` + model + `",` + c.body + `}`, on(openAI(""), "X-Gateway-Api-Key", key), nil, 412, code, "", ""}
			x.run(t, g)
		}
	}
	x := exchange{"without a reference", responsesAt, `{"model":"gpt-4o","max_output_tokens":16,"input":"x"}`, on(openAI(""), "X-Gateway-Api-Key", key), []relaytest.Reply{ok(responseBody)}, 200, "", "", ""}
	x.run(t, g)
}
