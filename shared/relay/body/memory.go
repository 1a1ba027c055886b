package body

import (
	"encoding/json"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// Memory is the reusable memory of a request's body.
type Memory struct {
	walk       wire.Walk
	checked    chat.Checked
	merged     map[string]string
	params     func(name string) (json.RawMessage, bool)
	afterwards []func()
}

// Leftover returns the memory of a finished body, cleared for the next one. spare: its bytes are
// no longer read.
func (b *Body) Leftover(spare bool) Memory {
	afterwards := b.Req.End()
	if spare {
		b.inBuf.Free()
	}
	b.walk.Spans = b.walk.Spans[:0] // of another body
	b.checked.Keys = nil            // of another body
	clear(b.checked.Excess)
	b.checked.Excess = b.checked.Excess[:0]
	clear(b.merged)
	return Memory{b.walk, b.checked, b.merged, b.params, afterwards}
}

// Reuse gives an empty body the memory of a finished one.
func (b *Body) Reuse(m Memory) {
	b.walk, b.checked, b.merged, b.params, b.Req.Afterwards = m.walk, m.checked, m.merged, m.params, m.afterwards
}
