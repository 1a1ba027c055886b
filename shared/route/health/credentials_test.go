package health

import (
	"testing"
	"time"
)

func TestRefusedCredentialsDecideTheStateOfTheirProvider(t *testing.T) {
	t.Parallel()
	now := time.Date(2026, 11, 29, 12, 0, 0, 0, time.UTC)
	calls := []Call{
		{At: now.Add(-3 * time.Second), Status: 401, Credential: "a"},
		{At: now.Add(-2 * time.Second), Status: 200, Credential: "b"}, {At: now.Add(-time.Second), Status: 429, Credential: "c"},
	}
	hour := now.Add(-time.Hour)
	labels := []string{"a", "b", "c", "d"}
	for name, c := range map[string]struct {
		of      string
		refused []string
		status  string
		each    []string
	}{
		"none":           {Healthy, nil, Healthy, []string{Degraded, Healthy, Degraded, Unknown}},
		"one":            {Healthy, []string{"a"}, Degraded, []string{Unhealthy, Healthy, Degraded, Unknown}},
		"one, and worse": {Unhealthy, []string{"a"}, Unhealthy, []string{Unhealthy, Healthy, Degraded, Unknown}},
		"one, no calls":  {Unknown, []string{"d"}, Degraded, []string{Degraded, Healthy, Degraded, Unhealthy}},
		"all":            {Healthy, labels, Unhealthy, []string{Unhealthy, Unhealthy, Unhealthy, Unhealthy}},
	} {
		refused := map[string]time.Time{}
		for _, label := range c.refused {
			refused[label] = hour
		}
		of, each := JudgeCredentials(State{Status: c.of}, labels, calls, refused, now)
		if of.Status != c.status || c.status != c.of && (of.Cause == "" || !of.Since.Equal(hour)) {
			t.Errorf("%s: the provider is %+v", name, of)
		}
		for i, want := range c.each {
			if got := each[i]; got.Label != labels[i] || got.Status != want || (got.Cause == "") != (want == Healthy) {
				t.Errorf("%s: %+v, want %s", name, got, want)
			}
		}
	}
}
