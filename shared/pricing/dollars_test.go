package pricing

import (
	"math"
	"testing"
)

func TestDollarsAreExact(t *testing.T) {
	t.Parallel()
	for n, want := range map[NanoDollars]string{
		0: "0", 1: "0.000000001", 75_000: "0.000075", 10_000_000: "0.01", Dollar: "1", 12*Dollar + 345_000_000: "12.345", -1: "-0.000000001", -2 * Dollar: "-2",
		123_456_789_012_345_678: "123456789.012345678", math.MaxInt64: "9223372036.854775807", math.MinInt64: "-9223372036.854775808",
	} {
		if got := n.USD(); string(got) != want {
			t.Errorf("%d nano-dollars are %s, want %s", n, got, want)
		}
	}
	if got := tagged(2_500_000_000); got.Price != "0.00025" || got.USD != "0.0000025" {
		t.Errorf("a price of 2.5 micro-dollars: %+v", got)
	}
}
