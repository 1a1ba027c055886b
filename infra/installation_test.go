package main

import (
	"bytes"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"
)

// installationFile is what shared/testkit/awsemulator makes its tables, queues and functions
// from, so that there is no second list of them.
const installationFile = "../shared/testkit/awsemulator/installation.json"

// physical is a name without what makes it one of its stack alone.
func physical(v any) string {
	whole := (&world{stackID: stackIDOf("gateway-data")}).text(v)
	return strings.Replace(whole, "gateway-0a1b2c3d-", "gateway-", 1)
}

// nameOf gives a resource of a template a name that is the same in each run, for Ref and
// for the resource's attributes.
func nameOf(tpl template, id, attribute string) string {
	const account = ":us-east-1:123456789012:"
	plain := id[:len(id)-8]
	res := tpl[id]
	ref, arn := plain, ""
	switch res.Type {
	case "AWS::DynamoDB::GlobalTable":
		ref = physical(res.Properties["TableName"])
		arn = "arn:aws:dynamodb" + account + "table/" + ref
	case "AWS::SQS::Queue":
		name := physical(res.Properties["QueueName"])
		ref, arn = "https://sqs.us-east-1.amazonaws.com/123456789012/"+name, "arn:aws:sqs"+account+name
	case "AWS::S3::Bucket":
		ref = "gateway-" + strings.ToLower(plain)
		arn = "arn:aws:s3:::" + ref
	case "AWS::KMS::Key":
		arn = "arn:aws:kms" + account + "key/" + plain
	case "AWS::Logs::LogGroup":
		ref = res.Properties["LogGroupName"].(string)
		arn = "arn:aws:logs" + account + "log-group:" + ref + ":*"
	}
	if attribute == "" {
		return ref
	}
	if attribute != "Arn" || arn == "" {
		return plain + "." + attribute // no policy names it
	}
	return arn
}

// resolved works out the values within a policy: a call of a function is replaced by its
// value, and everything else is worked out member by member.
func (w *world) resolved(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = w.resolved(v[i])
		}
		return out
	case map[string]any:
		for name := range v {
			if strings.HasPrefix(name, "Fn::") || name == "Ref" {
				return w.text(v)
			}
		}
		out := map[string]any{}
		for k, e := range v {
			out[k] = w.resolved(e)
		}
		return out
	}
	return v
}

// described is the installation of a template as shared/testkit/awsemulator reads it.
func (s *synthesised) described(t *testing.T) map[string]any {
	t.Helper()
	exports := map[string]string{}
	data := s.world("data", s.data, exports)
	for _, o := range s.exports {
		exports[at(o, "Export", "Name").(string)] = data.text(at(o, "Value"))
	}
	tables, queues, functions := map[string]any{}, map[string]any{}, map[string]any{}
	_, all := s.data.of("AWS::DynamoDB::GlobalTable")
	for _, res := range all {
		p := res.Properties
		tables[physical(p["TableName"])] = map[string]any{"KeySchema": p["KeySchema"], "AttributeDefinitions": p["AttributeDefinitions"], "BillingMode": p["BillingMode"], "TimeToLive": at(p, "TimeToLiveSpecification", "AttributeName"), "VectorIndexes": p["VectorIndexes"]}
	}
	for stack, tpl := range map[string]template{"data": s.data, "workers": s.workers} {
		_, all := tpl.of("AWS::SQS::Queue")
		for _, res := range all {
			p := res.Properties
			q := map[string]any{"VisibilityTimeout": p["VisibilityTimeout"]}
			if redrive := p["RedrivePolicy"]; redrive != nil {
				dead := s.world(stack, tpl, exports).text(at(redrive, "deadLetterTargetArn"))
				q["DeadLetter"], q["MaxReceives"] = dead[strings.LastIndexByte(dead, ':')+1:], at(redrive, "maxReceiveCount")
			}
			queues[physical(p["QueueName"])] = q
		}
	}
	for stack, tpl := range map[string]template{"functions": s.functions, "workers": s.workers} {
		w := s.world(stack, tpl, exports)
		for id, name := range functionNames(tpl) {
			p := tpl[id].Properties
			functions[name] = map[string]any{"Memory": p["MemorySize"], "Timeout": p["Timeout"], "Policy": w.policy(statements(tpl, name))}
		}
	}
	functions["container"] = map[string]any{"Policy": s.taskPolicy(s.world("functions", s.functions, exports))}
	return map[string]any{"Tables": tables, "Queues": queues, "Functions": functions}
}

// policy works out the statements of a role, in an order that does not change.
func (w *world) policy(of []map[string]any) (out []any) {
	for _, st := range of {
		out = append(out, w.resolved(st))
	}
	slices.SortFunc(out, func(a, b any) int { return strings.Compare(text(a), text(b)) })
	return out
}

// taskPolicy is what the container may do.
func (s *synthesised) taskPolicy(w *world) []any {
	_, tasks := s.functions.of("AWS::ECS::TaskDefinition")
	role := at(tasks[0].Properties, "TaskRoleArn", "Fn::GetAtt", 0)
	var all []map[string]any
	_, policies := s.functions.of("AWS::IAM::Policy")
	for _, p := range policies {
		if at(p.Properties, "Roles", 0, "Ref") != role {
			continue
		}
		for _, st := range at(p.Properties, "PolicyDocument", "Statement").([]any) {
			all = append(all, st.(map[string]any))
		}
	}
	return w.policy(all)
}

// world is what is known while values of a stack are worked out.
func (s *synthesised) world(stack string, tpl template, exports map[string]string) *world {
	return &world{stackID: stackIDOf(s.name + "-" + stack), exports: exports, value: func(id, attribute string) string { return nameOf(tpl, id, attribute) }}
}

func (s *synthesised) installationIsWrittenDown(t *testing.T) {
	got := lines(nil, prune(s.described(t)), 4, "")
	got = append(got, '\n')
	if *update {
		if err := os.WriteFile(installationFile, got, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(installationFile)
	if err != nil || !bytes.Equal(got, want) {
		t.Errorf("%s does not follow the templates (%v); write it with: cd infra && go test -run TestTemplates -update", installationFile, err)
	}
}

// prune takes out members that are not there.
func prune(v any) any {
	if m, ok := v.(map[string]any); ok {
		maps.DeleteFunc(m, func(_ string, e any) bool { return e == nil })
		for k := range m {
			m[k] = prune(m[k])
		}
	}
	return v
}

// lines writes a value with each member of its upper levels on its own line, so that the
// diff of a change shows only the lines that changed.
func lines(to []byte, v any, levels int, indent string) []byte {
	m, ok := v.(map[string]any)
	l, list := v.([]any)
	if levels == 0 || !ok && !list {
		return append(to, text(v)...)
	}
	open, shut, sep := "{", "}", "\n"
	if list {
		open, shut = "[", "]"
	}
	to = append(to, open...)
	for _, k := range slices.Sorted(maps.Keys(m)) {
		to = append(append(to, sep+indent+" "...), text(k)+": "...)
		to = lines(to, m[k], levels-1, indent+" ")
		sep = ",\n"
	}
	for _, e := range l {
		to = lines(append(to, sep+indent+" "...), e, 0, "")
		sep = ",\n"
	}
	return append(to, "\n"+indent+shut...)
}
