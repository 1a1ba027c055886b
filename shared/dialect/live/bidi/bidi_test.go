package bidi

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/dialect/live"
	"gateway/shared/fault"
	"gateway/shared/pricing"
)

func opened(t *testing.T, setup string) *Session {
	t.Helper()
	s := New().(*Session)
	if _, err := s.Opens([]byte(setup)); err != nil {
		t.Fatal(err)
	}
	return s
}

// endedTurns runs messages of a provider, and says which turns ended with how many tokens.
func endedTurns(s *Session, messages ...string) string {
	var out []string
	for _, m := range messages {
		h := live.Content{}
		if m == turnComplete {
			h, _ = s.Client([]byte(m))
		} else {
			h = s.Provider([]byte(m))
		}
		for _, step := range h.Steps {
			if step.Do == live.Ends {
				out = append(out, fmt.Sprintf("%s:%d+%d", step.ID, step.Usage.InputTokens(), step.Usage.OutputTokens()))
			}
		}
	}
	return strings.Join(out, " ")
}

func usage(prompt, out int) string {
	return fmt.Sprintf(`"usageMetadata":{"promptTokenCount":%d,"responseTokenCount":%d,"totalTokenCount":%d}`, prompt, out, prompt+out)
}

const (
	modelText    = `{"serverContent":{"modelTurn":{"parts":[{"text":"words"}]}}}`
	over         = `{"serverContent":{"turnComplete":true}}`
	turnComplete = `{"clientContent":{"turnComplete":true}}` // of the client
)

// Usage is told beside content, alone, again, grown and in parts: each turn is charged once.
func TestTurnsAreChargedOnce(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		messages []string
		want     string
	}{
		"with the end":      {[]string{modelText, `{"serverContent":{"turnComplete":true},` + usage(10, 3) + `}`}, "turn 1:10+3"},
		"before the end":    {[]string{modelText, `{` + usage(10, 3) + `}`, over}, "turn 1:10+3"},
		"grown before":      {[]string{modelText, `{` + usage(10, 1) + `}`, modelText, `{` + usage(10, 3) + `}`, over}, "turn 1:10+3"},
		"after the end":     {[]string{modelText, over, `{` + usage(10, 3) + `}`}, "turn 1:10+3"},
		"again":             {[]string{modelText, `{"serverContent":{"turnComplete":true},` + usage(10, 3) + `}`, `{` + usage(10, 3) + `}`}, "turn 1:10+3"},
		"grown after":       {[]string{modelText, `{"serverContent":{"turnComplete":true},` + usage(10, 3) + `}`, `{` + usage(10, 5) + `}`}, "turn 1:10+3 turn 1 grown 1:0+2"},
		"grown twice":       {[]string{modelText, `{"serverContent":{"turnComplete":true},` + usage(10, 3) + `}`, `{` + usage(10, 5) + `}`, `{` + usage(10, 6) + `}`}, "turn 1:10+3 turn 1 grown 1:0+2 turn 1 grown 2:0+1"},
		"again, asked on":   {[]string{modelText, `{"serverContent":{"turnComplete":true},` + usage(10, 3) + `}`, turnComplete, `{` + usage(10, 3) + `}`, modelText, over, `{` + usage(15, 3) + `}`}, "turn 1:10+3 turn 2:15+3"},
		"grown, asked on":   {[]string{modelText, `{"serverContent":{"turnComplete":true},` + usage(10, 3) + `}`, turnComplete, `{` + usage(10, 5) + `}`, modelText, over, `{` + usage(15, 3) + `}`}, "turn 1:10+3 turn 1 grown 1:0+2 turn 2:15+3"},
		"told first":        {[]string{modelText, `{"serverContent":{"turnComplete":true},` + usage(10, 3) + `}`, turnComplete, `{` + usage(15, 1) + `}`, modelText, over}, "turn 1:10+3 turn 2:15+1"},
		"late, asked on":    {[]string{modelText, over, turnComplete, `{` + usage(10, 3) + `}`, modelText, `{"serverContent":{"turnComplete":true},` + usage(15, 3) + `}`}, "turn 1:10+3 turn 2:15+3"},
		"two turns":         {[]string{modelText, `{"serverContent":{"turnComplete":true},` + usage(10, 3) + `}`, modelText, `{"serverContent":{"turnComplete":true},` + usage(15, 3) + `}`}, "turn 1:10+3 turn 2:15+3"},
		"of nothing made":   {[]string{`{` + usage(10, 0) + `}`}, "turn 1:10+0"},
		"a tool and after":  {[]string{`{"toolCall":{"functionCalls":[]},` + usage(10, 2) + `}`, modelText, `{"serverContent":{"turnComplete":true},` + usage(20, 3) + `}`}, "turn 1:10+2 turn 2:20+3"},
		"a tool, told late": {[]string{`{"toolCall":{"functionCalls":[]}}`, modelText, `{"serverContent":{"turnComplete":true},` + usage(20, 5) + `}`}, "turn 1:20+5"},
		"interrupted":       {[]string{modelText, `{"serverContent":{"interrupted":true},` + usage(10, 1) + `}`, `{"serverContent":{"turnComplete":true}}`}, "turn 1:10+1"},
		"never told":        {[]string{modelText, over, modelText, `{"serverContent":{"turnComplete":true},` + usage(15, 3) + `}`}, "turn 1:0+7 turn 2:15+3"},
		"nothing to read":   {[]string{`[]`, `{"serverContent":7}`, `{"usageMetadata":[]}`, `{"usageMetadata":{"promptTokenCount":"x"}}`, `{"goAway":{}}`}, ""},
	} {
		s := opened(t, `{"setup":{"model":"models/m"}}`)
		if got := endedTurns(s, c.messages...); got != c.want {
			t.Errorf("%s: %s, want %s", name, got, c.want)
		}
		if left := s.EndOpen(); len(left) > 0 && name != "nothing to read" {
			t.Errorf("%s: %v is left", name, left)
		}
	}
}

