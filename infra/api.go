package main

import (
	"fmt"
	"strconv"
	"strings"

	"gateway/shared/host/placement"
)

// Bounds of an integration, in milliseconds.
const (
	streamTimeout   = 900_000
	bufferedTimeout = 29_000
)

// openAPI is the API's definition, made from the placement table. arn gives the
// ARN of a family's function.
func openAPI(o options, title string, arn func(family string) string) map[string]any {
	paths := map[string]map[string]any{}
	add := func(path, method string, op map[string]any) {
		path = unifyVariables(path)
		if paths[path] == nil {
			paths[path] = map[string]any{}
		}
		if names := pathVariables(path); len(names) > 0 {
			var params []any
			for _, n := range names {
				params = append(params, map[string]any{"name": n, "in": "path", "required": true, "schema": map[string]any{"type": "string"}})
			}
			op["parameters"] = params
		}
		paths[path][method] = op
	}
	_, places := placement.Families()
	administration := map[string]string{} // the family of a path
	var nowhere []placement.Route
	for _, r := range placement.Table() {
		if _, runs := places[r.Family]; !runs {
			nowhere = append(nowhere, r) // the pass-through's path is served only by the container
			continue
		}
		if r.Place == placement.Buffered {
			administration[unifyVariables(r.Path)] = r.Family
		}
		op := integration(o, r.WithoutContainer, arn(r.Family), places[r.Family], r.Status)
		if r.Method == placement.AnyMethod {
			add(r.Path, "x-amazon-apigateway-any-method", op)
		} else {
			add(r.Path, strings.ToLower(r.Method), op)
		}
	}
	// Some routes only the container serves, on paths that have other methods too. Without a
	// container such a route gets its own operation, which rejects.
	for _, r := range nowhere {
		if path := paths[unifyVariables(r.Path)]; path != nil && path["x-amazon-apigateway-any-method"] == nil && r.WithoutContainer == placement.Refused && !o.hasContainer() {
			add(r.Path, strings.ToLower(r.Method), integration(o, r.WithoutContainer, "", placement.Container, r.Status))
		}
	}
	// What a path does not serve: a path of a data-plane family takes it as any other path
	// does. A path of the administration is never passed through: its own family says which
	// methods there are.
	for path, methods := range paths {
		if methods["x-amazon-apigateway-any-method"] != nil {
			continue
		}
		place, family := placement.Stream, placement.PassThrough
		if name, ok := administration[path]; ok {
			place, family = placement.Buffered, name
		}
		add(path, "x-amazon-apigateway-any-method", integration(o, place, arn(family), place, 0))
	}
	return map[string]any{
		"openapi": "3.0.1",
		"info":    map[string]any{"title": title, "version": placement.Hash()},
		"paths":   paths,
		// Bodies of other types arrive as text.
		"x-amazon-apigateway-binary-media-types": []any{"multipart/form-data", "application/octet-stream", "application/x-protobuf"},
		"x-amazon-apigateway-gateway-responses":  gatewayResponses(),
	}
}

// integration is an operation of the API: a function, or a rejection.
func integration(o options, without placement.Place, arn string, family placement.Place, status int) map[string]any {
	in := map[string]any{"type": "aws_proxy", "httpMethod": "POST", "passthroughBehavior": "when_no_match"}
	uri := "arn:aws:apigateway:" + o.region + ":lambda:path/"
	switch {
	case without == placement.Refused && !o.hasContainer():
		in = refusal(status)
	case family == placement.Stream:
		in["uri"] = uri + "2021-11-15/functions/" + arn + "/response-streaming-invocations"
		in["responseTransferMode"], in["timeoutInMillis"] = "STREAM", streamTimeout
	default:
		in["uri"] = uri + "2015-03-31/functions/" + arn + "/invocations"
		in["responseTransferMode"], in["timeoutInMillis"] = "BUFFERED", bufferedTimeout
	}
	op := map[string]any{"x-amazon-apigateway-integration": in, "responses": map[string]any{}}
	if in["type"] == "mock" {
		op["responses"] = map[string]any{strconv.Itoa(status): map[string]any{"description": "needs the container"}}
	}
	return op
}

