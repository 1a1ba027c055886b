package main

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// names are the properties that give a resource a name of its own in its account
// and region.
var names = map[string]string{
	"AWS::DynamoDB::GlobalTable": "TableName", "AWS::SQS::Queue": "QueueName", "AWS::S3::Bucket": "BucketName", "AWS::KMS::Alias": "AliasName",
	"AWS::Logs::LogGroup": "LogGroupName", "AWS::Lambda::Function": "FunctionName", "AWS::IAM::Role": "RoleName", "AWS::SSM::Parameter": "Name",
	"AWS::SecretsManager::Secret": "Name", "AWS::WAFv2::WebACL": "Name", "AWS::CloudFront::Function": "Name", "AWS::Scheduler::Schedule": "Name",
	"AWS::CodeDeploy::Application": "ApplicationName", "AWS::CloudWatch::Alarm": "AlarmName", "AWS::CloudWatch::Dashboard": "DashboardName",
	"AWS::ElasticLoadBalancingV2::LoadBalancer": "Name", "AWS::ECS::Cluster": "ClusterName",
}

// holdsData are the kinds of resources that outlive their stack: those that hold data,
// those that open it, and those that a living account depends on.
var holdsData = []string{
	"AWS::DynamoDB::GlobalTable", "AWS::S3::Bucket", "AWS::KMS::Key", "AWS::SQS::Queue",
	"AWS::Lambda::Version",                       // gone with its function; what an alias can be led back to
	"AWS::ApiGateway::Account", "AWS::IAM::Role", // of the account's API logs, which other APIs use too
}

// account is what stands in an account and a region, as far as it has a name.
type account struct {
	t     *testing.T
	taken map[string]string // what has a name, by kind and name
	made  int               // stacks, so that each has an id of its own
}

// deploy makes a stack's resources, up to the one that fails; -1: none. It is not
// CloudFormation: it knows names and deletion policies, no order and no calls.
func (a *account) deploy(stack string, tpl template, fails int) (ok bool) {
	a.t.Helper()
	a.made++
	w := &world{stackID: fmt.Sprintf("arn:aws:cloudformation:us-east-1:123456789012:stack/%s/%08x-0000-4000-8000-000000000000", stack, a.made)}
	var made []string
	for i, id := range ids(tpl) {
		key, fixed := a.name(w, tpl[id])
		if _, taken := a.taken[key]; fixed && taken {
			a.t.Errorf("%s: %s has already been added", stack, key)
			return false
		}
		if i == fails {
			a.rollBack(w, tpl, made)
			return false
		}
		if fixed {
			a.taken[key] = id
		}
		made = append(made, id)
	}
	return true
}

// rollBack takes back what a first deploy has made.
func (a *account) rollBack(w *world, tpl template, made []string) {
	for _, id := range made {
		r := tpl[id]
		if r.DeletionPolicy == "Retain" {
			a.t.Errorf("%s (%s) stays behind when the first deploy fails", id, r.Type)
			continue
		}
		if text(r.Properties["Replicas"]) != "null" && strings.Contains(text(r.Properties["Replicas"]), `"DeletionProtectionEnabled":true`) {
			a.t.Errorf("%s cannot be deleted when the first deploy fails", id)
		}
		key, _ := a.name(w, r)
		delete(a.taken, key)
	}
}

// destroy deletes a stack that was made.
func (a *account) destroy(stack string, tpl template) {
	w := &world{stackID: fmt.Sprintf("arn:aws:cloudformation:us-east-1:123456789012:stack/%s/%08x-0000-4000-8000-000000000000", stack, a.made)}
	for _, id := range ids(tpl) {
		if !strings.HasPrefix(tpl[id].DeletionPolicy, "Retain") {
			key, _ := a.name(w, tpl[id])
			delete(a.taken, key)
		}
	}
}

// name is the kind and the name of a resource that the template names.
func (a *account) name(w *world, r resource) (key string, fixed bool) {
	v := r.Properties[names[r.Type]]
	if v == nil {
		return "", false
	}
	return r.Type + " " + w.text(v), true
}

func ids(tpl template) (out []string) {
	for id := range tpl {
		out = append(out, id)
	}
	slices.Sort(out)
	return out
}

// TestDeployAgain: whatever fails at the first deploy of a stack, nothing is in the way of
// the next one; nor is what remains after the stack is destroyed.
func TestDeployAgain(t *testing.T) {
	for name, context := range map[string]map[string]any{"usual": {}, "everything on": {"container": "ha", "chat": "container", "shift": "linear"}} {
		s := synth(t, context)
		for stack, tpl := range map[string]template{"data": s.data, "functions": s.functions, "workers": s.workers, "edge": s.edge} {
			t.Run(name+" "+stack, func(t *testing.T) {
				a := &account{t: t, taken: map[string]string{}}
				for i := range len(tpl) {
					if a.deploy(stack, tpl, i) {
						t.Fatal("it did not fail")
					}
				}
				if len(a.taken) > 0 {
					t.Errorf("failed deploys left %v", a.taken)
				}
				for range 3 {
					if !a.deploy(stack, tpl, -1) {
						t.Fatal("it cannot be deployed")
					}
					a.destroy(stack, tpl)
				}
				left := 0
				for key := range a.taken {
					if kind, _, _ := strings.Cut(key, " "); !slices.Contains(holdsData, kind) {
						t.Errorf("%s is left behind", key)
					}
					left++
				}
				if want := map[string]int{"data": 3 * (6 + 4)}[stack]; left != want {
					t.Errorf("%d named resources are left, want tables and dead letters of three installations: %d", left, want)
				}
				for _, id := range ids(tpl) {
					if r := tpl[id]; strings.HasPrefix(r.DeletionPolicy, "Retain") && (r.DeletionPolicy != "RetainExceptOnCreate" || !slices.Contains(holdsData, r.Type)) {
						t.Errorf("%s (%s) is kept: %s", id, r.Type, r.DeletionPolicy)
					}
				}
			})
		}
	}
}

// TestTablesOfBefore: an installation can be told which tables are its own, and to
// protect them.
func TestTablesOfBefore(t *testing.T) {
	s := synth(t, map[string]any{"tablePrefix": "before-", "deletionProtection": "on"})
	_, tables := s.data.of("AWS::DynamoDB::GlobalTable")
	for _, r := range tables {
		if n, _ := r.Properties["TableName"].(string); !strings.HasPrefix(n, "before-") || at(r.Properties, "Replicas", 0, "DeletionProtectionEnabled") != true {
			t.Errorf("%s", text(r.Properties))
		}
	}
	for process, env := range s.environments() {
		if env["GATEWAY_TABLE_PREFIX"] != "before-" {
			t.Errorf("%s: %v", process, env)
		}
	}
}
