package plan

import (
	"time"

	"gateway/shared/route"
)

// onlyLooking returns a traversal that changes nothing.
func onlyLooking(ctx route.Context) route.Context {
	if ctx.Breakers != nil {
		ctx.Breakers = watching{ctx.Breakers}
	}
	if ctx.Sticky != nil {
		ctx.Sticky = looking{ctx.Sticky}
	}
	if ctx.Measures != nil {
		ctx.Measures.Looking = true
	}
	return ctx
}

// watching reads breakers and does not change them.
type watching struct{ route.Breakers }

func (watching) Claim(string, *route.Breaker) bool { return true }

func (watching) Release(string) {}

func (watching) Record(string, *route.Breaker, int, bool) {}

// looking reads sticky picks and does not change them.
type looking struct{ route.Sticky }

func (looking) Keep(route.StickyKey, int, time.Duration) {}
