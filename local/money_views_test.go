package main

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/parquet-go/parquet-go"

	"gateway/shared/host/meter"
	"gateway/shared/usage/report"
)

// view is what one view shows of the cost of a request. A view in US dollars alone has no
// cost and no unit.
type view struct {
	name      string
	cost      any
	unit      any // that the view names beside cost
	usd       any
	unitOfUSD any // that the view names beside usd, where it is not the field's name
}

// TestEveryViewShowsTheSameCost reads one priced request, and the response from the cache to
// a second one, through everything that shows a cost: the amounts in US dollars are equal,
// those in cents are a hundred times that, and the unit is beside each.
//
// In a row: it sets a variable of the process.
func TestEveryViewShowsTheSameCost(t *testing.T) {
	t.Setenv(meter.EnvMetricsAddr, "127.0.0.1:0")
	r := start(t)
	var mu sync.Mutex
	var alerted map[string]any
	hook := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) {
		raw, _ := io.ReadAll(req.Body)
		mu.Lock()
		defer mu.Unlock()
		if err := json.Unmarshal(raw, &alerted); err != nil {
			t.Error(err)
		}
	}))
	t.Cleanup(hook.Close)
	r.admin("POST", "/webhooks", fmt.Sprintf(`{"name":"Ops","url":%q,"events":["budget.threshold_reached"]}`, hook.URL))
	policy := r.policy("usage-limits", `"name":"views","conditions":[{"key":"metadata.team","value":"ads"}],"group_by":[{"key":"metadata._user"}],"type":"cost","credit_limit":5`)
	key := r.newKey(`"usage_limits":{"type":"cost","credit_limit":5,"alert_threshold":0.000001}`)
	prompt := strings.Repeat("How much is it? ", 40)
	for range 2 {
		got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o", prompt, `,"max_tokens":50`),
			"X-Gateway-Api-Key", key, "X-Gateway-Config", simpleCache, "X-Gateway-Metadata", `{"_user":"ada","team":"ads"}`)
		if got.status != 200 {
			t.Fatalf("%d %s", got.status, got.body)
		}
	}
	rows := r.logs(2, workspaceKey)
	hit, paid := rows[0], rows[1]
	rec := r.records(2)[0]
	if rec.ID != paid["id"] || rec.Cost <= 0 {
		t.Fatalf("the record %s costs %d: %v", rec.ID, rec.Cost, rows)
	}
	dollars, err := rec.Cost.USD().Float64()
	if err != nil {
		t.Fatal(err)
	}

	var views []view
	in := func(name string, v any, cost string) { // in cents and US dollars
		usd := cost + "_usd"
		if cost == "total" {
			usd = "cost_usd"
		}
		views = append(views, view{name: name + " " + cost, cost: member(v, cost), unit: member(v, "cost_unit"), usd: member(v, usd)})
	}
	in("the list of logs", paid, "cost")
	in("the list of logs, from the cache", hit, "cache_savings")
	id := paid["id"].(string)
	in("a log", member(r.get("/logs/"+id, workspaceKey), "metrics"), "cost")
	in("a log from the cache", member(r.get("/logs/"+hit["id"].(string), workspaceKey), "metrics"), "cache_savings")
	in("an explanation", r.get("/logs/"+id+"/explain", workspaceKey), "cost")

	const fields = `"requested_data":["id","cost","cost_unit","cost_usd","gateway_cost","gateway_cost_usd"]`
	for _, line := range bytes.Split(bytes.TrimSpace(r.exported(fields, "logs.jsonl")), []byte("\n")) {
		var row map[string]any
		if err := json.Unmarshal(line, &row); err != nil {
			t.Fatal(err)
		}
		if row["id"] == id {
			in("an export as JSONL", row, "cost")
		}
		if row["gateway_cost"] == nil || row["gateway_cost_usd"] == nil {
			t.Errorf("no cost of the gateway: %s", line)
		}
	}
	lines, err := csv.NewReader(bytes.NewReader(r.exported(fields+`,"format":"csv"`, "logs.csv"))).ReadAll()
	if err != nil {
		t.Fatal(err)
	}
	for _, line := range lines[1:] {
		if line[0] == id {
			views = append(views, view{name: "an export as CSV", cost: number(t, line[1]), unit: line[2], usd: number(t, line[3])})
		}
	}
	packed := r.exported(fields+`,"format":"parquet"`, "logs.parquet")
	type line struct {
		ID   string  `parquet:"id,optional"`
		Cost float64 `parquet:"cost,optional"`
		Unit string  `parquet:"cost_unit,optional"`
		USD  int64   `parquet:"cost_usd,optional"`
	}
	columns, err := parquet.Read[line](bytes.NewReader(packed), int64(len(packed)))
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range columns {
		if c.ID == id {
			views = append(views, view{name: "an export as Parquet", cost: c.Cost, unit: c.Unit, usd: float64(c.USD) / 1e9}) // a decimal of 9 places
		}
	}

	graph := r.get("/analytics/graphs/cost?"+lastHour(), workspaceKey)
	in("the graph of costs", graph["summary"], "total")
	for _, p := range graph["data_points"].([]any) {
		if member(p, "total") != 0.0 {
			in("a point of the graph of costs", p, "total")
		}
	}
	if member(graph, "summary/gateway_total") != 0.0 || member(graph, "summary/gateway_total_usd") != 0.0 {
		t.Errorf("the cost of the gateway: %v", graph["summary"])
	}
	points := r.get("/analytics/graphs/cache/hit-rate?"+lastHour(), workspaceKey)["data_points"].([]any)
	in("the graph of hits", points[len(points)-1], "cumulative_simple_cache_savings")
	for _, group := range []string{
		"/analytics/groups/users?", "/analytics/groups/ai-models?columns=cost&", "/analytics/groups/metadata/team?", "/analytics/groups/ai_service?columns=cost&", "/logs/groups/ai_service?columns=cost,gateway_cost&",
		"/analytics/groups/api_key?columns=cost&", "/analytics/groups/workspace?columns=cost&", "/analytics/groups/provider?columns=cost&", "/analytics/groups/model?columns=cost&",
	} {
		found := false
		for _, row := range r.get(group+lastHour(), adminKey)["data"].([]any) {
			if member(row, "cost") != 0.0 {
				in(group, row, "cost")
				found = true
			}
			if strings.Contains(group, "gateway_cost") && member(row, "gateway_cost_usd") == nil {
				t.Errorf("%s: %v", group, row)
			}
		}
		if !found {
			t.Errorf("%s: no group has a cost", group)
		}
	}

	id5, _ := made.Load(key)
	views = append(views, view{name: "the budget of the key", usd: member(r.admin("GET", "/api-keys/"+id5.(string), ""), "usage_limits/current_usage")})
	for who, used := range r.counters("usage-limits", policy) {
		views = append(views, view{name: "the policy's counter of " + who, usd: used})
	}
	read := func() string {
		resp, err := http.Get("http://" + r.g.metrics.Addr().String() + "/metrics")
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		raw, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(raw)
	}
	metrics := read()
	if found := regexp.MustCompile(`(?m)^gateway_cost_total\{provider="openai",model="gpt-4o[^"]*"\} (\S+)$`).FindStringSubmatch(metrics); found != nil {
		views = append(views, view{name: "the metrics", usd: number(t, found[1])})
	}
	if !strings.Contains(metrics, "# HELP gateway_cost_total US dollars") {
		t.Error("the metrics name no unit")
	}
	eventually(t, func() error {
		mu.Lock()
		defer mu.Unlock()
		if alerted == nil {
			return fmt.Errorf("no webhook")
		}
		return nil
	})
	for _, name := range []string{"usage", "cost_usd"} {
		views = append(views, view{name: "the webhook's " + name, usd: number(t, member(alerted, "data/"+name).(string)), unitOfUSD: member(alerted, "data/unit")})
	}

	prices := r.get("/model-configs/pricing/openai/gpt-4o", workspaceKey)
	tokens := func(class string) float64 {
		return map[string]float64{"request_token": float64(rec.Usage.InputTokens()), "response_token": float64(rec.Usage.OutputTokens())}[class]
	}
	cents, usd := 0.0, 0.0
	for _, class := range []string{"request_token", "response_token"} {
		cents += tokens(class) * member(prices, "pay_as_you_go/"+class+"/price").(float64)
		usd += tokens(class) * member(prices, "pay_as_you_go/"+class+"/price_usd").(float64)
	}
	views = append(views, view{name: "the prices of the model", cost: cents, unit: strings.TrimSuffix(prices["price_unit"].(string), "_per_token"), usd: usd})

	names := map[string]bool{}
	for _, v := range views {
		names[v.name] = true
		if !equalAmounts(v.usd, dollars) || v.unitOfUSD != nil && v.unitOfUSD != "USD" {
			t.Errorf("%s: %v %v, want %v US dollars", v.name, v.usd, v.unitOfUSD, dollars)
		}
		if (v.cost != nil || v.unit != nil) && (!equalAmounts(v.cost, report.Cents(rec.Cost)) || v.unit != "cents") {
			t.Errorf("%s: %v %v, want %v cents", v.name, v.cost, v.unit, report.Cents(rec.Cost))
		}
	}
	for _, name := range []string{"an export as JSONL cost", "an export as CSV", "an export as Parquet", "a point of the graph of costs total", "the metrics", "the policy's counter of metadata._user:ada"} {
		if !names[name] {
			t.Errorf("nothing of %s", name)
		}
	}
}

func number(t *testing.T, text string) float64 {
	t.Helper()
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		t.Error(err)
	}
	return n
}

// equalAmounts compares amounts that may be sums of binary fractions, to less than a
// nano-dollar.
func equalAmounts(v any, want float64) bool {
	n, ok := v.(float64)
	return ok && math.Abs(n-want) < 1e-10
}
