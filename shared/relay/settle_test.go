package relay

import (
	"bytes"
	"net/http"
	"testing"

	"gateway/shared/provider"
	"gateway/shared/relay/record"
)

func showSecretly(c *call) {
	var room [8]string
	c.log.Bodies.SetExtras(record.Extras{}, secretsOf(&c.target, room[:0]))
}

// Responses that go well are searched without allocating.
func TestSearchingAGoodAnswerAllocatesNothing(t *testing.T) {
	c := newCall()
	c.target.Choice.Target.Provider, _ = provider.ByID("openai")
	c.target.Choice.Target.Credential.Key = "sk-0123456789"
	c.rec.Model, c.rec.FinishReason = "gpt-4o-mini", "stop"
	c.log.Bodies.AppendResponse(bytes.Repeat([]byte("sk-answer "), 1000))
	h := http.Header{"X-Request-Id": {"abc"}}
	if n := testing.AllocsPerRun(100, func() { showSecretly(c); hideInRecord(&c.target, &c.rec); c.mask.Head(h) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

func BenchmarkSearchAGoodAnswer(b *testing.B) {
	c := newCall()
	c.target.Choice.Target.Provider, _ = provider.ByID("openai")
	c.target.Choice.Target.Credential.Key = "sk-0123456789"
	c.log.Bodies.AppendResponse(bytes.Repeat([]byte(`{"choices":[{"message":"some text of an answer"}]}`), 20))
	b.ReportAllocs()
	for b.Loop() {
		showSecretly(c)
	}
}
