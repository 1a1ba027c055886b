package plan

import (
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
	"gateway/shared/tenant"
)

func of(t *testing.T, rt *routes.Route, src string, header map[string]string) *Plan {
	t.Helper()
	q := new(admission.Request)
	p := &Plan{Req: q, Body: &body.Body{}}
	p.Body.Req = q
	req := httptest.NewRequest(http.MethodPost, "/v1/chat/completions", strings.NewReader(src))
	for name, value := range header {
		req.Header.Set(name, value)
	}
	p.Req.Start(&admission.Dependencies{Now: time.Now, Memory: egress.NewMemory(0)}, req, rt, "", nil, new(egress.Lease))
	t.Cleanup(func() { p.Req.End() })
	p.Req.Principal, p.Req.WS, p.Req.Org = &identity.Principal{}, &tenant.Effective{}, &tenant.Organisation{}
	if err := p.Req.Headers.Read(req.Header); err != nil {
		t.Fatal(err)
	}
	if err := p.Body.Read(); err != nil {
		t.Fatal(err)
	}
	return p
}

var chat = &routes.Route{BodyMode: routes.Unified}

// Which saved provider a request names: header before virtual key before model.
func TestTheProviderThatARequestNames(t *testing.T) {
	t.Parallel()
	const body = `{"model":"@body/m"}`
	for _, c := range []struct {
		header  map[string]string
		through bool
		slug    string
		routed  bool
	}{
		{nil, false, "body", false},
		{map[string]string{"X-Gateway-Provider": "@header", "X-Gateway-Virtual-Key": "key"}, false, "header", true},
		{map[string]string{"X-Gateway-Virtual-Key": "@key"}, false, "key", true},
		{map[string]string{"X-Gateway-Provider": "openai"}, false, "", true},
		{map[string]string{"X-Gateway-Provider": "openai"}, true, "body", true},
	} {
		p := of(t, chat, body, c.header)
		if got := p.RequestedSlug(&route.Leaf{Passthrough: c.through}); got != c.slug || p.Routed() != c.routed {
			t.Errorf("%v: %q, routed %t", c.header, got, p.Routed())
		}
	}
}

func TestTargetsOfRequests(t *testing.T) {
	t.Parallel()
	own := &routes.Route{BodyMode: routes.Unified, BuiltIn: true}
	for name, c := range map[string]struct {
		rt     *routes.Route
		header map[string]string
		mine   bool
		leaves []string // providers
	}{
		"nothing named":       {chat, nil, false, []string{""}},
		"a config":            {chat, map[string]string{"X-Gateway-Config": `{"strategy":{"mode":"fallback"},"targets":[{"provider":"openai","api_key":"k"},{"provider":"anthropic","api_key":"k"}]}`}, false, []string{"openai", "anthropic"}},
		"own, nothing named":  {own, nil, true, nil},
		"own, named":          {own, map[string]string{"X-Gateway-Provider": "gateway"}, true, nil},
		"own, another":        {own, map[string]string{"X-Gateway-Provider": "openai"}, false, []string{""}},
		"not own, named":      {chat, map[string]string{"X-Gateway-Provider": "gateway"}, false, []string{""}},
		"own, a saved one":    {own, map[string]string{"X-Gateway-Virtual-Key": "x"}, false, []string{""}},
		"own, one in a model": {own, map[string]string{"X-Gateway-Metadata": `{"a":"b"}`}, true, nil},
	} {
		p := of(t, c.rt, `{}`, c.header)
		if err := p.Resolve(&Sources{}); err != nil || p.BuiltIn != c.mine {
			t.Errorf("%s: %v, mine %t", name, err, p.BuiltIn)
			continue
		}
		var got []string
		for outcome := (route.Outcome{}); p.Traversal != nil; outcome = (route.Outcome{Status: 500}) {
			leaf, f := p.Traversal.Next(outcome)
			if leaf == nil || f != nil {
				break
			}
			got = append(got, leaf.Provider)
		}
		if !slices.Equal(got, c.leaves) {
			t.Errorf("%s: %v", name, got)
		}
	}
}

// Rejections by an organization that only allows saved configuration, and by a key with a
// default that must not be overridden.
func TestWhatARequestMayNotBring(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		header map[string]string
		code   fault.Code
	}{
		"a config":   {map[string]string{"X-Gateway-Config": `{"provider":"openai"}`}, fault.InlineConfigBlocked},
		"a provider": {map[string]string{"X-Gateway-Provider": "openai"}, fault.InlineProviderBlocked},
		"a host":     {map[string]string{"X-Gateway-Custom-Host": "https://example.com"}, fault.InlineHostBlocked},
		"headers":    {map[string]string{"X-Gateway-Forward-Headers": "X-One"}, fault.InlineForwardBlocked},
	} {
		p := of(t, chat, `{}`, c.header)
		p.Req.Org.Settings.BlockInlineConfig = true
		if f := fault.From(p.Resolve(&Sources{})); f == nil || f.Code != c.code {
			t.Errorf("%s: %v", name, f)
		}
	}
	p := of(t, chat, `{}`, map[string]string{"X-Gateway-Config": `{"provider":"openai"}`})
	p.Req.Org.Settings.BlockInlineConfig, p.DryRun = true, true
	if err := p.Resolve(&Sources{}); err != nil {
		t.Errorf("a config cannot be tried out: %v", err)
	}
	for _, text := range []string{`{`, `{"targets":7}`, `{"x":"` + strings.Repeat("x", maxInlineConfig) + `"}`} {
		p := of(t, chat, `{}`, map[string]string{"X-Gateway-Config": text})
		if f := fault.From(p.Resolve(&Sources{})); f == nil || f.Code != fault.InvalidConfig {
			t.Errorf("%.20s: %v", text, f)
		}
	}
}

// A dry run reads the shared state and does not change it.
func TestLookingChangesNothing(t *testing.T) {
	t.Parallel()
	picks := route.NewPicks(time.Now).Of("o", "w", "c")
	ctx := onlyLooking(route.Context{Breakers: new(ConfigBreakers), Sticky: picks})
	if !ctx.Breakers.Claim("x", nil) {
		t.Error("a target is closed to a dry run")
	}
	ctx.Breakers.Record("x", nil, 500, true) // would fail without a rule
	ctx.Breakers.Release("x")
	ctx.Sticky.Store(route.StickyKey{}, 1, time.Hour)
	if _, kept := picks.Index(route.StickyKey{}); kept {
		t.Error("a dry run keeps its pick")
	}
}
