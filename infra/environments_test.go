package main

import (
	"encoding/json"
	"errors"
	"flag"
	"maps"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

var update = flag.Bool("update", false, "write the golden files")

// environments is the golden file of what each process finds in its environment.
// The tests that start the real binaries read it: a name in braces stands for the
// resource that the value leads to.
const environments = "testdata/environments.json"

// stackIDOf is the id that a stack is given in tests.
func stackIDOf(name string) string {
	return "arn:aws:cloudformation:us-east-1:123456789012:stack/" + name + "/0a1b2c3d-0000-4000-8000-000000000000"
}

// TestEnvironments holds the environment of every function and of the container,
// in a usual installation and in one with everything that context values add.
func TestEnvironments(t *testing.T) {
	got := map[string]map[string]map[string]string{}
	for name, context := range map[string]map[string]any{"usual": {"container": "on"}, "everything": everything()} {
		s := synth(t, context)
		got[name] = s.environments()
		if name == "everything" {
			s.formerKeysOpenAlone(t, got[name])
		}
	}
	if *update {
		raw, err := json.MarshalIndent(got, "", "  ")
		if err != nil {
			t.Fatal(err)
		}
		if err := errors.Join(os.MkdirAll(filepath.Dir(environments), 0o755), os.WriteFile(environments, append(raw, '\n'), 0o644)); err != nil {
			t.Fatal(err)
		}
		return
	}
	want := map[string]map[string]map[string]string{}
	raw, err := os.ReadFile(environments)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	for set, processes := range got {
		for name, env := range processes {
			if !maps.Equal(env, want[set][name]) {
				t.Errorf("%s, %s: go test -run Environments -update writes it\n has %s\nfile %s", set, name, text(env), text(want[set][name]))
			}
		}
		if len(processes) != len(want[set]) {
			t.Errorf("%s: %d processes, in the file %d", set, len(processes), len(want[set]))
		}
	}
}

// everything are context values that add to an environment.
func everything() map[string]any {
	return map[string]any{
		"container": "on", "bodyRetentionDays": "30", "recordRetentionDays": "400", "vectorBucket": "vectors-of-ours",
		"egressAllow": "10.1.0.0/16,models.internal:8443", "trustedCustomHosts": "models.internal,*.lab.example.com", "blockInlineConfig": "true",
		"awsServiceRole": "bedrock,arn:aws:iam::123456789012:role/models", "logLevel": "warn", "headerAliases": "x-acme", "mcpAllowedOrigins": "https://app.example.com", "tablePrefix": "gateway-", "formerKeyArns": formerKeys, "modelMetrics": "on",
	}
}

// environments are the variables of every function and of the container, with placeholders
// for values that only a deploy knows.
func (s *synthesised) environments() map[string]map[string]string {
	named := func(id, attribute string) string {
		if attribute == "" || attribute == "Arn" {
			return "{" + id[:len(id)-8] + "}"
		}
		return "{" + id[:len(id)-8] + "." + attribute + "}"
	}
	exports := map[string]string{}
	data := &world{stackID: stackIDOf(s.name + "-data"), exports: exports, value: named}
	for _, o := range s.exports {
		exports[at(o, "Export", "Name").(string)] = data.text(at(o, "Value"))
	}
	out := map[string]map[string]string{}
	for stack, tpl := range map[string]template{"functions": s.functions, "workers": s.workers} {
		w := &world{stackID: stackIDOf(s.name + "-" + stack), exports: exports, value: named}
		for id, name := range functionNames(tpl) {
			out[name] = map[string]string{}
			for variable, v := range at(tpl[id].Properties, "Environment", "Variables").(map[string]any) {
				out[name][variable] = w.text(v)
			}
		}
		_, tasks := tpl.of("AWS::ECS::TaskDefinition")
		for _, task := range tasks {
			out["container"] = map[string]string{}
			for _, v := range at(task.Properties, "ContainerDefinitions", 0, "Environment").([]any) {
				out["container"][at(v, "Name").(string)] = w.text(at(v, "Value"))
			}
		}
	}
	return out
}

// formerKeysOpenAlone: processes that open sealed values know the former keys and may open
// with them. Nothing seals with former keys, and no other process has them.
func (s *synthesised) formerKeysOpenAlone(t *testing.T, environments map[string]map[string]string) {
	t.Helper()
	for _, tpl := range []template{s.functions, s.workers} {
		for _, name := range functionNames(tpl) {
			all := text(statements(tpl, name))
			opens, knows := statementOf(t, all, "kms:Decrypt"), environments[name]["GATEWAY_KMS_FORMER_KEY_IDS"] == formerKeys
			allowed := opens != ""
			for _, key := range s.formerKeys {
				allowed = allowed && strings.Contains(opens, key)
			}
			if (opens != "") != knows || knows != allowed || strings.Contains(statementOf(t, all, "kms:GenerateDataKey"), ":key/") {
				t.Errorf("%s: %v %s", name, environments[name], all)
			}
		}
	}
	if environments["chat"]["GATEWAY_KMS_FORMER_KEY_IDS"] == "" || environments["configs"]["GATEWAY_KMS_FORMER_KEY_IDS"] != "" {
		t.Errorf("chat: %v, configs: %v", environments["chat"], environments["configs"])
	}
}
