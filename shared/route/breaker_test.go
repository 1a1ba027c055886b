package route

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

// openAt is Breakers with states that a test decides.
type openAt func(path string) bool

func (o openAt) AllClosed() bool                    { return false }
func (o openAt) Claim(string, *Breaker) bool        { return true }
func (o openAt) Release(string)                     {}
func (o openAt) Record(string, *Breaker, int, bool) {}
func (o openAt) State(path string) State {
	if o(path) {
		return Open
	}
	return Closed
}

const testCooldown = 30 * time.Second

// clocked are the breakers of one config under a clock that a test moves.
func clocked() (*ConfigCircuits, *time.Time) {
	now := time.Unix(1_800_000_000, 0)
	return NewCircuits(func() time.Time { return now }).Of(ConfigKey{Config: "c1"}), &now
}

func TestABreakerOpensAtItsThreshold(t *testing.T) {
	const path = "config.targets[0]"
	count := &Breaker{Threshold: 3, Cooldown: testCooldown}
	c, now := clocked()
	for _, status := range []int{500, 500, 200, 404} {
		c.Record(path, count, status, false)
	}
	if c.State(path) != Closed || !c.AllClosed() {
		t.Fatal("two failures are too few, and 404 is none")
	}
	c.Record(path, count, 503, false)
	if c.State(path) != Open || c.State("config.targets[1]") != Closed || c.AllClosed() {
		t.Fatal("the third failure opens it, for this path only")
	}
	*now = now.Add(testCooldown - 1)
	if c.State(path) != Open {
		t.Error("it stays open for the cooldown")
	}
	*now = now.Add(1)
	if c.State(path) != HalfOpen {
		t.Error("then a probe is due")
	}

	c, now = clocked()
	c.Record(path, count, 500, false)
	c.Record(path, count, 500, false)
	*now = now.Add(testCooldown + 1)
	c.Record(path, count, 500, false)
	if c.State(path) != Closed {
		t.Error("failures older than the cooldown do not count")
	}
	c.Record(path, nil, 500, false)

	c, _ = clocked()
	codes := &Breaker{Threshold: 1, Cooldown: testCooldown, Codes: []int{429}}
	c.Record(path, codes, 500, false)
	if c.State(path) != Closed {
		t.Error("500 is not in the list")
	}
	c.Record(path, codes, 429, false)
	if c.State(path) != Open {
		t.Error("429 is in the list")
	}
}

func TestABreakerOpensByRate(t *testing.T) {
	const path = "config.targets[0]"
	rate := &Breaker{ByRate: true, Percentage: 50, Minimum: 4, Cooldown: testCooldown}
	c, _ := clocked()
	for range 100 {
		c.Record(path, rate, 200, false)
	}
	for _, status := range []int{500, 500, 200} {
		c.Record(path, rate, status, false)
	}
	if c.State(path) != Closed {
		t.Error("the rate needs four answers")
	}
	c.Record(path, rate, 500, false)
	if c.State(path) != Open {
		t.Error("three failures of four are more than half")
	}
	c, now := clocked()
	c.Record(path, rate, 500, false)
	for range 100 {
		c.Record(path, rate, 200, false)
	}
	*now = now.Add(testCooldown + 1)
	for range 4 {
		c.Record(path, rate, 500, false)
	}
	if c.State(path) != Open {
		t.Error("old successes hide new failures")
	}
	c, _ = clocked()
	zero := &Breaker{ByRate: true, Percentage: 0, Cooldown: testCooldown}
	c.Record(path, zero, 200, false)
	if c.State(path) != Closed {
		t.Error("a success alone opens nothing")
	}
}

func TestOneProbeAtATime(t *testing.T) {
	const path = "config.targets[0]"
	b := &Breaker{Threshold: 1, Cooldown: testCooldown}
	c, now := clocked()
	c.Record(path, b, 500, false)
	if c.Claim(path, b) {
		t.Error("an open target has no probe")
	}
	*now = now.Add(testCooldown)
	if !c.Claim(path, b) || c.Claim(path, b) || c.State(path) != Probing {
		t.Fatal("one request probes, the next does not")
	}
	c.Release(path)
	if c.State(path) != HalfOpen || !c.Claim(path, b) {
		t.Fatal("a probe that was not made is free again")
	}
	c.Record(path, b, 200, false)
	if c.State(path) != Probing {
		t.Error("only the probe closes it")
	}
	c.Record(path, b, 500, true)
	if c.State(path) != Open {
		t.Error("a failed probe opens it again")
	}
	*now = now.Add(testCooldown)
	if !c.Claim(path, b) {
		t.Fatal("after another cooldown there is another probe")
	}
	c.Record(path, b, 200, true)
	if c.State(path) != Closed || !c.AllClosed() {
		t.Error("a good probe closes it")
	}
	c.Record(path, b, 500, false)
	*now = now.Add(testCooldown)
	c.Claim(path, b)
	*now = now.Add(testCooldown)
	if c.State(path) != HalfOpen {
		t.Error("a probe that never ends does not block others for ever")
	}
}

