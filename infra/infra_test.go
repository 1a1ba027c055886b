package main

import (
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/placement"
)

// TestTemplates synthesises once for all that a usual installation must hold.
func TestTemplates(t *testing.T) {
	s := synth(t, map[string]any{"container": "on"})
	t.Run("sizes", s.sizes)
	t.Run("tables", s.tables)
	t.Run("queues", s.queues)
	t.Run("bucket and keys", s.bucketAndKeys)
	t.Run("queries", s.queriesAsDeployed)
	t.Run("functions", s.functionsAsDeployed)
	t.Run("rights", s.rights)
	t.Run("conditions", s.conditions)
	t.Run("api", s.api)
	t.Run("workers", s.workersAsDeployed)
	t.Run("container", s.containerAsDeployed)
	t.Run("edge", s.edgeAsDeployed)
	t.Run("console", s.consoleAsDeployed)
	t.Run("firewalls", s.firewalls)
	t.Run("door", s.doorAsDeployed)
	t.Run("watches", s.watches)
	t.Run("dashboards", s.dashboards)
	t.Run("metrics", s.metricsExist)
	t.Run("nag", s.nag)
	t.Run("written down", s.installationIsWrittenDown)
}

func (s *synthesised) sizes(t *testing.T) {
	for name, tpl := range map[string]template{"data": s.data, "functions": s.functions, "workers": s.workers, "edge": s.edge} {
		t.Logf("%s: %d resources", name, len(tpl))
		if len(tpl) == 0 || len(tpl) >= 400 {
			t.Errorf("%s has %d resources, fewer than 400 are allowed", name, len(tpl))
		}
	}
	segments := map[string]bool{}
	for path := range s.paths(t) {
		for i := range strings.Split(path, "/")[1:] {
			segments[strings.Join(strings.Split(path, "/")[:i+2], "/")] = true
		}
	}
	if len(segments) >= 250 {
		t.Errorf("the API has %d resources, fewer than 250 are allowed", len(segments))
	}
	_, all := s.edge.of("AWS::CloudFront::Distribution")
	if n := len(at(all[0].Properties, "DistributionConfig", "CacheBehaviors").([]any)) + 1; n >= 60 {
		t.Errorf("%d cache behaviours, fewer than 60 are allowed", n)
	}
}

