package pricing

import "testing"

func TestFree(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		p    Price
		want bool
	}{
		"nothing":   {Price{}, true},
		"zeros":     {Price{has: 1<<Input | 1<<Output}, true},
		"tokens":    {func() (p Price) { p.has, p.rate[Output] = 1<<Input|1<<Output, 5; return }(), false},
		"images":    {func() (p Price) { p.has, p.rate[Images] = 1<<Images, 5; return }(), false},
		"by minute": {Price{minute: 5, byMinute: true}, false},
	} {
		if got := c.p.Free(); got != c.want {
			t.Errorf("%s: %t", name, got)
		}
	}
}
