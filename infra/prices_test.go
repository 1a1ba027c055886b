package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
)

// hoursOfMonth is how AWS counts a month.
const hoursOfMonth = 730.0

// price is a line of the list of prices, which requests are summed by too.
type price struct {
	USD  float64
	Per  string
	Free float64 // of an account each month, for ever
}

// priceTable is the one list of prices.
type priceTable struct {
	Date, Region, Source string
	Prices               map[string]price
}

func prices(t *testing.T) priceTable {
	t.Helper()
	raw, err := os.ReadFile("../shared/pricing/running/prices.json")
	if err != nil {
		t.Fatal(err)
	}
	var p priceTable
	if err := json.Unmarshal(raw, &p); err != nil || len(p.Prices) < 20 || p.Date == "" {
		t.Fatalf("%v", err)
	}
	return p
}

// amounts are how much of what is used, by the names of prices.
type amounts map[string]float64

func (a amounts) add(b amounts, times float64) {
	for name, n := range b {
		a[name] += n * times
	}
}

// usd is what amounts cost; whole says whether to leave out what is free.
func (p priceTable) usd(t *testing.T, a amounts, free bool) (sum float64) {
	t.Helper()
	for _, name := range slices.Sorted(maps.Keys(a)) {
		line, ok := p.Prices[name]
		if !ok {
			t.Fatalf("%s has no price", name)
		}
		n := a[name]
		if free {
			n = max(0, n-line.Free)
		}
		if strings.HasPrefix(line.Per, "1M") {
			n /= 1e6
		}
		sum += n * line.USD
	}
	return sum
}

// inGuide holds what stands between two marks in the guide to deployment equal to text.
func inGuide(t *testing.T, mark, text string) {
	t.Helper()
	const file = "../functions/docs/guides/deploy.md"
	raw, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	begin, end := "<!-- "+mark+": cd infra && go test -run Price -update -->\n", "<!-- /"+mark+" -->\n"
	before, rest, ok1 := strings.Cut(string(raw), begin)
	old, after, ok2 := strings.Cut(rest, end)
	if !ok1 || !ok2 {
		t.Fatalf("%s has no place %q", file, mark)
	}
	if old == text {
		return
	}
	if !*update {
		t.Errorf("%s says\n%s\nwant, written by -update,\n%s", file, old, text)
		return
	}
	if err := os.WriteFile(file, []byte(before+begin+text+end+after), 0o644); err != nil {
		t.Fatal(err)
	}
}

// What idles.

// unpriced are resources that cost by use alone, or nothing.
var unpriced = regexp.MustCompile(`^(?:Custom::CDKBucketDeployment|AWS::(?:` + strings.Join([]string{
	`IAM::.*`, `Lambda::(Function|Permission|Version|Alias|LayerVersion)`, `Logs::(LogGroup|SubscriptionFilter|ResourcePolicy)`, `S3::(Bucket|BucketPolicy)`, `SQS::(Queue|QueuePolicy)`, `SNS::.*`,
	`DynamoDB::(GlobalTable|Table)`, `KMS::Alias`, `ApiGateway::.*`, `CDK::Metadata`, `CloudFront::(Distribution|Function|ResponseHeadersPolicy|VpcOrigin|OriginAccessControl|KeyValueStore)`, `SSM::Parameter`,
	`Budgets::Budget`,                             // without actions
	`Glue::(Database|Table)`, `Athena::WorkGroup`, // a catalog is free up to a million things, and queries are paid by what they read
	`EC2::(VPC|Subnet|RouteTable|Route|SubnetRouteTableAssociation|InternetGateway|VPCGatewayAttachment|SecurityGroup|SecurityGroupIngress|SecurityGroupEgress|FlowLog|VPCEndpoint)`,
	`ECS::(Cluster|TaskDefinition)`, `ElasticLoadBalancingV2::(Listener|ListenerRule|TargetGroup)`, `ApplicationAutoScaling::.*`, `CodeDeploy::.*`, `CertificateManager::Certificate`,
	`Route53::RecordSet`, `CloudFormation::.*`, `SecretsManager::(ResourcePolicy|SecretTargetAttachment)`,
}, "|") + `))$`)

// pollers are how many ask a queue for messages while there are none, each for
// twenty seconds at a time.
const (
	pollers  = 5.0
	longPoll = 20.0
)

// Each run of a scheduled task that finds nothing to do.
const (
	taskSeconds = 0.15
	taskReads   = 24.0
)

