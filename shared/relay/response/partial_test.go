package response

import (
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/pricing"
)

func TestWhatCameOfAConversation(t *testing.T) {
	t.Parallel()
	const head = `{"id":"c","object":"chat.completion","model":"m"`
	const text = head + `,"choices":[{"index":0,"message":{"role":"assistant","content":"Hello`
	for name, c := range map[string]struct {
		body                             string
		ok, within, made, answered, said bool // said: with usage
	}{
		"nothing":            {``, false, false, false, false, false},
		"a page":             {`<html>`, false, false, false, false, false},
		"a bracket":          {`{`, true, false, false, false, false},
		"its head":           {head, true, false, false, true, false},
		"some text":          {text, true, false, true, true, false},
		"all but its end":    {text + `"}}],"usage":{"prompt_tokens":3,"completion_tokens":2,"total_tokens":5}`, true, false, true, true, true},
		"within its usage":   {text + `"}}],"usage":{"prompt_tokens":3,`, true, true, true, true, true},
		"an error":           {`{"error":{"message":"too busy"`, true, false, false, false, false},
		"no error":           {`{"error":null,"model":"m"`, true, false, false, true, false},
		"whole and empty":    {`{}`, true, false, false, false, false},
		"whole without text": {head + `,"choices":[]}`, true, false, false, false, false},
	} {
		b, ok := PartialConversation(openai.Chat{}, &chat.Traits{}, []byte(c.body))
		if ok != c.ok || b.InUsage != c.within || b.HasContent != c.made || b.HasOutput() != c.answered || b.Meter.Usage.IsReported() != c.said {
			t.Errorf("%s: ok %t, within %t, made %t, answered %t, usage %t", name, ok, b.InUsage, b.HasContent, b.HasOutput(), b.Meter.Usage.IsReported())
		}
	}
}

func TestWhatCameOfAnOperation(t *testing.T) {
	t.Parallel()
	reads := func(mended []byte) (m chat.Meter) {
		m.Model = string(mended)
		return m
	}
	for body, c := range map[string]struct {
		mended           string
		within, answered bool
	}{
		`{"data":[1,`:             {`{"data":[1]}`, false, true},
		`{"billed_units":{"a":1,`: {`{"billed_units":{"a":1}}`, true, true},
		`{"error":"x`:             {`{"error":"x"}`, false, false},
		`{"data":[]}`:             {`{"data":[]}`, false, false},
		``:                        {``, false, false},
	} {
		b, _ := PartialOperation(reads, []byte(body))
		if b.Meter.Model != c.mended || b.InUsage != c.within || b.HasOutput() != c.answered {
			t.Errorf("%s: %s, within %t, answered %t", body, b.Meter.Model, b.InUsage, b.HasOutput())
		}
	}
	if b, ok := PartialOperation(nil, []byte(`{"data":[1`)); !ok || !b.HasOutput() || b.Meter.Usage.IsReported() {
		t.Errorf("without a meter: %+v", b)
	}
}

func TestAnswersThatCanBeJSON(t *testing.T) {
	t.Parallel()
	for body, is := range map[string]bool{`{}`: true, " [1]\n": true, `{`: false, `{"a":1`: false, "": false, "[}": false, "<p>": false, "ok": false} {
		if IsEnclosed([]byte(body)) != is {
			t.Errorf("%q: %t", body, !is)
		}
	}
}

func TestEstimates(t *testing.T) {
	t.Parallel()
	for bytes, want := range map[int]int64{0: 0, 1: 1, 4: 1, 5: 2} {
		if got := TokensOfBytes(bytes); got != want {
			t.Errorf("%d bytes: %d", bytes, got)
		}
	}
	r, err := openai.Chat{}.DecodeRequest([]byte(`{"model":"m","messages":[{"role":"user","content":"12345678"},{"role":"user","content":"1"}]}`))
	if err != nil || EstimateTokens(r) != 4+2+4+1 {
		t.Errorf("%d tokens, %v", EstimateTokens(r), err)
	}
	var u pricing.Usage
	u.Set(pricing.Output, 1)
	if EstimateOutput(&u, chat.Meter{OutputBytes: 400}); u.OutputTokens() < 50 || !u.Estimated {
		t.Errorf("%d tokens of 400 bytes, estimated %t", u.OutputTokens(), u.Estimated)
	}
	told := u.OutputTokens()
	if EstimateOutput(&u, chat.Meter{OutputBytes: 4}); u.OutputTokens() != told {
		t.Error("what was told is made less")
	}
}
