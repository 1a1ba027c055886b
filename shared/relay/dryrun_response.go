package relay

import (
	"context"
	"encoding/json"

	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/route"
	"gateway/shared/usage"
)

// DryRunResponse is the response of a dry run.
type DryRunResponse struct {
	Object   string            `json:"object"`
	Endpoint string            `json:"endpoint"`
	Config   *DryRunConfig     `json:"config"`
	Targets  []DryRunTarget    `json:"targets"`
	Limits   []DryRunLimit     `json:"limits"` // of the key and the workspace
	Decision rehearsedDecision `json:"decision"`
	Error    *DryRunError      `json:"error"` // why the request would be rejected regardless of the targets
	Sent     bool              `json:"sent"`
}

type DryRunConfig struct {
	ID      string `json:"id"`
	Slug    string `json:"slug"`
	Version int64  `json:"version"`
	Mode    string `json:"mode"`
}

type DryRunTarget struct {
	Path       string            `json:"path"`
	Provider   string            `json:"provider"`
	Slug       *string           `json:"slug"`
	Model      string            `json:"model"`
	Credential string            `json:"credential,omitempty"` // label of one of several
	Method     string            `json:"method,omitempty"`
	URL        string            `json:"url,omitempty"`
	Headers    map[string]string `json:"headers,omitempty"` // secrets redacted
	Body       json.RawMessage   `json:"body,omitempty"`
	Stream     bool              `json:"stream"`
	PriceBound *DryRunBound      `json:"price_bound,omitempty"`
	Losses     []DryRunLoss      `json:"losses"`
	Limits     []DryRunLimit     `json:"limits"`
	Guardrails []string          `json:"guardrails"`
	// Verdicts are those of the input guardrails that call no external service:
	// before_request_hooks.
	Verdicts  json.RawMessage `json:"hook_results,omitempty"`
	Cache     *DryRunCache    `json:"cache"`
	Retries   int             `json:"retries"`
	TimeoutMS int64           `json:"timeout_ms"`
	Answered  bool            `json:"answered_here"` // the gateway responds without the provider
	Error     *DryRunError    `json:"error"`
	Assumed   int             `json:"assumed_status"`
	Hedge     *DryRunHedge    `json:"hedge"` // null: no second attempt
}

// DryRunHedge is the second attempt that is made if the target is slow.
type DryRunHedge struct {
	Path    string  `json:"path"` // of the other target
	AfterMS float64 `json:"after_ms"`
}

type DryRunBound struct {
	Cents  float64 `json:"cents"`
	Tokens int64   `json:"tokens"`
	Priced bool    `json:"priced"`
}

type DryRunLoss struct {
	Path   string `json:"path"`
	Reason string `json:"reason"`
}

type DryRunCache struct {
	Mode   string `json:"mode"`
	MaxAge int64  `json:"max_age"`
}

type DryRunLimit struct {
	Kind    string               `json:"kind"`
	Name    string               `json:"name"`
	Rates   []ledger.RateLimit   `json:"rate_limits"`
	Budgets []ledger.BudgetState `json:"usage_limits"`
}

type DryRunError struct {
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

func DecisionOf(w *route.Traversal) rehearsedDecision {
	d := NoDecision()
	for _, v := range w.AppendDraws(nil) {
		d.Draws = append(d.Draws, map[string]any{"path": v.Path, "number": float64(v.Number) / (1 << 32), "chosen": v.Index, "sticky": orNull(v.Sticky)})
	}
	d.Measured = usage.DescribeMeasured(w.Measured(nil))
	for _, v := range w.Matches(nil) {
		d.Matches = append(d.Matches, map[string]any{"path": v.Path, "condition": v.Condition, "chosen": v.Index})
	}
	for _, v := range w.Breakers(nil) {
		d.Breakers = append(d.Breakers, map[string]any{"path": v.Path, "open": v.Open, "probe": v.Probe})
	}
	for _, v := range w.Skips(nil) {
		d.Skips = append(d.Skips, map[string]any{"path": v.Path, "reason": v.Reason, "code": orNull(string(v.Code)), "status": v.Status})
	}
	return d
}

func DryRunResult(err error) *DryRunError {
	f := fault.From(err)
	out := &DryRunError{Status: f.Status(), Code: string(f.Code), Field: f.Field, Message: f.Message}
	for _, d := range f.Details {
		out.Errors = append(out.Errors, rehearsedDetail{d.Field, d.Message})
	}
	return out
}

// DryRunLimits returns limits and the state of their budgets.
func DryRunLimits(ctx context.Context, from *ledger.Ledger, subjects ...*ledger.Subject) ([]DryRunLimit, error) {
	out := []DryRunLimit{}
	for _, s := range subjects {
		if s == nil || len(s.Rates)+len(s.Budgets) == 0 {
			continue
		}
		budgets, err := from.State(ctx, s)
		if err != nil {
			return nil, err
		}
		out = append(out, DryRunLimit{Kind: s.Kind, Name: s.Label, Rates: orEmpty(s.Rates), Budgets: orEmpty(budgets)})
	}
	return out, nil
}
