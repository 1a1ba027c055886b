package plane

import (
	"gateway/shared/app"
	"gateway/shared/relay"
	"gateway/shared/relay/batchrun"
)

// Runner gives what batches run with: mux serves the routes that rows call, and the routes
// of files and batches.
func Runner(c *app.Core, r *relay.Relay, mux *relay.Mux, pace batchrun.Timing) batchrun.Options {
	return batchrun.Options{
		Mux: mux, Batches: r.Batches(), Files: r.Files, Queue: c.RunQueue, Now: c.Now, Timing: pace, Alone: c.Embedded,
	}
}
