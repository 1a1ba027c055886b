package main

import (
	"os"
	"regexp"
	"strings"
	"testing"
)

// runbook gives the sections of RUNBOOK.md by their names.
func runbook(t *testing.T) map[string]string {
	t.Helper()
	raw, err := os.ReadFile("RUNBOOK.md")
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
				t.Errorf("alarm %q has no section in RUNBOOK.md", full)
			}
			seen[name] = true
			if d := text(a.Properties["AlarmDescription"]); !strings.Contains(d, "RUNBOOK.md, "+name) {
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
			t.Errorf("RUNBOOK.md has a section for %s, which is no alarm", name)
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
	if !strings.Contains(string(readme), "(infra/RUNBOOK.md)") {
		t.Error("README.md does not lead to RUNBOOK.md")
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
