package main

import (
	"bytes"
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/aws/aws-cdk-go/awscdk/v2/assertions"
)

var update = flag.Bool("update", false, "write the installation that the stand-ins follow")

// installationFile is what local/standin makes its tables, queues and functions
// from, so that there is no second list of them.
const installationFile = "../local/standin/installation.json"

// resolver replaces the references of templates by names that are readable and
// the same in each run: ARNs of one account, and the address of a queue.
type resolver struct {
	arns    map[string]string // by logical id; ids of resources differ between stacks
	refs    map[string]string
	exports map[string]any // values of other stacks, by the name of the export
}

func newResolver(t *testing.T, s *synthesised) *resolver {
	t.Helper()
	r := &resolver{arns: map[string]string{}, refs: map[string]string{}, exports: map[string]any{}}
	for _, tpl := range []template{s.data, s.functions, s.workers} {
		for id, res := range tpl {
			r.name(id, res)
		}
	}
	for _, stack := range s.stacks {
		raw, err := json.Marshal(assertions.Template_FromStack(stack, nil).ToJSON())
		if err != nil {
			t.Fatal(err)
		}
		var whole struct {
			Outputs map[string]struct {
				Value  any
				Export struct{ Name any }
			}
		}
		if err := json.Unmarshal(raw, &whole); err != nil {
			t.Fatal(err)
		}
		for _, out := range whole.Outputs {
			if name, ok := out.Export.Name.(string); ok {
				r.exports[name] = out.Value
			}
		}
	}
	return r
}

// name gives a resource its ARN and what Ref gives of it.
func (r *resolver) name(id string, res resource) {
	const account = ":us-east-1:123456789012:"
	switch res.Type {
	case "AWS::DynamoDB::GlobalTable":
		name := res.Properties["TableName"].(string)
		r.refs[id], r.arns[id] = name, "arn:aws:dynamodb"+account+"table/"+name
	case "AWS::SQS::Queue":
		name := res.Properties["QueueName"].(string)
		r.refs[id], r.arns[id] = "https://sqs.us-east-1.amazonaws.com/123456789012/"+name, "arn:aws:sqs"+account+name
	case "AWS::S3::Bucket":
		name := "gateway-" + strings.ToLower(strings.TrimRight(id, "0123456789ABCDEF"))
		r.refs[id], r.arns[id] = name, "arn:aws:s3:::"+name
	case "AWS::KMS::Key":
		name := strings.TrimRight(id, "0123456789ABCDEF")
		r.refs[id], r.arns[id] = name, "arn:aws:kms"+account+"key/"+name
	case "AWS::SecretsManager::Secret":
		r.refs[id] = strings.TrimRight(id, "0123456789ABCDEF")
	case "AWS::Logs::LogGroup":
		name, _ := res.Properties["LogGroupName"].(string)
		r.refs[id], r.arns[id] = name, "arn:aws:logs"+account+"log-group:"+name+":*"
	}
}

// value resolves the references within a value.
func (r *resolver) value(v any) any {
	switch v := v.(type) {
	case []any:
		out := make([]any, len(v))
		for i := range v {
			out[i] = r.value(v[i])
		}
		return out
	case map[string]any:
		if len(v) == 1 {
			for f, arg := range v {
				if strings.HasPrefix(f, "Fn::") || f == "Ref" {
					return r.function(f, arg)
				}
			}
		}
		out := map[string]any{}
		for k, e := range v {
			out[k] = r.value(e)
		}
		return out
	}
	return v
}

func (r *resolver) function(f string, arg any) any {
	switch f {
	case "Ref":
		switch arg {
		case "AWS::Partition":
			return "aws"
		case "AWS::Region":
			return "us-east-1"
		case "AWS::AccountId":
			return "123456789012"
		}
		if v, ok := r.refs[arg.(string)]; ok {
			return v
		}
	case "Fn::GetAtt":
		if at(arg, 1) == "Arn" {
			if v, ok := r.arns[at(arg, 0).(string)]; ok {
				return v
			}
		}
	case "Fn::ImportValue":
		if v, ok := r.exports[fmt.Sprint(arg)]; ok {
			return r.value(v)
		}
	case "Fn::Join":
		var parts []string
		for _, p := range at(arg, 1).([]any) {
			parts = append(parts, fmt.Sprint(r.value(p)))
		}
		return strings.Join(parts, at(arg, 0).(string))
	}
	return f + " " + text(arg)
}

// described is the installation of a template as local/standin reads it.
func (s *synthesised) described(t *testing.T) map[string]any {
	t.Helper()
	r := newResolver(t, s)
	tables, queues, functions := map[string]any{}, map[string]any{}, map[string]any{}
	_, all := s.data.of("AWS::DynamoDB::GlobalTable")
	for _, res := range all {
		p := res.Properties
		tables[p["TableName"].(string)] = map[string]any{"KeySchema": p["KeySchema"], "AttributeDefinitions": p["AttributeDefinitions"], "BillingMode": p["BillingMode"], "TimeToLive": at(p, "TimeToLiveSpecification", "AttributeName"), "VectorIndexes": p["VectorIndexes"]}
	}
	for _, tpl := range []template{s.data, s.workers} {
		_, all := tpl.of("AWS::SQS::Queue")
		for _, res := range all {
			p := res.Properties
			q := map[string]any{"VisibilityTimeout": p["VisibilityTimeout"]}
			if redrive := p["RedrivePolicy"]; redrive != nil {
				dead := r.value(at(redrive, "deadLetterTargetArn")).(string)
				q["DeadLetter"], q["MaxReceives"] = dead[strings.LastIndexByte(dead, ':')+1:], at(redrive, "maxReceiveCount")
			}
			queues[p["QueueName"].(string)] = q
		}
	}
	for _, tpl := range []template{s.functions, s.workers} {
		for id, name := range functionNames(tpl) {
			p := tpl[id].Properties
			var policy []any
			for _, st := range statements(tpl, name) {
				policy = append(policy, r.value(st))
			}
			slices.SortFunc(policy, func(a, b any) int { return strings.Compare(text(a), text(b)) })
			functions[name] = map[string]any{"Memory": p["MemorySize"], "Timeout": p["Timeout"], "Environment": r.value(at(p, "Environment", "Variables")), "Policy": policy}
		}
	}
	return map[string]any{"Tables": tables, "Queues": queues, "Functions": functions}
}

func (s *synthesised) installationIsWrittenDown(t *testing.T) {
	got := lines(nil, prune(s.described(t)), 4, "")
	for line := range bytes.Lines(got) {
		if bytes.Contains(line, []byte("Fn::")) || bytes.Contains(line, []byte("Ref ")) {
			t.Errorf("not resolved: %s", line)
		}
	}
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

// lines writes a value, its upper levels a member a line, so that a change is read
// as the lines that it changed.
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