func TestAudioIsChargedApart(t *testing.T) {
	t.Parallel()
	s := opened(t, `{"setup":{"model":"m"}}`)
	h := s.Provider([]byte(`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"data":"AAAA"}}]},"turnComplete":true},"usageMetadata":{"promptTokenCount":522,"responseTokenCount":42,"thoughtsTokenCount":136,
		"promptTokensDetails":[{"modality":"TEXT","tokenCount":332},{"modality":"AUDIO","tokenCount":165}],"responseTokensDetails":[{"modality":"AUDIO","tokenCount":42}]}}`))
	u := h.Steps[len(h.Steps)-1].Usage
	for c, n := range map[pricing.Class]int64{pricing.Input: 357, pricing.AudioIn: 165, pricing.Output: 0, pricing.AudioOut: 42, pricing.Reasoning: 136} {
		if u.N(c) != n {
			t.Errorf("%s: %d, want %d", c, u.N(c), n)
		}
	}
}

func TestModelsAreNamedAsTheProviderDoes(t *testing.T) {
	t.Parallel()
	s := opened(t, `{"setup":{"generation_config":{"max_output_tokens":7},"model":"models/@google/m"},"x":1}`)
	if got := string(s.FirstMessage("other")); got != `{"setup":{"generation_config":{"max_output_tokens":7},"model":"models/other"},"x":1}` {
		t.Error(got)
	}
	if h, err := s.Client([]byte(`{"client_content":{"turn_complete":true}}`)); err != nil || len(h.Steps) != 1 || h.Steps[0].Output != 7 {
		t.Errorf("%+v %v", h, err)
	}
	for _, bad := range []string{``, `{}`, `[]`, `{"setup":[]}`, `{"setup":{"model":7}}`, `{"setup":{"model":"models/"}}`, `{"setup":{"model":"m","Model":"n"}}`, `{"setup":{"model":"m"},"setup":{"model":"n"}}`} {
		if _, err := New().Opens([]byte(bad)); err == nil || fault.From(err).Status() != 400 {
			t.Errorf("%s: %v", bad, err)
		}
	}
}

