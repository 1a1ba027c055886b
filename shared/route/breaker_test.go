package route

import (
	"fmt"
	"testing"
	"time"
)

func TestCircuits(t *testing.T) {
	now := time.Unix(0, 0)
	fresh := func() *Circuits {
		now = time.Unix(0, 0)
		return NewCircuits(func() time.Time { return now })
	}
	const cfg, path = "c1", "config.targets[0]"
	count := &Breaker{Threshold: 3, Cooldown: 30 * time.Second}

	c := fresh()
	for range 2 {
		c.Record(cfg, path, count, 500)
	}
	c.Record(cfg, path, count, 200)
	c.Record(cfg, path, count, 404)
	if c.Open(cfg, path) {
		t.Fatal("two failures are too few, and 404 is none")
	}
	c.Record(cfg, path, count, 503)
	if !c.Open(cfg, path) || c.Open("c2", path) || c.Open(cfg, "config.targets[1]") {
		t.Fatal("the third failure opens it, for this path only")
	}
	now = now.Add(30*time.Second - 1)
	if !c.Open(cfg, path) {
		t.Error("it stays open for the cooldown")
	}
	now = now.Add(1)
	if c.Open(cfg, path) {
		t.Error("it closes by itself")
	}
	c.Record(cfg, path, count, 500)
	if c.Open(cfg, path) {
		t.Error("counts start again")
	}

	c = fresh()
	c.Record(cfg, path, count, 500)
	c.Record(cfg, path, count, 500)
	now = now.Add(31 * time.Second)
	c.Record(cfg, path, count, 500)
	if c.Open(cfg, path) {
		t.Error("failures older than the cooldown do not count")
	}

	c = fresh()
	codes := &Breaker{Threshold: 1, Cooldown: 30 * time.Second, Codes: []int{429}}
	c.Record(cfg, path, codes, 500)
	if c.Open(cfg, path) {
		t.Error("500 is not in the list")
	}
	c.Record(cfg, path, codes, 429)
	if !c.Open(cfg, path) {
		t.Error("429 is in the list")
	}

	c = fresh()
	rate := &Breaker{ByRate: true, Percentage: 50, Minimum: 4, Cooldown: 30 * time.Second}
	for _, status := range []int{500, 500, 200} {
		c.Record(cfg, path, rate, status)
	}
	if c.Open(cfg, path) {
		t.Error("the rate needs four answers")
	}
	c.Record(cfg, path, rate, 500)
	if !c.Open(cfg, path) {
		t.Error("three failures of four are more than half")
	}
	c.Record(cfg, path, nil, 500)
}

func TestCircuitsHaveABound(t *testing.T) {
	now := time.Unix(0, 0)
	c := NewCircuits(func() time.Time { return now })
	b := &Breaker{Threshold: 1, Cooldown: 30 * time.Second}
	for i := range maxCircuits + 100 {
		c.Record("c", fmt.Sprint(i), b, 500)
	}
	if len(c.states) > maxCircuits {
		t.Errorf("%d states", len(c.states))
	}
}
