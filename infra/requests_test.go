package main

import (
	"encoding/json"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"gateway/shared/host/placement"
)

// recorded are the calls of one kind of request, as the functions' binaries make
// them: a test of local/onlambda writes them.
type recorded struct {
	Writes, Reads        float64
	SQS, Puts, Gets, KMS float64
	Records, Batches     float64
}

func calls(t *testing.T) map[string]recorded {
	t.Helper()
	raw, err := os.ReadFile("testdata/calls.json")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]recorded{}
	if err := json.Unmarshal(raw, &out); err != nil {
		t.Fatal(err)
	}
	return out
}

func (r recorded) amounts() amounts {
	return amounts{
		"dynamodb.write": r.Writes, "dynamodb.read": r.Reads, "sqs.request": r.SQS, "s3.put": r.Puts, "s3.get": r.Gets, "kms.request": r.KMS,
	}
}

// What a request needs itself, besides the model: seconds of a function of the deployed
// size, and its share of the log in GB.
const (
	ownTime        = 0.015
	cachedTime     = 0.020
	adminTime      = 0.050
	questionTime   = 0.300 // of logs and analytics
	logged         = 250e-9
	batchTime      = 0.15 // of the usage worker, for a batch
	recordTime     = 0.001
	natGB          = 6e-6     // to a provider and back, per request
	sent, returned = 0.1, 0.2 // requests to SQS for a message that goes, and comes, with nine others
)

// front is what each request to a function passes, without a container.
var front = amounts{"api.request": 1, "edge.request": 1}

// request is what one request on Lambda uses: its own calls, the check of its
// organization's generation, and seconds of a function.
func request(kind recorded, memory, seconds float64) amounts {
	a := amounts{"lambda.request": 1, "lambda.time": seconds * memory / 1024, "dynamodb.read": 1, "cloudwatch.log": logged}
	a.add(front, 1)
	a.add(kind.amounts(), 1)
	return a
}

// kept is what it takes to keep the record of one request.
func keeping(batch recorded, memory float64) amounts {
	a := amounts{}
	a.add(batch.amounts(), 1/batch.Records)
	a["sqs.request"] += returned
	a["lambda.request"] += batch.Batches / batch.Records
	a["lambda.time"] += (batchTime*batch.Batches/batch.Records + recordTime) * memory / 1024
	return a
}

// million is the price of a million, without what is free.
func (p priceTable) million(t *testing.T, of ...amounts) float64 {
	t.Helper()
	sum := amounts{}
	for _, a := range of {
		sum.add(a, 1e6)
	}
	return p.usd(t, sum, false)
}

// mostEven is what a cached response may cost if a million a month come evenly, one by one:
// batches of 24 events cost more than the 6 USD that are the target otherwise.
const mostEven = 6.25

// modelFamilies wait for a model; the others that stream ask a provider something.
var modelFamilies = []string{"chat", "messages", "responses", "embeddings", "moderations", "images", "rerank", "promptruns"}

