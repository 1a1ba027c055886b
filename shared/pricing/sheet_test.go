package pricing

import (
	"fmt"
	"os"
	"strings"
	"testing"
)

const goodSheet = "# corrections\nprices\t2026-11-26\t4\nopenai\tgpt-4o\tinput=1 output=2\tbatch input=0.5 output=1\r\n\nopenai\tnewest\tinput=7 output=9\nacme\tm/one\tinput=3\nopenai\tgone\tunpriced\n"

func TestASheetLiesOnTheList(t *testing.T) {
	s, err := ParseSheet([]byte(goodSheet))
	if err != nil {
		t.Fatal(err)
	}
	base := Default()
	b := base.WithSheet(s)
	if !strings.HasPrefix(b.Version(), base.Version()+"+2026-11-26-") {
		t.Errorf("version %s", b.Version())
	}
	var u Usage
	u.Set(Input, 1_000_000)
	for _, c := range []struct {
		provider, model string
		mode            string
		want            NanoDollars
		source          string
	}{
		{"openai", "gpt-4o", "", Dollar, FromSheet},
		{"openai", "gpt-4o", Batch, Dollar / 2, FromSheet},
		{"openai", "newest", "", 7 * Dollar, FromSheet},
		{"openai", "newest-2026-01-01", "", 7 * Dollar, FromSheet}, // found as any model of the list is
		{"acme", "m/one", "", 3 * Dollar, FromSheet},
		{"openai", "gpt-4o-mini", "", 150_000_000, FromList},
	} {
		p, ok := b.Price(c.provider, c.model, Options{Mode: c.mode})
		if !ok || p.Cost(u) != c.want || b.index().origin(p.Line()) != c.source {
			t.Errorf("%s/%s %s: %v %v from %s, want %v from %s", c.provider, c.model, c.mode, p.Cost(u), ok, b.index().origin(p.Line()), c.want, c.source)
		}
	}
	if _, ok := b.Price("openai", "gone", Options{}); ok {
		t.Error("a model that is to have no price has one")
	}
	if p, _ := base.Price("openai", "gpt-4o", Options{}); p.Cost(u) == Dollar {
		t.Error("the list itself has changed")
	}
	if models := b.Models("openai"); len(models) != len(base.Models("openai"))+2 {
		t.Errorf("%d models of openai, of %d of the list", len(models), len(base.Models("openai")))
	}
}

func TestTheListItselfIsASheet(t *testing.T) {
	list, err := os.ReadFile("data/prices.txt")
	if err != nil {
		t.Fatal(err)
	}
	// Lines of the list that have no price do not say so.
	var lines []string
	for line := range strings.Lines(string(list)) {
		provider, rest, _ := strings.Cut(strings.TrimRight(line, "\n"), "\t")
		model, _, _ := strings.Cut(rest, "\t")
		if _, priced := Default().Price(provider, model, Options{}); priced {
			lines = append(lines, strings.TrimRight(line, "\n"))
		}
	}
	s, err := ParseSheet([]byte(fmt.Sprintf("prices\tall\t%d\n%s\n", len(lines), strings.Join(lines, "\n"))))
	if err != nil {
		t.Fatal(err)
	}
	if lost, loses := s.LostModel(Default(), &PriceSheet{}); loses {
		t.Errorf("%s would be lost, which the list has", lost)
	}
}

func TestBadSheetsAreRefusedWhole(t *testing.T) {
	for text, message := range map[string]string{
		"":                                                     "is empty",
		"{\"openai\":{}}":                                      "line 1: must be prices",
		"<html>":                                               "line 1: must be prices",
		"prices\tx":                                            "line 1: must be prices",
		"prices\tx y\t0":                                       "line 1: must be prices",
		"prices\tx\t-1":                                        "line 1: the number",
		"prices\tx\t20001":                                     "line 1: the number",
		"prices\tx\t2\nopenai\ta\tinput=1\n":                   "has 1 lines, its header states 2",
		"prices\tx\t0\nopenai\ta\tinput=1":                     "has 1 lines, its header states 0",
		"prices\tx\t1\nopenai\ta":                              "line 2: must be a provider",
		"prices\tx\t1\nOpen AI\ta\tinput=1":                    "line 2: must be a provider",
		"prices\tx\t1\nopenai\ta b\tinput=1":                   "line 2: must be a provider",
		"prices\tx\t1\nopenai\t\tinput=1":                      "line 2: must be a provider",
		"prices\tx\t1\nopenai\ta\t":                            "line 2: openai/a has no price",
		"prices\tx\t1\nopenai\ta\tinput=-1":                    "is not a price",
		"prices\tx\t1\nopenai\ta\tinput=1e99":                  "is not a price",
		"prices\tx\t1\nopenai\ta\tinput=NaN":                   "is not a price",
		"prices\tx\t1\nopenai\ta\tinput":                       "is not a price",
		"prices\tx\t1\nopenai\ta\tinptu=1":                     "unknown class",
		"prices\tx\t1\nopenai\ta\tinput=1\tfaster input=2":     "is not a mode",
		"prices\tx\t2\nopenai\ta\tinput=1\nopenai\ta\tinput=2": "is listed twice",
		"prices\tx\t1\nopenai\ta\tinput=1 \xff":                "not UTF-8",
		"prices\tx\t1\nopenai\ta\tinput=1" + strings.Repeat(" ", maxSheetLine): "bytes, 16384 are allowed",
		strings.Repeat("#", MaxSheet+1):                                        "are allowed",
	} {
		if _, err := ParseSheet([]byte(text)); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%.60q: %v, want %q", text, err, message)
		}
	}
}

func TestASheetWithoutAModelRemovesIt(t *testing.T) {
	read := func(lines ...string) *PriceSheet {
		s, err := ParseSheet([]byte(fmt.Sprintf("prices\tx\t%d\n%s\n", len(lines), strings.Join(lines, "\n"))))
		if err != nil {
			t.Fatal(err)
		}
		return s
	}
	was := read("openai\tnewest\tinput=7", "openai\tgpt-4o\tinput=1")
	for _, c := range []struct {
		next *PriceSheet
		lost string
	}{
		{read("openai\tgpt-4o\tinput=1"), "openai/newest"},
		{read("openai\tnewest\tinput=8"), ""}, // the list has the other
		{read("openai\tnewest\tunpriced"), ""},
		{read(), "openai/newest"},
	} {
		if lost, _ := was.LostModel(Default(), c.next); lost != c.lost {
			t.Errorf("lost is %q, want %q", lost, c.lost)
		}
	}
}

func BenchmarkPriceCurrent(b *testing.B) {
	book := Default()
	for b.Loop() {
		if _, ok := book.Current().Price("openai", "gpt-4o", Options{}); !ok {
			b.Fatal("no price")
		}
	}
}
