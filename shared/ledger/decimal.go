package ledger

import (
	"errors"
	"math"
	"strconv"
	"strings"
)

var (
	errNotNumber = errors.New("must be a number")
	errTooFine   = errors.New("has too many decimal places")
	errTooLarge  = errors.New("is too large")
)

// parseDecimal parses a JSON number exactly, as an integer of 10^-places. It never
// rounds: a number with more decimal places is rejected.
func parseDecimal(s string, places int) (int64, error) {
	negative := strings.HasPrefix(s, "-")
	s = strings.TrimPrefix(s, "-")
	mantissa, exponent := s, 0
	if i := strings.IndexAny(s, "eE"); i >= 0 {
		e, err := strconv.Atoi(strings.TrimPrefix(s[i+1:], "+"))
		if err != nil || e > 400 || e < -400 {
			return 0, errTooLarge
		}
		mantissa, exponent = s[:i], e
	}
	whole, fraction, _ := strings.Cut(mantissa, ".")
	digits := whole + fraction
	if digits == "" {
		return 0, errNotNumber
	}
	exponent += places - len(fraction)
	for exponent < 0 && strings.HasSuffix(digits, "0") {
		digits, exponent = digits[:len(digits)-1], exponent+1
	}
	digits = strings.TrimLeft(digits, "0")
	if digits == "" {
		return 0, nil
	}
	if exponent < 0 {
		return 0, errTooFine
	}
	if len(digits)+exponent > 19 {
		return 0, errTooLarge
	}
	n, err := strconv.ParseUint(digits+strings.Repeat("0", exponent), 10, 64)
	switch {
	case errors.Is(err, strconv.ErrSyntax):
		return 0, errNotNumber
	case err != nil || n > math.MaxInt64:
		return 0, errTooLarge
	case negative:
		return -int64(n), nil
	}
	return int64(n), nil
}

// formatDecimal returns the shortest decimal form of n of 10^-places.
func formatDecimal(n int64, places int) string {
	if places == 0 {
		return strconv.FormatInt(n, 10)
	}
	sign, u := "", uint64(n)
	if n < 0 {
		sign, u = "-", -u
	}
	s := strconv.FormatUint(u, 10)
	if len(s) <= places {
		s = strings.Repeat("0", places-len(s)+1) + s
	}
	whole, fraction := s[:len(s)-places], strings.TrimRight(s[len(s)-places:], "0")
	if fraction == "" {
		return sign + whole
	}
	return sign + whole + "." + fraction
}