func TestProcessesCountTogether(t *testing.T) {
	const path = "config.targets[0]"
	b := &Breaker{Threshold: 5, Cooldown: testCooldown}
	now := time.Unix(1_800_000_000, 0)
	clock := func() time.Time { return now }
	shared := map[string]Shared{}
	var all []*ConfigCircuits
	for range 5 {
		all = append(all, NewCircuits(clock).Of(ConfigKey{Config: "c1"}))
	}
	for _, c := range all {
		c.Record(path, b, 500, false)
		for _, p := range c.Pending() { // each has counted one
			row := shared[path]
			row.Failures, row.First, row.Last = row.Failures+p.Failures, now, now
			shared[path] = row
			c.Settle(p, row)
		}
	}
	last := all[4]
	if last.State(path) != Open {
		t.Fatal("the fifth failure of all opens it")
	}
	for _, p := range last.Pending() {
		if p.OpenUntil.IsZero() {
			t.Fatal("the others are not told")
		}
		shared[path] = Shared{OpenUntil: p.OpenUntil}
	}
	for _, c := range all {
		c.Merge(shared)
		if c.State(path) != Open {
			t.Error("what one process opened is open in all")
		}
		if p := c.Pending(); len(p) != 0 {
			t.Errorf("nothing is left to tell: %+v", p)
		}
	}
	now = now.Add(testCooldown)
	if !all[0].Claim(path, b) {
		t.Fatal("no probe")
	}
	all[0].Record(path, b, 200, true)
	if p := all[0].Pending(); len(p) != 1 || !p[0].Closed {
		t.Fatalf("%+v", p)
	}
	for _, c := range all {
		c.Merge(nil)
		if c.State(path) != Closed || !c.AllClosed() {
			t.Error("what one process closed is closed in all")
		}
	}
}

func TestMergeRetainsUnreportedState(t *testing.T) {
	const path = "config.targets[0]"
	b := &Breaker{Threshold: 1, Cooldown: testCooldown}
	c, now := clocked()
	c.Record(path, b, 500, false)
	c.Merge(nil)
	if c.State(path) != Open {
		t.Error("an opening that nobody was told of is lost")
	}
	c.Pending()
	*now = now.Add(testCooldown)
	c.Claim(path, b)
	c.Merge(map[string]Shared{path: {OpenUntil: *now}})
	if c.State(path) != Probing {
		t.Error("a probe of this process is lost")
	}
	c.SetProbed(path, now.Add(time.Minute))
	if c.State(path) != Probing {
		t.Error("another process's probe counts")
	}
	c.Merge(nil)
	if c.State(path) != Closed || !c.AllClosed() {
		t.Error("the other process has closed it")
	}
}

func TestHealthyTargetsReportNothing(t *testing.T) {
	c, _ := clocked()
	b := &Breaker{Threshold: 2, ByRate: true, Percentage: 50, Minimum: 100, Cooldown: testCooldown}
	for range 1000 {
		c.Record("config.targets[0]", b, 200, false)
	}
	if p := c.Pending(); p != nil {
		t.Errorf("%+v", p)
	}
	c.Record("config.targets[0]", b, 500, false)
	want := []Pending{{Path: "config.targets[0]", Breaker: b, Failures: 1}}
	if diff := cmp.Diff(want, c.Pending()); diff != "" {
		t.Error(diff)
	}
	c.Record("config.targets[0]", b, 200, false)
	if p := c.Pending(); p != nil {
		t.Errorf("successes wait for a failure: %+v", p)
	}
	c.Record("config.targets[0]", &Breaker{ByRate: true, Percentage: 99, Minimum: 100, Cooldown: testCooldown}, 500, false)
	if p := c.Pending(); len(p) != 1 || p[0].Failures != 1 || p[0].Successes != 1 {
		t.Errorf("%+v", p)
	}
}

func TestCircuitsHaveABound(t *testing.T) {
	now := time.Unix(0, 0)
	c := NewCircuits(func() time.Time { return now })
	b := &Breaker{Threshold: 1, Cooldown: testCooldown}
	for i := range maxCircuitConfigs + 100 {
		c.Of(ConfigKey{Config: fmt.Sprint(i)}).Record("config.targets[0]", b, 500, false)
	}
	if len(c.configs) > maxCircuitConfigs {
		t.Errorf("%d configs", len(c.configs))
	}
	same := c.Of(ConfigKey{Config: "same"})
	if c.Of(ConfigKey{Config: "same"}) != same {
		t.Error("one key has two sets of states")
	}
}
