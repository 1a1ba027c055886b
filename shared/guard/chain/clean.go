package chain

import (
	"context"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
)

// Clean reports whether all checks of local hooks pass a text of a response unchanged. It
// produces no results and is therefore much cheaper than Run for the pieces of a stream. If it
// returns false, Run must decide.
func (hs Hooks) Clean(ctx context.Context, c *Call, text string) (clean bool) {
	if c.Budget == nil || !hs.Local() {
		return false
	}
	defer func() {
		if recover() != nil {
			clean = false
		}
	}()
	_ = c.Budget.Spend(ctx, func(ctx context.Context) {
		s := judge.Subject{
			Phase: guard.After, Kind: c.Kind, Provider: c.Provider, Model: c.Model, Stream: c.Stream, Status: c.Status, TraceID: c.TraceID,
			Texts: []string{text}, Request: c.Request, Metadata: c.Metadata, Headers: c.Headers,
		}
		for _, h := range hs {
			for i := range h.checks {
				k := &h.checks[i]
				if s.Parameters, s.Saved = k.parameters, k.saved; !k.runs(guard.After) || k.reach.Complete {
					return
				}
				if v := k.run(ctx, &s); !v.Pass || v.Err != nil || v.Texts != nil || v.Body != nil {
					return
				}
			}
		}
		clean = true
	})
	return clean
}
