package gate

import (
	"net/http"
	"strings"

	"gateway/shared/a2a/wireformat"
)

// operation is what a request asks for.
type operation struct {
	name, old       string // methods of 1.0 and of 0.3; "": that version has none
	params, result  wireformat.Kind
	streams, custom bool
	task            string // member of the params of 1.0 that names a task; "": none
	sends           bool   // it says something to the agent
}

var operations = []*operation{
	{name: "SendMessage", old: "message/send", params: wireformat.Send, result: wireformat.Event, sends: true},
	{name: "SendStreamingMessage", old: "message/stream", params: wireformat.Send, result: wireformat.Event, sends: true, streams: true},
	opGet, opList, opCancel, opSubscribe, opPushSet, opPushGet, opPushList, opPushDelete, opCard,
}

var (
	opSend, opStream = operations[0], operations[1]

	opGet        = &operation{name: "GetTask", old: "tasks/get", result: wireformat.Task, task: "id"}
	opList       = &operation{name: "ListTasks", result: wireformat.Tasks}
	opCancel     = &operation{name: "CancelTask", old: "tasks/cancel", result: wireformat.Task, task: "id"}
	opSubscribe  = &operation{name: "SubscribeToTask", old: "tasks/resubscribe", result: wireformat.Event, task: "id", streams: true}
	opPushSet    = &operation{name: "CreateTaskPushNotificationConfig", old: "tasks/pushNotificationConfig/set", params: wireformat.PushSet, result: wireformat.PushConfig, task: "taskId"}
	opPushGet    = &operation{name: "GetTaskPushNotificationConfig", old: "tasks/pushNotificationConfig/get", params: wireformat.PushRef, result: wireformat.PushConfig, task: "taskId"}
	opPushList   = &operation{name: "ListTaskPushNotificationConfigs", old: "tasks/pushNotificationConfig/list", params: wireformat.PushList, result: wireformat.Pushes, task: "taskId"}
	opPushDelete = &operation{name: "DeleteTaskPushNotificationConfig", old: "tasks/pushNotificationConfig/delete", params: wireformat.PushRef, task: "taskId"}
	opCard       = &operation{name: "GetExtendedAgentCard", old: "agent/getAuthenticatedExtendedCard"}
)

// method is the operation's method in a version of the protocol.
func (op *operation) method(old bool) string {
	if old && !op.custom {
		return op.old
	}
	return op.name
}

// ofMethod finds the operation of a method. other tells that only the other version has
// this method.
func ofMethod(method string, old bool) (op *operation, other bool) {
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

// ofPath finds the operation for an HTTP method and a path of HTTP+JSON, which is split at
// its slashes. named are the values that the path gives.
func ofPath(method string, path []string) (op *operation, named map[string]string) {
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
