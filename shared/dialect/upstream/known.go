package upstream

import (
	"math"
	"strconv"

	"gateway/shared/pricing"
	"gateway/shared/wire"
)

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
	if n := Number(d); n >= 0 {
		*k = Known(n + 1)
	}
}

// Number reads a count, however a host writes it: a part of a unit is a whole one, and
// what nothing can count is the most that is charged. -1: it is below nothing, which
// some hosts mean as "not known".
func Number(d *wire.Decoder) int64 {
	v, err := strconv.ParseFloat(string(d.Num()), 64)
	switch {
	case v < 0 || err != nil && v == 0:
		return -1
	case v >= pricing.MaxUnits:
		return pricing.MaxUnits
	}
	return int64(math.Ceil(v))
}