// No bytes make a reader fail, and no usage is below nothing.
func FuzzMessages(f *testing.F) {
	f.Add([]byte(`{"setup":{"model":"m"}}`), []byte(`{"serverContent":{"turnComplete":true},"usageMetadata":{"promptTokenCount":-5}}`))
	f.Add([]byte(`{"clientContent":{"turnComplete":true}}`), []byte(`{"toolCall":{}}`))
	f.Fuzz(func(t *testing.T, client, provider []byte) {
		s := New()
		if _, err := s.Opens(client); err == nil {
			_ = s.FirstMessage("m")
		}
		_, _ = s.Client(client)
		for _, step := range append(s.Provider(provider).Steps, s.EndOpen()...) {
			for c := range pricing.NumClasses {
				if n := step.Usage.N(c); n < 0 || n > pricing.MaxUnits {
					t.Errorf("%s: %d", c, n)
				}
			}
		}
	})
}

// TestAllModelOutputIsReported: what it says, code with its results, and arguments of calls, in
// turns and in separate messages.
func TestAllModelOutputIsReported(t *testing.T) {
	t.Parallel()
	for message, want := range map[string][2]string{
		`{"serverContent":{"modelTurn":{"parts":[{"text":"a"},{"executableCode":{"language":"PYTHON","code":"b"}},{"codeExecutionResult":{"outcome":"OUTCOME_OK","output":"c"}}]}}}`: {"abc", ""},
		`{"serverContent":{"modelTurn":{"parts":[{"functionCall":{"name":"f","args":{"x":{"y":["d","e"]}}}}]}}}`:                                                                     {"", "d\ne"},
		`{"toolCall":{"functionCalls":[{"id":"i","name":"f","args":{"x":"d"}},{"id":"j","name":"g","args":{"y":"e"}}]}}`:                                                             {"", "d\ne"},
		`{"serverContent":{"modelTurn":{"parts":[{"inlineData":{"mimeType":"audio/pcm","data":"AAAA"}}]},"outputTranscription":{"text":"f"}}}`:                                       {"f", ""},
	} {
		if h := opened(t, `{"setup":{"model":"m"}}`).Provider([]byte(message)); h.Text != want[0] || h.Called != want[1] {
			t.Errorf("%s: said %q, called %q", message, h.Text, h.Called)
		}
	}
}

// Text in a client's message is told apart from sound, wherever it is in the message, and
// counts as words.
func TestWordsBesideSound(t *testing.T) {
	t.Parallel()
	pad := strings.Repeat(" ", 100)
	for message, c := range map[string]struct {
		sound bool
		least int64
		words int
	}{
		`{"realtimeInput":{"audio":{"data":"AAAA"}}}`:                                                    {true, 1, 0},
		`{"realtimeInput":{"text":"0123456789"}}`:                                                        {false, 10, 1},
		`{"realtimeInput":{` + pad + `"text":"0123456789"}}`:                                             {false, 10, 1},
		`{"realtimeInput":{"audio":{"data":"` + strings.Repeat("A", 90) + `"},"text":"0123456789"}}`:     {true, 10, 1},
		`{"realtimeInput":{"audio":{}},"realtime_input":{"text":"0123456789"}}`:                          {true, 10, 1},
		`{"realtimeInput":{"audio":{}},"clientContent":{"turns":[{"parts":[{"text":"0123456789"}]}]}}`:   {true, 10, 1},
		`{"toolResponse":{"functionResponses":[{"name":"f","response":{"rows":[{"x":"0123456789"}]}}]}}`: {false, 10, 1},
	} {
		s := opened(t, `{"setup":{"model":"m"}}`)
		h, err := s.Client([]byte(message))
		if err != nil || h.Audio != c.sound || s.since < c.least || c.words == 0 && s.since > 5 {
			t.Errorf("%s: %+v %v, %d tokens", message, h, err, s.since)
		}
	}
	for _, hidden := range []string{`{"realtimeInput":{"text":"a","text":"b"}}`, `{"realtimeInput":{"te\u0078t":"a"}}`} {
		if _, err := opened(t, `{"setup":{"model":"m"}}`).Client([]byte(hidden)); err == nil || fault.From(err).Field != "realtimeInput.text" {
			t.Errorf("%s: %v", hidden, err)
		}
	}
}
