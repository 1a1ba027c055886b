package observe

import (
	"cmp"
	"strconv"
	"strings"

	"gateway/shared/observe/otlp"
	"gateway/shared/usage"
)

// agents is the protocol of calls to agents; all other calls are to tools.
const agents = "a2a"

// agentMethods are the names in A2A 1.0 of the methods of 0.3. Spans have those of 1.0 only, so
// that one method of agents of both versions has one name.
var agentMethods = map[string]string{
	"message/send": "SendMessage", "message/stream": "SendStreamingMessage", "tasks/get": "GetTask", "tasks/cancel": "CancelTask", "tasks/resubscribe": "SubscribeToTask",
	"tasks/pushNotificationConfig/set": "CreateTaskPushNotificationConfig", "tasks/pushNotificationConfig/get": "GetTaskPushNotificationConfig",
	"tasks/pushNotificationConfig/list": "ListTaskPushNotificationConfigs", "tasks/pushNotificationConfig/delete": "DeleteTaskPushNotificationConfig",
	"agent/getAuthenticatedExtendedCard": "GetExtendedAgentCard",
}

func agentMethod(method string) string { return cmp.Or(agentMethods[method], method) }

// named is the name of a call's span: the method, and its object where there are few
// different ones.
func named(r *usage.Record) string {
	method, of := r.Call.Method, r.Call.Name
	switch {
	case r.Call.Protocol == agents:
		method, of = agentMethod(method), r.ProviderSlug
	case strings.HasPrefix(r.Call.Method, "resources/"):
		of = "" // there are many addresses
	}
	return strings.TrimSpace(method + " " + of)
}

// failure is the value of error.type for a record; "" if it did not fail. A tool that
// reports a failure has answered, and so has a server that returns an error.
func failure(r *usage.Record) string {
	switch {
	case !r.Success():
		return strconv.Itoa(r.ClientStatus)
	case r.ClientGone:
		return clientGone
	case r.Call == nil:
		return ""
	case r.Call.Code != 0:
		return strconv.FormatInt(r.Call.Code, 10)
	case r.Call.Failed:
		return toolError
	}
	return ""
}

// durationOf is the histogram of the duration of a call. The conventions have none for
// agents.
func durationOf(r *usage.Record) string {
	if r.Call.Protocol == agents {
		return metricAgent
	}
	return metricServer
}

// ofCall are the attributes that distinguish calls.
func ofCall(r *usage.Record) (a attrs) {
	c := r.Call
	if c.Protocol == agents {
		a.add(attrAgentMethod, agentMethod(c.Method))
		a.text(attrAgentVersion, c.Version)
		if strings.Contains(strings.ToLower(c.Method), "message") {
			a.add(attrOperation, invokeAgent)
		}
		a.text(attrAgentName, r.ProviderSlug)
		return a
	}
	a.add(attrMethod, c.Method)
	a.text(attrVersion, c.Version)
	switch c.Method {
	case "tools/call":
		a.add(attrOperation, executeTool)
		a.text(attrTool, c.Name)
	case "prompts/get":
		a.text(attrPromptName, c.Name)
	}
	return a
}

// detailed adds the attributes of this one call.
func detailed(a attrs, r *usage.Record) attrs {
	c := r.Call
	if strings.HasPrefix(c.Method, "resources/") {
		a.text(attrResource, c.Name)
	}
	if c.Code != 0 {
		a.add(attrStatusCode, strconv.FormatInt(c.Code, 10))
	}
	a.text(attrScope, c.Scope)
	return append(a, otlp.Attr{Key: attrDecision, Value: cmp.Or(c.Decision, usage.CallAllowed)}, otlp.Attr{Key: attrAuth, Value: c.Auth},
		otlp.Attr{Key: attrServer, Value: c.Server}, otlp.Attr{Key: attrServerSlug, Value: r.ProviderSlug})
}
