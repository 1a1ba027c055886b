package main

import (
	"context"
	"fmt"
	"net/http"
	"sync"
	"testing"

	"gateway/shared/resource"
	"gateway/shared/testkit/awstest"
)

// TestSettingsOfTheOrganisationHoldInEveryProcess changes what requests may bring
// through one of two processes on one DynamoDB endpoint, while the other is in
// use. Requests that begin MaxStale after the change was answered must go by it in
// both. In a row: it sets the environment.
func TestSettingsOfTheOrganisationHoldInEveryProcess(t *testing.T) {
	awstest.Start(t)
	first := spawn(t, t.TempDir(), "-store", "aws")
	second := spawn(t, t.TempDir(), "-store", "aws", "-mock=false")
	_, key := first.makeKey(t)
	request := chatBody("gpt-4o-mini", "Hello", "")
	inline := func(p *process) int {
		r := running{t: t, base: p.base}
		return r.call("POST", "/chat/completions", request, "X-Gateway-Api-Key", key, "X-Gateway-Config", `{"provider":"@mock"}`).status
	}
	for _, block := range []bool{true, false, true} {
		for _, p := range []*process{first, second} {
			if got := inline(p) == http.StatusOK; got != block {
				t.Fatalf("before block_inline_config is %v a request with an inline config is served: %v", block, got)
			}
		}
		warm, stop := context.WithCancel(t.Context())
		var wg sync.WaitGroup
		wg.Go(func() { second.useRepeatedly(warm, key, request) })
		first.change(t, "PUT", "/admin/organisation/settings", fmt.Sprintf(`{"data_plane_security_settings":{"block_inline_config":%v}}`, block))
		pause(t.Context(), resource.MaxStale)
		stop()
		wg.Wait()
		for i, p := range []*process{first, second} {
			if got := inline(p) == http.StatusOK; got == block {
				t.Errorf("process %d: block_inline_config is %v, a request with an inline config is served: %v", i+1, block, got)
			}
		}
		if got := second.send(t, "GET", "/admin/organisation/settings", adminKey, ""); got.status != 200 ||
			member(got.json(t), "data_plane_security_settings/block_inline_config") != block {
			t.Errorf("the second process shows %d %s", got.status, got.body)
		}
	}
}
