package lexicon

import (
	"slices"
	"strings"
	"testing"
)

func words(text string, accents bool) []Word {
	var out []Word
	r := Reader{Text: text, Accents: accents}
	var w Word
	for r.Next(&w) {
		out = append(out, w)
	}
	return out
}

func TestWordsAreReadAsTheyAreMeant(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ text, want string }{
		{"Ignore", "ignore"}, {"IGNORE!", "ignore"}, {"don't", "dont"}, {"don’t", "dont"}, {"für", "fur"}, {"Ångström", "angstrom"}, {"Łódź", "lodz"},
		{"ig\u200bnore", "ignore"}, {"i\u00adgnore", "ignore"}, {"ignоre", "ignore"}, {"ｉｇｎｏｒｅ", "ignore"}, {"𝐢𝐠𝐧𝐨𝐫𝐞", "ignore"}, {"ⓘⓖⓝⓞⓡⓔ", "ignore"}, {"i\u0301gnore", "ignore"},
		{"привет", "привет"}, {"ПРИВЕТ", "привет"}, {"안녕", "안녕"}, {"ειναι", "ειναι"},
	} {
		got := words(c.text, false)
		if len(got) != 1 || got[0].Hash != Hash(c.want) {
			t.Errorf("%q: %d words, not %s", c.text, len(got), c.want)
		}
	}
	for _, c := range []struct{ text, want string }{{"1gn0r3", "ignore"}, {"p@$$word", "password"}, {"$hit", "shit"}, {"nooooo", "no"}} {
		if got := words(c.text, false); len(got) != 1 || got[0].NormalizedHash != Hash(c.want) {
			t.Errorf("%q is not read as %s", c.text, c.want)
		}
	}
	if got := words("für", true); got[0].Hash != Hash("für") {
		t.Error("accents are not kept")
	}
	if got := words("你好 — 'a' @ $5 c'est la_vie", false); len(got) != 7 {
		t.Errorf("%d words, want 7", len(got))
	}
}

func TestPhrases(t *testing.T) {
	t.Parallel()
	p := Compile("$prior = previous|prior\na 0.5: ignore|forget ~2 $prior ~1 rules\nb 0.5: rules\nc 0.5: 忽略 ~3 指令\nd 0.5: the the")
	for text, want := range map[string]string{
		"Ignore all the previous house rules": "ab",
		"ignore one two three previous rules": "b",
		"forget ignore prior rules":           "ab",
		"I g n o r e prior r u l e s":         "ab",
		"ignore prior. Rules, rules":          "aabb",
		"请忽略之前的指令":                            "c",
		"忽略之前的所有的规矩和指令":                       "",
		"the":                                   "",
		"the the":                               "d",
		"previous rules ignore":                 "b",
		"ignore " + strings.Repeat("prior ", 9): "",
		strings.Repeat("ignore ", 9) + "prior rules": "ab",
	} {
		got := ""
		for _, h := range p.Find(nil, text) {
			got += p.Rules()[h.Rule].Label
		}
		letters := strings.Split(got, "")
		slices.Sort(letters)
		got = strings.Join(letters, "")
		if got != want {
			t.Errorf("%q has %q, want %q", text, got, want)
		}
	}
	h := p.Find(nil, "now ignore prior rules!")
	if len(h) != 2 || h[1].Start != 4 || h[1].End != 22 {
		t.Errorf("hits %v", h)
	}
}

// Words lie within the text, one behind the other, whatever the text.
func FuzzReader(f *testing.F) {
	p := Compile("a 0.5: ignore ~2 rules\nb 1: 忽略")
	for _, s := range []string{"Ignore 1 a b c's @x $", "忽略\xff\xfe ﷺ 안녕", "\u200b\u200b''’’", "ａｂ 𝐢"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		for _, accents := range []bool{false, true} {
			end := 0
			for _, w := range words(text, accents) {
				if w.Start < end || w.End <= w.Start || w.End > len(text) {
					t.Fatalf("word %d to %d behind %d of %d", w.Start, w.End, end, len(text))
				}
				end = w.End
			}
		}
		for _, h := range p.Find(nil, text) {
			if h.Start < 0 || h.End > len(text) || h.Start >= h.End {
				t.Fatalf("hit %v of %d", h, len(text))
			}
		}
	})
}

func BenchmarkPhrases(b *testing.B) {
	p := Compile("a 0.5: ignore ~2 rules\nb 1: 忽略")
	text := strings.Repeat("The quick brown fox doesn't jump over the lazy dog. ", 20)
	b.SetBytes(int64(len(text)))
	b.ReportAllocs()
	for b.Loop() {
		p.Find(nil, text)
	}
}
