package main

import (
	"strings"
	"testing"
)

// mockBase is the address of the gateway's mock provider. Of a gateway in another
// process it is asked for, which leaves a record in the accounting of that one.
func (r *running) mockBase() string {
	r.t.Helper()
	if r.mock != nil {
		return r.mock.URL() + "/v1"
	}
	got := r.call("GET", "/proxy/echo/x", "", "X-Gateway-Provider", "@mock")
	return "http://" + got.json(r.t)["host"].(string) + "/v1"
}

func TestModelsOfTheGatewayForAnyWayToNameAProvider(t *testing.T) {
	t.Parallel()
	r := start(t)
	for _, headers := range [][]string{
		{"X-Gateway-Provider", "openai"}, {"X-Gateway-Provider", "@mock"}, {"X-Gateway-Virtual-Key", "mock"}, {"X-Gateway-Config", `{"provider":"@mock"}`},
	} {
		got := r.call("GET", "/models", "", append(headers, "X-Gateway-Fetch-Integrated-Models", "true")...)
		if got.status != 200 || !strings.Contains(got.body, "@mock/gpt-4o-mini") {
			t.Errorf("%v: %d %.200s", headers, got.status, got.body)
		}
	}
}
