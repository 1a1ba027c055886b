package main

import (
	"encoding/json"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"gateway/shared/host/metric"
)

// runbook gives the sections of runbook.md by their names.
func runbook(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("../functions/docs/guides/runbook.md")
	if err != nil {
		t.Fatal(err)
	}
	out := map[string]string{}
	for _, section := range strings.Split(string(raw), "\n## ")[1:] {
		name, body, _ := strings.Cut(section, "\n")
		out[name] = strings.TrimSpace(body)
	}
	return out
}

func (s *synthesised) watches(t *testing.T) {
	sections := runbook(t)
	seen := map[string]bool{}
	looked := 0
	for _, tpl := range []template{s.data, s.functions, s.workers, s.edge} {
		_, alarms := tpl.of("AWS::CloudWatch::Alarm")
		for _, a := range alarms {
			full, _ := a.Properties["AlarmName"].(string)
			name, ok := strings.CutPrefix(full, s.name+"-")
			if !ok || len(sections[name]) < 80 {
				t.Errorf("alarm %q has no section in runbook.md", full)
			}
			seen[name] = true
			if d := text(a.Properties["AlarmDescription"]); !strings.Contains(d, "runbook.md, "+name) {
				t.Errorf("%s: %s", name, d)
			}
			if a.Properties["TreatMissingData"] != "notBreaching" {
				t.Errorf("%s is in alarm while nothing happens", name)
			}
			looked += alarmMetrics(a)
			for _, actions := range []string{"AlarmActions", "OKActions"} {
				if (s.alarms != "") != strings.Contains(text(a.Properties[actions]), "alarms") {
					t.Errorf("%s: %s", name, text(a.Properties[actions]))
				}
			}
		}
	}
	dead := 0
	for _, tpl := range []template{s.data, s.workers} {
		_, queues := tpl.of("AWS::SQS::Queue")
		for _, q := range queues {
			if strings.HasSuffix(physical(q.Properties["QueueName"]), "-dead") {
				dead++
			}
		}
	}
	_, alarms := s.workers.of("AWS::CloudWatch::Alarm")
	for _, a := range alarms {
		if strings.Contains(text(a.Properties["AlarmName"]), "dead-letters") && alarmMetrics(a) != dead {
			t.Errorf("%s looks at %d of %d queues", a.Properties["AlarmName"], alarmMetrics(a), dead)
		}
	}
	for name := range sections {
		if !seen[name] && (name != "container-unhealthy" || s.hasContainer()) && (name != "new-version" || s.shift != "off") {
			t.Errorf("runbook.md has a section for %s, which is no alarm", name)
		}
	}
	for _, wanted := range []string{"server-errors", "throttles", "slow", "dead-letters", "dead-letters-old", "usage-lag", "store-failures"} {
		if !seen[wanted] {
			t.Errorf("there is no alarm %s", wanted)
		}
	}
	t.Logf("%d alarms look at %d metrics", len(seen), looked)
	readme, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(string(readme), "(functions/docs/guides/runbook.md)") {
		t.Error("README.md does not lead to runbook.md")
	}
}

// alarmMetrics is how many metrics an alarm looks at; each is paid for.
func alarmMetrics(a resource) int {
	list, ok := a.Properties["Metrics"].([]any)
	if !ok {
		return 1
	}
	n := 0
	for _, m := range list {
		if at(m, "MetricStat") != nil {
			n++
		}
	}
	return n
}

// dashboards: one, within what is free.
func (s *synthesised) dashboards(t *testing.T) {
	_, all := s.workers.of("AWS::CloudWatch::Dashboard")
	if want := map[string]int{"on": 1, "off": 0}[s.dashboard]; len(all) != want {
		t.Fatalf("%d dashboards, want %d", len(all), want)
	}
	for _, d := range all {
		body := text(d.Properties["DashboardBody"])
		metrics := len(regexp.MustCompile(`\[\\+"(AWS/|Gateway)`).FindAllString(body, -1))
		if metrics < 15 || metrics > 50 {
			t.Errorf("%d metrics in the dashboard, up to 50 are free: %s", metrics, body)
		}
	}
}

func TestAlarmsAreSent(t *testing.T) {
	s := synth(t, map[string]any{"container": "off", "dashboard": "off", "monthlyBudget": "250", "alarmTopicArn": "arn:aws:sns:us-east-1:123456789012:alarms"})
	t.Run("watches", s.watches)
	t.Run("dashboards", s.dashboards)
	_, budgets := s.workers.of("AWS::Budgets::Budget")
	if len(budgets) != 1 || at(budgets[0].Properties, "Budget", "BudgetLimit", "Amount") != 250.0 ||
		!strings.Contains(text(budgets), "user:gateway-installation$gateway") || strings.Count(text(budgets), "123456789012:alarms") != 2 {
		t.Errorf("%s", text(budgets))
	}
	for name, tpl := range map[string]template{"data": s.data, "functions": s.functions, "workers": s.workers, "edge": s.edge} {
		tagged := 0
		for _, r := range tpl {
			if strings.Contains(text(r.Properties), `"gateway-installation"`) {
				tagged++
			}
		}
		if tagged == 0 {
			t.Errorf("nothing in %s carries the tag that the budget counts by", name)
		}
	}
}

