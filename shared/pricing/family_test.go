package pricing

import (
	"flag"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var updateFamilies = flag.Bool("update-families", false, "write testdata/families.txt")

// dated are the ends of names that name a snapshot.
var dated = regexp.MustCompile(`[-@](20\d\d-?\d\d-?\d\d|\d\d-\d\d|\d{4})(-v\d+(:\d+)?)?$|-latest$`)

// sameModels are providers that host the same models under the same names at the price of
// their maker.
var sameModels = map[string]string{"azure-openai": "openai", "azure-ai": "azure-openai", "vertex-ai": "google"}

// Rows of one model agree: a name, its snapshots and the same name at another host have the
// same classes and rates. Where they do not, testdata/families.txt lists it, so that a new
// difference is seen in a review; most are snapshots whose price was changed later.
func TestRowsOfAFamilyAgree(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("data", "prices.txt"))
	if err != nil {
		t.Fatal(err)
	}
	rows := map[string]map[string]string{}
	for line := range strings.Lines(string(text)) {
		part := strings.Split(strings.TrimRight(line, "\n"), "\t")
		if rows[part[0]] == nil {
			rows[part[0]] = map[string]string{}
		}
		rows[part[0]][part[1]] = part[2]
	}
	var out []string
	compare := func(name, a, other, b string) {
		if d := differing(a, b); d != "" {
			out = append(out, fmt.Sprintf("%s\t%s\t%s", name, other, d))
		}
	}
	for provider, models := range rows {
		for model, base := range models {
			if end := dated.FindString(model); end != "" {
				if plain, ok := models[strings.TrimSuffix(model, end)]; ok {
					compare(provider+"/"+strings.TrimSuffix(model, end), plain, provider+"/"+model, base)
				}
			}
			if maker, ok := sameModels[provider]; ok {
				if plain, ok := rows[maker][model]; ok {
					compare(maker+"/"+model, plain, provider+"/"+model, base)
				}
			}
		}
	}
	slices.Sort(out)
	file := filepath.Join("testdata", "families.txt")
	got := strings.Join(out, "\n") + "\n"
	if *updateFamilies {
		if err := os.WriteFile(file, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, _ := os.ReadFile(file)
	known := strings.Split(string(want), "\n")
	for _, line := range out {
		if !slices.Contains(known, line) {
			t.Errorf("differs from its family: %s; correct it, or list it with -args -update-families", line)
		}
	}
	for _, line := range known {
		if line != "" && !slices.Contains(out, line) {
			t.Errorf("agrees with its family now: %s; remove it with -args -update-families", line)
		}
	}
}

// differing lists the classes in which two sections differ, with both prices.
func differing(a, b string) string {
	read := func(s string) map[string]string {
		m := map[string]string{}
		for w := range strings.FieldsSeq(s) {
			name, value, _ := strings.Cut(w, "=")
			if name != "cache_write_5m" || value != "0" { // no price of its own
				m[name] = value
			}
		}
		return m
	}
	first, second := read(a), read(b)
	var out []string
	for name, v := range first {
		if w, ok := second[name]; !ok {
			out = append(out, name+" "+v+" -")
		} else if v != w {
			out = append(out, name+" "+v+" "+w)
		}
	}
	for name, w := range second {
		if _, ok := first[name]; !ok {
			out = append(out, name+" - "+w)
		}
	}
	slices.Sort(out)
	return strings.Join(out, ", ")
}

// Prices of images are dollars: an image costs more than a hundredth of a cent and less
// than ten dollars anywhere. Cents in place of dollars were a hundred times too low.
func TestImagesCostAPlausibleAmount(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile(filepath.Join("data", "prices.txt"))
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		part := strings.Split(strings.TrimRight(line, "\n"), "\t")
		for w := range strings.FieldsSeq(part[2]) {
			name, value, _ := strings.Cut(w, "=")
			if name, _, _ = strings.Cut(name, "@"); name != "images" && name != "megapixels" && name != "input_images" {
				continue
			}
			// Dollars per million, with nine digits: a hundredth of a cent is 100.
			if p, _, err := parseDecimal(value, 0); err != nil || p != 0 && (p < 100 || p > 10_000_000) {
				t.Errorf("%s/%s: %s costs %s dollars per million", part[0], part[1], name, value)
			}
		}
	}
}
