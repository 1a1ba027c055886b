package pii

import (
	"os"
	"slices"
	"strings"
	"testing"

	"gateway/shared/guard/scan/mask"
)

// cases reads the table: each text, and what is to be found in it.
func cases(t *testing.T) (texts []string, want [][]mask.Span) {
	t.Helper()
	raw, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range strings.Split(strings.TrimSpace(string(raw)), "\n") {
		if strings.HasPrefix(line, "#") {
			continue
		}
		var b strings.Builder
		var spans []mask.Span
		for {
			before, rest, ok := strings.Cut(line, "«")
			b.WriteString(before)
			if !ok {
				break
			}
			found, after, _ := strings.Cut(rest, "»")
			label, value, _ := strings.Cut(found, ":")
			spans = append(spans, mask.Span{Start: b.Len(), End: b.Len() + len(value), Label: label})
			b.WriteString(value)
			line = after
		}
		texts, want = append(texts, b.String()), append(want, spans)
	}
	return texts, want
}

// TestFigures holds precision and recall on the table: of what has a check digit or a form
// separate, and of what is found by rules about words.
func TestFigures(t *testing.T) {
	t.Parallel()
	texts, want := cases(t)
	type tally struct{ right, wrong, missed int }
	sums := map[string]*tally{}
	for _, l := range Labels {
		sums[l] = &tally{}
	}
	twins := 0
	for i, text := range texts {
		got := Find(text, All)
		if len(want[i]) == 0 {
			twins++
		}
		for _, g := range got {
			if holds(want[i], g) {
				sums[g.Label].right++
			} else {
				sums[g.Label].wrong++
				t.Logf("%q: finds %s %q", text, g.Label, text[g.Start:g.End])
			}
		}
		for _, w := range want[i] {
			if !holds(got, w) {
				sums[w.Label].missed++
				t.Logf("%q: misses %s %q", text, w.Label, text[w.Start:w.End])
			}
		}
	}
	for label, s := range sums {
		precision := float64(s.right) / float64(max(1, s.right+s.wrong))
		recall := float64(s.right) / float64(max(1, s.right+s.missed))
		t.Logf("%-17s %3d cases, precision %.2f, recall %.2f", label, s.right+s.missed, precision, recall)
		least := 1.0
		if label == "NAME" || label == "LOCATION_ADDRESS" || label == "PHONE_NUMBER" {
			least = 0.9
		}
		if precision < least || recall < least {
			t.Errorf("%s: precision %.2f, recall %.2f; want %.2f", label, precision, recall, least)
		}
	}
	t.Logf("%d texts, %d of them without anything", len(texts), twins)
}

func holds(spans []mask.Span, s mask.Span) bool {
	for _, o := range spans {
		if o == s {
			return true
		}
	}
	return false
}

func TestFindReturnsOnlyRequestedKinds(t *testing.T) {
	t.Parallel()
	text := "Ann Smith, ann@example.com, card 4111 1111 1111 1111"
	for labels, want := range map[string]int{"EMAIL_ADDRESS": 1, "NAME": 1, "CREDIT_CARD": 1, "PHONE_NUMBER": 0, "EMAIL_ADDRESS NAME CREDIT_CARD IBAN": 3, "": 0, "OTHER": 0} {
		if got := Find(text, Of(strings.Fields(labels))); len(got) != want {
			t.Errorf("%s: %v, want %d", labels, got, want)
		}
	}
}

// Finds are in order, apart from one another and within the text.
func FuzzFind(f *testing.F) {
	raw, err := os.ReadFile("testdata/cases.txt")
	if err != nil {
		f.Fatal(err)
	}
	for _, line := range strings.Split(string(raw), "\n") {
		f.Add(strings.NewReplacer("«", "", "»", "").Replace(line))
	}
	f.Add("AB 12 34 56")
	f.Add("(+1")
	f.Add("\xff@\xff.aa 1\xe2")
	f.Fuzz(func(t *testing.T, text string) {
		end := 0
		spans := Find(text, All)
		for _, s := range spans {
			if s.Start < end || s.End <= s.Start || s.End > len(text) || s.Label == "" {
				t.Fatalf("%v behind %d of %d", s, end, len(text))
			}
			end = s.End
		}
		mask.Texts([]string{text}, [][]mask.Span{spans})
	})
}

func BenchmarkFind(b *testing.B) {
	plain := strings.Repeat("The committee met on Tuesday to talk about the new budget of the school and its 3 buildings. ", 11)
	hits := strings.Repeat("Ann Smith (ann@example.com, +1 415-555-0132) lives at 12 Main Street, Springfield, IL 62704. ", 11)
	for name, text := range map[string]string{"plain": plain, "hits": hits, "digits": strings.Repeat("12 34 ", 170), "at": strings.Repeat("a@", 512), "streets": strings.Repeat("Street ", 146), "hex": strings.Repeat("a:", 512)} {
		for _, size := range []int{1, 100} {
			whole := strings.Repeat(text, size)
			b.Run(name+"/"+[]string{1: "1KB", 100: "100KB"}[size], func(b *testing.B) {
				b.SetBytes(int64(len(whole)))
				b.ReportAllocs()
				for b.Loop() {
					Find(whole, All)
				}
			})
		}
	}
}

// TestOverlappingFindsAreMaskedWhole: the span of two finds that overlap covers both, if both
// kinds are wanted; a find of a wanted kind that goes beyond one of another kind stays.
func TestOverlappingFindsAreMaskedWhole(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		finds []found
		set   Set
		want  []mask.Span
	}{
		"the second goes further":  {[]found{{0, 6, Email}, {4, 9, Card}}, All, []mask.Span{{Start: 0, End: 9, Label: "EMAIL_ADDRESS"}}},
		"the stronger comes later": {[]found{{0, 6, Name}, {4, 9, Email}}, All, []mask.Span{{Start: 0, End: 9, Label: "EMAIL_ADDRESS"}}},
		"three in a row":           {[]found{{0, 6, Email}, {4, 9, Card}, {8, 12, IP}}, All, []mask.Span{{Start: 0, End: 12, Label: "EMAIL_ADDRESS"}}},
		"within, of another kind":  {[]found{{0, 9, Card}, {2, 6, Phone}}, 1 << Phone, nil},
		"beyond, of another kind":  {[]found{{0, 6, Email}, {4, 9, Card}}, 1 << Card, []mask.Span{{Start: 4, End: 9, Label: "CREDIT_CARD"}}},
		"apart":                    {[]found{{0, 4, Email}, {4, 9, Card}}, All, []mask.Span{{Start: 0, End: 4, Label: "EMAIL_ADDRESS"}, {Start: 4, End: 9, Label: "CREDIT_CARD"}}},
	} {
		if got := (&finder{out: c.finds}).spans(c.set); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v", name, got)
		}
	}
}