// theirs are the metrics of AWS's services that alarms and the dashboard look at, as the
// services report them: with these dimensions, and with these statistics, which have a
// meaning for them. Our own metrics are in shared/host/metric.
var theirs = map[string]struct {
	dimensions string
	statistics []string
}{
	"AWS/ApiGateway Count": {"ApiName Stage", []string{"Sum"}}, "AWS/ApiGateway 4XXError": {"ApiName Stage", []string{"Sum", "Average"}},
	"AWS/ApiGateway 5XXError": {"ApiName Stage", []string{"Sum", "Average"}}, "AWS/ApiGateway Latency": {"ApiName Stage", []string{"p99", "Average"}},
	"AWS/Lambda Errors": {"", []string{"Sum"}}, "AWS/Lambda Throttles": {"", []string{"Sum"}}, "AWS/Lambda ConcurrentExecutions": {"", []string{"Maximum"}},
	"AWS/SQS ApproximateAgeOfOldestMessage": {"QueueName", []string{"Maximum"}}, "AWS/SQS ApproximateNumberOfMessagesVisible": {"QueueName", []string{"Maximum"}},
	"AWS/ApplicationELB UnHealthyHostCount": {"LoadBalancer TargetGroup", []string{"Maximum"}},
	"Gateway " + metric.Requests:            {"Installation", []string{"Sum"}}, "Gateway " + metric.Failures: {"Installation", []string{"Sum"}},
	"Gateway " + metric.StoreFailures: {"Installation", []string{"Sum"}}, "Gateway " + metric.BypassedEdge: {"Installation", []string{"Sum"}},
	"Gateway " + metric.LoggedErrors: {"Installation", []string{"Sum"}}, "Gateway " + metric.GatewayTime: {"Installation", []string{"p50", "p99"}},
}

// metricsExist: an alarm on a metric that nobody tells is never in alarm.
func (s *synthesised) metricsExist(t *testing.T) {
	used := map[string]bool{}
	check := func(where, namespace, name, dimensions, statistic string) {
		known, ok := theirs[namespace+" "+name]
		if !ok || known.dimensions != dimensions || !slices.Contains(known.statistics, statistic) {
			t.Errorf("%s looks at %s of %s %s by %q", where, statistic, namespace, name, dimensions)
		}
		used[namespace+" "+name] = true
	}
	of := func(where string, m any, statistic any) {
		var dimensions []string
		list, _ := at(m, "Dimensions").([]any)
		for _, d := range list {
			dimensions = append(dimensions, at(d, "Name").(string))
		}
		slices.Sort(dimensions)
		check(where, at(m, "Namespace").(string), at(m, "MetricName").(string), strings.Join(dimensions, " "), statistic.(string))
	}
	for _, tpl := range []template{s.functions, s.workers} {
		_, alarms := tpl.of("AWS::CloudWatch::Alarm")
		for _, a := range alarms {
			name := text(a.Properties["AlarmName"])
			list, many := a.Properties["Metrics"].([]any)
			if !many {
				statistic := a.Properties["Statistic"]
				if statistic == nil {
					statistic = a.Properties["ExtendedStatistic"]
				}
				of(name, any(a.Properties), statistic)
			}
			for _, m := range list {
				if stat := at(m, "MetricStat"); stat != nil {
					of(name, at(stat, "Metric"), at(stat, "Stat"))
				}
			}
		}
	}
	_, boards := s.workers.of("AWS::CloudWatch::Dashboard")
	for _, b := range boards {
		for _, m := range s.shownIn(t, b) {
			check("the dashboard", m.namespace, m.name, strings.Join(m.dimensions, " "), m.statistic)
		}
	}
	for name := range theirs {
		if !used[name] && (s.hasContainer() || !strings.Contains(name, "ELB")) && s.dashboard == "on" {
			t.Errorf("nobody looks at %s", name)
		}
	}
}

type shown struct {
	namespace, name, statistic string
	dimensions                 []string
}

// shownIn reads the metrics of a dashboard. Each is a list of its namespace, its name,
// dimensions with their values, and how it is shown. "." repeats the value at the same
// place in the metric before.
func (s *synthesised) shownIn(t *testing.T, board resource) (out []shown) {
	t.Helper()
	var b strings.Builder
	parts, ok := at(board.Properties["DashboardBody"], "Fn::Join", 1).([]any)
	if !ok {
		parts = []any{board.Properties["DashboardBody"]}
	}
	for _, part := range parts {
		if words, ok := part.(string); ok {
			b.WriteString(words)
		} else {
			b.WriteString("deployed")
		}
	}
	var body struct {
		Widgets []struct {
			Properties struct{ Metrics [][]any }
		}
	}
	if err := json.Unmarshal([]byte(b.String()), &body); err != nil {
		t.Fatalf("%v: %s", err, b.String())
	}
	for _, w := range body.Widgets {
		for _, m := range w.Properties.Metrics {
			one := shown{statistic: "Average"}
			var words []string
			for _, v := range m {
				switch v := v.(type) {
				case string:
					words = append(words, v)
				case map[string]any:
					if stat, ok := v["stat"].(string); ok {
						one.statistic = stat
					}
				}
			}
			if len(words) == 0 {
				continue // an expression
			}
			one.namespace, one.name = words[0], words[1]
			for i := 2; i < len(words); i += 2 {
				one.dimensions = append(one.dimensions, words[i])
			}
			slices.Sort(one.dimensions)
			out = append(out, one)
		}
	}
	return out
}
