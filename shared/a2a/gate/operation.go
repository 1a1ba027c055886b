package gate

import (
	"net/http"
	"strings"

	"gateway/shared/a2a/wireformat"
)

// operation is an operation of the protocol.
type operation struct {
	name, oldName   string // methods of 1.0 and of 0.3; empty if the version has none
	params, result  wireformat.Kind
	streams, custom bool
	taskField       string // field of the 1.0 params with the task id; may be empty
	sendsMessage    bool   // it sends a message to the agent
}

var operations = []*operation{
	{name: "SendMessage", oldName: "message/send", params: wireformat.Send, result: wireformat.Event, sendsMessage: true},
	{name: "SendStreamingMessage", oldName: "message/stream", params: wireformat.Send, result: wireformat.Event, sendsMessage: true, streams: true},
	opGet, opList, opCancel, opSubscribe, opPushSet, opPushGet, opPushList, opPushDelete, opCard,
}

var (
	opSend, opStream = operations[0], operations[1]

	opGet        = &operation{name: "GetTask", oldName: "tasks/get", result: wireformat.Task, taskField: "id"}
	opList       = &operation{name: "ListTasks", result: wireformat.Tasks}
	opCancel     = &operation{name: "CancelTask", oldName: "tasks/cancel", result: wireformat.Task, taskField: "id"}
	opSubscribe  = &operation{name: "SubscribeToTask", oldName: "tasks/resubscribe", result: wireformat.Event, taskField: "id", streams: true}
	opPushSet    = &operation{name: "CreateTaskPushNotificationConfig", oldName: "tasks/pushNotificationConfig/set", params: wireformat.PushSet, result: wireformat.PushConfig, taskField: "taskId"}
	opPushGet    = &operation{name: "GetTaskPushNotificationConfig", oldName: "tasks/pushNotificationConfig/get", params: wireformat.PushRef, result: wireformat.PushConfig, taskField: "taskId"}
	opPushList   = &operation{name: "ListTaskPushNotificationConfigs", oldName: "tasks/pushNotificationConfig/list", params: wireformat.PushList, result: wireformat.Pushes, taskField: "taskId"}
	opPushDelete = &operation{name: "DeleteTaskPushNotificationConfig", oldName: "tasks/pushNotificationConfig/delete", params: wireformat.PushRef, taskField: "taskId"}
	opCard       = &operation{name: "GetExtendedAgentCard", oldName: "agent/getAuthenticatedExtendedCard"}
)

// method returns the method in a version of the protocol.
func (op *operation) method(old bool) string {
	if old && !op.custom {
		return op.oldName
	}
	return op.name
}

// operationByMethod returns the operation of a method. other is set if only the other version
// has the method.
func operationByMethod(method string, old bool) (op *operation, other bool) {
	for _, op := range operations {
		switch {
		case method == op.method(old) && method != "":
			return op, false
		case method == op.method(!old) && method != "":
			return nil, true
		}
	}
	return &operation{name: method, custom: true}, false
}

// operationByPath returns the operation of an HTTP method and a split path in the HTTP+JSON
// binding, and the params in the path.
func operationByPath(method string, path []string) (op *operation, named map[string]string) {
	last := path[len(path)-1]
	post, get := method == http.MethodPost, method == http.MethodGet
	one := func(op *operation, ok bool, pairs ...string) (*operation, map[string]string) {
		if !ok {
			return nil, nil
		}
		named := map[string]string{}
		for i := 0; i < len(pairs); i += 2 {
			if pairs[i+1] == "" {
				return nil, nil
			}
			named[pairs[i]] = pairs[i+1]
		}
		return op, named
	}
	switch {
	case len(path) == 1 && last == "message:send":
		return one(opSend, post)
	case len(path) == 1 && last == "message:stream":
		return one(opStream, post)
	case len(path) == 1 && (last == "extendedAgentCard" || last == "card"):
		return one(opCard, get)
	case path[0] != "tasks":
		return nil, nil
	case len(path) == 1:
		return one(opList, get)
	case len(path) == 2:
		if id, ok := strings.CutSuffix(last, ":cancel"); ok {
			return one(opCancel, post, "id", id)
		}
		if id, ok := strings.CutSuffix(last, ":subscribe"); ok {
			return one(opSubscribe, post || get, "id", id)
		}
		return one(opGet, get, "id", last)
	case path[2] != "pushNotificationConfigs":
		return nil, nil
	case len(path) == 3 && post:
		return one(opPushSet, true, "taskId", path[1])
	case len(path) == 3:
		return one(opPushList, get, "taskId", path[1])
	case len(path) == 4 && method == http.MethodDelete:
		return one(opPushDelete, true, "taskId", path[1], "id", last)
	case len(path) == 4:
		return one(opPushGet, get, "taskId", path[1], "id", last)
	}
	return nil, nil
}
