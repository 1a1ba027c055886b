package upstream

import "gateway/shared/wire"

// Known is a count with one added, so that 0 is "not given". It takes half the
// room of an optional count where many are kept through a stream.
type Known int64

// Get is the count; 0 when it was not given.
func (k Known) Get() int64 { return max(0, int64(k)-1) }

// Read reads a whole number of at least 0; anything else leaves k as it was.
func (k *Known) Read(d *wire.Decoder) {
	if d.Kind() != wire.KindNumber {
		d.Skip()
		return
	}
	if n := d.Int(); n >= 0 {
		*k = Known(n + 1)
	}
}
