package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2"
	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
	"github.com/aws/jsii-runtime-go"

	"gateway/shared/host/placement"
)

// TestMain keeps the one node process that the CDK runs in.
func TestMain(m *testing.M) {
	code := m.Run()
	jsii.Close()
	os.Exit(code)
}

// resource is a resource of a template.
type resource struct {
	Type           string
	Properties     map[string]any
	DeletionPolicy string
}

// template is a synthesised stack.
type template map[string]resource

// synthesised is an installation with its templates.
type synthesised struct {
	options
	data, functions, workers, edge template
	stacks                         []awscdk.Stack
}

// fakeDist holds a binary of every function, as far as the CDK looks at it.
func fakeDist(t *testing.T) string {
	t.Helper()
	dir := t.TempDir()
	mains, err := filepath.Glob("../functions/*/lambda")
	if err != nil || len(mains) < 10 {
		t.Fatalf("%d functions found: %v", len(mains), err)
	}
	files := []string{"container/gateway", "container/Dockerfile"}
	for _, m := range mains {
		files = append(files, filepath.Base(filepath.Dir(m))+"/bootstrap")
	}
	for _, f := range files {
		path := filepath.Join(dir, f)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, []byte("FROM scratch\n"), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func synth(t *testing.T, context map[string]any) *synthesised {
	t.Helper()
	context["dist"] = fakeDist(t)
	app := awscdk.NewApp(&awscdk.AppProps{Context: &context, Outdir: jsii.String(t.TempDir()), AnalyticsReporting: jsii.Bool(false)})
	o, err := optionsOf(app)
	if err != nil {
		t.Fatal(err)
	}
	in := build(app, o)
	s := &synthesised{options: o, stacks: []awscdk.Stack{in.data.stack, in.functions.stack, in.workers.stack, in.edge.stack}}
	for i, to := range []*template{&s.data, &s.functions, &s.workers, &s.edge} {
		raw, err := json.Marshal(assertions.Template_FromStack(s.stacks[i], nil).ToJSON())
		if err != nil {
			t.Fatal(err)
		}
		var whole struct{ Resources template }
		if err := json.Unmarshal(raw, &whole); err != nil {
			t.Fatal(err)
		}
		*to = whole.Resources
	}
	return s
}

// of gives the resources of a type, in the order of their ids.
func (tpl template) of(kind string) (ids []string, all []resource) {
	for id, r := range tpl {
		if r.Type == kind {
			ids = append(ids, id)
		}
	}
	sort.Strings(ids)
	for _, id := range ids {
		all = append(all, tpl[id])
	}
	return ids, all
}

// at walks into a value: names of members, numbers of elements.
func at(v any, path ...any) any {
	for _, p := range path {
		switch p := p.(type) {
		case string:
			m, _ := v.(map[string]any)
			v = m[p]
		case int:
			l, _ := v.([]any)
			if p >= len(l) {
				return nil
			}
			v = l[p]
		}
	}
	return v
}

func text(v any) string {
	b, _ := json.Marshal(v)
	return string(b)
}

// TestTemplates synthesises once for all that a usual installation must hold.
func TestTemplates(t *testing.T) {
	s := synth(t, map[string]any{})
	t.Run("sizes", s.sizes)
	t.Run("tables", s.tables)
	t.Run("queues", s.queues)
	t.Run("bucket and keys", s.bucketAndKeys)
	t.Run("functions", s.functionsAsDeployed)
	t.Run("rights", s.rights)
	t.Run("api", s.api)
	t.Run("workers", s.workersAsDeployed)
	t.Run("container", s.containerAsDeployed)
	t.Run("edge", s.edgeAsDeployed)
	t.Run("firewalls", s.firewalls)
	t.Run("nag", s.nag)
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
		if p["BillingMode"] != "PAY_PER_REQUEST" || at(p, "Replicas", 0, "DeletionProtectionEnabled") != true ||
			at(p, "Replicas", 0, "PointInTimeRecoverySpecification", "PointInTimeRecoveryEnabled") != true ||
			at(p, "TimeToLiveSpecification", "AttributeName") != "expires" || r.DeletionPolicy != "Retain" {
			t.Errorf("%s", text(r))
		}
		if !slices.Contains(tableNames, strings.TrimPrefix(p["TableName"].(string), "gateway-")) {
			t.Errorf("table %s", p["TableName"])
		}
	}
}

func (s *synthesised) queues(t *testing.T) {
	ids, all := s.data.of("AWS::SQS::Queue")
	if len(all) != 4 {
		t.Fatalf("queues: %v", ids)
	}
	for i, r := range all {
		p := r.Properties
		if p["SqsManagedSseEnabled"] != true {
			t.Errorf("%s is not encrypted", ids[i])
		}
		if strings.HasSuffix(p["QueueName"].(string), "-dead") {
			source := strings.TrimSuffix(p["QueueName"].(string), "-dead")
			if at(p, "RedriveAllowPolicy", "redrivePermission") != "byQueue" || !strings.Contains(text(p["RedriveAllowPolicy"]), ":"+source) {
				t.Errorf("%s takes dead letters of others: %s", ids[i], text(p["RedriveAllowPolicy"]))
			}
			continue
		}
		if p["VisibilityTimeout"] != 725.0 || at(p, "RedrivePolicy", "maxReceiveCount") != 5.0 || p["MaximumMessageSize"] != float64(1<<20) {
			t.Errorf("%s", text(p))
		}
	}
	_, policies := s.data.of("AWS::SQS::QueuePolicy")
	if len(policies) != 4 {
		t.Errorf("%d queue policies, want 4", len(policies))
	}
	for _, p := range policies {
		if !strings.Contains(text(p.Properties), `"aws:SecureTransport":"false"`) {
			t.Errorf("%s", text(p))
		}
	}
	for name, tpl := range map[string]template{"data": s.data, "workers": s.workers} {
		_, alarms := tpl.of("AWS::CloudWatch::Alarm")
		if want := map[string]int{"data": 2, "workers": 1}[name]; len(alarms) != want {
			t.Errorf("%s: %d alarms, want %d", name, len(alarms), want)
		}
		for _, a := range alarms {
			if a.Properties["Threshold"] != 0.0 || a.Properties["ComparisonOperator"] != "GreaterThanThreshold" ||
				a.Properties["MetricName"] != "ApproximateNumberOfMessagesVisible" {
				t.Errorf("%s", text(a))
			}
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
	if len(keys) != 2 {
		t.Fatalf("%d keys", len(keys))
	}
	for _, k := range keys {
		if k.Properties["EnableKeyRotation"] != true || k.DeletionPolicy != "Retain" {
			t.Errorf("%s", text(k))
		}
	}
}

// functionNames gives each function's name by its id.
func functionNames(tpl template) map[string]string {
	names := map[string]string{}
	ids, _ := tpl.of("AWS::Lambda::Function")
	for _, id := range ids {
		name := strings.TrimPrefix(id, "Function")
		names[id] = name[:len(name)-8] // behind it stands a hash
	}
	return names
}

func (s *synthesised) functionsAsDeployed(t *testing.T) {
	want, places := placement.Families()
	got := []string{}
	for id, name := range functionNames(s.functions) {
		p := s.functions[id].Properties
		got = append(got, name)
		env := at(p, "Environment", "Variables")
		if p["Runtime"] != "provided.al2023" || text(p["Architectures"]) != `["arm64"]` || p["Handler"] != "bootstrap" ||
			at(p, "LoggingConfig", "LogFormat") != "JSON" || at(p, "LoggingConfig", "SystemLogLevel") != "WARN" || at(p, "LoggingConfig", "LogGroup") == nil {
			t.Errorf("%s: %s", name, text(p))
		}
		if at(env, "GOMEMLIMIT") == nil || at(env, "GATEWAY_TABLE_PREFIX") != "gateway-" || !strings.Contains(text(at(env, "GATEWAY_ORIGIN_SECRETS")), "resolve:secretsmanager") {
			t.Errorf("%s: %s", name, text(env))
		}
		switch places[name] {
		case placement.Stream:
			if p["Timeout"] != 900.0 || p["ReservedConcurrentExecutions"] != nil {
				t.Errorf("%s: %s", name, text(p))
			}
		case placement.Buffered:
			if p["Timeout"] != 29.0 || p["ReservedConcurrentExecutions"] == nil {
				t.Errorf("%s: %s", name, text(p))
			}
		}
	}
	slices.Sort(got)
	if !slices.Equal(got, want) {
		t.Errorf("functions %v, want %v", got, want)
	}
	for _, tpl := range []template{s.functions, s.workers} {
		_, groups := tpl.of("AWS::Logs::LogGroup")
		for _, g := range groups {
			if g.Properties["KmsKeyId"] == nil || g.Properties["RetentionInDays"] != 30.0 {
				t.Errorf("%s", text(g))
			}
		}
	}
}

// statements are the statements of the role of a function.
func statements(tpl template, name string) (out []map[string]any) {
	_, all := tpl.of("AWS::IAM::Policy")
	for _, p := range all {
		for _, role := range p.Properties["Roles"].([]any) {
			if ref, _ := at(role, "Ref").(string); !strings.HasPrefix(ref, "Role"+name) || len(ref) != len("Role"+name)+8 {
				continue
			}
			for _, st := range at(p.Properties, "PolicyDocument", "Statement").([]any) {
				out = append(out, st.(map[string]any))
			}
		}
	}
	return out
}

func (s *synthesised) rights(t *testing.T) {
	for _, tpl := range []template{s.functions, s.workers} {
		roles := map[string]bool{}
		for id, name := range functionNames(tpl) {
			role := text(at(tpl[id].Properties, "Role"))
			if roles[role] {
				t.Errorf("%s shares its role", name)
			}
			roles[role] = true
			all := statements(tpl, name)
			if len(all) == 0 {
				t.Errorf("%s has no rights", name)
			}
			for _, st := range all {
				if strings.Contains(text(st["Action"]), "*") || text(st["Resource"]) == `"*"` || st["Effect"] != "Allow" {
					t.Errorf("%s: %s", name, text(st))
				}
			}
			s.rightsOfKind(t, name, text(all))
		}
	}
}

func (s *synthesised) rightsOfKind(t *testing.T, name, all string) {
	t.Helper()
	_, places := placement.Families()
	opens := strings.Contains(all, "kms:Decrypt")
	switch {
	case places[name] == placement.Stream:
		if reads := strings.Count(all, "s3:GetObject"); !opens || reads != 1 || !strings.Contains(all, "/cache/*") || strings.Contains(all, "s3:DeleteObject") {
			t.Errorf("%s: %s", name, all)
		}
	case name == "logs": // it shows logged bodies
		if !opens || strings.Contains(all, "kms:GenerateDataKey") {
			t.Errorf("%s: %s", name, all)
		}
	case name == "apikeys": // it hands out secrets that were rotated automatically
		if !opens {
			t.Errorf("%s: %s", name, all)
		}
	case opens:
		t.Errorf("%s may open what is sealed", name)
	}
	if name == "audit" && (strings.Contains(all, "dynamodb:UpdateItem") || strings.Contains(all, "dynamodb:DeleteItem") || !strings.Contains(all, "dynamodb:PutItem")) {
		t.Errorf("audit may change records: %s", all)
	}
}

// definition is the API's definition.
func (s *synthesised) definition(t *testing.T) map[string]any {
	t.Helper()
	_, all := s.functions.of("AWS::ApiGateway::RestApi")
	if len(all) != 1 {
		t.Fatalf("%d APIs", len(all))
	}
	return at(all[0].Properties, "Body").(map[string]any)
}

func (s *synthesised) paths(t *testing.T) map[string]any {
	t.Helper()
	return s.definition(t)["paths"].(map[string]any)
}

func (s *synthesised) api(t *testing.T) {
	paths := s.paths(t)
	_, places := placement.Families()
	for _, r := range placement.Table() {
		method := strings.ToLower(r.Method)
		if r.Method == placement.AnyMethod {
			method = "x-amazon-apigateway-any-method"
		}
		in := at(paths, unifyVariables(r.Path), method, "x-amazon-apigateway-integration")
		uri := text(at(in, "uri"))
		if !strings.Contains(uri, "Function"+r.Family) {
			t.Errorf("%s %s goes to %s", r.Method, r.Path, uri)
		}
		stream := at(in, "responseTransferMode") == "STREAM" && at(in, "timeoutInMillis") == 900_000.0 && strings.Contains(uri, "response-streaming-invocations")
		buffered := at(in, "responseTransferMode") == "BUFFERED" && at(in, "timeoutInMillis") == 29_000.0 && !strings.Contains(uri, "streaming")
		if places[r.Family] == placement.Stream && !stream || places[r.Family] == placement.Buffered && !buffered {
			t.Errorf("%s %s: %s", r.Method, r.Path, text(in))
		}
	}
	for path, methods := range paths {
		if at(methods, "x-amazon-apigateway-any-method") == nil {
			t.Errorf("%s leaves methods to nobody", path)
		}
	}
	_, stages := s.functions.of("AWS::ApiGateway::Stage")
	if len(stages) != 1 || stages[0].Properties["StageName"] != "v1" || at(stages[0].Properties, "MethodSettings", 0, "DataTraceEnabled") != false {
		t.Errorf("%s", text(stages))
	}
	responses := at(s.definition(t), "x-amazon-apigateway-gateway-responses").(map[string]any)
	for kind, r := range responses {
		body := strings.NewReplacer("$context.error.messageString", `"text"`).Replace(at(r, "responseTemplates", "application/json").(string))
		var shape struct {
			Status, Message string
			Error           struct{ Message, Type, Code string }
		}
		if err := json.Unmarshal([]byte(body), &shape); err != nil || shape.Status != "failure" || shape.Error.Message == "" || shape.Error.Code == "" {
			t.Errorf("%s: %s: %v", kind, body, err)
		}
	}
	if at(responses, "REQUEST_TOO_LARGE", "statusCode") != 413.0 || at(responses, "MISSING_AUTHENTICATION_TOKEN", "statusCode") != 404.0 {
		t.Errorf("%s", text(responses))
	}
	_, permissions := s.functions.of("AWS::Lambda::Permission")
	if names, _ := placement.Families(); len(permissions) != len(names) {
		t.Errorf("%d permissions for %d functions", len(permissions), len(names))
	}
}

func (s *synthesised) workersAsDeployed(t *testing.T) {
	for id, name := range functionNames(s.workers) {
		if p := s.workers[id].Properties; p["ReservedConcurrentExecutions"] == nil || p["Timeout"] == nil {
			t.Errorf("%s: %s", name, text(p))
		}
	}
	_, sources := s.workers.of("AWS::Lambda::EventSourceMapping")
	if len(sources) != 2 {
		t.Fatalf("%d event sources", len(sources))
	}
	for _, src := range sources {
		p := src.Properties
		if text(p["FunctionResponseTypes"]) != `["ReportBatchItemFailures"]` || p["MaximumBatchingWindowInSeconds"] != 5.0 ||
			at(p, "ScalingConfig", "MaximumConcurrency") == nil || p["FilterCriteria"] != nil || p["ProvisionedPollerConfig"] != nil {
			t.Errorf("%s", text(p))
		}
	}
	_, filters := s.workers.of("AWS::Logs::SubscriptionFilter")
	streaming := 0
	_, places := placement.Families()
	for _, place := range places {
		if place == placement.Stream {
			streaming++
		}
	}
	if len(filters) != streaming || streaming < 5 {
		t.Errorf("%d logs are read for lost events, want those of %d functions", len(filters), streaming)
	}
	for _, f := range filters {
		if !strings.Contains(text(f.Properties["FilterPattern"]), "usage event is not queued") {
			t.Errorf("%s", text(f))
		}
	}
	_, all := s.workers.of("AWS::Scheduler::Schedule")
	tasks := map[string]bool{}
	for _, sch := range all {
		var in struct{ Task string }
		if err := json.Unmarshal([]byte(at(sch.Properties, "Target", "Input").(string)), &in); err != nil {
			t.Error(err)
		}
		tasks[in.Task] = true
		if at(sch.Properties, "Target", "DeadLetterConfig") == nil {
			t.Errorf("%s has no place for failed starts", in.Task)
		}
	}
	if len(tasks) != len(schedules) {
		t.Errorf("tasks %v, want %d", tasks, len(schedules))
	}
}

func (s *synthesised) containerAsDeployed(t *testing.T) {
	_, balancers := s.functions.of("AWS::ElasticLoadBalancingV2::LoadBalancer")
	_, services := s.functions.of("AWS::ECS::Service")
	_, tasks := s.functions.of("AWS::ECS::TaskDefinition")
	_, gateways := s.functions.of("AWS::EC2::NatGateway")
	if len(balancers) != 1 || len(services) != 1 || len(tasks) != 1 || len(gateways) != 1 {
		t.Fatalf("%d balancers, %d services, %d tasks, %d NAT gateways", len(balancers), len(services), len(tasks), len(gateways))
	}
	if balancers[0].Properties["Scheme"] != "internal" {
		t.Errorf("%s", text(balancers[0]))
	}
	if services[0].Properties["DesiredCount"] != 1.0 || at(services[0].Properties, "NetworkConfiguration", "AwsvpcConfiguration", "AssignPublicIp") != "DISABLED" {
		t.Errorf("%s", text(services[0]))
	}
	c := at(tasks[0].Properties, "ContainerDefinitions", 0)
	if at(c, "StopTimeout") != 120.0 || at(c, "ReadonlyRootFilesystem") != true || at(tasks[0].Properties, "RuntimePlatform", "CpuArchitecture") != "ARM64" {
		t.Errorf("%s", text(c))
	}
}

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
	_, edge := s.edge.of("AWS::WAFv2::WebACL")
	_, api := s.functions.of("AWS::WAFv2::WebACL")
	_, links := s.functions.of("AWS::WAFv2::WebACLAssociation")
	if len(edge) != 1 || len(api) != 1 || len(links) != 1 {
		t.Fatalf("%d, %d, %d", len(edge), len(api), len(links))
	}
	if edge[0].Properties["Scope"] != "CLOUDFRONT" || api[0].Properties["Scope"] != "REGIONAL" {
		t.Error("a firewall has the scope of the other")
	}
	for _, acl := range []resource{edge[0], api[0]} {
		rules := text(acl.Properties["Rules"])
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
	for _, r := range placement.Table() {
		if r.Without != placement.Refused {
			continue
		}
		method := strings.ToLower(r.Method)
		if r.Method == placement.AnyMethod {
			method = "x-amazon-apigateway-any-method"
		}
		in := at(s.paths(t), unifyVariables(r.Path), method, "x-amazon-apigateway-integration")
		status := text(r.Status)
		if at(in, "type") != "mock" || at(in, "responses", "default", "statusCode") != status {
			t.Errorf("%s %s: %s", r.Method, r.Path, text(in))
		}
	}
	_, all := s.edge.of("AWS::CloudFront::Distribution")
	if n := len(at(all[0].Properties, "DistributionConfig", "Origins").([]any)); n != 1 {
		t.Errorf("%d origins", n)
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
	_, alarms := s.data.of("AWS::CloudWatch::Alarm")
	for _, a := range alarms {
		if !strings.Contains(text(a.Properties["AlarmActions"]), "alarms") {
			t.Errorf("%s", text(a))
		}
	}
	s.nag(t)
}

func TestContextIsChecked(t *testing.T) {
	good := options{name: "gateway", region: "us-east-1", chat: "lambda", container: "on", dist: fakeDist(t)}
	if err := good.check(); err != nil {
		t.Fatal(err)
	}
	for name, change := range map[string]func(*options){
		"chat":                 func(o *options) { o.chat = "both" },
		"container":            func(o *options) { o.container = "maybe" },
		"chat needs container": func(o *options) { o.chat, o.container = "container", "off" },
		"region":               func(o *options) { o.region = "eu-west-1" },
		"dist":                 func(o *options) { o.dist = t.TempDir() },
	} {
		o := good
		change(&o)
		if err := o.check(); err == nil {
			t.Errorf("%s: nothing was said", name)
		}
	}
}
