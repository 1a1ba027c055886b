package route

import (
	"net/http"
	"testing"
	"time"
)

var sometime = time.Date(2026, 10, 21, 7, 28, 0, 0, time.UTC)

func TestRetrySchedule(t *testing.T) {
	after := func(name, value string) http.Header {
		h := http.Header{}
		h.Set(name, value)
		return h
	}
	type answer struct {
		status int
		h      http.Header
		none   bool // there was no response
	}
	three := &Retry{Attempts: 3, Codes: defaultRetryCodes}
	withRetryAfter := &Retry{Attempts: 3, Codes: defaultRetryCodes, UseRetryAfter: true}
	for _, c := range []struct {
		name    string
		retry   *Retry
		answers []answer
		waits   []time.Duration // of the retries that followed
		count   int
	}{
		{"no setting", nil, []answer{{status: 500}}, nil, 0},
		{"zero attempts", &Retry{Codes: defaultRetryCodes}, []answer{{status: 500}}, nil, 0},
		{"first call serves", three, []answer{{status: 200}}, nil, 0},
		{"second retry serves", three, []answer{{status: 500}, {status: 429}, {status: 200}}, []time.Duration{time.Second, 2 * time.Second}, 2},
		{"never serves", three, []answer{{status: 500}, {status: 500}, {status: 500}, {status: 500}}, []time.Duration{time.Second, 2 * time.Second, 4 * time.Second}, -1},
		{"five waits", &Retry{Attempts: 5, Codes: []int{503}}, []answer{{status: 503}, {status: 503}, {status: 503}, {status: 503}, {status: 503}, {status: 503}}, []time.Duration{1e9, 2e9, 4e9, 8e9, 16e9}, -1},
		{"status that is not listed", three, []answer{{status: 400}}, nil, 0},
		{"another status after a retry", three, []answer{{status: 500}, {status: 400}}, []time.Duration{time.Second}, 1},
		{"timeout is not listed", three, []answer{{status: 408}}, nil, 0},
		{"timeout when listed", &Retry{Attempts: 1, Codes: []int{408}}, []answer{{status: 408}, {status: 200}}, []time.Duration{time.Second}, 1},
		{"529 is listed", three, []answer{{status: 529}, {status: 200}}, []time.Duration{time.Second}, 1},
		{"a listed success", &Retry{Attempts: 1, Codes: []int{200}}, []answer{{status: 200}, {status: 200}}, []time.Duration{time.Second}, -1},
		{"no status listed", &Retry{Attempts: 2, Codes: []int{}}, []answer{{status: 500}}, nil, 0},
		{"no answer is retried whatever is listed", &Retry{Attempts: 2, Codes: []int{}}, []answer{{none: true}, {none: true}, {none: true}}, []time.Duration{time.Second, 2 * time.Second}, -1},

		{"told seconds", withRetryAfter, []answer{{status: 429, h: after("retry-after", "7")}, {status: 200}}, []time.Duration{7 * time.Second}, 1},
		{"told milliseconds first", withRetryAfter, []answer{{status: 429, h: http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"250"}}}, {status: 200}}, []time.Duration{250 * time.Millisecond}, 1},
		{"told in Azure's way", withRetryAfter, []answer{{status: 429, h: after("x-ms-retry-after-ms", "90")}, {status: 200}}, []time.Duration{90 * time.Millisecond}, 1},
		{"told no wait", withRetryAfter, []answer{{status: 429, h: after("retry-after", "0")}, {status: 200}}, []time.Duration{0}, 1},
		{"told once, no backoff after", withRetryAfter, []answer{{status: 429, h: after("retry-after", "3")}, {status: 500}, {status: 500}, {status: 200}}, []time.Duration{3 * time.Second, 0, 0}, 3},
		{"told a date", withRetryAfter, []answer{{status: 429, h: after("retry-after", "Wed, 21 Oct 2026 07:28:09 GMT")}, {status: 200}}, []time.Duration{9 * time.Second}, 1},
		{"told a date in the past", withRetryAfter, []answer{{status: 429, h: after("retry-after", "Wed, 21 Oct 2026 07:27:00 GMT")}, {status: 200}}, []time.Duration{0}, 1},
		{"told a date that is too far", withRetryAfter, []answer{{status: 429, h: after("retry-after", "Thu, 22 Oct 2026 07:28:00 GMT")}}, nil, -1},
		{"told what is no time", withRetryAfter, []answer{{status: 429, h: after("retry-after", "soon")}, {status: 200}}, []time.Duration{time.Second}, 1},
		{"unreadable milliseconds, then seconds", withRetryAfter, []answer{{status: 429, h: http.Header{"Retry-After": {"7"}, "Retry-After-Ms": {"x"}}}, {status: 200}}, []time.Duration{7 * time.Second}, 1},
		{"backoff and named waits are one sum", withRetryAfter, []answer{{status: 500}, {status: 500}, {status: 429, h: after("retry-after", "58")}}, []time.Duration{time.Second, 2 * time.Second}, -1},
		{"only for 429", withRetryAfter, []answer{{status: 503, h: after("retry-after", "7")}, {status: 200}}, []time.Duration{time.Second}, 1},
		{"only when asked for", three, []answer{{status: 429, h: after("retry-after", "7")}, {status: 200}}, []time.Duration{time.Second}, 1},
		{"too long a wait", withRetryAfter, []answer{{status: 429, h: after("retry-after", "60")}}, nil, -1},
		{"much too long", withRetryAfter, []answer{{status: 429, h: after("retry-after", "1e300")}}, nil, -1},
		{"just short enough", withRetryAfter, []answer{{status: 429, h: after("retry-after-ms", "59999")}, {status: 200}}, []time.Duration{59999 * time.Millisecond}, 1},
		{"waits too long in sum", withRetryAfter, []answer{{status: 429, h: after("retry-after", "40")}, {status: 429, h: after("retry-after", "21")}}, []time.Duration{40 * time.Second}, -1},
		{"negative is not read", withRetryAfter, []answer{{status: 429, h: after("retry-after", "-5")}, {status: 200}}, []time.Duration{time.Second}, 1},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := c.retry.Start()
			var waits []time.Duration
			for i, a := range c.answers {
				h := a.h
				if h == nil {
					h = http.Header{}
				}
				wait, again := s.Next(a.status, h, a.none, sometime)
				if last := i == len(c.answers)-1; again == last {
					t.Fatalf("answer %d: again %v", i, again)
				}
				if again {
					waits = append(waits, wait)
				}
			}
			if len(waits) != len(c.waits) {
				t.Fatalf("waits %v, want %v", waits, c.waits)
			}
			for i := range waits {
				if waits[i] != c.waits[i] {
					t.Errorf("waits %v, want %v", waits, c.waits)
				}
			}
			if s.Count() != c.count {
				t.Errorf("count %d, want %d", s.Count(), c.count)
			}
		})
	}
}

func TestRepeatAfterOutputGuardrails(t *testing.T) {
	s := (&Retry{Attempts: 2, Codes: []int{246, 500}}).Start()
	if _, again := s.Next(500, http.Header{}, false, sometime); !again {
		t.Fatal("the first round retries")
	}
	if !s.Repeat(246) || s.Repeat(246) || s.Count() != 2 {
		t.Errorf("one attempt was left: count %d", s.Count())
	}
	none := (*Retry)(nil).Start()
	if none.Repeat(246) {
		t.Error("without a setting there is no second round")
	}
	other := (&Retry{Attempts: 2, Codes: []int{500}}).Start()
	if other.Repeat(446) {
		t.Error("only listed statuses are repeated")
	}
}
