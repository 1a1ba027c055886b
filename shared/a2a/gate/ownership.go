package gate

import (
	"encoding/json"
	"strings"

	"gateway/shared/a2a/wireformat"
)

// ownership checks which tasks and contexts belong to the caller's workspace if several
// workspaces share an agent.
type ownership struct {
	shared    bool
	namespace string
	known     map[string]bool // ids that were checked or recorded in this request
}

const (
	aTask    = "task/"
	aContext = "context/"
)

// checkOwnership rejects tasks and contexts that another workspace created, as if they did not
// exist.
func checkOwnership(v *requestState) error {
	v.ownership = ownership{shared: v.facts.Server.IntegrationOrg, namespace: "a2a/" + v.facts.Server.IntegrationID, known: map[string]bool{}}
	if !v.ownership.shared {
		return nil
	}
	q := v.req
	if q.op.custom {
		return newError(codeNotServed, "several workspaces share this agent, and the owner of tasks can be determined only for methods of the protocol versions 0.3 and 1.0")
	}
	var ids []string
	if q.op.taskField != "" {
		ids = append(ids, aTask+q.params[q.op.taskField].(string))
	}
	if q.op == opList {
		if s, ok := q.params["contextId"].(string); ok && s != "" {
			ids = append(ids, aContext+s)
		}
	}
	if m, ok := q.params["message"].(wireformat.Object); ok {
		ids = append(ids, messageIDs(m)...)
		if list, ok := m["referenceTaskIds"].([]any); ok {
			for _, one := range list {
				if s, ok := one.(string); ok && s != "" {
					ids = append(ids, aTask+s)
				}
			}
		}
	}
	if len(ids) > maxReferred {
		return newError(codeParams, "the message names too many tasks")
	}
	if len(ids) == 0 {
		return nil
	}
	mine, err := v.call.OwnedByCaller(v.ownership.namespace, ids...)
	if err != nil {
		return err
	}
	for i, ok := range mine {
		switch {
		case ok:
			v.ownership.known[ids[i]] = true
		case strings.HasPrefix(ids[i], aTask):
			return newError(codeTask, "Task not found")
		default:
			return newError(codeParams, "contextId does not belong to this workspace; omit it to begin a new context")
		}
	}
	return nil
}

const maxReferred = 100

// messageIDs returns the ids of the task and context of a message or event.
func messageIDs(o wireformat.Object) (ids []string) {
	if s, ok := o["taskId"].(string); ok && s != "" {
		ids = append(ids, aTask+s)
	}
	if s, ok := o["contextId"].(string); ok && s != "" {
		ids = append(ids, aContext+s)
	}
	return ids
}

// resultIDs returns the ids of the tasks and contexts in a 1.0 result.
func resultIDs(kind wireformat.Kind, v any) (ids []string) {
	o, _ := v.(wireformat.Object)
	ofTask := func(o wireformat.Object) {
		if s, ok := o["id"].(string); ok && s != "" {
			ids = append(ids, aTask+s)
		}
		ids = append(ids, messageIDs(wireformat.Object{"contextId": o["contextId"]})...)
	}
	switch kind {
	case wireformat.Task:
		ofTask(o)
	case wireformat.Event:
		if t, ok := o["task"].(wireformat.Object); ok {
			ofTask(t)
		}
		for _, name := range []string{"message", "statusUpdate", "artifactUpdate"} {
			if m, ok := o[name].(wireformat.Object); ok {
				ids = append(ids, messageIDs(m)...)
			}
		}
	}
	return ids
}

// recordOwnership records the tasks and contexts of a result as the workspace's before the
// client receives them. It fails if one belongs to another workspace; then the client does not
// receive the result.
func recordOwnership(v *requestState, kind wireformat.Kind, value any) error {
	if !v.ownership.shared {
		return nil
	}
	var added []string
	for _, id := range resultIDs(kind, value) {
		if !v.ownership.known[id] {
			v.ownership.known[id] = true
			added = append(added, id)
		}
	}
	if len(added) == 0 {
		return nil
	}
	return v.call.RecordOwnership(v.ownership.namespace, added...)
}

// filterTasks removes the tasks of other workspaces from a page. It replaces the total, which
// covers all workspaces.
func filterTasks(v *requestState, value any) (any, error) {
	o, ok := value.(wireformat.Object)
	list, is := o["tasks"].([]any)
	if !v.ownership.shared || !ok || !is {
		return value, nil
	}
	ids := make([]string, len(list))
	for i, one := range list {
		t, _ := one.(wireformat.Object)
		id, _ := t["id"].(string)
		ids[i] = aTask + id
	}
	left := []any{}
	if len(ids) > 0 {
		mine, err := v.call.OwnedByCaller(v.ownership.namespace, ids...)
		if err != nil {
			return nil, err
		}
		for i, ok := range mine {
			if ok {
				left = append(left, list[i])
			}
		}
	}
	out := wireformat.Object{}
	for name, m := range o {
		out[name] = m
	}
	out["tasks"], out["totalSize"] = left, json.Number(decimal(len(left)))
	return out, nil
}

// checkPush rejects push notification addresses unless the integration allows them, and
// addresses that the gateway would not call.
func checkPush(v *requestState) error {
	q := v.req
	var found []string
	isSet := q.op == opPushSet
	var look func(value any, inside bool)
	look = func(value any, inside bool) {
		switch value := value.(type) {
		case map[string]any:
			for name, m := range value {
				if inside && strings.EqualFold(name, "url") {
					found = append(found, textOf(m))
				}
				push := isPush(name)
				isSet = isSet || push && m != nil
				look(m, inside || push)
			}
		case []any:
			for _, m := range value {
				look(m, inside)
			}
		}
	}
	switch {
	case q.op.custom:
		isSet = isPush(q.op.name)
		look(q.value, isSet)
	case q.op == opPushSet:
		look(q.value, true)
	case q.op.sendsMessage:
		o, _ := q.value.(wireformat.Object)
		look(o["configuration"], false)
	}
	if !isSet {
		return nil
	}
	if !v.facts.Integration.AllowsPush() {
		return newError(codeNoPush, "Push notifications of this agent are not allowed")
	}
	for _, at := range found {
		if _, err := v.call.CheckURL(at, "url"); err != nil {
			return newError(codeParams, "the push notification url must be a public https or http address")
		}
	}
	return nil
}

func isPush(name string) bool {
	return strings.Contains(strings.ToLower(strings.ReplaceAll(name, "_", "")), "pushnotification")
}

func textOf(v any) string {
	s, _ := v.(string) // an unexpected type counts as empty
	return s
}
