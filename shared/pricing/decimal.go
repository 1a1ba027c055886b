package pricing

import (
	"errors"
	"math"
	"math/bits"
)

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
