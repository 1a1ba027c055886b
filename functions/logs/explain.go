package logs

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"gateway/shared/admin"
	"gateway/shared/chat"
	"gateway/shared/pricing"
	"gateway/shared/usage"
	"gateway/shared/usage/report"
)

// step is one decision about a request: a text, and the values that it was based on.
type step struct {
	Step      string   `json:"step" enum:"config,condition,draw,measure,breaker,guardrail,skip,attempt,cache,translation,answer"`
	Path      *string  `json:"path"` // of the config
	Text      string   `json:"text"`
	Index     *int     `json:"index"`     // chosen target, or the condition that held
	Number    *float64 `json:"number"`    // drawn, from 0 to 1
	Status    *int     `json:"status"`    // of a response or a rejection
	Code      *string  `json:"code"`      // of a failure
	StartMS   *float64 `json:"start_ms"`  // from arrival
	ElapsedMS *float64 `json:"took_ms"`   // to the head of the response
	WaitedMS  *float64 `json:"waited_ms"` // before a retry
}

// explanation is the response.
type explanation struct {
	Object string      `json:"object" enum:"explanation"`
	LogID  string      `json:"log_id"`
	Status int         `json:"status"`
	Steps  []step      `json:"steps"`
	Cost   float64     `json:"cost" doc:"In cost_unit."`
	Unit   string      `json:"cost_unit" enum:"cents"`
	USD    json.Number `json:"cost_usd" doc:"Exact value of cost in US dollars."`
	Timing times       `json:"timing"`
}

// times is where the time of a request went, from its arrival.
type times struct {
	Total     float64  `json:"total_ms"`
	FirstByte float64  `json:"first_byte_ms" doc:"Time to the first byte of the response."`
	Gateway   float64  `json:"gateway_ms" doc:"Total time without waiting for providers."`
	FirstCall *float64 `json:"first_call_ms" doc:"Time to the first call to a provider; null: none was called."`
}

// explain returns the reasons for the routing of a request.
func (f *family) explain(c *admin.Call) (any, error) {
	rec, err := f.record(c)
	if err != nil {
		return nil, err
	}
	all := steps(&rec)
	if err := nameHosts(c, &rec, all); err != nil {
		return nil, err
	}
	return explanation{"explanation", rec.ID, int(rec.ClientStatus), all, report.Cents(rec.Cost), pricing.CostUnit, rec.Cost.USD(), timing(&rec)}, nil
}

func timing(r *usage.Record) times {
	out := times{Total: milliseconds(r.Duration), FirstByte: milliseconds(r.TimeToFirstByte), Gateway: milliseconds(r.GatewayTime)}
	if len(r.Attempts) > 0 {
		first := milliseconds(r.Attempts[0].Start)
		out.FirstCall = &first
	}
	return out
}

// steps are in the order of the walk: the config, what its strategies chose at each place,
// the calls, the response. The choices of a place come before what happened below it; the
// guardrails of a response, and its denial, follow the calls of its target.
func steps(r *usage.Record) []step {
	out := []step{configStep(r)}
	var within []step
	within = append(within, conditions(r)...)
	within = append(within, draws(r)...)
	within = append(within, measured(r)...)
	within = append(within, breakers(r)...)
	within = append(within, guards(r, usage.GuardBefore)...)
	within = append(within, skips(r)...)
	slices.SortStableFunc(within, func(a, b step) int { return comparePaths(*a.Path, *b.Path) })
	out = append(out, within...)
	hit := strings.HasSuffix(r.CacheStatus, "HIT") // of the target after those that were called
	if r.CacheStatus != "" && !hit {
		out = append(out, cached(r))
	}
	if out = append(out, called(r)...); hit {
		out = append(out, cached(r))
	}
	for _, lost := range r.Losses {
		text := lost + " was not sent to the provider"
		if path, ok := chat.ResponsePath(lost); ok {
			text = path + " of the response cannot be represented in the client's format"
		}
		out = append(out, step{Step: "translation", Text: text})
	}
	return append(out, outcome(r))
}

// comparePaths orders places of a config from the root down, targets by number.
func comparePaths(a, b string) int {
	return slices.CompareFunc(indices(a), indices(b), cmp.Compare[int])
}

func indices(path string) []int {
	var out []int
	for _, part := range strings.Split(path, "[")[1:] {
		n, _ := strconv.Atoi(part[:max(strings.IndexByte(part, ']'), 0)])
		out = append(out, n)
	}
	return out
}

