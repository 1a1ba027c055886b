package route

import (
	"net/http"
	"slices"
	"time"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

func parseRetry(r *reader, v value) *Retry {
	out := &Retry{Codes: defaultRetryCodes}
	attempts := false
	r.members(v, func(key string, v value) {
		switch key {
		case "attempts":
			attempts = true
			out.Attempts = parseAttempts(r, v)
		case "on_status_codes":
			out.Codes = r.statuses(v)
		case "use_retry_after_headers", "use_retry_after_header":
			out.UseRetryAfter = r.flag(v)
		default:
			r.unknown(v, "retry")
		}
	})
	if !attempts && v.kind() == wire.KindObject {
		r.add(v.path+".attempts", "is required")
	}
	return out
}

// parseAttempts reads a number of at most MaxRetryAttempts. A higher one is rejected in a
// saved config and lowered otherwise.
func parseAttempts(r *reader, v value) int {
	if r.strict {
		n := r.whole(v, 0)
		if n > MaxRetryAttempts {
			r.add(v.path, "must be at most %d", MaxRetryAttempts)
		}
		return int(n)
	}
	if !r.is(v, wire.KindNumber) {
		return 0
	}
	f, err := wire.ScanFloat(v.raw, v.path)
	if err != nil {
		f = MaxRetryAttempts
	}
	return int(min(max(f, 0), MaxRetryAttempts))
}

// Retry states which responses cause another call to a target.
type Retry struct {
	Attempts      int   // calls beyond the first, 0 to MaxRetryAttempts
	Codes         []int // statuses that are retried; empty: none
	UseRetryAfter bool  // wait as long as a 429 says
}

var defaultRetryCodes = []int{429, 500, 502, 503, 504, 529}

// maxRetryWait limits the waits that a provider requests, each and in sum, for one target.
const maxRetryWait = time.Minute

// Schedule is the state of the retries of one target.
type Schedule struct {
	retry      *Retry
	used       int
	waited     time.Duration
	serverWait bool // the provider named a wait: then there is no backoff any more
	failed     bool // retries were configured, and did not help or would have waited too long
}

// Start begins with the first call. A nil Retry never retries.
func (r *Retry) Start() Schedule { return Schedule{retry: r} }

// Next reports whether to retry after a response, and after which wait. unreachable: there was
// no response; that is always retried. h are the headers of the response, which arrived at now.
// Before retry k the wait is 2^(k-1) seconds.
func (s *Schedule) Next(status int, h http.Header, unreachable bool, now time.Time) (wait time.Duration, again bool) {
	r := s.retry
	if r == nil || r.Attempts == 0 {
		return 0, false
	}
	if !unreachable && !slices.Contains(r.Codes, status) {
		return 0, false
	}
	if s.used >= r.Attempts {
		s.failed = true
		return 0, false
	}
	if !s.serverWait {
		wait = time.Second << s.used
	}
	if r.UseRetryAfter && status == http.StatusTooManyRequests && !unreachable {
		if named, ok := fault.ParseRetryAfter(h, now, maxRetryWait); ok {
			if named >= maxRetryWait || s.waited+named > maxRetryWait {
				s.failed = true
				return 0, false
			}
			wait, s.serverWait = named, true
		}
	}
	s.used++
	s.waited += wait
	return wait, true
}

// Retries is how many retries have been made.
func (s *Schedule) Retries() int { return s.used }

// Named reports whether the provider determined the waits.
func (s *Schedule) Named() bool { return s.serverWait }

// Repeat makes one retry without a wait, for a response with a status set only by output
// guardrails (246 or 446). It reports false when the status is not listed or no retry is left.
func (s *Schedule) Repeat(status int) bool {
	r := s.retry
	if r == nil || !slices.Contains(r.Codes, status) || s.used >= r.Attempts {
		return false
	}
	s.used++
	return true
}

// Count is the value of the retry count header: 0 if the first call succeeded, n if retry n
// did, -1 if the retries did not help, or if the provider asked for too long a wait.
func (s *Schedule) Count() int {
	if s.failed {
		return -1
	}
	return s.used
}
