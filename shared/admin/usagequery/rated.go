package usagequery

import (
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/tenant"
	"gateway/shared/usage/feedback"
	"gateway/shared/usage/report"
)

// MaxFeedback is how many feedbacks one question reads.
const MaxFeedback = 50_000

// MaxKeptTraces is how many traces a filter that is stored may name.
const MaxKeptTraces = 5_000

// early is how long before its request feedback may have been given, because clocks differ
// and clients may name traces beforehand.
const early = time.Hour

// Workspaces returns the workspace scopes that store the feedback of a scope.
func Workspaces(c *admin.Call, sc store.Scope) ([]store.Scope, error) {
	if sc.Workspace != "" {
		return []store.Scope{sc}, nil
	}
	rows, err := c.Resources.List(c.Context, sc, tenant.KindWorkspace)
	if err != nil {
		return nil, err
	}
	scopes := make([]store.Scope, len(rows))
	for i := range rows {
		scopes[i] = store.Scope{Org: sc.Org, Workspace: rows[i].ID}
	}
	return scopes, nil
}

// Ratings are the samples of weighted feedback by trace that requests since from may
// have got.
func Ratings(c *admin.Call, rated *feedback.Store, sc store.Scope, from time.Time) (map[string]*report.Sample, error) {
	scopes, err := Workspaces(c, sc)
	if err != nil {
		return nil, err
	}
	out, n := map[string]*report.Sample{}, 0
	for _, in := range scopes {
		err := rated.Between(c.Context, in, from.Add(-early), c.Now.Add(time.Second), func(r *feedback.Feedback) bool {
			if n++; n > MaxFeedback {
				return false
			}
			if out[r.Trace] == nil {
				out[r.Trace] = new(report.Sample)
			}
			out[r.Trace].Add(r.Weighted())
			return true
		})
		if err != nil {
			return nil, err
		}
		if n > MaxFeedback {
			return nil, fault.Invalid(From, "is so long ago that there are more than %d feedbacks since; narrow the time", MaxFeedback)
		}
	}
	return out, nil
}

// Rated replaces limits on weighted feedback by the traces with a mean within them, at most
// most. A filter without such limits is unchanged.
func Rated(c *admin.Call, rated *feedback.Store, sc store.Scope, f *report.Filter, most int) error {
	if f.Feedback.Unlimited() {
		return nil
	}
	of, err := Ratings(c, rated, sc, f.From)
	if err != nil {
		return err
	}
	var passing []string
	for trace, s := range of {
		if f.Feedback.HasCents(s.Mean()) {
			passing = append(passing, trace)
		}
	}
	if f.KeepTraces(passing); len(f.TraceIDs) > most {
		return fault.Invalid("weighted_feedback_min", "with weighted_feedback_max chooses %d traces; narrow them or the time to at most %d", len(f.TraceIDs), most)
	}
	f.Feedback = report.Range{}
	return nil
}
