package main

import (
	"strings"
	"testing"

	"gateway/shared/host/placement"
)

// doorAsDeployed: every process that serves knows the secret, the edge sends the same
// secret, and only the worker that replaces it may read it.
func (s *synthesised) doorAsDeployed(t *testing.T) {
	names, _ := placement.Families()
	seen := 0
	for id, name := range functionNames(s.functions) {
		value := text(at(s.functions[id].Properties, "Environment", "Variables", "GATEWAY_ORIGIN_SECRETS"))
		if !strings.Contains(value, ":current") || !strings.Contains(value, ":previous") {
			t.Errorf("%s knows no secret: %s", name, value)
		}
		seen++
	}
	if seen != len(names) {
		t.Errorf("%d functions, want %d", seen, len(names))
	}
	_, tasks := s.functions.of("AWS::ECS::TaskDefinition")
	for _, task := range tasks {
		if !strings.Contains(text(task), "GATEWAY_ORIGIN_SECRETS") {
			t.Error("the container knows no secret")
		}
	}
	for _, tpl := range []template{s.functions, s.workers} {
		_, policies := tpl.of("AWS::IAM::Policy")
		for _, p := range policies {
			doc := text(p.Properties["PolicyDocument"])
			repair := strings.Contains(text(p.Properties["Roles"]), "Rolerepair")
			for _, action := range []string{"secretsmanager:GetSecretValue", "cloudfront:UpdateDistribution", `"wafv2:GetWebACL"`, `"s3:PutBucketAcl"`} {
				has := repair && (action != `"wafv2:GetWebACL"` || s.options.firewall == "on")
				if strings.Contains(doc, action) != has {
					t.Errorf("%s: %s", action, text(p.Properties["Roles"]))
				}
			}
			if repair && !strings.Contains(doc, `"aws:ResourceTag/gateway-installation":"gateway"`) {
				t.Errorf("the worker may change every distribution: %s", doc)
			}
		}
	}
	_, all := s.edge.of("AWS::CloudFront::Distribution")
	if tags := text(all[0].Properties["Tags"]); !strings.Contains(tags, `{"Key":"gateway-installation","Value":"gateway"}`) {
		t.Errorf("the worker may not change the distribution: %s", tags)
	}
	if kept := text(at(all[0].Properties, "DistributionConfig", "CustomErrorResponses")); strings.Count(kept, `{"ErrorCachingMinTTL":0,`) < 10 || !strings.Contains(kept, `"ErrorCode":404}`) {
		t.Errorf("errors are kept for everybody: %s", kept)
	}
	_, parameters := s.edge.of("AWS::SSM::Parameter")
	if len(parameters) != 1 || parameters[0].Properties["Name"] != "/gateway/distribution" || !strings.Contains(text(parameters[0].Properties["Value"]), "Distribution") {
		t.Errorf("%s", text(parameters))
	}
	for id, name := range functionNames(s.workers) {
		env := at(s.workers[id].Properties, "Environment", "Variables")
		if has := at(env, "GATEWAY_DISTRIBUTION_PARAMETER") == "/gateway/distribution" && at(env, "GATEWAY_ORIGIN_SECRET_ID") != nil; has != (name == "repair") {
			t.Errorf("%s: %s", name, text(env))
		}
	}
}

func TestWithoutAFirewall(t *testing.T) {
	s := synth(t, map[string]any{"container": "off", "firewall": "off", "usageWindow": "0"})
	for _, tpl := range []template{s.data, s.functions, s.workers, s.edge} {
		if ids, _ := tpl.of("AWS::WAFv2::WebACL"); len(ids) > 0 {
			t.Errorf("%v", ids)
		}
	}
	_, all := s.edge.of("AWS::CloudFront::Distribution")
	if acl := at(all[0].Properties, "DistributionConfig", "WebACLId"); acl != nil {
		t.Errorf("%v", acl)
	}
	t.Run("door", s.doorAsDeployed)
	t.Run("window", s.unwaitedUsage)
	t.Run("nag", s.nag)
}

// unwaitedUsage: Lambda takes at most ten messages at once where it does not wait.
func (s *synthesised) unwaitedUsage(t *testing.T) {
	_, sources := s.workers.of("AWS::Lambda::EventSourceMapping")
	for _, src := range sources {
		if p := src.Properties; p["MaximumBatchingWindowInSeconds"] == 0.0 && p["BatchSize"].(float64) > 10 {
			t.Errorf("%s", text(p))
		}
	}
}
