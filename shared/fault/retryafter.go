package fault

import (
	"math"
	"net/http"
	"strconv"
	"strings"
	"time"
)

// ParseRetryAfter returns the wait that the headers of a response request, at most limit: first
// as milliseconds, then as seconds, then as a date, which is compared with now. A date in the
// past means no wait. ok is false if there is none.
func ParseRetryAfter(h http.Header, now time.Time, limit time.Duration) (wait time.Duration, ok bool) {
	for _, source := range []struct {
		name string
		unit time.Duration
	}{{"Retry-After-Ms", time.Millisecond}, {"X-Ms-Retry-After-Ms", time.Millisecond}, {"Retry-After", time.Second}} {
		v := strings.TrimSpace(h.Get(source.name))
		if v == "" {
			continue
		}
		n, err := strconv.ParseFloat(v, 64)
		if err != nil || math.IsNaN(n) || n < 0 {
			continue
		}
		if n*float64(source.unit) > float64(limit) {
			return limit, true
		}
		return time.Duration(n * float64(source.unit)), true
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return min(max(at.Sub(now), 0), limit), true
	}
	return 0, false
}
