package chat_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// answerOf returns a response with calls that have these arguments.
func answerOf(stop chat.StopReason, args ...string) *chat.Response {
	c := chat.Choice{Stop: stop}
	for _, a := range args {
		c.Parts = append(c.Parts, chat.Part{Kind: chat.Call, Call: &chat.ToolCall{ID: "c", Name: "f", Arguments: a}})
	}
	return &chat.Response{Choices: []chat.Choice{c}}
}

// outcome is how a response reaches the client.
type outcome struct {
	Calls  int
	Stop   chat.StopReason
	Failed bool
}

// TestVerifyNeverInventsCalls goes through what a model may write as arguments, for shapes
// that do each of the three things with those that cannot be read, whole and streamed.
func TestVerifyNeverInventsCalls(t *testing.T) {
	broken := []string{`{"a":`, `{"a":1}{"a":1}`, "```json\n{}\n```", `["x"]`, `"{}"`, `{"a":1 "b":2}`, `7`, `true`}
	valid := []string{``, ` `, `null`, `{}`, `{"a":1}`, " {\"a\":1}\n"}
	for _, args := range valid {
		for _, h := range []chat.ResponseSupport{{}, {Broken: chat.BrokenFail}, {Broken: chat.BrokenStop}, {Broken: chat.BrokenStop, CompleteCalls: true}} {
			for stop, want := range map[chat.StopReason]chat.StopReason{chat.StopEnd: chat.StopToolCalls, chat.StopUnknown: chat.StopToolCalls, chat.StopToolCalls: chat.StopToolCalls, chat.StopLength: chat.StopLength} {
				both(t, h, answerOf(stop, args), outcome{1, want, false}, outcome{1, want, false})
			}
		}
	}
	text, fail, ends, whole := chat.ResponseSupport{}, chat.ResponseSupport{Broken: chat.BrokenFail}, chat.ResponseSupport{Broken: chat.BrokenStop}, chat.ResponseSupport{Broken: chat.BrokenStop, CompleteCalls: true}
	for _, args := range broken {
		both(t, text, answerOf(chat.StopEnd, args), outcome{1, chat.StopToolCalls, false}, outcome{1, chat.StopToolCalls, false})
		both(t, fail, answerOf(chat.StopToolCalls, args), outcome{Failed: true}, outcome{Failed: true})
		both(t, fail, answerOf(chat.StopLength, args), outcome{0, chat.StopLength, false}, outcome{1, chat.StopLength, false})
		both(t, fail, answerOf(chat.StopToolCalls, `{}`, args), outcome{1, chat.StopToolCalls, false}, outcome{Failed: true})
		both(t, ends, answerOf(chat.StopToolCalls, args), outcome{0, chat.StopMalformed, false}, outcome{1, chat.StopMalformed, false})
		both(t, ends, answerOf(chat.StopToolCalls, args, `{}`), outcome{1, chat.StopToolCalls, false}, outcome{2, chat.StopMalformed, false})
		both(t, whole, answerOf(chat.StopEnd, args, `{}`), outcome{1, chat.StopToolCalls, false}, outcome{2, chat.StopToolCalls, false})
		both(t, whole, answerOf(chat.StopLength, args), outcome{0, chat.StopLength, false}, outcome{1, chat.StopLength, false})
	}
}

func both(t *testing.T, h chat.ResponseSupport, r *chat.Response, whole, streamed outcome) {
	t.Helper()
	var loss chat.Loss
	args := r.Choices[0].Parts[0].Call.Arguments
	got := outcome{}
	dec := chat.Verified(&replayed{r: *r}, h, &loss)
	err := dec.Event("", nil, func(d *chat.Delta) error {
		switch d.Kind {
		case chat.DeltaToolStart:
			got.Calls++
		case chat.DeltaStop:
			got.Stop = d.Stop
		}
		return nil
	})
	if err == nil {
		err = dec.End()
	}
	if err != nil {
		got = outcome{Failed: true}
		if m := dec.Meter(); m.Err == nil || m.Complete {
			t.Errorf("%q: the meter says %+v", args, m)
		}
	}
	if diff := cmp.Diff(streamed, got); diff != "" {
		t.Errorf("%q streamed for %+v: %s", args, h.Broken, diff)
	}
	got = outcome{}
	if err := chat.Verify(r, h, &loss); err != nil {
		got.Failed = true
	} else {
		got.Calls, got.Stop = len(r.Choices[0].Parts), r.Choices[0].Stop
	}
	if diff := cmp.Diff(whole, got); diff != "" {
		t.Errorf("%q whole for %+v: %s", args, h.Broken, diff)
	}
}

