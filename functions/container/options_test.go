package main

import (
	"testing"

	"gateway/shared/app"
	"gateway/shared/host"
	"gateway/shared/host/placement"
)

// The load balancer must be the one that ends idle connections, and it is the only
// address that connections come from.
func TestOptionsBehindALoadBalancer(t *testing.T) {
	core := &app.Core{Settings: app.Settings{StandardHTTP: true}}
	for _, name := range []string{host.EnvMaxConns, host.EnvMaxPerAddress} {
		t.Setenv(name, "")
	}
	o, err := serveOptions(core)
	if err != nil || o.IdleTime <= placement.BalancerIdle || o.MaxPerAddress != 0 || o.MaxConns == 0 || !o.Standard {
		t.Errorf("%+v, %v", o, err)
	}
	t.Setenv(host.EnvMaxPerAddress, "5")
	t.Setenv(host.EnvMaxConns, "6")
	if o, err = serveOptions(core); err != nil || o.MaxPerAddress != 5 || o.MaxConns != 6 {
		t.Errorf("%+v, %v", o, err)
	}
	t.Setenv(host.EnvMaxConns, "x")
	if _, err = serveOptions(core); err == nil {
		t.Error("a bound that is no number is taken")
	}
}
