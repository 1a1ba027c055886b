package main

import (
	"strings"
	"testing"
)

func (s *synthesised) edgeAsDeployed(t *testing.T) {
	_, all := s.edge.of("AWS::CloudFront::Distribution")
	c := at(all[0].Properties, "DistributionConfig")
	behaviours := append([]any{at(c, "DefaultCacheBehavior")}, at(c, "CacheBehaviors").([]any)...)
	const cachingDisabled = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
	for _, b := range behaviours {
		if at(b, "ViewerProtocolPolicy") != "https-only" || at(b, "CachePolicyId") != cachingDisabled || at(b, "Compress") != false ||
			len(at(b, "AllowedMethods").([]any)) != 7 || at(b, "FunctionAssociations", 0, "EventType") != "viewer-request" {
			t.Errorf("%s", text(b))
		}
	}
	origins := at(c, "Origins").([]any)
	ids := map[any]any{}
	for _, o := range origins {
		ids[at(o, "Id")] = o
		if !strings.Contains(text(at(o, "OriginCustomHeaders")), "X-Gateway-Origin-Secret") {
			t.Errorf("an origin without its secret: %s", text(o))
		}
	}
	api := ids["api"]
	if api == nil || ids["container"] == nil || len(origins) != 2 {
		t.Fatalf("%s", text(origins))
	}
	if p := at(api, "OriginPath"); p != nil && p != "" {
		t.Errorf("the stage would stand twice: %v", p)
	}
	if at(api, "CustomOriginConfig", "OriginReadTimeout") != 120.0 || at(api, "ResponseCompletionTimeout") != 900.0 || at(api, "CustomOriginConfig", "OriginProtocolPolicy") != "https-only" {
		t.Errorf("%s", text(api))
	}
	if at(c, "WebACLId") == nil {
		t.Error("the distribution has no firewall")
	}
}

func (s *synthesised) firewalls(t *testing.T) {
	for _, tpl := range []template{s.data, s.functions, s.workers} {
		if ids, _ := tpl.of("AWS::WAFv2::WebACL"); len(ids) > 0 {
			t.Errorf("a second firewall: %v", ids)
		}
	}
	_, all := s.edge.of("AWS::WAFv2::WebACL")
	if len(all) != 1 || all[0].Properties["Scope"] != "CLOUDFRONT" {
		t.Fatalf("%s", text(all))
	}
	rules := text(all[0].Properties["Rules"])
	for _, rule := range bodyRules {
		if !strings.Contains(rules, `{"ActionToUse":{"Count":{}},"Name":"`+rule+`"}`) {
			t.Errorf("%s does not only count", rule)
		}
	}
	for _, prefix := range administrationPrefixes() {
		if !strings.Contains(rules, `"SearchString":"/v1/`+prefix+`"`) {
			t.Errorf("bodies to /%s are not looked at", prefix)
		}
	}
}