// TestPriceOfRequests computes the prices of a million requests of every route, of keeping
// their records, and of the container beside them, and compares them with the guide.
func TestPriceOfRequests(t *testing.T) {
	p, by := prices(t), calls(t)
	s := synth(t, map[string]any{"container": "off", "firewall": "off"})
	s.readMemory(t)
	if _, all := s.edge.of("AWS::CloudFront::Distribution"); at(all[0].Properties, "DistributionConfig", "DefaultCacheBehavior", "FunctionAssociations") != nil {
		t.Error("the edge runs a function for each request, which front does not count")
	}
	// A million a month, spread evenly and in the hours of an office, and ten a second.
	spread, few, many := keeping(by["usage, 24 a batch"], s.memory["usage"]), keeping(by["usage, 75 a batch"], s.memory["usage"]), keeping(by["usage, 500 a batch"], s.memory["usage"])
	plane := s.memory["chat"]
	answered := func(kind string, seconds float64) float64 {
		return p.million(t, request(by[kind], plane, seconds), few)
	}
	cached, quick, long := answered("chat, cached", cachedTime), answered("chat", 1.5+ownTime), answered("chat", 10+ownTime)
	even := p.million(t, request(by["chat, cached"], plane, cachedTime), spread)
	for name, c := range map[string]struct{ got, most float64 }{
		"an answer of the cache": {cached, 6}, "a model call of 1.5 s": {quick, 11}, "a model call of 10 s": {long, 38},
		"an answer of the cache, spread over night and day": {even, mostEven},
		"keeping records, few at a time":                    {p.million(t, few), 0.8}, "keeping records, many at a time": {p.million(t, many), 0.8}, "keeping records, spread over night and day": {p.million(t, spread), 0.8},
	} {
		t.Logf("%s: %.2f USD for a million", name, c.got)
		if c.got > c.most {
			t.Errorf("%s: %.2f USD for a million, at most %.2f are meant", name, c.got, c.most)
		}
	}
	var b strings.Builder
	b.WriteString("| Routes | USD per million |\n|---|---|\n")
	line := func(routes string, format string, v ...any) {
		fmt.Fprintf(&b, "| %s | %s |\n", routes, fmt.Sprintf(format, v...))
	}
	groups := routesOf(t)
	line(paths(groups["model"]), "answered by the cache %.2f, at an even spread %.2f; by a model in 1.5 s %.2f, in 10 s %.2f; in 1.5 s with a rate limit and a budget %.2f, to be cached %.2f",
		cached, even, quick, long, answered("chat, limited", 1.5+ownTime), answered("chat, to be cached", 1.5+ownTime))
	line(paths(groups["provider"])+" and pass-through", "%.2f where the provider answers in 0.3 s", answered("pass-through", 0.3+ownTime))
	line(paths(groups["models"]), "%.2f", answered("models", ownTime))
	line(paths(groups["dryrun"]), "%.2f", answered("dry run", ownTime))
	admin := func(kind string) float64 { return p.million(t, request(by[kind], s.memory["configs"], adminTime)) }
	line("administration: `GET` of a list; of one", "%.2f; %.2f", admin("admin, list"), admin("admin, read"))
	audit := amounts{"dynamodb.write": 2, "sqs.request": 2, "lambda.request": 1, "lambda.time": adminTime * s.memory["audit"] / 1024} // a batch of one
	change := func(kind string) float64 { return admin(kind) + p.million(t, audit) }
	line("administration: `POST`; `PUT`, `DELETE`", "%.2f; %.2f, with its audit record", change("admin, create"), change("admin, change"))
	line("`GET /logs*`, `/analytics/*`", "%.2f for a question of 0.3 s", p.million(t, request(by["admin, list"], s.memory["analytics"], questionTime)))
	line("of the above, keeping a record with its bodies", "%.2f for a million a month in the hours of an office, %.2f spread over night and day, %.2f at ten a second", p.million(t, few), p.million(t, spread), p.million(t, many))
	line("`firewall=on`, in addition", "%.2f", p.Prices["waf.request"].USD)
	line("`container=on` or `ha`, in addition: the edge's choice", "%.2f", p.Prices["edge.function"].USD)
	fmt.Fprintf(&b, "\nMessages are counted as received ten at a time; if they are so rare that each is received separately, storing a record costs up to %.2f more.\n", 0.9*p.Prices["sqs.request"].USD)
	inGuide(t, "requests", b.String())
	t.Run("container", func(t *testing.T) { s.containerPays(t, p, by, few, cached, quick, long) })
}

