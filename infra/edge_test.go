package main

import (
	"os/exec"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gateway/functions/console/headers"
	"gateway/shared/host/placement"
)

func (s *synthesised) edgeAsDeployed(t *testing.T) {
	_, all := s.edge.of("AWS::CloudFront::Distribution")
	c := at(all[0].Properties, "DistributionConfig")
	behaviours := append([]any{at(c, "DefaultCacheBehavior")}, at(c, "CacheBehaviors").([]any)...)
	behaviours = slices.DeleteFunc(behaviours, func(b any) bool { return at(b, "TargetOriginId") == "console" })
	const cachingDisabled = "4135ea2d-6df8-44a3-9df3-4b5a84be39ad"
	for _, b := range behaviours {
		if at(b, "ViewerProtocolPolicy") != "https-only" || at(b, "CachePolicyId") != cachingDisabled || at(b, "Compress") != false ||
			len(at(b, "AllowedMethods").([]any)) != 7 || at(b, "FunctionAssociations", 0, "EventType") != "viewer-request" {
			t.Errorf("%s", text(b))
		}
	}
	for _, sessions := range []string{"/v1/realtime*", "/v1/live/*", "/v1/ws/*"} {
		if !slices.ContainsFunc(behaviours[1:], func(b any) bool { return at(b, "PathPattern") == sessions && at(b, "TargetOriginId") == "container" }) {
			t.Errorf("sessions of %s have no behaviour", sessions)
		}
	}
	origins := at(c, "Origins").([]any)
	ids := map[any]any{}
	for _, o := range origins {
		ids[at(o, "Id")] = o
		if at(o, "Id") == "console" {
			continue
		}
		if !strings.Contains(text(at(o, "OriginCustomHeaders")), "X-Gateway-Origin-Secret") {
			t.Errorf("an origin without its secret: %s", text(o))
		}
	}
	api := ids["api"]
	if api == nil || ids["container"] == nil || ids["console"] == nil || len(origins) != 3 {
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

// The console's files have a bucket of their own, which only the distribution reads, and the
// headers of the other hosts. The bucket does not get the origin secret.
func (s *synthesised) consoleAsDeployed(t *testing.T) {
	_, all := s.edge.of("AWS::CloudFront::Distribution")
	c := at(all[0].Properties, "DistributionConfig")
	paths := map[any]bool{}
	for _, b := range at(c, "CacheBehaviors").([]any) {
		if at(b, "TargetOriginId") != "console" {
			continue
		}
		paths[at(b, "PathPattern")] = true
		if at(b, "ViewerProtocolPolicy") != "redirect-to-https" || at(b, "Compress") != true || len(at(b, "AllowedMethods").([]any)) != 2 ||
			at(b, "ResponseHeadersPolicyId") == nil || !strings.Contains(text(at(b, "FunctionAssociations")), "ConsolePages") {
			t.Errorf("%s", text(b))
		}
	}
	if len(paths) != 2 || !paths["/console"] || !paths["/console/*"] {
		t.Errorf("the console is at %v", paths)
	}
	for _, o := range at(c, "Origins").([]any) {
		if at(o, "Id") == "console" && (at(o, "OriginCustomHeaders") != nil || at(o, "OriginAccessControlId") == nil) {
			t.Errorf("%s", text(o))
		}
	}
	_, policies := s.edge.of("AWS::CloudFront::ResponseHeadersPolicy")
	if len(policies) != 1 || at(policies[0].Properties, "ResponseHeadersPolicyConfig", "SecurityHeadersConfig", "ContentSecurityPolicy", "ContentSecurityPolicy") != headers.Policy ||
		at(policies[0].Properties, "ResponseHeadersPolicyConfig", "SecurityHeadersConfig", "ReferrerPolicy", "ReferrerPolicy") != headers.ReferrerPolicy {
		t.Errorf("%s", text(policies))
	}
	_, buckets := s.edge.of("AWS::S3::Bucket")
	if len(buckets) != 1 || len(at(buckets[0].Properties, "PublicAccessBlockConfiguration").(map[string]any)) != 4 {
		t.Errorf("%s", text(buckets))
	}
	_, rules := s.edge.of("AWS::S3::BucketPolicy")
	if p := text(rules); !strings.Contains(p, "cloudfront.amazonaws.com") || !strings.Contains(p, "AWS:SourceArn") {
		t.Errorf("others may read the console's bucket: %s", p)
	}
	ids, uploads := s.edge.of("Custom::CDKBucketDeployment")
	want := map[string]string{"console": headers.CacheIndex, "console/assets": headers.CacheAssets}
	for i, u := range uploads {
		prefix, _ := at(u.Properties, "DestinationBucketKeyPrefix").(string)
		if at(u.Properties, "SystemMetadata", "cache-control") != want[prefix] || want[prefix] == "" {
			t.Errorf("%s: %s", ids[i], text(u.Properties))
		}
		delete(want, prefix)
	}
	if len(want) > 0 {
		t.Errorf("not uploaded: %v", want)
	}
}

func TestPagesOfTheConsoleAtTheEdge(t *testing.T) {
	harness := consolePages + `
console.log(JSON.stringify(["/console", "/console/", "/console/logs/01J", "/console/assets/app.1.js", "/console/assets"].map(uri => {
  const r = handler({ request: { uri } });
  return r.uri || r.statusCode + " " + r.headers.location.value;
})));`
	raw, err := exec.Command("node", "-e", harness).Output()
	if err != nil {
		t.Fatal(err)
	}
	want := `["308 /console/","/console/index.html","/console/index.html","/console/assets/app.1.js","/console/index.html"]`
	if got := strings.TrimSpace(string(raw)); got != want {
		t.Errorf("%s\nwant %s", got, want)
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
	for _, rule := range []string{"SizeRestrictions_Body", "GenericRFI_Body"} {
		if strings.Contains(rules, "core-rule-set:"+rule) {
			t.Errorf("%s blocks bodies", rule)
		}
	}
	for _, rule := range queryRules {
		if !strings.Contains(rules, `{"ActionToUse":{"Count":{}},"Name":"`+rule+`"}`) {
			t.Errorf("%s blocks what clients come back with", rule)
		}
	}
	var looked []*regexp.Regexp
	for _, pattern := range settingPatterns() {
		if !strings.Contains(rules, `"RegexString":`+text(pattern)) || len(pattern) > maxPattern {
			t.Errorf("no rule has the pattern %s (%d characters)", pattern, len(pattern))
		}
		looked = append(looked, regexp.MustCompile(pattern))
	}
	settings := 0
	for _, r := range placement.Table() {
		for _, base := range []string{"/v1", "/v2", "/v1/v1", "/openai/v1"} {
			path := base + r.Path
			blocked := slices.ContainsFunc(looked, func(p *regexp.Regexp) bool { return p.MatchString(path) })
			switch spoken := r.Place != placement.Buffered || slices.Contains(wordy, r.Family); {
			case blocked && spoken:
				t.Errorf("what people say to %s is blocked", path)
			case blocked:
				settings++
			case !spoken && slices.Contains(settingPrefixes(), strings.Split(r.Path[1:], "/")[0]):
				t.Errorf("bodies to %s are not looked at", path)
			}
		}
	}
	if settings < 4*100 {
		t.Errorf("%d paths of settings are looked at", settings)
	}
}
