package main

import (
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"

	"gateway/shared/usage/segment/columns"
)

// queriesAsDeployed: a table of the files, whose partitions nothing has to note, a
// workgroup that stops queries that read too much, and the permissions of the one function
// that asks.
func (s *synthesised) queriesAsDeployed(t *testing.T) {
	_, tables := s.data.of("AWS::Glue::Table")
	_, groups := s.data.of("AWS::Athena::WorkGroup")
	_, databases := s.data.of("AWS::Glue::Database")
	if len(tables) != 1 || len(groups) != 1 || len(databases) != 1 {
		t.Fatalf("%d tables, %d workgroups, %d databases", len(tables), len(groups), len(databases))
	}
	in := at(tables[0].Properties, "TableInput")
	if tables[0].Properties["DatabaseName"] != "gateway_usage" || at(databases[0].Properties, "DatabaseInput", "Name") != "gateway_usage" || at(in, "Name") != "requests" {
		t.Errorf("%s", text(tables[0].Properties))
	}
	parameters, _ := at(in, "Parameters").(map[string]any)
	for name, want := range map[string]string{
		"projection.enabled": "true", "projection.org.type": "injected", "projection.day.type": "date", "projection.day.format": "yyyy/MM/dd",
		"projection.day.range": "2001/01/01,NOW", "projection.day.interval": "1", "projection.day.interval.unit": "DAYS",
	} {
		if parameters[name] != want {
			t.Errorf("%s is %v", name, parameters[name])
		}
	}
	if got := text(parameters["storage.location.template"]); !strings.Contains(got, `"s3://"`) || !strings.Contains(got, `/segments/data/${org}/${day}/"`) || strings.Contains(got, "Fn::Sub") {
		t.Errorf("the files are at %s", got)
	}
	list, _ := at(in, "StorageDescriptor", "Columns").([]any)
	for i, c := range columns.All {
		if i >= len(list) || at(list[i], "Name") != c.Name || at(list[i], "Type") != c.Type {
			t.Fatalf("column %d is not %v", i, c)
		}
	}
	if keys := text(at(in, "PartitionKeys")); len(list) != len(columns.All) || keys != `[{"Name":"org","Type":"string"},{"Name":"day","Type":"string"}]` {
		t.Errorf("%d columns, partitions %s", len(list), keys)
	}
	config := at(groups[0].Properties, "WorkGroupConfiguration")
	if at(config, "EnforceWorkGroupConfiguration") != true || fmt.Sprint(at(config, "BytesScannedCutoffPerQuery")) != "1e+11" ||
		at(config, "ResultConfiguration", "EncryptionConfiguration", "EncryptionOption") != "SSE_S3" || !strings.Contains(text(at(config, "ResultConfiguration", "OutputLocation")), `/queries/"`) {
		t.Errorf("%s", text(config))
	}
	for _, stack := range []template{s.functions, s.workers} {
		for id, name := range functionNames(stack) {
			env, rights := text(at(stack[id].Properties, "Environment", "Variables")), text(statements(stack, name))
			for _, what := range []bool{strings.Contains(env, `"GATEWAY_ATHENA_WORKGROUP":"gateway"`), strings.Contains(rights, "athena:"), strings.Contains(rights, "glue:"), strings.Contains(rights, "queries/*")} {
				if what != (name == "analytics") {
					t.Errorf("%s: %s %s", name, env, rights)
				}
			}
			if strings.Contains(rights, `"athena:*"`) || strings.Contains(rights, `"glue:*"`) || strings.Contains(rights, "workgroup/*") {
				t.Errorf("%s may do too much: %s", name, rights)
			}
		}
	}
}

func TestQueriesCanBeLeftOut(t *testing.T) {
	s := synth(t, map[string]any{"queryLimit": "off"})
	for _, r := range slices.Collect(maps.Values(s.data)) {
		if strings.HasPrefix(r.Type, "AWS::Glue::") || strings.HasPrefix(r.Type, "AWS::Athena::") {
			t.Errorf("%s", text(r))
		}
	}
	for id, name := range functionNames(s.functions) {
		if env := text(s.functions[id].Properties); strings.Contains(env, "ATHENA") || strings.Contains(text(statements(s.functions, name)), "athena") {
			t.Errorf("%s: %s", name, env)
		}
	}
	s.nag(t)
	for _, bad := range []string{"0", "-1", "100001", "1.5", "on"} {
		if _, err := parseContext(map[string]any{"dist": fakeDist(t), "queryLimit": bad}); err == nil || !strings.Contains(err.Error(), "queryLimit") {
			t.Errorf("%s: %v", bad, err)
		}
	}
}
