package dataplane

import (
	"strings"
	"testing"

	"gateway/shared/app/plane"
	"gateway/shared/provider"
	"gateway/shared/relay"
)

// TestRoutesOfJobsNameWhatCarriesThem: a function that would answer every batch with
// "not supported" does not start.
func TestRoutesOfJobsNameWhatCarriesThem(t *testing.T) {
	chats, batches := relay.Route{Operation: provider.Chat}, relay.Route{Operation: provider.BatchesGet}
	if err := checkJobs([]relay.Route{chats}, nil); err != nil {
		t.Error(err)
	}
	if err := checkJobs([]relay.Route{chats, batches}, plane.Jobs()); err != nil {
		t.Error(err)
	}
	if err := checkJobs([]relay.Route{chats, batches}, nil); err == nil || !strings.Contains(err.Error(), "batches_get") {
		t.Errorf("got %v", err)
	}
}