// idles is what a resource uses in a month without a request.
func (s *synthesised) idles(t *testing.T, tpl template, r resource) amounts {
	t.Helper()
	p := r.Properties
	switch r.Type {
	case "AWS::KMS::Key":
		return amounts{"kms.key": 1}
	case "AWS::SecretsManager::Secret":
		n := 1.0
		if replicas, ok := p["ReplicaRegions"].([]any); ok {
			n += float64(len(replicas))
		}
		return amounts{"secret": n}
	case "AWS::WAFv2::WebACL":
		return amounts{"waf.acl": 1, "waf.rule": float64(len(p["Rules"].([]any)))}
	case "AWS::CloudWatch::Alarm":
		return amounts{"cloudwatch.alarm": float64(alarmMetrics(r))}
	case "AWS::CloudWatch::Dashboard":
		return amounts{"cloudwatch.dashboard": 1}
	case "AWS::Lambda::EventSourceMapping":
		return amounts{"sqs.request": pollers * hoursOfMonth * 3600 / longPoll}
	case "AWS::Scheduler::Schedule":
		runs := hoursOfMonth / everyHours(t, p["ScheduleExpression"].(string))
		memory := s.memory["repair"]
		if strings.Contains(text(p["Target"]), "sweep") { // by way of a queue
			return amounts{"schedule": runs, "sqs.request": 3 * runs, "lambda.request": runs, "lambda.time": runs * taskSeconds * s.memory["batchruns"] / 1024, "dynamodb.read": runs * taskReads}
		}
		return amounts{"schedule": runs, "lambda.request": runs, "lambda.time": runs * taskSeconds * memory / 1024, "dynamodb.read": runs * taskReads}
	case "AWS::EC2::NatGateway":
		return amounts{"nat.hour": hoursOfMonth}
	case "AWS::EC2::EIP":
		return amounts{"address.hour": hoursOfMonth}
	case "AWS::ElasticLoadBalancingV2::LoadBalancer":
		return amounts{"balancer.hour": hoursOfMonth}
	case "AWS::ECS::Service":
		_, tasks := tpl.of("AWS::ECS::TaskDefinition")
		n := p["DesiredCount"].(float64) * hoursOfMonth
		return amounts{"fargate.cpu": n * number(t, tasks[0].Properties["Cpu"]) / 1024, "fargate.memory": n * number(t, tasks[0].Properties["Memory"]) / 1024}
	}
	if !unpriced.MatchString(r.Type) {
		t.Errorf("%s has no price: it belongs into idles, or among what costs by use alone", r.Type)
	}
	return nil
}

func number(t *testing.T, v any) (n float64) {
	t.Helper()
	if _, err := fmt.Sscan(fmt.Sprint(v), &n); err != nil {
		t.Fatalf("%v is no number", v)
	}
	return n
}

// everyHours is the interval of a schedule.
func everyHours(t *testing.T, expression string) float64 {
	t.Helper()
	var n float64
	var unit string
	if _, err := fmt.Sscanf(expression, "rate(%f %s", &n, &unit); err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	hours, ok := map[string]float64{"minute": 1.0 / 60, "hour": 1, "day": 24}[strings.TrimSuffix(strings.TrimSuffix(unit, ")"), "s")]
	if !ok {
		t.Fatalf("%s", expression)
	}
	return n * hours
}

// idle is what the installation uses in a month without a request.
func (s *synthesised) idle(t *testing.T) amounts {
	t.Helper()
	sum := amounts{}
	for _, tpl := range []template{s.data, s.functions, s.workers, s.edge} {
		for _, id := range slices.Sorted(maps.Keys(tpl)) {
			sum.add(s.idles(t, tpl, tpl[id]), 1)
		}
	}
	return sum
}

// sizes reads the memory of functions, in MB.
func (s *synthesised) readMemory(t *testing.T) {
	t.Helper()
	s.memory = map[string]float64{}
	for _, tpl := range []template{s.functions, s.workers} {
		for id, name := range functionNames(tpl) {
			s.memory[name] = number(t, tpl[id].Properties["MemorySize"])
		}
	}
}

// mostIdle is what the smallest installation may cost in a month.
const mostIdle = 3.0

// TestPriceOfIdling sums what the resources of each choice of context values cost in
// a month, and compares the guide's figures.
func TestPriceOfIdling(t *testing.T) {
	p := prices(t)
	var b strings.Builder
	b.WriteString("| Context | USD a month | where free allowances are used up |\n|---|---|---|\n")
	for _, context := range []map[string]any{
		{"container": "off", "firewall": "off"}, {"container": "off", "firewall": "off", "dashboard": "off"},
		{"container": "off"}, {"container": "on", "firewall": "off"}, {"container": "on"}, {"container": "ha"},
	} {
		var words []string
		for _, name := range []string{"container", "firewall", "dashboard"} {
			if v := context[name]; v != nil && (name == "container" || v == "off") {
				words = append(words, fmt.Sprintf("`%s=%s`", name, v))
			}
		}
		s := synth(t, context)
		s.readMemory(t)
		used := s.idle(t)
		free, list := p.usd(t, used, true), p.usd(t, used, false)
		if context["firewall"] == "off" && context["container"] == "off" && free >= mostIdle {
			t.Errorf("%v: %.2f USD a month, want less than %.2f: %v", words, free, mostIdle, used)
		}
		fmt.Fprintf(&b, "| %s | %.2f | %.2f |\n", strings.Join(words, " "), free, list)
	}
	inGuide(t, "idle", b.String())
}
