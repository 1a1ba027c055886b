package plan

import (
	"context"
	"testing"
	"time"

	"gateway/shared/route"
	"gateway/shared/store"
)

// held is a table that blocks its next read, before or after reading, and its next write, before
// writing, until the test continues them.
type held struct {
	store.Table
	read, write chan chan struct{} // nil: not blocked
	early       bool               // the read stops before it reads
}

func (h *held) stop(c chan chan struct{}) {
	if c != nil {
		on := make(chan struct{})
		c <- on
		<-on
	}
}

func (h *held) Get(ctx context.Context, k store.Key, consistent bool) (it store.Item, ok bool, err error) {
	c, early := h.read, h.early
	h.read = nil
	if early {
		h.stop(c)
	}
	it, ok, err = h.Table.Get(context.WithoutCancel(ctx), k, consistent)
	if !early {
		h.stop(c)
	}
	return it, ok, err
}

func (h *held) Update(ctx context.Context, u store.Update) (before, after store.Item, err error) {
	c := h.write
	h.write = nil
	h.stop(c)
	return h.Table.Update(context.WithoutCancel(ctx), u)
}

// opened returns a config with a breaker that needs a probe, in the process p.
func opened(t *testing.T, p *Breakers, later func(time.Duration)) *ConfigBreakers {
	t.Helper()
	s := p.Of(t.Context(), breakersKey)
	for range 5 {
		s.Record(breakersPath, fiveFailures, 500, false)
	}
	s.Publish(nil)
	later(fiveFailures.Cooldown + time.Second)
	if s = p.Of(t.Context(), breakersKey); s.State(breakersPath) != route.HalfOpen {
		t.Fatalf("state %v", s.State(breakersPath))
	}
	return s
}

// A released probe is free, regardless of a read in progress.
func TestAReadThatIsOlderThanAReleaseHoldsNoProbe(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name  string
		merge string // when the read ends: before the release writes, or after it
		early bool
	}{
		{"the read ends behind the release", "after", false},
		{"the read ends before the release writes", "before", false},
		{"the read begins before the release and reads behind it", "after", true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			all, table, now := processes(t, 1)
			h := &held{Table: table, early: c.early}
			all[0].table = h
			later := func(d time.Duration) { now.Add(d.Milliseconds()) }
			s := opened(t, all[0], later)
			if !s.Claim(breakersPath, fiveFailures) {
				t.Fatal("no probe")
			}
			later(2 * time.Second) // the last read is stale
			h.read = make(chan chan struct{})
			reading := h.read
			read := make(chan struct{})
			go func() { defer close(read); all[0].Of(context.Background(), breakersKey) }()
			readOn := <-reading
			if c.merge == "before" {
				h.write = make(chan chan struct{})
				writing := h.write
				released := make(chan struct{})
				go func() { defer close(released); s.Release(breakersPath) }()
				writeOn := <-writing
				close(readOn)
				<-read
				close(writeOn)
				<-released
			} else {
				s.Release(breakersPath)
				close(readOn)
				<-read
			}
			if got := s.State(breakersPath); got != route.HalfOpen {
				t.Errorf("state %v after the release", got)
			}
			if !s.Claim(breakersPath, fiveFailures) {
				t.Error("the probe that was given back is held")
			}
		})
	}
}

// The release of an expired probe does not affect the next holder.
func TestALateReleaseLeavesTheProbeOfAnother(t *testing.T) {
	t.Parallel()
	all, _, now := processes(t, 3)
	later := func(d time.Duration) { now.Add(d.Milliseconds()) }
	first := opened(t, all[0], later)
	if !first.Claim(breakersPath, fiveFailures) {
		t.Fatal("no probe")
	}
	later(fiveFailures.Cooldown + time.Second)
	second := all[1].Of(t.Context(), breakersKey)
	if !second.Claim(breakersPath, fiveFailures) {
		t.Fatal("the probe is claimed for ever")
	}
	first.Release(breakersPath)
	for i, p := range []*Breakers{all[2], all[0]} {
		if p.Of(t.Context(), breakersKey).Claim(breakersPath, fiveFailures) {
			t.Errorf("process %d probes beside another", i)
		}
	}
	second.Release(breakersPath)
	later(time.Second)
	if !all[2].Of(t.Context(), breakersKey).Claim(breakersPath, fiveFailures) {
		t.Error("the probe that was given back is held")
	}
}
