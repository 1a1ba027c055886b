package main

import (
	"encoding/json"
	"slices"
	"strings"
	"testing"

	"gateway/shared/host/placement"
)

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
		if at(env, "GOMEMLIMIT") == nil || at(env, "GATEWAY_TABLE_PREFIX") == nil || !strings.Contains(text(at(env, "GATEWAY_ORIGIN_SECRETS")), "resolve:secretsmanager") {
			t.Errorf("%s: %s", name, text(env))
		}
		switch places[name] {
		case placement.Stream:
			if p["Timeout"] != 900.0 || p["ReservedConcurrentExecutions"] != nil {
				t.Errorf("%s: %s", name, text(p))
			}
		case placement.Buffered:
			if p["Timeout"] != 29.0 || p["ReservedConcurrentExecutions"] != nil {
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
			if g.Properties["RetentionInDays"] != 30.0 {
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
	case name == "dryrun":
		for _, not := range []string{"dynamodb:PutItem", "dynamodb:DeleteItem", "s3:DeleteObject", "s3:ListBucket", "/held/*", "SYS#OUTBOX"} {
			if !opens || strings.Contains(all, not) {
				t.Errorf("%s: %s: %s", name, not, all)
			}
		}
	case places[name] == placement.Stream, name == "batchruns":
		if !opens || strings.Count(all, "/cache/*") != 2 || strings.Count(all, "/held/*") != 3 || strings.Count(all, "/bodies/*") != 1 || strings.Contains(all, "/segments/*") {
			t.Errorf("%s: %s", name, all)
		}
		if d := statementOf(t, all, "kms:Decrypt"); strings.Contains(d, `"log"`) {
			t.Errorf("%s may open logged bodies: %s", name, d)
		}
	case name == "logs", name == "exports": // they show logged bodies; logs keeps those that clients tell of
		const logged = `"kms:EncryptionContext:purpose":["log"]`
		seals := strings.Contains(all, "kms:GenerateDataKey")
		if !strings.Contains(statementOf(t, all, "kms:Decrypt"), logged) || seals != (name == "logs") {
			t.Errorf("%s: %s", name, all)
		}
		if seals && !strings.Contains(statementOf(t, all, "kms:GenerateDataKey"), logged) {
			t.Errorf("%s: %s", name, all)
		}
	case name == "apikeys": // it hands out secrets that were rotated automatically
		if d := statementOf(t, all, "kms:Decrypt"); !strings.Contains(d, `"kms:EncryptionContext:purpose":["control"]`) {
			t.Errorf("%s: %s", name, all)
		}
	case name == "secretreferences", name == "agentservers", name == "providers", name == "auth", name == "repair": // they call what credentials are kept of; repair signs for webhooks
		if d := statementOf(t, all, "kms:Decrypt"); !strings.Contains(d, `"kms:EncryptionContext:purpose":["control"]`) {
			t.Errorf("%s: %s", name, all)
		}
	case name == "mcpservers": // likewise, and it opens what sent a user to sign in at a server
		if d := statementOf(t, all, "kms:Decrypt"); !strings.Contains(d, `"kms:EncryptionContext:purpose":["control","mcp"]`) {
			t.Errorf("%s: %s", name, all)
		}
	case name == "usage": // headers and content of telemetry
		if d := statementOf(t, all, "kms:Decrypt"); !strings.Contains(d, `"kms:EncryptionContext:purpose":["control","log"]`) || strings.Contains(all, "kms:GenerateDataKey") {
			t.Errorf("%s: %s", name, all)
		}
	case name == "docs": // it finds who calls, and asks the gateway for the rest
		for _, not := range []string{"sqs:", "s3:", "kms:", "dynamodb:PutItem", "dynamodb:UpdateItem", "dynamodb:DeleteItem", "dynamodb:Query"} {
			if strings.Contains(all, not) {
				t.Errorf("%s: %s: %s", name, not, all)
			}
		}
	case opens:
		t.Errorf("%s may open what is sealed", name)
	}
	if name == "audit" && (strings.Contains(all, "dynamodb:UpdateItem") || strings.Contains(all, "dynamodb:DeleteItem") || !strings.Contains(all, "dynamodb:PutItem")) {
		t.Errorf("audit may change records: %s", all)
	}
}

// statementOf is the one statement with an action, as text. A key is used with an
// encryption context alone, and the bucket is listed by prefix.
func statementOf(t *testing.T, all, action string) string {
	t.Helper()
	var list []map[string]any
	if err := json.Unmarshal([]byte(all), &list); err != nil {
		t.Fatal(err)
	}
	found := ""
	for _, st := range list {
		if strings.Contains(text(st["Action"]), action) {
			found += text(st)
		}
	}
	return found
}

// Each use of the key names its purpose and its organization, each list its prefix.
func (s *synthesised) conditions(t *testing.T) {
	for _, tpl := range []template{s.functions, s.workers} {
		for _, name := range functionNames(tpl) {
			for _, st := range statements(tpl, name) {
				actions, when := text(st["Action"]), text(st["Condition"])
				if strings.Contains(actions, "kms:") && (!strings.Contains(when, "kms:EncryptionContext:purpose") || !strings.Contains(when, "kms:EncryptionContext:org")) ||
					strings.Contains(actions, "s3:ListBucket") && !strings.Contains(when, "s3:prefix") {
					t.Errorf("%s: %s", name, text(st))
				}
				for _, object := range []string{"s3:GetObject", "s3:PutObject", "s3:DeleteObject"} {
					if strings.Contains(actions, object) && strings.Contains(text(st["Resource"]), `"/*"`) {
						t.Errorf("%s: %s on the whole bucket", name, object)
					}
				}
			}
		}
	}
}

func (s *synthesised) workersAsDeployed(t *testing.T) {
	for id, name := range functionNames(s.workers) {
		if p := s.workers[id].Properties; p["ReservedConcurrentExecutions"] != nil || p["Timeout"] == nil {
			t.Errorf("%s: %s", name, text(p))
		}
		// A batch is a loop through its queue, which is not to be cut after 16 turns.
		if want := map[bool]string{true: "Allow", false: "Terminate"}[name == "batchruns" || name == "exports"]; s.workers[id].Properties["RecursiveLoop"] != want {
			t.Errorf("%s: loops: %v", name, s.workers[id].Properties["RecursiveLoop"])
		}
	}
	_, sources := s.workers.of("AWS::Lambda::EventSourceMapping")
	if len(sources) != 4 {
		t.Fatalf("%d event sources", len(sources))
	}
	for _, src := range sources {
		p := src.Properties
		if text(p["FunctionResponseTypes"]) != `["ReportBatchItemFailures"]` || p["MaximumBatchingWindowInSeconds"] != map[float64]any{2000: 60.0, 100: 5.0, 1: 0.0}[p["BatchSize"].(float64)] ||
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
	if len(filters) != streaming+1 || streaming < 5 {
		t.Errorf("%d logs are read for lost events, want those of %d functions", len(filters), streaming+1)
	}
	for _, f := range filters {
		if !strings.Contains(text(f.Properties["FilterPattern"]), "usage event is not queued") {
			t.Errorf("%s", text(f))
		}
	}
	_, all := s.workers.of("AWS::Scheduler::Schedule")
	tasks := map[string]bool{}
	for _, sch := range all {
		var in struct {
			Task  string
			Sweep bool
		}
		if err := json.Unmarshal([]byte(at(sch.Properties, "Target", "Input").(string)), &in); err != nil {
			t.Error(err)
		}
		if in.Sweep == (in.Task != "") {
			t.Errorf("%s", text(sch))
		}
		if in.Task != "" {
			tasks[in.Task] = true
		}
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
