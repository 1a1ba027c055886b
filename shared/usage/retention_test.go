package usage

import (
	"testing"
	"time"
)

const oneDay = 24 * time.Hour

func TestRetentionSettings(t *testing.T) {
	for _, c := range []struct {
		bodies, records string
		want            Retention
		bad             bool
	}{
		{"", "", Retention{90 * oneDay, 365 * oneDay}, false},
		{"0", "0", Retention{}, false},
		{"", "30", Retention{30 * oneDay, 30 * oneDay}, false},
		{"7", "0", Retention{Bodies: 7 * oneDay}, false},
		{"31", "30", Retention{}, true},
		{"0", "30", Retention{}, true},
		{"-1", "", Retention{}, true},
		{"a week", "", Retention{}, true},
		{"", "99999999999999999999", Retention{}, true},
	} {
		got, err := ParseRetention(c.bodies, c.records)
		if (err != nil) != c.bad || !c.bad && got != c.want {
			t.Errorf("%q, %q: %v, %v", c.bodies, c.records, got, err)
		}
	}
}
