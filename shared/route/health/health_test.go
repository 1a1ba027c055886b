package health

import (
	"strings"
	"testing"
	"time"

	"pgregory.net/rapid"
)

var noon = time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)

// calls are made a second apart, the last one at noon; a latency of 0 is 100 ms.
func calls(statuses ...int) []Call {
	out := make([]Call, len(statuses))
	for i, s := range statuses {
		out[i] = Call{At: noon.Add(time.Duration(i+1-len(statuses)) * time.Second), Status: s, Latency: 100 * time.Millisecond}
	}
	return out
}

func repeat(n, status int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = status
	}
	return out
}

func TestProvidersAreJudgedByTheirCalls(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		calls         []Call
		status, cause string
		since         int // seconds before noon
	}{
		"none":                  {nil, Unknown, "no calls", -1},
		"all well":              {calls(repeat(10, 200)...), Healthy, "", 9},
		"errors of requests":    {calls(400, 404, 422, 400), Healthy, "", 3},
		"one failure":           {calls(200, 200, 500), Degraded, "1 of 3 calls failed, the last one with 500", 0},
		"failures in a row":     {calls(200, 200, 500, 0, 503), Unhealthy, "3 of 5 calls failed, the last one with 503", 0},
		"since the third":       {calls(append(repeat(5, 200), 500, 500, 500, 500, 500)...), Unhealthy, "", 2},
		"a credential":          {calls(401, 401, 401), Unhealthy, "401 (the credential was rejected)", 0},
		"a limit":               {calls(200, 200, 200, 200, 200, 429, 200, 200), Degraded, "429 (a rate limit", 2},
		"it has recovered":      {calls(append([]int{500, 500, 500}, repeat(19, 200)...)...), Healthy, "", 1},
		"no response":           {calls(0), Degraded, "no response", 0},
		"half of them fail now": {calls(500, 200, 500, 200, 500, 200, 500), Unhealthy, "4 of 7", 0},
	} {
		got := Judge(c.calls, noon)
		if got.Status != c.status || !strings.Contains(got.Cause, c.cause) || c.cause == "" && c.status == Healthy && got.Cause != "" {
			t.Errorf("%s: %+v", name, got)
		}
		if since := int(noon.Sub(got.Since) / time.Second); c.since >= 0 && since != c.since || c.since < 0 && !got.Since.IsZero() {
			t.Errorf("%s: since %v", name, got.Since)
		}
	}
	slow := calls(repeat(20, 200)...)
	slow[3].Latency, slow[7].Latency = 3*time.Second, 3*time.Second
	if got := Judge(slow, noon); got.Status != Degraded || !strings.Contains(got.Cause, "times the mean") {
		t.Errorf("%+v", got)
	}
	old := Judge(calls(500, 500, 500), noon.Add(time.Hour))
	if old.Status != Unknown || !old.Since.Equal(noon.Add(current)) {
		t.Errorf("%+v", old)
	}
}

// Every state but healthy has a cause, every one with calls a time, which is never later
// than the last call; and only good calls are never anything but healthy.
func TestStatesHold(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		statuses := rapid.SliceOfN(rapid.SampledFrom([]int{0, 200, 200, 200, 400, 401, 429, 500}), 1, 60).Draw(t, "statuses")
		all := calls(statuses...)
		s := Judge(all, noon)
		if (s.Cause == "") != (s.Status == Healthy) || s.Since.IsZero() || s.Since.After(noon) || s.Calls > window || s.Failures > s.Calls {
			t.Fatalf("%v: %+v", statuses, s)
		}
		good := true
		for i := range all {
			good = good && !all[i].failed()
		}
		if good && s.Status != Healthy {
			t.Fatalf("%v: %+v", statuses, s)
		}
	})
}