func configStep(r *usage.Record) step {
	s := step{Step: "config", Text: "No config applied: the request itself named the provider"}
	switch {
	case r.ConfigID != "":
		s.Text = fmt.Sprintf("Config %s, version %d, applied; its strategy is %s", r.ConfigSlug, r.ConfigVersion, or(r.Mode, "single"))
		s.Path = pathOf("config")
	case r.Mode != "":
		s.Text, s.Path = "The request contained a config; its strategy is "+r.Mode, pathOf("config")
	}
	return s
}

func or(s, otherwise string) string {
	if s == "" {
		return otherwise
	}
	return s
}

func pathOf(s string) *string { return &s }

func conditions(r *usage.Record) []step {
	out := make([]step, len(r.Matches))
	for i := range r.Matches {
		m := &r.Matches[i]
		text := fmt.Sprintf("Condition %d held, those before it did not: target %d", m.Condition, m.Index)
		if m.Condition < 0 {
			text = fmt.Sprintf("No condition held: the default, target %d", m.Index)
		}
		out[i] = step{Step: "condition", Path: &m.Path, Index: &m.Condition, Text: text}
	}
	return out
}

func draws(r *usage.Record) []step {
	out := make([]step, len(r.Draws))
	for i := range r.Draws {
		d := &r.Draws[i]
		number := float64(d.Number) / (1 << 32)
		out[i] = step{Step: "draw", Path: &d.Path, Index: &d.Index, Number: &number}
		switch d.Sticky {
		case usage.StickyReused:
			out[i].Number, out[i].Text = nil, fmt.Sprintf("An earlier request with the same sticky fields went to target %d", d.Index)
		case usage.StickyHash:
			out[i].Text = fmt.Sprintf("The hash of the sticky fields is %.4f: target %d", number, d.Index)
		default:
			out[i].Text = fmt.Sprintf("Drew %.4f by weight: target %d", number, d.Index)
		}
	}
	return out
}

// measured returns the figures by which targets were chosen.
func measured(r *usage.Record) []step {
	out := make([]step, len(r.Measured))
	for i := range r.Measured {
		m := &r.Measured[i]
		out[i] = step{Step: "measure", Path: &m.Path, Index: &m.Index, Text: fmt.Sprintf("Strategy %s chose target %d: %s", m.By, m.Index, measuredTexts[m.Reason])}
		for _, f := range m.Figures {
			shown := f.Describe(m.By)
			text := fmt.Sprintf("; target %d: ", f.Index)
			if shown.Value == nil {
				text += "unknown"
			} else {
				text += strconv.FormatFloat(*shown.Value, 'g', 6, 64) + " " + shown.Unit
			}
			if m.By == usage.ByLatency {
				text += fmt.Sprintf(" of %d", f.Observed)
			}
			if f.Avoided {
				text += ", avoided after failures"
			}
			out[i].Text += text
		}
	}
	return out
}

var measuredTexts = map[string]string{
	usage.ReasonBest: "it has the lowest figure", usage.ReasonTie: "it is one of several with equal figures", usage.ReasonExplore: "it was measured again (explore)",
	usage.ReasonTooFew: "it has too few observations", usage.ReasonUnknown: "no figures were known", usage.ReasonAllFailing: "all targets were failing",
	usage.ReasonSticky: "an earlier request with the same sticky fields went there", usage.ReasonRecorded: "as recorded",
}

func breakers(r *usage.Record) []step {
	out := make([]step, len(r.Breakers))
	for i := range r.Breakers {
		b := &r.Breakers[i]
		out[i] = step{Step: "breaker", Path: &b.Path, Text: "The circuit breaker of this target was closed"}
		switch {
		case b.Probe:
			out[i].Text = "The cooldown of this target's circuit breaker was over: one request at a time may try it"
		case b.Open:
			out[i].Text = "The circuit breaker of this target was open"
		}
	}
	return out
}

// guards returns the results of the guardrails of a phase, for each attempted target.
func guards(r *usage.Record, phase string) []step {
	var out []step
	for i := range r.Guards {
		g := &r.Guards[i]
		if (g.Phase == usage.GuardAfter) != (phase == usage.GuardAfter) {
			continue
		}
		text := "The guardrail " + g.Hook + " before this target"
		if phase == usage.GuardAfter {
			text = "The guardrail " + g.Hook + " of this target's response"
		}
		switch {
		case g.Verdict:
			text += " passed"
		case g.Denied:
			text += " failed and denied: " + strings.Join(g.Failed, ", ")
		default:
			text += " failed: " + strings.Join(g.Failed, ", ")
		}
		if g.Transformed {
			text += ", and changed the text"
		}
		if len(g.Errored) > 0 {
			text += "; errors in " + strings.Join(g.Errored, ", ")
		}
		elapsed := float64(g.LatencyMS)
		out = append(out, step{Step: "guardrail", Path: &g.Path, Text: text, ElapsedMS: &elapsed})
	}
	return out
}

