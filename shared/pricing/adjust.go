package pricing

import (
	"math"
	"math/bits"

	"gateway/shared/fault"
)

// Adjustments are an integration's multipliers on prices (pricing_adjustments):
// negotiated discounts or internal surcharges.
type Adjustments struct {
	by  [NumClasses]int64 // millionths
	min int64             // of the per-minute price, millionths
}

// one is a multiplier of 1.
const one = 1_000_000

// ParseAdjustments reads {"multiplier": {default, request_token, ..., image: {default},
// additional_units: {unit}}}. Every multiplier is a number of at least 0, rounded to six
// decimal places. If it is absent or null, default applies, which is 1 when absent. field names
// the value in the errors.
func ParseAdjustments(raw []byte, field string) (*Adjustments, []fault.Detail) {
	var errs []fault.Detail
	top := readObject(raw, field, &errs)
	body, ok := top.take("multiplier")
	if !ok {
		if top.members != nil {
			top.fail("multiplier", "is required: an object of numbers")
		}
		return nil, errs
	}
	o := readObject(body, field+".multiplier", &errs)
	all := int64(one)
	if m, ok := o.multiplier("default"); ok {
		all = m
	}
	a := &Adjustments{min: all}
	for c := range a.by {
		a.by[c] = all
	}
	text := func(key string, classes ...Class) {
		if m, ok := o.multiplier(key); ok {
			for _, c := range classes {
				a.by[c] = m
			}
		}
	}
	for _, w := range wireClass {
		switch w.key {
		case "cached_text_input_token", "cached_image_input_token":
		case "cache_write_input_token", "cache_write_text_input_token":
			text(w.key, CacheWrite5m, CacheWrite1h)
		default:
			text(w.key, w.class)
		}
	}
	a.min = a.by[AudioIn]
	// Every provider in the book bills predicted tokens as output and image cache writes as
	// input. So these keys are checked, but no class belongs to them.
	for _, key := range [...]string{"prediction_accepted_token", "prediction_rejected_token", "cache_write_image_input_token"} {
		o.multiplier(key)
	}
	if image, ok := o.take("image"); ok {
		i := readObject(image, o.field+".image", &errs)
		if m, ok := i.multiplier("default"); ok {
			a.by[Images] = m
		}
		i.done()
	}
	if units, ok := o.take("additional_units"); ok {
		u := readObject(units, o.field+".additional_units", &errs)
		for _, unit := range keysOf(u.members) {
			class, known := wireUnit[unit]
			if !known {
				continue
			}
			if m, ok := u.multiplier(unit); ok {
				a.by[class] = m
			}
		}
		u.done()
	}
	o.done()
	top.done()
	if errs != nil {
		return nil, errs
	}
	return a, nil
}

// ParseMillionths reads a multiplier, a number from 0 to 1000000, as millionths.
func ParseMillionths(raw []byte) (n int64, ok bool) {
	n, _, err := parseDecimal(string(raw), 6)
	return n, err == nil && n <= 1_000_000*one
}

// multiplier reads a number of at least 0.
func (o *object) multiplier(key string) (int64, bool) {
	raw, ok := o.take(key)
	if !ok {
		return 0, false
	}
	m, ok := ParseMillionths(raw)
	if !ok {
		o.fail(key, "must be a number from 0 to 1000000; 1 leaves the price as it is")
		return 0, false
	}
	return m, true
}

// Apply gives the adjusted price. A nil Adjustments changes nothing.
func (a *Adjustments) Apply(p Price) Price {
	if a == nil {
		return p
	}
	for c := range p.rate {
		p.rate[c] = scale(p.rate[c], a.by[c])
	}
	fill(&p.rate, p.has) // classes without a price follow the class that substitutes for them
	p.minute = scale(p.minute, a.min)
	p.line += " (adjusted)"
	return p
}

// scale multiplies by millionths, half up, saturating.
func scale(rate, millionths int64) int64 {
	hi, lo := bits.Mul64(uint64(rate), uint64(millionths))
	lo, carry := bits.Add64(lo, one/2, 0)
	hi += carry
	if hi >= one {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, one)
	return int64(min(q, math.MaxInt64))
}
