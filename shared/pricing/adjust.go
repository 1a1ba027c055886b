package pricing

import (
	"errors"
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

var errDecimal = errors.New("pricing: not a decimal number in range")

// parseDecimal parses digits[.digits][e[+-]digits] as an integer multiple of 10^-scale, rounded
// half up. exact is false if it was rounded. Negative numbers, and numbers that exceed an
// int64, are rejected.
func parseDecimal(s string, scale int) (n int64, exact bool, err error) {
	mantissa, exp, digits := uint64(0), 0, 0
	i, point, full, dropped, roundUp := 0, false, false, false, false
	for ; i < len(s); i++ {
		c := s[i]
		if c == '.' && !point {
			point = true
			continue
		}
		if c < '0' || c > '9' {
			break
		}
		digits++
		if mantissa > (math.MaxUint64-9)/10 { // more digits than matter: the first may change the rounding, of the others only the number counts
			roundUp = roundUp || !full && c >= '5'
			full, dropped = true, dropped || c != '0'
			if !point {
				exp++
			}
			continue
		}
		mantissa = mantissa*10 + uint64(c-'0')
		if point {
			exp--
		}
	}
	if digits == 0 {
		return 0, false, errDecimal
	}
	if i < len(s) {
		e, ok := parseExponent(s[i:])
		if !ok {
			return 0, false, errDecimal
		}
		exp += e
	}
	for exp += scale; exp > 0 && mantissa != 0; exp-- {
		hi, lo := bits.Mul64(mantissa, 10)
		if hi != 0 {
			return 0, false, errDecimal
		}
		mantissa = lo
	}
	for ; exp < 0 && (mantissa != 0 || roundUp); exp++ {
		dropped = dropped || roundUp
		last := mantissa % 10
		mantissa /= 10
		roundUp = last >= 5
		dropped = dropped || last != 0
	}
	if roundUp {
		mantissa++
	}
	if mantissa > math.MaxInt64 {
		return 0, false, errDecimal
	}
	return int64(mantissa), !dropped, nil
}

// parseExponent reads e, E with a sign and up to four digits, to the end.
func parseExponent(s string) (int, bool) {
	if len(s) < 2 || s[0] != 'e' && s[0] != 'E' {
		return 0, false
	}
	s = s[1:]
	negative := s[0] == '-'
	if negative || s[0] == '+' {
		s = s[1:]
	}
	if len(s) == 0 || len(s) > 4 {
		return 0, false
	}
	n := 0
	for i := range len(s) {
		if s[i] < '0' || s[i] > '9' {
			return 0, false
		}
		n = n*10 + int(s[i]-'0')
	}
	if negative {
		n = -n
	}
	return n, true
}
