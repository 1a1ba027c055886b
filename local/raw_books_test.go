package main

import (
	"strings"
	"testing"
)

// What reaches past the gateway's own routes is recorded as it is there: the log,
// the key's budget and the provider's bill agree.
func TestPassedThroughOperationsAreBooked(t *testing.T) {
	t.Parallel()
	r := start(t)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":5}`)
	h := append([]string{"X-Gateway-Api-Key", key}, onMock...)
	long := `mock: chunks=3000`
	calls := []struct{ path, body string }{
		{"/proxy/chat/completions", chatBody("gpt-4o-mini", "Hello", "")},
		{"/proxy/chat/completions", chatBody("gpt-4o-mini", "Hello", `,"stream":true,"stream_options":{"include_usage":true}`)},
		{"/proxy/responses", `{"model":"gpt-4o-mini","input":"Hello"}`},
		{"/proxy/responses", `{"model":"gpt-4o-mini","input":"` + long + `","stream":true}`},
		{"/proxy/completions", `{"model":"gpt-3.5-turbo-instruct","prompt":"Hello"}`},
		{"/proxy/embeddings", `{"model":"text-embedding-3-small","input":"Hello"}`},
		{"/proxy/images/generations", `{"model":"dall-e-3","prompt":"A fox"}`},
		{"/proxy/audio/speech", `{"model":"tts-1","input":"Hello","voice":"alloy"}`},
	}
	for _, c := range calls {
		if got := r.call("POST", c.path, c.body, h...); got.status != 200 {
			t.Fatalf("%s: %d %s", c.path, got.status, got.body)
		}
	}
	var cost int64
	for _, rec := range r.records(len(calls)) {
		cost += int64(rec.Cost)
		if rec.Endpoint != "proxy" || rec.Cost == 0 || rec.Usage.Estimated {
			t.Errorf("%s: %s, cost %d, %+v", rec.Path, rec.Endpoint, rec.Cost, rec.Usage)
		}
	}
	bill := r.mock.Bill().Total.NanoDollars
	if cost != bill {
		t.Errorf("our books say %d, the bill %d", cost, bill)
	}
	eventually(t, func() error { return usageIs(r, key, bill) })
}

// A stream that does not tell its usage is estimated, and says so.
func TestPassedThroughStreamsWithoutUsageAreEstimated(t *testing.T) {
	t.Parallel()
	for _, chunks := range []string{"20", "2000"} {
		t.Run(chunks, func(t *testing.T) {
			r := start(t)
			got := r.call("POST", "/proxy/chat/completions", chatBody("gpt-4o-mini", "mock: chunks="+chunks, `,"stream":true`), onMock...)
			if got.status != 200 || strings.Contains(got.body, `"usage":{`) {
				t.Fatalf("%d %.300s", got.status, got.body)
			}
			bill, rec := float64(r.mock.Bill().Total.NanoDollars), r.records(1)[0]
			if off := float64(rec.Cost) / bill; !rec.Usage.Estimated || off < 0.8 || off > 1.25 {
				t.Errorf("cost %d of %v, %+v", rec.Cost, bill, rec.Usage)
			}
		})
	}
}
