package target

import (
	"slices"
	"testing"

	"gateway/shared/identity"
	"gateway/shared/provider"
	"gateway/shared/relay/ownership"
	"gateway/shared/route/saved"
)

// Claims are stored below the credential first, and below the integration as well.
func TestClaimsStandBelowTheCredential(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ known, want []string }{
		{[]string{"print", "integration"}, []string{"print", "integration"}},
		{nil, []string{"integration"}},
	} {
		o := ChargeClaims{newTarget(nil)}
		o.Target.Req.Principal = new(identity.Principal)
		o.Target.Choice.Saved, o.Target.Choice.Isolation = &saved.Provider{IntegrationID: "integration"}, ownership.TenantIsolation{Places: c.known}
		if _, places := o.places(); !slices.Equal(places, c.want) {
			t.Errorf("%v, want %v", places, c.want)
		}
		if organisation, place := o.At(); !organisation || place != c.want[0] {
			t.Errorf("%v %s", organisation, place)
		}
	}
}

// TestHostsOfTheCallerClaimNothingOfOthers compares the places of claims for credentials that
// callers bring: a host of the caller's own never shares one with another host.
func TestHostsOfTheCallerClaimNothingOfOthers(t *testing.T) {
	t.Parallel()
	openai, _ := provider.ByID("openai")
	azure, _ := provider.ByID("azure-ai")
	seen := map[string]int{}
	for i, c := range []provider.Target{
		{Provider: openai}, {Provider: openai, CustomHost: "https://evil.example/v1"}, {Provider: openai, CustomHost: "https://other.example/v1"}, {Provider: openai, CustomHost: "http://evil.example:81/v1"},
		{Provider: azure, Credential: provider.Credential{Fields: map[string]string{"azure_foundry_url": "https://a.services.ai.azure.com"}}},
		{Provider: azure, Credential: provider.Credential{Fields: map[string]string{"azure_foundry_url": "https://evil.example"}}},
	} {
		place := broughtPlace(&c)
		if before, taken := seen[place]; taken {
			t.Errorf("%d has the place of %d: %s", i, before, place)
		}
		seen[place] = i
	}
	for _, same := range []provider.Target{{Provider: openai, CustomHost: "https://api.openai.com/v1"}, {Provider: openai, CustomHost: "https://API.openai.com:443/v1"}} {
		if place := broughtPlace(&same); place != "openai" {
			t.Errorf("%s: %s", same.CustomHost, place)
		}
	}
}