const needsContainer = "Files and audio need the container, which this installation does not have"

// refusal is the response to what needs a container, in an installation that has none.
func refusal(status int) map[string]any {
	message, code := needsContainer, "body_too_large"
	if status == placement.NoFunction || status == placement.NoUpgrade {
		message, code = "WebSockets need the container, which this installation does not have", "not_supported"
	}
	return map[string]any{
		"type":             "mock",
		"requestTemplates": map[string]any{"application/json": fmt.Sprintf(`{"statusCode":%d}`, status)},
		"responses": map[string]any{"default": map[string]any{
			"statusCode":        strconv.Itoa(status),
			"responseTemplates": map[string]any{"application/json": errorBody(strconv.Quote(message), code)},
		}},
		"passthroughBehavior": "never",
	}
}

// errorBody is the gateway's error shape; message is a JSON string.
func errorBody(message, code string) string {
	return `{"status":"failure","message":` + message + `,"error":{"message":` + message + `,"type":"invalid_request_error","param":null,"code":"` + code + `"}}`
}

// gatewayResponses give what the API itself rejects in the gateway's shape.
func gatewayResponses() map[string]any {
	out := map[string]any{}
	for kind, r := range map[string]struct {
		status int // 0: the API's own
		code   string
	}{
		"DEFAULT_4XX": {0, "invalid_request"}, "DEFAULT_5XX": {0, "internal_error"},
		"REQUEST_TOO_LARGE": {413, "body_too_large"}, "MISSING_AUTHENTICATION_TOKEN": {404, "not_found"}, "RESOURCE_NOT_FOUND": {404, "not_found"},
		"THROTTLED": {429, "rate_limit_exceeded"}, "WAF_FILTERED": {403, "forbidden"},
		"INTEGRATION_TIMEOUT": {504, "timeout"}, "INTEGRATION_FAILURE": {502, "internal_error"},
	} {
		response := map[string]any{"responseTemplates": map[string]any{"application/json": errorBody("$context.error.messageString", r.code)}}
		if r.status != 0 {
			response["statusCode"] = r.status
		}
		out[kind] = response
	}
	// Of the rejections only those of what needs the container accept a single type: these
	// routes take forms and offers of sessions.
	out["UNSUPPORTED_MEDIA_TYPE"] = map[string]any{
		"statusCode": 413, "responseTemplates": map[string]any{"application/json": errorBody(`"A body of this type needs the container, which this installation does not have"`, "body_too_large")},
	}
	return out
}

// gathered are path prefixes that one family serves entirely. The API, which has a limited
// number of resources, has one resource for each; the family resolves the paths below.
var gathered = []string{"/analytics/", "/agent/", "/.well-known/", "/oauth/", "/auth/", "/otel/", "/policies/", "/webhooks/", "/model-configs/", "/mcp-servers/"}

// apart are the beginnings of paths below gathered ones that belong to another family.
var apart = []string{"/oauth/upstream-", "/.well-known/jwks.json"}

// unifyVariables names variables by their place, because the API wants siblings
// to have one name: /configs/{slug} and /configs/{id}/versions agree.
func unifyVariables(path string) string {
	for _, other := range apart {
		if strings.HasPrefix(path, other) {
			return path
		}
	}
	for _, all := range gathered {
		if strings.HasPrefix(path, all) {
			return all + "{path+}"
		}
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		switch {
		case placement.Greedy(s):
			segments[i] = "{path+}"
		case placement.Variable(s):
			segments[i] = "{p" + strconv.Itoa(i) + "}"
		}
	}
	return strings.Join(segments, "/")
}

func pathVariables(path string) (names []string) {
	for _, s := range strings.Split(path, "/") {
		if strings.HasPrefix(s, "{") {
			names = append(names, strings.Trim(s, "{+}"))
		}
	}
	return names
}
