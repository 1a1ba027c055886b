//go:build !core

package assembly

import "gateway/shared/app/plane"

// Files, batches and fine-tuning of hosts that have another format than OpenAI's for them.
func init() {
	parts = append(parts, part{plane: func(o *plane.Options) { o.Jobs = plane.Jobs() }})
}
