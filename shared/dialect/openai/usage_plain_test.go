package openai

import (
	"strings"
	"testing"

	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// usages are usage objects: which of them are plain, and what all of them say is
// told by readUsage.
var usages = []struct {
	body  string
	plain bool
}{
	{`{"prompt_tokens":120,"completion_tokens":34,"total_tokens":154,"prompt_tokens_details":{"cached_tokens":7,"audio_tokens":1},"completion_tokens_details":{"reasoning_tokens":3,"audio_tokens":2,"accepted_prediction_tokens":0}}`, true},
	{"{ \"input_tokens\" : 1 ,\n\t\"output_tokens\":2, \"input_tokens_details\" : { } , \"output_tokens_details\":null}", true},
	{`{"prompt_tokens":10,"prompt_cache_hit_tokens":4,"prompt_cache_miss_tokens":6,"completion_tokens":1}`, true},
	{`{"prompt_tokens":10,"prompt_tokens_details":{"cached_tokens":3},"prompt_cache_hit_tokens":4,"completion_tokens":1}`, true},
	{`{"prompt_tokens":10,"completion_tokens":null,"total_tokens":12,"num_search_queries":2,"server":{"x":1}}`, true},
	{`{"prompt_tokens":1,"prompt_tokens":2}`, true},
	{`{}`, false},
	{`{"prompt_tokens":1.0}`, false},
	{`{"prompt_tokens":1e2}`, false},
	{`{"prompt_tokens":-1,"completion_tokens":5}`, false},
	{`{"prompt_tokens":01}`, false},
	{`{"prompt_tokens":"12","completion_tokens":5}`, false},
	{`{"prompt\u005ftokens":12}`, false},
	{`{"prompt_tokens":12345678901234567890}`, false},
	{`{"prompt_tokens":1,"cost":0.5}`, false},
	{`{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":1,"more":{"x":1}}}`, false},
	{`{"prompt_tokens":1,"prompt_tokens_details":{"cached_tokens":1}`, false},
	{`{"prompt_tokens":1,}`, false},
	{`{"prompt_tokens":1`, false},
	{`{"prompt_tokens":nul}`, false},
	{`{"prompt_tokens"`, false},
	{`[1]`, false},
}

// checkPlain: what readPlain takes is a JSON object of which readUsage finds the
// same.
func checkPlain(t *testing.T, b []byte) bool {
	t.Helper()
	var r reported
	end, ok := r.readPlain(b)
	if !ok {
		return false
	}
	var got, want pricing.Usage
	total := r.classes(&got)
	d := wire.NewDecoder(b[:end])
	wanted := readUsage(d, &want, nil)
	if err := d.End(); err != nil {
		t.Fatalf("%q is taken for plain: %v", b[:end], err)
	}
	if got != want || total != wanted {
		t.Fatalf("%q is read as %v, %d; want %v, %d", b, got, total, want, wanted)
	}
	return true
}

func TestReadPlainUsage(t *testing.T) {
	for _, c := range usages {
		for _, behind := range []string{"", " ]", "x"} {
			if got := checkPlain(t, []byte(c.body+behind)); got != c.plain {
				t.Errorf("%s: plain is %v", c.body, got)
			}
		}
	}
}

func FuzzReadPlainUsage(f *testing.F) {
	for _, c := range usages {
		f.Add([]byte(c.body))
	}
	f.Fuzz(func(t *testing.T, b []byte) { checkPlain(t, b) })
}

func BenchmarkMeterPlain(b *testing.B) {
	body := []byte(`{"id":"chatcmpl-mock","object":"chat.completion","created":1700000000,"model":"gpt-4o-mini-2024-07-18","choices":[{"index":0,"message":{"role":"assistant","content":"` +
		strings.Repeat("words of the answer ", 40) + `"},"finish_reason":"stop"}],"usage":` + usages[0].body + `,"system_fingerprint":"fp_1"}`)
	b.ReportAllocs()
	for b.Loop() {
		if m := (Chat{}).MeterResponse(body); m.Usage.N(pricing.CacheRead) != 7 {
			b.Fatal("the usage is not found")
		}
	}
}
