package tenant

import (
	"testing"
	"time"
)

// maxCacheMaxAge is the bound of Settings.CacheMaxAge.
const maxCacheMaxAge = 25_923_000

func TestCacheAgeReturnsTheShorterTime(t *testing.T) {
	for _, c := range []struct {
		own             int64
		requested, want time.Duration
	}{
		{0, 0, 0}, {0, time.Hour, time.Hour},
		{600, 0, 10 * time.Minute}, {600, time.Hour, 10 * time.Minute}, {600, time.Minute, time.Minute}, {600, 10 * time.Minute, 10 * time.Minute},
		{maxCacheMaxAge, 0, maxCacheMaxAge * time.Second},
	} {
		s := Settings{CacheMaxAge: c.own}
		if got := s.CacheAge(c.requested); got != c.want {
			t.Errorf("%d s, asked for %v: %v, want %v", c.own, c.requested, got, c.want)
		}
	}
}
