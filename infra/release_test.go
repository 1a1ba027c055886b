package main

import (
	"strings"
	"testing"

	"gateway/shared/host/placement"
)

// everyoneCallsTheAlias: nothing that starts a function names the function itself, because
// then its newest code would serve before it has been tried.
func (s *synthesised) everyoneCallsTheAlias(t *testing.T) {
	for _, tpl := range []template{s.functions, s.workers} {
		_, aliases := tpl.of("AWS::Lambda::Alias")
		if len(aliases) != len(functionNames(tpl)) {
			t.Errorf("%d aliases of %d functions", len(aliases), len(functionNames(tpl)))
		}
		for _, kind := range []string{"AWS::Lambda::Permission", "AWS::Lambda::EventSourceMapping", "AWS::Scheduler::Schedule", "AWS::Logs::SubscriptionFilter"} {
			_, callers := tpl.of(kind)
			for _, c := range callers {
				p := c.Properties
				called := text([]any{p["FunctionName"], p["DestinationArn"], at(p, "Target", "Arn")})
				if !strings.Contains(called, `"Live`) && !strings.Contains(called, "Queue") {
					t.Errorf("%s calls %s", kind, called)
				}
			}
		}
	}
}

// shifted gives the functions whose alias moves by CodeDeploy.
func (s *synthesised) shifted(t *testing.T) map[string]bool {
	t.Helper()
	out := map[string]bool{}
	for id, r := range s.functions {
		if r.Type == "AWS::Lambda::Alias" && strings.Contains(text(r.UpdatePolicy), "CodeDeployLambdaAliasUpdate") {
			out[strings.TrimPrefix(id[:len(id)-8], "Live")] = true
		}
	}
	return out
}

func TestVersionsAreShifted(t *testing.T) {
	_, places := placement.Families()
	for shift, config := range map[string]string{"": "LambdaCanary10Percent5Minutes", "linear": "LambdaLinear10PercentEvery1Minute", "off": ""} {
		t.Run("shift="+shift, func(t *testing.T) {
			s := synth(t, map[string]any{"shift": shift, "alarmTopicArn": "arn:aws:sns:us-east-1:123456789012:alarms"})
			s.everyoneCallsTheAlias(t)
			shifted := s.shifted(t)
			for name, place := range places {
				if want := place == placement.Stream && config != ""; shifted[name] != want {
					t.Errorf("%s is shifted: %v", name, shifted[name])
				}
			}
			_, groups := s.functions.of("AWS::CodeDeploy::DeploymentGroup")
			for _, g := range groups {
				p := text(g.Properties)
				for _, want := range []string{config, `"DEPLOYMENT_STOP_ON_ALARM"`, `"DEPLOYMENT_FAILURE"`, "Alarmnewversion"} {
					if !strings.Contains(p, want) {
						t.Errorf("%s is missing: %s", want, p)
					}
				}
			}
			_, alarms := s.functions.of("AWS::CloudWatch::Alarm")
			for _, a := range alarms {
				if p := a.Properties; p["MetricName"] != "5XXError" || p["Threshold"] != 0.05 || p["TreatMissingData"] != "notBreaching" || !strings.Contains(text(p["AlarmActions"]), "alarms") ||
					text(p["Dimensions"]) != `[{"Name":"ApiName","Value":"gateway"},{"Name":"Stage","Value":"v1"}]` {
					t.Errorf("%s", text(p))
				}
			}
			if want := map[bool]int{true: 0, false: 1}[config == ""]; len(alarms) != want {
				t.Errorf("%d alarms, want %d", len(alarms), want)
			}
			s.nag(t)
		})
	}
}

func TestOtherRegions(t *testing.T) {
	for region, c := range map[string]struct {
		firewall string
		stacks   int
		logs     bool
	}{
		"us-east-1": {"on", 4, true}, "eu-west-1": {"on", 5, true}, "ap-southeast-2": {"off", 4, true}, "eu-south-2": {"on", 5, false},
	} {
		t.Run(region, func(t *testing.T) {
			s := synth(t, map[string]any{"region": region, "firewall": c.firewall, "container": "on"})
			if len(s.stacks) != c.stacks {
				t.Fatalf("%d stacks", len(s.stacks))
			}
			for i, stack := range s.stacks {
				if want := map[bool]string{true: "us-east-1", false: region}[i == 4]; *stack.Region() != want {
					t.Errorf("%s is in %s", *stack.StackName(), *stack.Region())
				}
			}
			_, all := s.edge.of("AWS::CloudFront::Distribution")
			config := at(all[0].Properties, "DistributionConfig")
			if acl := at(config, "WebACLId"); (acl != nil) != (c.firewall == "on") {
				t.Errorf("%v", acl)
			}
			if logged := at(config, "Logging") != nil; logged != c.logs {
				t.Errorf("logged: %v", logged)
			}
			// Only the edge in us-east-1 may speak of another region, and who asks for its
			// firewall.
			for _, tpl := range []template{s.data, s.functions, s.workers} {
				if region != "us-east-1" && strings.Contains(strings.ReplaceAll(text(tpl), ":wafv2:us-east-1:", ""), "us-east-1") {
					t.Error("a stack speaks of us-east-1")
				}
			}
			for path, methods := range s.paths(t) {
				if uri := text(at(methods, "x-amazon-apigateway-any-method", "x-amazon-apigateway-integration", "uri")); uri != "null" && !strings.Contains(uri, "apigateway:"+region+":") {
					t.Errorf("%s goes to %s", path, uri)
				}
			}
			s.nag(t)
		})
	}
}

