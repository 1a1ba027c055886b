package route

import (
	"math"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/wire"
)

func parseDropParams(r *reader, v value) []string {
	paths := r.texts(v)
	for i, p := range paths {
		if _, ok := parseDropPath(p); !ok {
			r.add(v.path+"["+strconv.Itoa(i)+"]", "must be a path such as metadata.internal, messages[0].name or messages[*].content[*].cache_control")
		}
	}
	return paths
}

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

// parsePromptCache reads {"mode": "auto" or "off", "ttl": "5m" or "1h"}.
func parsePromptCache(r *reader, v value) *PromptCache {
	out := new(PromptCache)
	r.members(v, func(key string, v value) {
		switch key {
		case "mode":
			switch mode := r.text(v); mode {
			case "off":
				out.Off = true
			case "auto", "":
			default:
				r.add(v.path, "must be auto or off")
			}
		case "ttl":
			switch ttl := r.text(v); ttl {
			case "1h":
				out.Hour = true
			case "5m", "":
			default:
				r.add(v.path, "must be 5m or 1h")
			}
		default:
			r.unknown(v, "prompt_cache")
		}
	})
	return out
}

// parseAttempts reads a number of at most MaxRetryAttempts. A higher one is refused in a
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

func parseCache(r *reader, v value) *Cache {
	out := &Cache{}
	mode := value{}
	if v.kind() == wire.KindString {
		mode = v
	} else {
		r.members(v, func(key string, v value) {
			switch key {
			case "mode":
				mode = v
			case "max_age":
				age := time.Duration(r.whole(v, 0)) * time.Second
				out.MaxAge = min(max(age, MinCacheAge), MaxCacheAge)
			case "embedder":
				out.Embedder = parseEmbedder(r, v)
			case "threshold":
				out.Threshold = r.number(v, MinCacheThreshold, 1)
			default:
				r.unknown(v, "cache")
			}
		})
		if mode.raw == nil {
			if v.kind() == wire.KindObject {
				r.add(v.path+".mode", "is required: simple or semantic")
			}
			return out
		}
	}
	out.Mode = r.text(mode)
	if mode.kind() == wire.KindString && out.Mode != "simple" && out.Mode != "semantic" {
		r.add(mode.path, "must be simple or semantic")
	}
	// Configs that were saved before an embedder was required still compare exactly.
	if r.strict && out.Mode == "semantic" && out.Embedder == nil {
		r.add(v.path+".embedder", `is required with the mode semantic: {"provider":"@slug","model":"..."}, the model for comparing texts`)
	}
	return out
}

// parseEmbedder reads the model that a semantic cache compares texts by.
func parseEmbedder(r *reader, v value) *CacheEmbedder {
	out := &CacheEmbedder{}
	var named, modelled bool
	r.members(v, func(key string, v value) {
		switch key {
		case "provider":
			named = true
			s := r.name(v)
			if out.Slug = strings.TrimPrefix(s, "@"); s != "" && (out.Slug == "" || out.Slug == s) {
				r.add(v.path, "must be @ and the slug of a saved provider")
			}
		case "model":
			modelled = true
			out.Model = r.name(v)
		default:
			r.unknown(v, "embedder")
		}
	})
	if v.kind() == wire.KindObject {
		if !named {
			r.add(v.path+".provider", "is required: @ and the slug of a saved provider")
		}
		if !modelled {
			r.add(v.path+".model", "is required: an embedding model")
		}
	}
	return out
}

func parseBreaker(r *reader, v value) *Breaker {
	out := &Breaker{}
	var cooldown bool
	r.members(v, func(key string, v value) {
		switch key {
		case "failure_threshold":
			out.Threshold = int(r.whole(v, 1))
		case "failure_threshold_percentage":
			out.Percentage = r.number(v, 0, 100)
			out.ByRate = true
		case "minimum_requests":
			out.Minimum = int(r.whole(v, 1))
		case "cooldown_interval":
			cooldown = true
			out.Cooldown = time.Duration(r.whole(v, int64(MinCooldown/time.Millisecond))) * time.Millisecond
		case "failure_status_codes":
			out.Codes = r.statuses(v)
		default:
			r.unknown(v, "cb_config")
		}
	})
	if v.kind() != wire.KindObject {
		return out
	}
	if out.Threshold == 0 && !out.ByRate {
		r.add(v.path+".failure_threshold", "is required unless failure_threshold_percentage is set")
	}
	if !cooldown {
		r.add(v.path+".cooldown_interval", "is required")
	}
	return out
}

// parseHooks joins the entries of one side. The result is nil if none of the fields is
// present, and empty if the config has empty lists.
func parseHooks(r *reader, hooks, guardrails, mutators value) []Guardrail {
	var all []Guardrail
	for _, list := range []struct {
		v    value
		form GuardrailForm
	}{{hooks, FormHook}, {guardrails, FormGuardrail}, {mutators, FormMutator}} {
		if list.v.raw == nil {
			continue
		}
		if all == nil {
			all = []Guardrail{}
		}
		r.elements(list.v, func(_ int, v value) {
			switch v.kind() {
			case wire.KindString:
				if slug := r.name(v); slug != "" {
					all = append(all, Guardrail{Field: v.path, Slug: slug, Form: list.form})
				}
			case wire.KindObject:
				all = append(all, parseGuardrail(r, v, list.form))
			default:
				r.add(v.path, "must be the slug of a guardrail or an object")
			}
		})
	}
	return all
}

// parseGuardrail reads an entry that is an object. If it only has an id, it is a reference
// to a saved guardrail.
func parseGuardrail(r *reader, v value, form GuardrailForm) Guardrail {
	id, fields := "", 0
	r.members(v, func(key string, v value) {
		fields++
		if key == "id" {
			id = r.name(v)
		}
	})
	if form == FormHook && id == "" {
		r.add(v.path+".id", "is required")
	}
	if fields == 1 && id != "" {
		return Guardrail{Field: v.path, Slug: id, Form: form}
	}
	return Guardrail{Field: v.path, Raw: slices.Clone(v.raw), Form: form}
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
	failed     bool // retries were configured and did not help
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
		if named, ok := RetryAfter(h, now, maxRetryWait); ok {
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
// did, -1 if the retries did not help.
func (s *Schedule) Count() int {
	if s.failed {
		return -1
	}
	return s.used
}

// RetryAfter parses the wait that the provider requests, at most most: first as milliseconds, then as
// seconds, then as a date, which is compared with now. A date in the past means no wait.
func RetryAfter(h http.Header, now time.Time, most time.Duration) (time.Duration, bool) {
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
		if n*float64(source.unit) > float64(most) {
			return most, true
		}
		return time.Duration(n * float64(source.unit)), true
	}
	if at, err := http.ParseTime(h.Get("Retry-After")); err == nil {
		return min(max(at.Sub(now), 0), most), true
	}
	return 0, false
}
