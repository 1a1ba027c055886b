package window

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"pgregory.net/rapid"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/guard"
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

// elements judges none.
var elements = Elements{Judge: func([]byte) ([]byte, *fault.Fault) { return nil, nil }}

// run sends a text cut at places through a window.
func run(text string, cuts []int, reach guard.MatchWindow, judge Judge) (sent string, err error) {
	d := Texts(pieces{}, reach, judge, elements, func() *fault.Fault { return fault.New(fault.GuardrailDenied, "", "too late") })
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

// patterns are what is forbidden, each within its reach.
var patterns = []string{
	`top secret|\d{3}-\d{2}|x+y`, // repetitions at an end
	`\w+@\w+\.\w+`,               // within a word, of any length
	`\bword\b`,                   // whose ends count
	`y{3,9}|secret\s{1,3}x`,
	`(?:12|x)[xyö]*3`,
	`x*`, // finds places between characters
	`\b`,
	`y*?|secret`,
}

// forbids is what Texts is given for a pattern.
func forbids(pattern string, window int) (re *regexp.Regexp, reach guard.MatchWindow) {
	reach = guard.PatternWindow(pattern, false)
	reach.Overlap = max(reach.Most, 1)
	return regexp.MustCompile(pattern), reach.And(guard.MatchWindow{Most: window})
}

// checkWindow says what is wrong with what is sent of a text that arrives in pieces, both
// when matches are replaced and when they are denied.
func checkWindow(pattern, text string, cuts []int, window int) error {
	re, reach := forbids(pattern, window)
	if findsPlaces(re, text) {
		return checkPlaces(re, reach, text, cuts)
	}
	sent, err := run(text, cuts, reach, func(s string) (string, *fault.Fault) { return re.ReplaceAllString(s, mark), nil })
	switch {
	case err != nil || slices.ContainsFunc(strings.Split(sent, mark), re.MatchString):
		return fmt.Errorf("%q was sent of %q: %v", sent, text, err)
	case !re.MatchString(text) && sent != text:
		return fmt.Errorf("%q became %q", text, sent)
	}
	sent, err = run(text, cuts, reach, func(s string) (string, *fault.Fault) {
		if re.MatchString(s) {
			return "", fault.New(fault.GuardrailDenied, "", "no")
		}
		return s, nil
	})
	if denied := fault.Is(err, fault.GuardrailDenied); denied != re.MatchString(text) || re.MatchString(sent) || !strings.HasPrefix(text, sent) || !denied && sent != text {
		return fmt.Errorf("%q was sent of %q, denied: %v", sent, text, denied)
	}
	return nil
}

// mark replaces matches, and occurs in no text of these tests: what a pattern finds
// together with a mark is not in the original text.
const mark = "#"

// findsPlaces reports whether a pattern finds a place between characters of a text, or of any.
func findsPlaces(re *regexp.Regexp, text string) bool {
	for _, m := range append(re.FindAllStringIndex(text, -1), re.FindStringIndex("")) {
		if len(m) == 2 && m[0] == m[1] {
			return true
		}
	}
	return false
}

// checkPlaces is checkWindow for a pattern that finds places between characters; whatever
// is sent has such places. It checks what can be promised: nothing is sent of a text that
// is denied as soon as its first piece is judged; when matches are replaced, nothing of the
// text is lost or sent twice.
func checkPlaces(re *regexp.Regexp, reach guard.MatchWindow, text string, cuts []int) error {
	judged := 0
	sent, err := run(text, cuts, reach, func(s string) (string, *fault.Fault) {
		judged++
		if re.MatchString(s) {
			return "", fault.New(fault.GuardrailDenied, "", "no")
		}
		return s, nil
	})
	switch denied := fault.Is(err, fault.GuardrailDenied); {
	case judged == 0, re.MatchString(text) && !denied, !strings.HasPrefix(text, sent), sent != "" && re.MatchString(sent) && re.MatchString(""):
		return fmt.Errorf("%q was sent of %q, denied: %v, judged %d times", sent, text, denied, judged)
	}
	sent, err = run(text, cuts, reach, func(s string) (string, *fault.Fault) { return s, nil })
	if err != nil || sent != text {
		return fmt.Errorf("%q became %q: %v", text, sent, err)
	}
	return nil
}

// atCharacters moves cuts to the next beginning of a character, as decoders give texts.
func atCharacters(text string, cuts []int) []int {
	for i := range cuts {
		for at := sum(cuts[:i+1]); at > 0 && at < len(text) && text[at]&0xc0 == 0x80; at++ {
			cuts[i]++
		}
	}
	return cuts
}

// TestWindowNeverSendsForbiddenText: however a stream is cut and however long a match is, what was
// sent never contains what the check forbids, and everything else arrives completely.
func TestWindowNeverSendsForbiddenText(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(t *rapid.T) {
		words := rapid.SliceOfN(rapid.SampledFrom([]string{"top", "secret", "top secret", "123-45", "123", "-45", "xxy", "x", "y", "ö", "word", "a@b", ".c", "\n", "-", "", strings.Repeat("x", 50), strings.Repeat("ab", 40)}), 0, 60).Draw(t, "words")
		text := strings.Join(words, rapid.SampledFrom([]string{" ", ""}).Draw(t, "between"))
		cuts := atCharacters(text, rapid.SliceOfN(rapid.IntRange(0, 30), 0, 60).Draw(t, "cuts"))
		pattern := rapid.SampledFrom(patterns).Draw(t, "pattern")
		if err := checkWindow(pattern, text, cuts, rapid.IntRange(3, 40).Draw(t, "window")); err != nil {
			t.Fatal(pattern, err)
		}
	})
}

// FuzzWindow: the same for any text and any pattern that has a reach.
func FuzzWindow(f *testing.F) {
	for _, p := range patterns {
		f.Add(p, "my top secret 123-45 xxxxxxxxxxxxxxxxxxxxxxxxxy a word ann@example.com", []byte{3, 1, 20}, uint8(5))
	}
	f.Fuzz(func(t *testing.T, pattern, text string, pieces []byte, window uint8) {
		_, err := regexp.Compile(pattern)
		if err != nil || guard.PatternWindow(pattern, false).Complete || !utf8.ValidString(text) || len(text) > 5000 || len(pattern) > 100 {
			t.Skip() // no pattern of a window, or no text
		}
		text = strings.ReplaceAll(text, mark, "+")
		var cuts []int
		for _, n := range pieces {
			cuts = append(cuts, int(n))
		}
		if err := checkWindow(pattern, text, atCharacters(text, cuts), int(window)+1); err != nil {
			t.Fatal(err)
		}
	})
}

func sum(list []int) (n int) {
	for _, v := range list {
		n += v
	}
	return n
}
