package main

import (
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/host/placement"
)

// definition is the API's definition.
func (s *synthesised) definition(t *testing.T) map[string]any {
	t.Helper()
	_, all := s.functions.of("AWS::ApiGateway::RestApi")
	if len(all) != 1 {
		t.Fatalf("%d APIs", len(all))
	}
	return at(all[0].Properties, "Body").(map[string]any)
}

func (s *synthesised) paths(t *testing.T) map[string]any {
	t.Helper()
	return s.definition(t)["paths"].(map[string]any)
}

func (s *synthesised) api(t *testing.T) {
	paths := s.paths(t)
	_, places := placement.Families()
	for _, r := range placement.Table() {
		method := strings.ToLower(r.Method)
		if r.Method == placement.AnyMethod {
			method = "x-amazon-apigateway-any-method"
		}
		if _, runs := places[r.Family]; !runs {
			if at(paths, unifyVariables(r.Path), method) != nil {
				t.Errorf("%s %s goes to a function that there is not", r.Method, r.Path)
			}
			continue
		}
		in := at(paths, unifyVariables(r.Path), method, "x-amazon-apigateway-integration")
		uri := text(at(in, "uri"))
		if !strings.Contains(uri, `"Live`+r.Family) {
			t.Errorf("%s %s goes to %s", r.Method, r.Path, uri)
		}
		stream := at(in, "responseTransferMode") == "STREAM" && at(in, "timeoutInMillis") == 900_000.0 && strings.Contains(uri, "response-streaming-invocations")
		buffered := at(in, "responseTransferMode") == "BUFFERED" && at(in, "timeoutInMillis") == 29_000.0 && !strings.Contains(uri, "streaming")
		if places[r.Family] == placement.Stream && !stream || places[r.Family] == placement.Buffered && !buffered {
			t.Errorf("%s %s: %s", r.Method, r.Path, text(in))
		}
	}
	for path, methods := range paths {
		if at(methods, "x-amazon-apigateway-any-method") == nil {
			t.Errorf("%s leaves methods to nobody", path)
		}
	}
	for _, r := range placement.Table() {
		uri := text(at(paths, unifyVariables(r.Path), "x-amazon-apigateway-any-method", "x-amazon-apigateway-integration", "uri"))
		if r.Place == placement.Buffered && !strings.Contains(uri, `"Live`+r.Family) {
			t.Errorf("other methods of %s go to %s", r.Path, uri)
		}
	}
	_, stages := s.functions.of("AWS::ApiGateway::Stage")
	if len(stages) != 1 || stages[0].Properties["StageName"] != "v1" || at(stages[0].Properties, "MethodSettings", 0, "DataTraceEnabled") != false {
		t.Errorf("%s", text(stages))
	}
	responses := at(s.definition(t), "x-amazon-apigateway-gateway-responses").(map[string]any)
	for kind, r := range responses {
		body := strings.NewReplacer("$context.error.messageString", `"text"`).Replace(at(r, "responseTemplates", "application/json").(string))
		var shape struct {
			Status, Message string
			Error           struct{ Message, Type, Code string }
		}
		if err := json.Unmarshal([]byte(body), &shape); err != nil || shape.Status != "failure" || shape.Error.Message == "" || shape.Error.Code == "" {
			t.Errorf("%s: %s: %v", kind, body, err)
		}
	}
	if at(responses, "REQUEST_TOO_LARGE", "statusCode") != 413.0 || at(responses, "MISSING_AUTHENTICATION_TOKEN", "statusCode") != 404.0 {
		t.Errorf("%s", text(responses))
	}
	_, permissions := s.functions.of("AWS::Lambda::Permission")
	if names, _ := placement.Families(); len(permissions) != len(names) {
		t.Errorf("%d permissions for %d functions", len(permissions), len(names))
	}
}
