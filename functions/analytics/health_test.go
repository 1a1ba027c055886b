package analytics

import (
	"testing"
	"time"

	"gateway/shared/resource"
	"gateway/shared/route/health"
	"gateway/shared/testkit/admintest"
)

// Each saved provider of the workspace is listed once, with calls or without, whatever the
// order of its calls; names of others are not.
func TestTheHealthOfEachSavedProviderIsListed(t *testing.T) {
	t.Parallel()
	rows := []resource.Row{{Slug: "second"}, {Slug: "first"}, {Slug: "idle"}}
	call := func(seconds, status int) health.Call {
		return health.Call{At: noon.Add(time.Duration(-seconds) * time.Second), Status: status, Latency: 200 * time.Millisecond}
	}
	got := healthOf("w", rows, map[string][]health.Call{
		"first":  {call(1, 503), call(3, 503), call(2, 0), call(9, 200)},
		"second": {call(5, 200)},
		"gone":   {call(1, 500)},
	}, map[string]credentials{"second": {labels: []string{"old", "new"}, rejected: map[string]time.Time{"old": noon.Add(-time.Hour)}}}, noon)
	if len(got) != 3 {
		t.Fatalf("%+v", got)
	}
	first, idle, second := got[0], got[1], got[2]
	if first.Workspace != "w" || first.Slug != "first" || first.Status != health.Unhealthy || first.Cause == nil || first.Failures != 3 || !time.Time(*first.Since).Equal(noon.Add(-time.Second)) {
		t.Errorf("%+v", first)
	}
	if idle.Slug != "idle" || idle.Status != health.Unknown || idle.Cause == nil || idle.Since != nil || idle.Latency != nil {
		t.Errorf("%+v", idle)
	}
	if second.Slug != "second" || second.Status != health.Degraded || second.Cause == nil || *second.Latency != 200 {
		t.Errorf("%+v", second)
	}
	if list := second.Credentials; len(list) != 2 || len(first.Credentials) != 0 || list[0].Label != "old" || list[0].Status != health.Unhealthy || list[0].Since == nil || list[1].Status != health.Unknown {
		t.Errorf("%+v", list)
	}
}

// The route answers as documented, and needs the right to list providers.
func TestTheHealthOfProvidersIsAnswered(t *testing.T) {
	h, archive := newInstallation(t)
	fill(t, h, archive)
	got := h.Do("GET", "/providers/health", admintest.WorkspaceA, nil).OK()
	if got.At("object") != "list" || got.At("total") != 0.0 {
		t.Errorf("%s", got.Body)
	}
}
