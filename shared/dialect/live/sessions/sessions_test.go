package sessions

import (
	"encoding/json"
	"fmt"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/dialect/live"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

// meter reads usage of two numbers.
func meter(body []byte) (m chat.Meter) {
	var in struct {
		Usage *struct {
			In  int64 `json:"input_tokens"`
			Out int64 `json:"output_tokens"`
		} `json:"usage"`
	}
	if json.Unmarshal(body, &in) == nil && in.Usage != nil {
		m.Usage.Set(pricing.Input, in.Usage.In)
		m.Usage.Set(pricing.Output, in.Usage.Out)
	}
	return m
}

func opened(t *testing.T) live.Wire {
	t.Helper()
	s := New(meter)
	o, err := s.Opens([]byte(`{"type":"session.start","session":{"instructions":"x","model":"@s/m","delegation":{"type":"responses","responses":{"model":"d"}}}}`))
	if err != nil || o.Model != "@s/m" || fmt.Sprint(o.Demands.Models) != "[d]" || len(o.Steps) != 1 || o.Steps[0].Seconds != Ahead {
		t.Fatalf("%+v %v", o, err)
	}
	if got := string(s.FirstMessage("m")); got != `{"type":"session.start","session":{"instructions":"x","model":"m","delegation":{"type":"responses","responses":{"model":"d"}}}}` {
		t.Fatal(got)
	}
	return s
}

func ends(steps []live.Step) (out []live.Step) {
	for _, s := range steps {
		if s.Do == live.Ends {
			out = append(out, s)
		}
	}
	return out
}

// The time is the last that was told, never a sum.
func TestTheLastReportedTimeCounts(t *testing.T) {
	t.Parallel()
	s := opened(t)
	for _, n := range []string{"5", "9.5", "7"} {
		h := s.Provider([]byte(`{"type":"session.usage.updated","usage":{"seconds":` + n + `}}`))
		if len(h.Steps) != 1 || h.Steps[0].Do != live.Grows {
			t.Errorf("%+v", h)
		}
	}
	if !s.Busy() {
		t.Error("its end is not waited for")
	}
	for _, odd := range []string{`{"seconds":"9"}`, `{"seconds":-1}`, `{"seconds":1e30}`, `[]`, `null`} {
		if h := s.Provider([]byte(`{"type":"session.usage.updated","usage":` + odd + `}`)); len(h.Steps) != 0 {
			t.Errorf("%s: %+v", odd, h)
		}
	}
	h := s.Provider([]byte(`{"type":"session.closed","reason":"expired","usage":{"seconds":11.25}}`))
	if len(h.Steps) != 1 || h.Steps[0].Usage.N(pricing.Seconds) != 12 || h.Steps[0].Usage.Estimated || h.Steps[0].Finish != "expired" || !h.Last || s.Busy() {
		t.Errorf("%+v", h)
	}
	if left := s.EndOpen(); len(left) != 0 {
		t.Errorf("%+v", left)
	}
	s = opened(t)
	s.Provider([]byte(`{"type":"session.usage.updated","usage":{"seconds":5}}`))
	if left := s.EndOpen(); len(left) != 1 || left[0].Usage.N(pricing.Seconds) != 5 || !left[0].Usage.Estimated {
		t.Errorf("%+v", left)
	}
}

func TestWhatIsMadeWithinASession(t *testing.T) {
	t.Parallel()
	s := opened(t)
	nested := func(event string) []live.Step {
		return s.Provider([]byte(`{"type":"response.event","event_id":"e","event":` + event + `}`)).Steps
	}
	if got := nested(`{"type":"response.created","response":{"id":"r","model":"d"}}`); len(got) != 1 || got[0].Do != live.Begins || got[0].Model != "d" {
		t.Errorf("%+v", got)
	}
	if got := ends(nested(`{"type":"response.completed","response":{"id":"r","model":"d","usage":{"input_tokens":7,"output_tokens":2}}}`)); len(got) != 1 || got[0].Usage.TotalTokens() != 9 || got[0].ID != "r" {
		t.Errorf("%+v", got)
	}
	nested(`{"type":"response.created","response":{"id":"f","model":"d"}}`)
	if got := ends(nested(`{"type":"response.failed","response":{"id":"f","usage":null,"error":{"code":"rate_limit_exceeded"}}}`)); len(got) != 1 || got[0].ID != "f" || got[0].Usage.IsReported() {
		t.Errorf("one that failed and made nothing: %+v", got)
	}
	nested(`{"type":"response.created","response":{"id":"r2","model":"d"}}`)
	nested(`{"type":"response.output_text.delta","delta":"twelve bytes"}`)
	if left := ends(s.EndOpen()); len(left) != 2 || !left[0].Usage.Estimated || left[0].Usage.N(pricing.Output) != 4 || left[0].Model != "d" {
		t.Errorf("%+v", left)
	}
	h := s.Provider([]byte(`{"type":"decision.event","event_id":"e9","event":{"type":"decision.completed","decision":{"model":"d","usage":{"input_tokens":5,"output_tokens":0}}}}`))
	if got := ends(h.Steps); len(got) != 1 || got[0].ID != "decision e9" || got[0].Usage.TotalTokens() != 5 {
		t.Errorf("%+v", h)
	}
	for _, odd := range []string{`null`, `[]`, `{"type":"response.created"}`, `{"type":"response.created","response":{"id":7}}`, `{"type":"response.completed","response":{}}`, `{"type":"response.failed","response":{"id":"x"}}`} {
		if got := nested(odd); len(got) != 0 {
			t.Errorf("%s: %+v", odd, got)
		}
	}
}

// A response reads its instructions and what was said before it. That much is reserved for
// it, a token for each byte; if its end is not reported, an estimate of it is recorded.
func TestWhatAResponseWithinASessionReads(t *testing.T) {
	t.Parallel()
	begin := func(s live.Wire, id string) int64 {
		t.Helper()
		steps := s.Provider([]byte(`{"type":"response.event","event":{"type":"response.created","response":{"id":"` + id + `","model":"d"}}}`)).Steps
		if len(steps) != 1 || steps[0].Do != live.Begins {
			t.Fatalf("%+v", steps)
		}
		return steps[0].Input
	}
	client := func(message string) func(live.Wire) {
		return func(s live.Wire) {
			if _, err := s.Client([]byte(message)); err != nil {
				t.Errorf("%s: %v", message, err)
			}
		}
	}
	provider := func(message string) func(live.Wire) {
		return func(s live.Wire) { s.Provider([]byte(message)) }
	}
	nested := func(event string) func(live.Wire) {
		return provider(`{"type":"response.event","event":` + event + `}`)
	}
	const backend, appended = `{"model":"d"}`, `{"type":"session.instructions.append","content":"be brief"}`
	const other = `{"instructions":"long ones","tools":[]}`
	events := []func(live.Wire){
		nested(`{"type":"response.created","response":{"id":"a","model":"d"}}`),
		nested(`{"type":"response.completed","response":{"id":"a","usage":{"input_tokens":700,"output_tokens":20}}}`),
	}
	for name, c := range map[string]struct {
		before  []func(live.Wire)
		history int64 // tokens
		since   int   // bytes
	}{
		"its prompt":              {nil, 0, len(backend)},
		"what is written":         {[]func(live.Wire){client(appended)}, 0, len(backend + appended)},
		"no sound":                {[]func(live.Wire){client(`{"type":"session.input_audio.append","audio":"AAAAAAAA"}`)}, 0, len(backend)},
		"another prompt":          {[]func(live.Wire){client(`{"type":"session.update","session":{"delegation":{"type":"responses","responses":` + other + `}}}`)}, 0, len(backend + other)},
		"what was heard":          {[]func(live.Wire){provider(`{"type":"session.input_transcript.delta","delta":"eight by"}`)}, 0, len(backend) + 8},
		"what was said":           {[]func(live.Wire){provider(`{"type":"session.output_transcript.delta","delta":"eight by"}`)}, 0, len(backend) + 8},
		"what came while one ran": {[]func(live.Wire){events[0], client(appended), events[1]}, 720, len(appended)},
		"what is told twice":      {append(events[:2:2], client(appended), events[1]), 720, len(appended)},
		"the longer of two": {append(events[:2:2],
			nested(`{"type":"response.created","response":{"id":"b","model":"d"}}`),
			nested(`{"type":"response.completed","response":{"id":"b","usage":{"input_tokens":30,"output_tokens":1}}}`)), 720, 0},
		"as much as the last": {append(events[:2:2], provider(`{"type":"session.output_transcript.delta","delta":"four"}`)), 720, 4},
	} {
		s := opened(t)
		for _, f := range c.before {
			f(s)
		}
		if got, want := begin(s, "r"), c.history+int64(c.since); got != want {
			t.Errorf("%s: %d is reserved, want %d", name, got, want)
		}
		want := c.history + int64(c.since+3)/4
		if left := ends(s.EndOpen()); len(left) != 2 || left[0].Usage.N(pricing.Input) != want || !left[0].Usage.Estimated {
			t.Errorf("%s: lost as %+v, want %d", name, left, want)
		}
	}
}

// What a response within a session has made is judged as the model's words are, when it has
// ended.
func TestWhatIsMadeWithinASessionIsJudged(t *testing.T) {
	t.Parallel()
	s := opened(t)
	for event, want := range map[string]string{
		`{"type":"response.completed","response":{"id":"r","output":[{"type":"message","content":[{"type":"output_text","text":"one"},{"type":"refusal","refusal":"two"}]},{"type":"function_call","name":"f","arguments":"{three}"}]}}`: "one\ntwo\n{three}",
		`{"type":"response.created","response":{"id":"r","output":[]}}`: "", `{"type":"response.output_text.delta","delta":"words"}`: "", `[]`: "", `{"type":"response.completed","response":{"id":"r","metadata":{"a":"b"},"output":null}}`: "",
	} {
		if h := s.Provider([]byte(`{"type":"response.event","event":` + event + `}`)); h.Text != want || h.Complete != (want != "") {
			t.Errorf("%s: %q %v", event, h.Text, h.Complete)
		}
	}
}

// No bytes make a reader fail.
func FuzzEvents(f *testing.F) {
	f.Add([]byte(`{"type":"session.start","session":{"model":"m","triggers":[{}]}}`), []byte(`{"type":"session.closed","usage":{"seconds":1}}`))
	f.Add([]byte(`{"type":"session.update","session":{"delegation":{"decisions":{"model":7}}}}`), []byte(`{"type":"response.event","event":{"type":"response.created"}}`))
	f.Fuzz(func(t *testing.T, client, provider []byte) {
		s := New(meter)
		if _, err := s.Opens(client); err == nil {
			_ = s.FirstMessage("m")
		} else if st := fault.From(err).Status(); st != 400 {
			t.Errorf("%d", st)
		}
		_, _ = s.Client(client)
		_ = s.Provider(provider)
		_ = s.EndOpen()
	})
}
