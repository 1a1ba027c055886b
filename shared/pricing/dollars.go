package pricing

import (
	"encoding/json"
	"math"
	"strconv"
	"strings"
)

// CostUnit and PriceUnit name the units of costs and prices in answers, which are cents for
// historical reasons. Answers give each amount in US dollars as well; see NanoDollars.USD.
const (
	CostUnit  = "cents"
	PriceUnit = "cents_per_token"
)

// Decimal places of amounts: a dollar is 10^9 nano-dollars and 10^15 femto-dollars.
const (
	nanoPlaces  = 9
	femtoPlaces = 15
	centsPlaces = femtoPlaces - 2
)

// USD returns the amount in US dollars as an exact decimal number.
func (n NanoDollars) USD() json.Number { return decimal(int64(n), nanoPlaces) }

// Plus returns the sum of two amounts, none of which is negative. It saturates at the largest
// amount.
func (n NanoDollars) Plus(m NanoDollars) NanoDollars { return n + min(m, math.MaxInt64-n) }

// decimal returns n * 10^-places as the shortest decimal number that equals it.
func decimal(n int64, places int) json.Number {
	sign, u := "", uint64(n)
	if n < 0 {
		sign, u = "-", -u
	}
	s := strconv.FormatUint(u, 10)
	if len(s) <= places {
		s = strings.Repeat("0", places+1-len(s)) + s
	}
	whole, part := s[:len(s)-places], strings.TrimRight(s[len(s)-places:], "0")
	if part != "" {
		part = "." + part
	}
	return json.Number(sign + whole + part)
}
