package upstream

import (
	"errors"
	"math"
	"strconv"
	"strings"

	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Known is a count plus one, so that 0 means "not given". It takes half the memory of an
// optional count, which matters if many are stored during a stream.
type Known int64

// Get is the count; 0 when it was not given.
func (k Known) Get() int64 { return max(0, int64(k)-1) }

// Read reads an integer of at least 0; anything else leaves k as it was.
func (k *Known) Read(d *wire.Decoder) {
	if n, ok := OptNumber(d); ok && n >= 0 {
		*k = Known(n + 1)
	}
}

// OptNumber reads a count that may be written as a string. ok is false, and the value is
// skipped, for anything that is not a number.
func OptNumber(d *wire.Decoder) (n int64, ok bool) {
	switch d.Kind() {
	case wire.KindNumber:
		return Number(d), true
	case wire.KindString:
		text := strings.TrimSpace(d.Str())
		if text == "" || text[0] != '-' && (text[0] < '0' || text[0] > '9') { // ParseFloat also reads "inf"
			return 0, false
		}
		v, err := strconv.ParseFloat(text, 64)
		if err != nil && !errors.Is(err, strconv.ErrRange) {
			return 0, false
		}
		return units(v), true
	}
	d.Skip()
	return 0, false
}

// Number reads a count in any form that hosts write. A part of a unit counts as one
// one, and a number too large to count becomes pricing.MaxUnits. It returns -1 for
// negative numbers, by which some hosts mean "not known".
func Number(d *wire.Decoder) int64 {
	v, err := strconv.ParseFloat(string(d.Num()), 64)
	if err != nil && v == 0 {
		return -1
	}
	return units(v)
}

func units(v float64) int64 {
	switch {
	case v < 0 || math.IsNaN(v):
		return -1
	case v >= pricing.MaxUnits:
		return pricing.MaxUnits
	}
	return int64(math.Ceil(v))
}