func TestOwnDomain(t *testing.T) {
	const certificate = "arn:aws:acm:us-east-1:123456789012:certificate/0a1b"
	s := synth(t, map[string]any{"domain": "gateway.example.com", "certificateArn": certificate})
	_, all := s.edge.of("AWS::CloudFront::Distribution")
	config := at(all[0].Properties, "DistributionConfig")
	if text(at(config, "Aliases")) != `["gateway.example.com"]` || at(config, "ViewerCertificate", "AcmCertificateArn") != certificate || at(config, "ViewerCertificate", "MinimumProtocolVersion") != "TLSv1.2_2021" {
		t.Errorf("%s", text(config))
	}
	s.nag(t)
}

func TestReservedConcurrency(t *testing.T) {
	s := synth(t, map[string]any{"reservedConcurrency": "administration=10,analytics=2,usage=5"})
	_, places := placement.Families()
	for _, tpl := range []template{s.functions, s.workers} {
		for id, name := range functionNames(tpl) {
			var want any
			switch {
			case name == "analytics":
				want = 2.0
			case name == "usage":
				want = 5.0
			case places[name] == placement.Buffered:
				want = 10.0
			}
			if got := tpl[id].Properties["ReservedConcurrentExecutions"]; got != want {
				t.Errorf("%s: %v, want %v", name, got, want)
			}
		}
	}
}

// TestLentCredentials: processes that call providers have the lent permissions, and the process
// that checks references to secrets has the role. No other process has them, and there are
// no permissions beyond those that were named.
func TestLentCredentials(t *testing.T) {
	_, places := placement.Families()
	for value, c := range map[string]struct{ bedrock, role bool }{
		"off": {}, "bedrock": {bedrock: true}, "arn:aws:iam::123456789012:role/models": {role: true}, "bedrock,arn:aws:iam::123456789012:role/models": {true, true},
	} {
		s := synth(t, map[string]any{"awsServiceRole": value})
		env := s.environments()
		for _, tpl := range []template{s.functions, s.workers} {
			for _, name := range functionNames(tpl) {
				calls := places[name] == placement.Stream || name == "batchruns"
				// Of AWS's secret manager: to verify, and for credentials of what they call.
				asks := calls || name == "secretreferences" || name == "mcpservers" || name == "agentservers"
				all := text(statements(tpl, name))
				if got := strings.Contains(all, `"bedrock:InvokeModel"`); got != (calls && c.bedrock) {
					t.Errorf("%s, %s: may use Bedrock: %v", value, name, got)
				}
				for _, right := range []string{`"bedrock:InvokeModelWithResponseStream"`, `"bedrock:CountTokens"`, `"bedrock:GetInferenceProfile"`, `"bedrock:ApplyGuardrail"`} {
					if got := strings.Contains(all, right); got != (calls && c.bedrock) {
						t.Errorf("%s, %s: has %s: %v", value, name, right, got)
					}
				}
				if rights := strings.Count(all, `"bedrock:`); rights != 5 && rights != 0 || strings.Contains(all, `"bedrock:*"`) {
					t.Errorf("%s, %s: %d rights to Bedrock", value, name, rights)
				}
				if got := strings.Contains(all, `"sts:AssumeRole"`); got != (asks && c.role) || got && !strings.Contains(all, `"arn:aws:iam::123456789012:role/models"`) {
					t.Errorf("%s, %s: may assume roles: %v", value, name, got)
				}
				if got := env[name]["GATEWAY_AWS_SERVICE_ROLE"] == "true"; got != (calls && value != "off" || asks && c.role) {
					t.Errorf("%s, %s: lends: %v", value, name, got)
				}
			}
		}
	}
}

// TestLogLevel: Lambda drops what is below, the container itself.
func TestLogLevel(t *testing.T) {
	s := synth(t, map[string]any{"logLevel": "error", "container": "on"})
	for _, tpl := range []template{s.functions, s.workers} {
		for id, name := range functionNames(tpl) {
			if l := at(tpl[id].Properties, "LoggingConfig", "ApplicationLogLevel"); l != "ERROR" {
				t.Errorf("%s: %v", name, l)
			}
		}
	}
	if l := s.environments()["container"]["GATEWAY_LOG_LEVEL"]; l != "error" {
		t.Errorf("the container: %q", l)
	}
}
