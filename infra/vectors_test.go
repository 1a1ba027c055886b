package main

import (
	"slices"
	"strings"
	"testing"
)

func TestVectorTable(t *testing.T) {
	s := synth(t, map[string]any{"container": "off", "vectorDimensions": "1536, 3072"})
	_, all := s.data.of("AWS::DynamoDB::GlobalTable")
	i := slices.IndexFunc(all, func(r resource) bool { return strings.HasSuffix(text(r.Properties["TableName"]), `vectors"]]}`) })
	if i < 0 || len(all) != 7 {
		t.Fatalf("%d tables, the vectors' is number %d", len(all), i)
	}
	p := all[i].Properties
	if p["BillingMode"] != "PAY_PER_REQUEST" || all[i].DeletionPolicy != "Delete" || at(p, "TimeToLiveSpecification", "AttributeName") != "expires" {
		t.Errorf("%s", text(all[i]))
	}
	if got := text(p["AttributeDefinitions"]); strings.Count(got, "AttributeName") != 3 || !strings.Contains(got, `"tenant"`) {
		t.Errorf("%s", got)
	}
	for n, want := range []string{
		`{"Dimensions":1536,"DistanceFunction":"COSINE","IndexName":"answers-1536","Projection":{"NonKeyAttributes":["expires"],"ProjectionType":"INCLUDE"},"SearchSchema":[{"AttributeName":"tenant","SearchSchemaElementType":"HASH"}],"VectorAttribute":{"AttributeName":"v1536"}}`,
		`{"Dimensions":3072,"DistanceFunction":"COSINE","IndexName":"answers-3072","Projection":{"NonKeyAttributes":["expires"],"ProjectionType":"INCLUDE"},"SearchSchema":[{"AttributeName":"tenant","SearchSchemaElementType":"HASH"}],"VectorAttribute":{"AttributeName":"v3072"}}`,
	} {
		if got := text(at(p, "VectorIndexes", n)); got != want {
			t.Errorf("index %d: %s", n, got)
		}
	}
	for id, name := range functionNames(s.functions) {
		env, rights := text(at(s.functions[id].Properties, "Environment", "Variables")), text(statements(s.functions, name))
		uses := strings.Contains(env, "GATEWAY_VECTOR_TABLE") && strings.Contains(env, `"GATEWAY_VECTOR_DIMENSIONS":"1536,3072"`)
		may := strings.Contains(rights, "dynamodb:SearchVectors") && strings.Contains(rights, "/index/answers-*")
		if want := name == "chat"; (name == "chat" || name == "configs") && (uses != want || may != want) {
			t.Errorf("%s: %s %s", name, env, rights)
		}
		if name == "dryrun" && !may {
			t.Errorf("%s: %s", name, rights)
		}
	}
	s.nag(t)
}

func TestVectorsAreInOneStore(t *testing.T) {
	_, err := parseContext(map[string]any{"dist": fakeDist(t), "vectorBucket": "vectors", "vectorDimensions": "1536"})
	if err == nil || !strings.Contains(err.Error(), "set one") {
		t.Errorf("%v", err)
	}
}
