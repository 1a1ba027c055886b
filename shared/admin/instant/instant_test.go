package instant

import (
	"encoding/json"
	"testing"
	"time"

	"gateway/shared/admin"
)

func TestTimesRetainTheirOffset(t *testing.T) {
	for text, want := range map[string]string{
		"2026-01-31T15:04:05Z":          "2026-01-31T15:04:05Z",
		"2026-01-31T15:04:05.123Z":      "2026-01-31T15:04:05.123Z",
		"2026-01-31T15:04:05+05:30":     "2026-01-31T15:04:05+05:30",
		"2026-01-31T15:04:05 05:30":     "2026-01-31T15:04:05+05:30",
		"2026-01-31T15:04:05.5 05:30":   "2026-01-31T15:04:05.5+05:30",
		"2026-01-31T15:04:05 0530":      "2026-01-31T15:04:05+05:30",
		"2026-01-31T15:04:05-0800":      "2026-01-31T15:04:05-08:00",
		"2026-01-31 15:04:05 01:00":     "2026-01-31T15:04:05+01:00",
		"2026-01-31T15:04+01:00":        "2026-01-31T15:04:00+01:00",
		"2026-01-31T15:04 01:00":        "2026-01-31T15:04:00+01:00",
		"2026-01-31T15:04:05":           "2026-01-31T15:04:05Z",
		"2026-01-31 15:04:05":           "2026-01-31T15:04:05Z",
		"2026-01-31":                    "2026-01-31T00:00:00Z",
		"1970-01-01T00:00:00Z":          "1970-01-01T00:00:00Z",
		"2026-01-31T15:04:05.000+00:00": "2026-01-31T15:04:05Z",
	} {
		got, ok := Parse(text)
		if !ok || got.Format(time.RFC3339Nano) != want {
			t.Errorf("%q is %v %v, want %s", text, got.Format(time.RFC3339Nano), ok, want)
		}
	}
}

func TestOtherTextsAreNoTimes(t *testing.T) {
	for _, text := range []string{"", "now", "0", "1700000000", "2026-13-01", "2026-02-30T00:00:00Z", "2026-01-31T25:00:00Z", "1969-12-31T23:59:59Z", "2201-01-01",
		"2026-01-31T15:04:05+99:00", "2026-01-31T15:04:05  05:30", "2026-01-31T15:04:05 5:30", "99999-01-01", "2026-01-31T15:04:05Z\x00"} {
		if got, ok := Parse(text); ok {
			t.Errorf("%q is %v", text, got)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{"2026-01-31T15:04:05+05:30", "2026-01-31T15:04:05 05:30", "2026-01-31", "x"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := Parse(s)
		if !ok {
			return
		}
		if again, ok := Parse(got.Format(time.RFC3339Nano)); !ok || !again.Equal(got) {
			t.Errorf("%q is %v, which is read as %v", s, got, again)
		}
	})
}

func TestRangesIncludeTheDayTheyEndWith(t *testing.T) {
	for _, c := range []struct{ from, to, start, end, wrong string }{
		{"2026-01-31", "2026-01-31", "2026-01-31T00:00:00Z", "2026-01-31T23:59:59.999999999Z", ""},
		{"2026-01-31T12:00:00Z", "2026-01-31", "2026-01-31T12:00:00Z", "2026-01-31T23:59:59.999999999Z", ""},
		{"2026-01-30", "2026-01-31T00:00:00Z", "2026-01-30T00:00:00Z", "2026-01-31T00:00:00Z", ""},
		{"2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", "2026-01-31T12:00:00Z", ""},
		{"2026-01-31T12:00:00Z", "2026-01-31T11:59:59Z", "2026-01-31T12:00:00Z", "2026-01-31T11:59:59Z", "to"},
		{"2026-02-01", "2026-01-31", "2026-02-01T00:00:00Z", "2026-01-31T23:59:59.999999999Z", "to"},
		{"", "2026-01-31", "0001-01-01T00:00:00Z", "2026-01-31T23:59:59.999999999Z", ""},
		{"2026-01-31", "", "2026-01-31T00:00:00Z", "0001-01-01T00:00:00Z", ""},
	} {
		members := map[string]json.RawMessage{}
		for name, text := range map[string]string{"from": c.from, "to": c.to} {
			if text != "" {
				raw, err := json.Marshal(text)
				if err != nil {
					t.Fatal(err)
				}
				members[name] = raw
			}
		}
		start, end, wrong := Range(admin.ValuesOf(members), "from", "to")
		if start.Format(time.RFC3339Nano) != c.start || end.Format(time.RFC3339Nano) != c.end {
			t.Errorf("%q to %q: %v to %v", c.from, c.to, start, end)
		}
		if (wrong == nil) != (c.wrong == "") || wrong != nil && wrong.Field != c.wrong {
			t.Errorf("%q to %q: %v", c.from, c.to, wrong)
		}
	}
}
