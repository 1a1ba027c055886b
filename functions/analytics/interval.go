package analytics

import (
	"math"

	"gateway/shared/usage/report"
)

// z is the two-sided 95% quantile of the normal distribution.
const z = 1.959963984540054

// Estimate is a number with the interval that holds the true one in 95 of 100 cases;
// both ends are null where there is too little to say.
type Estimate struct {
	Value float64  `json:"value"`
	Low   *float64 `json:"low"`
	High  *float64 `json:"high"`
}

// between is an estimate with its interval.
func between(value, low, high float64) Estimate { return Estimate{value, &low, &high} }

// rate is k of n in per cent, with the interval of Wilson's score: it stays within 0 and
// 100, and says something also where k is 0 or n is small.
func rate(k, n int64) Estimate {
	if n == 0 {
		return Estimate{}
	}
	low, high := wilson(k, n)
	return between(100*float64(k)/float64(n), 100*low, 100*high)
}

func wilson(k, n int64) (low, high float64) {
	p, m := float64(k)/float64(n), float64(n)
	middle := (p + z*z/(2*m)) / (1 + z*z/m)
	half := z / (1 + z*z/m) * math.Sqrt(p*(1-p)/m+z*z/(4*m*m))
	return math.Max(0, middle-half), math.Min(1, middle+half)
}

// rateDifference is by how many percentage points k of n is above k0 of n0, with an
// interval by Newcombe's method, which combines two intervals of Wilson.
func rateDifference(k, n, k0, n0 int64) Estimate {
	if n == 0 || n0 == 0 {
		return Estimate{}
	}
	p, p0 := float64(k)/float64(n), float64(k0)/float64(n0)
	low, high := wilson(k, n)
	low0, high0 := wilson(k0, n0)
	d := p - p0
	return between(100*d, 100*(d-math.Hypot(p-low, high0-p0)), 100*(d+math.Hypot(high-p, p0-low0)))
}

// mean is the mean of a sample in another unit, with the interval of the normal
// approximation.
func mean(s report.Sample, unit float64) Estimate {
	m := s.Mean() * unit
	if s.N < 2 {
		return Estimate{Value: m}
	}
	half := z * unit * math.Sqrt(s.Variance()/float64(s.N))
	return between(m, m-half, m+half)
}

// meanDifference is by how much a mean is above another, by Welch's method: the
// variances need not be equal.
func meanDifference(s, s0 report.Sample, unit float64) Estimate {
	if s.N == 0 || s0.N == 0 {
		return Estimate{}
	}
	d := (s.Mean() - s0.Mean()) * unit
	if s.N < 2 || s0.N < 2 {
		return Estimate{Value: d}
	}
	half := z * unit * math.Sqrt(s.Variance()/float64(s.N)+s0.Variance()/float64(s0.N))
	return between(d, d-half, d+half)
}
