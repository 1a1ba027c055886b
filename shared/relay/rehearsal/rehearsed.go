package rehearsal

import (
	"context"
	"encoding/json"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/route"
	"gateway/shared/usage"
)

// Answer is the response of a dry run.
type Answer struct {
	Object   string            `json:"object"`
	Endpoint string            `json:"endpoint"`
	Config   *Config           `json:"config"`
	Targets  []Target          `json:"targets"`
	Limits   []Limit           `json:"limits"` // of the key and the workspace
	Decision rehearsedDecision `json:"decision"`
	Error    *Error            `json:"error"` // why the request would be rejected regardless of the targets
	Sent     bool              `json:"sent"`
}

type Config struct {
	ID      string `json:"id"`
	Slug    string `json:"slug"`
	Version int64  `json:"version"`
	Mode    string `json:"mode"`
}

type Target struct {
	Path       string            `json:"path"`
	Provider   string            `json:"provider"`
	Slug       *string           `json:"slug"`
	Model      string            `json:"model"`
	Method     string            `json:"method,omitempty"`
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"` // secrets redacted
	Body       json.RawMessage   `json:"body,omitempty"`
	Stream     bool              `json:"stream"`
	PriceBound *Bound            `json:"price_bound,omitempty"`
	Losses     []Loss            `json:"losses"`
	Limits     []Limit           `json:"limits"`
	Guardrails []string          `json:"guardrails"`
	// Verdicts are those of the input guardrails that call no external service:
	// before_request_hooks.
	Verdicts  json.RawMessage `json:"hook_results,omitempty"`
	Cache     *Cache          `json:"cache"`
	Retries   int             `json:"retries"`
	TimeoutMS int64           `json:"timeout_ms"`
	Answered  bool            `json:"answered_here"` // the gateway responds without the provider
	Error     *Error          `json:"error"`
	Assumed   int             `json:"assumed_status"`
}

type Bound struct {
	Cents  float64 `json:"cents"`
	Tokens int64   `json:"tokens"`
	Priced bool    `json:"priced"`
}

type Loss struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

type Cache struct {
	Mode   string `json:"mode"`
	MaxAge int64  `json:"max_age"`
}

type Limit struct {
	Kind    string               `json:"kind"`
	Name    string               `json:"name"`
	Rates   []ledger.RateLimit   `json:"rate_limits"`
	Budgets []ledger.BudgetState `json:"usage_limits"`
}

type Error struct {
	Status  int    `json:"status"`
	Code    string `json:"code"`
	Field   string `json:"field,omitempty"`
	Message string `json:"message"`
	// Errors are all faults, if the fault lists fields.
	Errors []rehearsedDetail `json:"errors,omitempty"`
}

type rehearsedDetail struct {
	Field   string `json:"field"`
	Message string `json:"message"`
}

// rehearsedDecision has the format of the decision in a log.
type rehearsedDecision struct {
	Draws    []map[string]any      `json:"draws"`
	Measured []usage.MeasuredShown `json:"measured"`
	Matches  []map[string]any      `json:"matches"`
	Breakers []map[string]any      `json:"breakers"`
	Skips    []map[string]any      `json:"skips"`
}

// orNull returns nil for an empty text.
func orNull(s string) any {
	if s == "" {
		return nil
	}
	return s
}

func NoDecision() rehearsedDecision {
	return rehearsedDecision{Draws: []map[string]any{}, Measured: []usage.MeasuredShown{}, Matches: []map[string]any{}, Breakers: []map[string]any{}, Skips: []map[string]any{}}
}

func DecisionOf(w *route.Walk) rehearsedDecision {
	d := NoDecision()
	for _, v := range w.Draws(nil) {
		d.Draws = append(d.Draws, map[string]any{"path": v.Path, "number": float64(v.Number) / (1 << 32), "chosen": v.Chosen, "sticky": orNull(v.Sticky)})
	}
	d.Measured = usage.ShowMeasured(w.Measured(nil))
	for _, v := range w.Matches(nil) {
		d.Matches = append(d.Matches, map[string]any{"path": v.Path, "condition": v.Condition, "chosen": v.Chosen})
	}
	for _, v := range w.Breakers(nil) {
		d.Breakers = append(d.Breakers, map[string]any{"path": v.Path, "open": v.Open, "probe": v.Probe})
	}
	for _, v := range w.Skips(nil) {
		d.Skips = append(d.Skips, map[string]any{"path": v.Path, "reason": v.Reason, "code": orNull(string(v.Code)), "status": v.Status})
	}
	return d
}

func Told(err error) *Error {
	f := fault.From(err)
	out := &Error{Status: f.Status(), Code: string(f.Code), Field: f.Field, Message: f.Message}
	for _, d := range f.Details {
		out.Errors = append(out.Errors, rehearsedDetail{d.Field, d.Message})
	}
	return out
}

// Limits returns limits and the state of their budgets.
func Limits(ctx context.Context, from *ledger.Ledger, subjects ...*ledger.Subject) ([]Limit, error) {
	out := []Limit{}
	for _, s := range subjects {
		if s == nil || len(s.Rates)+len(s.Budgets) == 0 {
			continue
		}
		budgets, err := from.State(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, Limit{Kind: s.Kind, Name: s.Label, Rates: orEmpty(s.Rates), Budgets: orEmpty(budgets)})
	}
	return out, nil
}