func (s *synthesised) tables(t *testing.T) {
	_, all := s.data.of("AWS::DynamoDB::GlobalTable")
	if len(all) != 6 {
		t.Fatalf("%d tables, want 6", len(all))
	}
	for _, r := range all {
		p := r.Properties
		if p["BillingMode"] != "PAY_PER_REQUEST" || at(p, "Replicas", 0, "DeletionProtectionEnabled") != false ||
			at(p, "Replicas", 0, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled") != true ||
			at(p, "TimeToLiveSpecification", "AttributeName") != "expires" || r.DeletionPolicy != "RetainExceptOnCreate" {
			t.Errorf("%s", text(r))
		}
		if !slices.Contains(tableNames, strings.TrimPrefix(physical(p["TableName"]), "gateway-")) {
			t.Errorf("table %s", p["TableName"])
		}
	}
}

func (s *synthesised) queues(t *testing.T) {
	ids, all := s.data.of("AWS::SQS::Queue")
	if len(all) != 8 {
		t.Fatalf("queues: %v", ids)
	}
	for i, r := range all {
		p, name := r.Properties, physical(r.Properties["QueueName"])
		if p["SqsManagedSseEnabled"] != true {
			t.Errorf("%s is not encrypted", ids[i])
		}
		if strings.HasSuffix(name, "-dead") {
			source := strings.TrimPrefix(strings.TrimSuffix(name, "-dead"), "gateway")
			if at(p, "RedriveAllowPolicy", "redrivePermission") != "byQueue" || !strings.Contains(text(p["RedriveAllowPolicy"]), source+`"`) {
				t.Errorf("%s takes dead letters of others: %s", ids[i], text(p["RedriveAllowPolicy"]))
			}
			continue
		}
		if p["VisibilityTimeout"] != map[any]float64{"gateway-audit": 725, "gateway-usage": 1020, "gateway-batches": 5400, "gateway-exports": 3600}[name] || at(p, "RedrivePolicy", "maxReceiveCount") != 5.0 || p["MaximumMessageSize"] != float64(1<<20) {
			t.Errorf("%s", text(p))
		}
	}
	_, policies := s.data.of("AWS::SQS::QueuePolicy")
	if len(policies) != 8 {
		t.Errorf("%d queue policies, want 8", len(policies))
	}
	for _, p := range policies {
		if !strings.Contains(text(p.Properties), `"aws:SecureTransport":"false"`) {
			t.Errorf("%s", text(p))
		}
	}
}

func (s *synthesised) bucketAndKeys(t *testing.T) {
	_, buckets := s.data.of("AWS::S3::Bucket")
	for _, b := range buckets {
		block := at(b.Properties, "PublicAccessBlockConfiguration")
		for _, what := range []string{"BlockPublicAcls", "BlockPublicPolicy", "IgnorePublicAcls", "RestrictPublicBuckets"} {
			if at(block, what) != true {
				t.Errorf("%s: %s", what, text(b))
			}
		}
		if b.Properties["VersioningConfiguration"] != nil || at(b.Properties, "LifecycleConfiguration") == nil {
			t.Errorf("%s", text(b))
		}
	}
	_, policies := s.data.of("AWS::S3::BucketPolicy")
	if len(buckets) != 2 || len(policies) != 2 {
		t.Fatalf("%d buckets, %d policies", len(buckets), len(policies))
	}
	for _, p := range policies {
		if !strings.Contains(text(p.Properties), `"aws:SecureTransport":"false"`) {
			t.Errorf("%s", text(p))
		}
	}
	_, keys := s.data.of("AWS::KMS::Key")
	if len(keys) != 1 {
		t.Fatalf("%d keys", len(keys))
	}
	for _, k := range keys {
		if k.Properties["EnableKeyRotation"] != true || k.DeletionPolicy != "RetainExceptOnCreate" {
			t.Errorf("%s", text(k))
		}
	}
}

func (s *synthesised) nag(t *testing.T) {
	for _, stack := range s.stacks {
		found := assertions.Annotations_FromStack(stack).FindError(jsii.String("*"), assertions.Match_StringLikeRegexp(jsii.String("AwsSolutions-.*")))
		for _, m := range *found {
			t.Errorf("%s: %.300v", *m.Id, m.Entry.Data)
		}
	}
}

func TestWithoutContainer(t *testing.T) {
	s := synth(t, map[string]any{"container": "off"})
	for _, kind := range []string{"AWS::EC2::VPC", "AWS::ECS::Service", "AWS::ElasticLoadBalancingV2::LoadBalancer", "AWS::EC2::NatGateway"} {
		if ids, _ := s.functions.of(kind); len(ids) > 0 {
			t.Errorf("%v", ids)
		}
	}
	_, places := placement.Families()
	for _, r := range placement.Table() {
		if r.WithoutContainer != placement.Refused {
			continue
		}
		method := strings.ToLower(r.Method)
		if r.Method == placement.AnyMethod {
			method = "x-amazon-apigateway-any-method"
		}
		path := at(s.paths(t), unifyVariables(r.Path))
		if path == nil { // what takes all below answers it
			path = at(s.paths(t), r.Path[:strings.LastIndex(r.Path, "/")]+"/{path+}")
		}
		if _, runs := places[r.Family]; !runs && at(path, method) == nil { // what answers any method of the path answers it
			method = "x-amazon-apigateway-any-method"
		}
		in := at(path, method, "x-amazon-apigateway-integration")
		status := text(r.Status)
		if at(in, "type") != "mock" || at(in, "responses", "default", "statusCode") != status {
			t.Errorf("%s %s: %s", r.Method, r.Path, text(in))
		}
	}
	_, all := s.edge.of("AWS::CloudFront::Distribution")
	if n := len(at(all[0].Properties, "DistributionConfig", "Origins").([]any)); n != 2 { // the API and the console
		t.Errorf("%d origins", n)
	}
	// The edge's function only renames paths here: of version 2, of descriptions, and of
	// clients that put the version twice or leave it out.
	config := at(all[0].Properties, "DistributionConfig")
	if at(config, "DefaultCacheBehavior", "FunctionAssociations") != nil {
		t.Errorf("each request pays for a function that chooses nothing: %s", text(config))
	}
	var renamed []string
	for _, b := range at(config, "CacheBehaviors").([]any) {
		if at(b, "TargetOriginId") == "console" {
			continue
		}
		if at(b, "FunctionAssociations", 0, "EventType") != "viewer-request" || at(b, "TargetOriginId") != "api" || at(b, "ViewerProtocolPolicy") != "https-only" {
			t.Errorf("%s", text(b))
		}
		renamed = append(renamed, at(b, "PathPattern").(string))
	}
	want := []string{"/.well-known/*", "/v1/mcp/*", "/v1/openai/*", "/v1/v1/*", "/v2", "/v2/*"}
	for _, first := range versionless {
		want = append(want, "/"+first+"*")
	}
	slices.Sort(want)
	if slices.Sort(renamed); !slices.Equal(renamed, want) {
		t.Errorf("renamed are %v", renamed)
	}
	s.nag(t)
}

func TestHighAvailability(t *testing.T) {
	s := synth(t, map[string]any{"container": "ha", "chat": "container", "alarmTopicArn": "arn:aws:sns:us-east-1:123456789012:alarms"})
	_, services := s.functions.of("AWS::ECS::Service")
	_, gateways := s.functions.of("AWS::EC2::NatGateway")
	if services[0].Properties["DesiredCount"] != 2.0 || len(gateways) != 2 {
		t.Errorf("%d NAT gateways, %s", len(gateways), text(services))
	}
	t.Run("watches", s.watches)
	s.nag(t)
}
