package upstream

import (
	"math"
	"strconv"

	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Known is a count plus one, so that 0 means "not given". It takes half the memory of an
// optional count, which matters where many are kept during a stream.
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

// Number reads a count in any form that hosts write. A part of a unit counts as a whole
// one, and a number too large to count becomes the most that is charged. -1 is given for
// numbers below nothing, by which some hosts mean "not known".
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
