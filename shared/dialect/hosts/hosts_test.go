package hosts

import (
	"testing"
	"time"

	"gateway/shared/chat"
)

// sourced requires that a row names where it comes from.
func sourced(t *testing.T, row, host, source, date string) {
	t.Helper()
	if _, err := time.Parse(time.DateOnly, date); err != nil || host == "" || source == "" {
		t.Errorf("%s: host %q, source %q, date %q (%v)", row, host, source, date, err)
	}
}

func TestStopsHaveOneMeaningAndASource(t *testing.T) {
	seen := map[string]bool{"stop": true, "length": true, "tool_calls": true, "content_filter": true}
	for _, s := range Stops {
		sourced(t, s.Word, s.Host, s.Source, s.Date)
		if seen[s.Word] {
			t.Errorf("%s has two rows", s.Word)
		}
		seen[s.Word] = true
		if s.Failed != (s.Reason == chat.StopUnknown) {
			t.Errorf("%s: a row has a reason or fails, not both", s.Word)
		}
		if reason, failed := StopOf([]byte(s.Word)); reason != s.Reason || failed != s.Failed {
			t.Errorf("%s: %v, %t", s.Word, reason, failed)
		}
	}
	if reason, failed := StopOf([]byte("of_tomorrow")); reason != chat.StopUnknown || failed {
		t.Errorf("an unknown word is %v, %t", reason, failed)
	}
}