// skips returns the targets that were not called.
func skips(r *usage.Record) []step {
	var out []step
	for i := range r.Skips {
		if s := &r.Skips[i]; !wasCalled(r, s) {
			out = append(out, skipped(s, "Rejected by the gateway before any call"))
		}
	}
	return out
}

// wasCalled reports whether a target was rejected after its call, as by a guardrail of its
// response.
func wasCalled(r *usage.Record, s *usage.Skip) bool {
	return s.Reason == usage.SkipRejected && slices.ContainsFunc(r.Attempts, func(a usage.Attempt) bool { return pathOfCall(&a) == s.Path })
}

func skipped(s *usage.Skip, rejected string) step {
	out := step{Step: "skip", Path: &s.Path, Text: rejected}
	switch s.Reason {
	case usage.SkipOpen:
		out.Text = "Skipped: its circuit breaker was open"
	case usage.SkipProbe:
		out.Text = "Skipped: another request was trying it"
	}
	if s.Code != "" {
		out.Code, out.Status = &s.Code, &s.Status
		out.Text += ": " + s.Code
	}
	return out
}

func pathOfCall(a *usage.Attempt) string { return or(a.OptionIndex, "config") }

// called returns the calls. What was decided about the response of a target follows its last
// call; a target is called any number of times in a row.
func called(r *usage.Record) []step {
	out := calls(r)
	var after []step
	after = append(after, guards(r, usage.GuardAfter)...)
	for i := range r.Skips {
		if s := &r.Skips[i]; wasCalled(r, s) {
			after = append(after, skipped(s, "Its response was rejected by the gateway"))
		}
	}
	for _, s := range after {
		at := len(out)
		for i := range out {
			if *out[i].Path == *s.Path {
				at = i + 1
			}
		}
		out = slices.Insert(out, at, s)
	}
	return out
}

var cacheTexts = map[string]string{
	"HIT": "Answered from the cache: the same request was answered before", "SEMANTIC HIT": "Answered from the cache: a request with a similar meaning was answered before",
	"MISS": "Not in the cache", "SEMANTIC MISS": "No request with a similar meaning in the cache",
	"REFRESH": "The caller requested a fresh response: the cache was not read", "DISABLED": "No cache was configured",
}

func cached(r *usage.Record) step {
	return step{Step: "cache", Text: or(cacheTexts[r.CacheStatus], r.CacheStatus), Code: &r.CacheStatus}
}

func calls(r *usage.Record) []step {
	out := make([]step, len(r.Attempts))
	for i := range r.Attempts {
		a := &r.Attempts[i]
		to := a.Provider
		if a.ProviderSlug != "" {
			to = "@" + a.ProviderSlug
		}
		text := fmt.Sprintf("Called %s with model %s", to, or(a.Model, "(none)"))
		if a.Retry > 0 {
			text = fmt.Sprintf("Called %s again, retry %d", to, a.Retry)
		}
		if a.Credential != "" {
			text += fmt.Sprintf(", credential %q", a.Credential)
		}
		if a.Status == 0 {
			text += ": no response"
		} else {
			text += fmt.Sprintf(": %d", a.Status)
		}
		s := step{Step: "attempt", Path: pathOf(pathOfCall(a)), Text: text, Status: &a.Status, StartMS: ms(a.Start), ElapsedMS: ms(a.Latency)}
		if a.ErrorCode != "" {
			s.Code = &a.ErrorCode
			s.Text += " " + a.ErrorCode
		}
		if a.WaitReason == usage.WaitHedge {
			s.WaitedMS = ms(a.Wait)
			s.Text += ", the second attempt of a hedge"
		}
		if a.Retry > 0 {
			s.WaitedMS = ms(a.Wait)
			if a.WaitReason == usage.WaitNamed {
				s.Text += ", after the time that the provider requested"
			}
		}
		out[i] = s
	}
	return out
}

func ms(d time.Duration) *float64 {
	v := milliseconds(d)
	return &v
}

func outcome(r *usage.Record) step {
	s := step{Step: "answer", Status: &r.ClientStatus, Text: fmt.Sprintf("Answered %d", r.ClientStatus), ElapsedMS: ms(r.Duration)}
	if r.OptionIndex != "" {
		s.Path = &r.OptionIndex
	}
	switch {
	case r.ErrorCode != "":
		s.Code = &r.ErrorCode
		s.Text += " " + r.ErrorCode
	case r.FinishReason != "":
		s.Text += ", ended by the provider with " + r.FinishReason
	}
	if r.ClientGone {
		s.Text += "; the client had disconnected"
	}
	if r.Unconfirmed {
		s.Text += "; charged at its upper limit, since no usage was reported"
	}
	return s
}