// replayed is a decoder that gives a response with its first event.
type replayed struct {
	r    chat.Response
	done bool
}

func (d *replayed) Event(_ string, _ []byte, emit func(*chat.Delta) error) error {
	d.done = true
	return d.r.Replay(emit)
}
func (d *replayed) End() error            { return nil }
func (d *replayed) Meter() chat.Meter     { return chat.Meter{Complete: d.done} }
func (d *replayed) Signed() []chat.Signed { return nil }

func TestVerifyRejectsResponsesWithoutChoices(t *testing.T) {
	both := []error{
		chat.Verify(&chat.Response{}, chat.ResponseSupport{}, &chat.Loss{}),
		chat.Verified(&replayed{}, chat.ResponseSupport{}, &chat.Loss{}).Event("", nil, func(*chat.Delta) error { return nil }),
		chat.Verified(&replayed{}, chat.ResponseSupport{}, &chat.Loss{}).End(),
	}
	for i, err := range both {
		if err == nil {
			t.Errorf("%d: an answer without choices passes", i)
		}
	}
}

// pieces is a decoder that gives pieces of arguments.
type pieces struct{ json []string }

func (p *pieces) Event(_ string, _ []byte, emit func(*chat.Delta) error) error {
	if err := emit(&chat.Delta{Kind: chat.DeltaToolStart, Name: "f"}); err != nil {
		return err
	}
	for _, j := range p.json {
		if err := emit(&chat.Delta{Kind: chat.DeltaToolArgs, JSON: []byte(j)}); err != nil {
			return err
		}
	}
	return emit(&chat.Delta{Kind: chat.DeltaStop, Stop: chat.StopToolCalls})
}
func (*pieces) End() error            { return nil }
func (*pieces) Meter() chat.Meter     { return chat.Meter{} }
func (*pieces) Signed() []chat.Signed { return nil }

// TestVerifiedJoinsTheHalvesOfACharacter decodes each piece alone, as encoders do that write
// arguments as an object.
func TestVerifiedJoinsTheHalvesOfACharacter(t *testing.T) {
	for name, c := range map[string]struct {
		pieces []string
		want   string
	}{
		"split":               {[]string{`"{\"a\":\"x\ud83d"`, `"\ude00\"}"`}, "{\"a\":\"x\U0001F600\"}"},
		"upper case":          {[]string{`"{\"a\":\"\uD83D"`, `"\uDE00\"}"`}, "{\"a\":\"\U0001F600\"}"},
		"alone in its piece":  {[]string{`"{\"a\":\""`, `"\ud83d"`, `"\ude00"`, `"\"}"`}, "{\"a\":\"\U0001F600\"}"},
		"an escaped escape":   {[]string{`"{\"a\":\"\\\\ud83d"`, `"\"}"`}, `{"a":"\\ud83d"}`},
		"no second half":      {[]string{`"{\"a\":\"\ud83d"`, `"\"}"`}, "{\"a\":\"\ufffd\"}"},
		"the end of a stream": {[]string{`"{\"a\":\"\ud83d"`}, "{\"a\":\"\ufffd"},
	} {
		var got []byte
		dec := chat.Verified(&pieces{c.pieces}, chat.ResponseSupport{}, &chat.Loss{})
		if err := dec.Event("", nil, func(d *chat.Delta) error {
			if d.Kind == chat.DeltaToolArgs {
				got = wire.AppendUnquoted(got, d.JSON)
			}
			return nil
		}); err != nil {
			t.Fatal(err)
		}
		if string(got) != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}
