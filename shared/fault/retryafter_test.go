package fault

import (
	"net/http"
	"testing"
	"time"
)

func TestParseRetryAfter(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 1, 2, 3, 4, 5, 0, time.UTC)
	in := func(name, value string) http.Header { return http.Header{name: {value}} }
	date := func(wait time.Duration) http.Header {
		return in("Retry-After", now.Add(wait).Format(http.TimeFormat))
	}
	const day = 24 * time.Hour
	for _, c := range []struct {
		h    http.Header
		wait time.Duration
		ok   bool
	}{
		{nil, 0, false}, {http.Header{}, 0, false},
		{in("Retry-After", "17"), 17 * time.Second, true},
		{in("Retry-After", " 0.5"), 500 * time.Millisecond, true},
		{in("Retry-After", "0"), 0, true},
		{in("Retry-After", "-3"), 0, false},
		{in("Retry-After", "NaN"), 0, false},
		{in("Retry-After", "1e99"), day, true},
		{in("Retry-After", "soon"), 0, false},
		{in("Retry-After-Ms", "1500"), 1500 * time.Millisecond, true},
		{in("X-Ms-Retry-After-Ms", "90"), 90 * time.Millisecond, true},
		{http.Header{"Retry-After-Ms": {"250"}, "Retry-After": {"7"}}, 250 * time.Millisecond, true},
		{http.Header{"Retry-After-Ms": {"soon"}, "Retry-After": {"7"}}, 7 * time.Second, true},
		{date(time.Hour), time.Hour, true},
		{date(-time.Hour), 0, true},
		{date(1000 * day), day, true},
	} {
		if wait, ok := ParseRetryAfter(c.h, now, day); wait != c.wait || ok != c.ok {
			t.Errorf("%v: %v, %t; want %v, %t", c.h, wait, ok, c.wait, c.ok)
		}
	}
}