// containerPays finds from how many requests on the container costs less.
func (s *synthesised) containerPays(t *testing.T, p priceTable, by map[string]recorded, few amounts, cached, quick, long float64) {
	with := synth(t, map[string]any{"container": "on", "firewall": "off"})
	with.readMemory(t)
	used := with.idle(t)
	used["balancer.unit"] += hoursOfMonth
	fixed := p.usd(t, used, true) - p.usd(t, s.idle(t), true)
	var b strings.Builder
	fmt.Fprintf(&b, "| Requests | USD per million on Lambda | in the container | it costs less from |\n|---|---|---|---|\n")
	for _, c := range []struct {
		name   string
		kind   string
		lambda float64
		last   float64 // seconds, on average
	}{{"answered by the cache", "chat, cached", cached, cachedTime}, {"answered in 1.5 s", "chat", quick, 1.5}, {"answered in 10 s", "chat", long, 10}} {
		a := amounts{"edge.request": 1, "edge.function": 1, "nat.gb": natGB * 1, "dynamodb.read": by[c.kind].Reads, "dynamodb.write": by[c.kind].Writes, "sqs.request": sent, "cloudwatch.log": logged / 4}
		inside := p.million(t, a, few)
		n := fixed / (c.lambda - inside) // millions a month
		perSecond := n * 1e6 / (hoursOfMonth * 3600)
		fmt.Fprintf(&b, "| %s | %.2f | %.2f | %.1f million a month: %.1f a second, %.0f at a time |\n", c.name, c.lambda, inside, n, perSecond, max(1, perSecond*c.last))
		if n <= 0 || inside >= c.lambda {
			t.Errorf("%s: %.2f on Lambda, %.2f in the container", c.name, c.lambda, inside)
		}
	}
	fmt.Fprintf(&b, "\nThe container adds %.2f USD a month for one task of half a processor, its load balancer and NAT gateway.\n", fixed)
	inGuide(t, "placement", b.String())
}

// routesOf puts every route of the placement table that a function serves into one
// group of the guide's table.
func routesOf(t *testing.T) map[string][]placement.Route {
	t.Helper()
	groups := map[string][]placement.Route{}
	for _, r := range placement.Table() {
		switch {
		case r.WithoutContainer == placement.Refused, r.Family == placement.PassThrough:
		case r.Place == placement.Buffered:
			groups["administration"] = append(groups["administration"], r)
		case r.Family == "dryrun", r.Path == "/prompts/{promptId}/render":
			groups["dryrun"] = append(groups["dryrun"], r)
		case r.Method == "GET" && r.Path == "/models":
			groups["models"] = append(groups["models"], r)
		case r.Method == "POST" && slices.Contains(modelFamilies, r.Family):
			groups["model"] = append(groups["model"], r)
		default:
			groups["provider"] = append(groups["provider"], r)
		}
	}
	return groups
}

// paths names routes, shortly: `POST /chat/completions`, ...
func paths(routes []placement.Route) string {
	methods := map[string][]string{}
	for _, r := range routes {
		methods[r.Path] = append(methods[r.Path], r.Method)
	}
	var out []string
	for _, path := range slices.Sorted(maps.Keys(methods)) {
		out = append(out, "`"+strings.Join(methods[path], ", ")+" "+path+"`")
	}
	return strings.Join(out, ", ")
}

// TestPlacementIsOneValue: where chat runs changes no address, and nothing at the edge
// but its function.
func TestPlacementIsOneValue(t *testing.T) {
	lambda, container := synth(t, map[string]any{"container": "on", "chat": "lambda"}), synth(t, map[string]any{"container": "on", "chat": "container"})
	for _, kind := range []string{"AWS::CloudFront::Distribution", "AWS::ApiGateway::RestApi", "AWS::ApiGateway::Stage", "AWS::ElasticLoadBalancingV2::LoadBalancer"} {
		for name, pair := range map[string][2]template{"edge": {lambda.edge, container.edge}, "functions": {lambda.functions, container.functions}} {
			ids, a := pair[0].of(kind)
			also, b := pair[1].of(kind)
			if !slices.Equal(ids, also) {
				t.Errorf("%s, %s: %v and %v", name, kind, ids, also)
			}
			for i := range a {
				if kind != "AWS::ApiGateway::RestApi" && text(a[i].Properties) != text(b[i].Properties) {
					t.Errorf("%s changes:\n%s\n%s", ids[i], text(a[i].Properties), text(b[i].Properties))
				}
			}
		}
	}
	_, a := lambda.edge.of("AWS::CloudFront::Function")
	_, b := container.edge.of("AWS::CloudFront::Function")
	if text(a) == text(b) {
		t.Error("the edge's function does not change")
	}
}
