package logs

import "gateway/shared/usage"

// hookResults are the verdicts of the guardrails of a request. They come from its record, so
// that they are there for streams and for logs without bodies too, and quote no text.
type hookResults struct {
	Before []hookResult `json:"before_request_hooks"`
	After  []hookResult `json:"after_request_hooks"`
}

type hookResult struct {
	ID          string        `json:"id"`
	Target      string        `json:"target" doc:"Path of the target in the config."`
	Verdict     bool          `json:"verdict"`
	Deny        bool          `json:"deny" doc:"It failed and denies."`
	Async       bool          `json:"async"`
	Transformed bool          `json:"transformed"`
	Time        int64         `json:"execution_time" doc:"Milliseconds."`
	Checks      []failedCheck `json:"checks" doc:"Tests that failed or could not be run."`
}

type failedCheck struct {
	ID      string `json:"id"`
	Verdict bool   `json:"verdict"`
	Errored bool   `json:"errored"`
}

func hooksOf(r *usage.Record) hookResults {
	out := hookResults{[]hookResult{}, []hookResult{}}
	for i := range r.Guards {
		g := &r.Guards[i]
		one := hookResult{g.Hook, g.Path, g.Verdict, g.Denied, g.Async, g.Transformed, g.TookMS, []failedCheck{}}
		for _, id := range g.Failed {
			one.Checks = append(one.Checks, failedCheck{ID: id})
		}
		for _, id := range g.Errored {
			one.Checks = append(one.Checks, failedCheck{ID: id, Errored: true})
		}
		if g.Phase == usage.GuardBefore {
			out.Before = append(out.Before, one)
		} else {
			out.After = append(out.After, one)
		}
	}
	return out
}
