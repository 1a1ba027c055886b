package window

import (
	"regexp"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// pieces is a decoder whose events are texts; the event stop ends the choice.
type pieces struct{ chat.StreamDecoder }

func (pieces) Event(event string, data []byte, emit func(*chat.Delta) error) error {
	if event == "stop" {
		return emit(&chat.Delta{Kind: chat.DeltaStop, Stop: chat.StopEnd})
	}
	return emit(&chat.Delta{Kind: chat.DeltaText, JSON: wire.AppendJSONString(nil, data)})
}

func (pieces) End() error        { return nil }
func (pieces) Meter() chat.Meter { return chat.Meter{Started: true} }

// run sends a text cut at places through a window.
func run(text string, cuts []int, size int, judge Judge) (sent string, err error) {
	d := Texts(pieces{}, size, judge)
	var out strings.Builder
	emit := func(d *chat.Delta) error { out.WriteString(d.Text()); return nil }
	at := 0
	for _, n := range cuts {
		end := min(at+n, len(text))
		if err := d.Event("", []byte(text[at:end]), emit); err != nil {
			return out.String(), err
		}
		at = end
	}
	if err := d.Event("", []byte(text[at:]), emit); err != nil {
		return out.String(), err
	}
	if err := d.Event("stop", nil, emit); err != nil {
		return out.String(), err
	}
	return out.String(), d.End()
}

var forbidden = regexp.MustCompile(`top secret|\d{3}-\d{2}|x+y`)

// TestNothingForbiddenLeaves: however a stream is cut, what was sent never holds what
// the check forbids, and what it does not forbid arrives whole.
func TestNothingForbiddenLeaves(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"top", "secret", "top secret", "123-45", "123", "-45", "xxy", "x", "y", "ö", "word", "\n", "-", ""}), 0, 60).Draw(t, "words")
		text := strings.Join(words, rapid.SampledFrom([]string{" ", ""}).Draw(t, "between"))
		cuts := rapid.SliceOfN(rapid.IntRange(0, 30), 0, 60).Draw(t, "cuts")
		for i := range cuts { // pieces are whole characters, as decoders give them
			for at := sum(cuts[:i+1]); at > 0 && at < len(text) && text[at]&0xc0 == 0x80; at++ {
				cuts[i]++
			}
		}
		size := rapid.IntRange(20, 40).Draw(t, "size")
		if longest := longestMatch(text); longest > size {
			t.Skip()
		}
		replaced := forbidden.ReplaceAllString(text, "#")
		sent, err := run(text, cuts, size, func(s string) (string, *fault.Fault) { return forbidden.ReplaceAllString(s, "#"), nil })
		if err != nil || forbidden.MatchString(sent) {
			t.Fatalf("%q was sent of %q: %v", sent, text, err)
		}
		if !forbidden.MatchString(text) && sent != text {
			t.Fatalf("%q became %q", text, sent)
		}
		if strings.Count(sent, "word") != strings.Count(replaced, "word") {
			t.Fatalf("%q lost words: %q", text, sent)
		}
		sent, err = run(text, cuts, size, func(s string) (string, *fault.Fault) {
			if forbidden.MatchString(s) {
				return "", fault.New(fault.GuardrailDenied, "", "no")
			}
			return s, nil
		})
		if denied := fault.Is(err, fault.GuardrailDenied); denied != forbidden.MatchString(text) || forbidden.MatchString(sent) || !strings.HasPrefix(text, sent) || !denied && sent != text {
			t.Fatalf("%q was sent of %q: %v", sent, text, err)
		}
	})
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}

func longestMatch(text string) (n int) {
	for _, m := range forbidden.FindAllString(text, -1) {
		n = max(n, len(m))
	}
	return n
}
