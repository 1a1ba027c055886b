package gate

import (
	"encoding/json"
	"strings"

	"gateway/shared/a2a/wireformat"
)

// owned knows which tasks and contexts belong to the caller's workspace, for an agent that
// several workspaces use.
type owned struct {
	shared bool
	place  string
	kept   map[string]bool // ids that were noted in this request
}

const (
	aTask    = "task/"
	aContext = "context/"
)

// owns refuses tasks and contexts that the caller's workspace did not make, as if they did
// not exist.
func owns(v *visit) error {
	v.own = owned{shared: v.facts.Server.IntegrationOrg, place: "a2a/" + v.facts.Server.IntegrationID, kept: map[string]bool{}}
	if !v.own.shared {
		return nil
	}
	q := v.req
	if q.op.custom {
		return refuse(codeNotServed, "several workspaces use this agent, and whose a method's tasks are can be told only of methods of the protocol's versions 0.3 and 1.0")
	}
	var ids []string
	if q.op.task != "" {
		ids = append(ids, aTask+q.params[q.op.task].(string))
	}
	if q.op == opList {
		if s, ok := q.params["contextId"].(string); ok && s != "" {
			ids = append(ids, aContext+s)
		}
	}
	if m, ok := q.params["message"].(wireformat.Object); ok {
		ids = append(ids, named(m)...)
		if list, ok := m["referenceTaskIds"].([]any); ok {
			for _, one := range list {
				if s, ok := one.(string); ok && s != "" {
					ids = append(ids, aTask+s)
				}
			}
		}
	}
	if len(ids) > maxReferred {
		return refuse(codeParams, "the message names too many tasks")
	}
	if len(ids) == 0 {
		return nil
	}
	mine, err := v.call.Mine(v.own.place, ids...)
	if err != nil {
		return err
	}
	for i, ok := range mine {
		switch {
		case ok:
			v.own.kept[ids[i]] = true
		case strings.HasPrefix(ids[i], aTask):
			return refuse(codeTask, "Task not found")
		default:
			return refuse(codeParams, "contextId is not one that the agent gave to this workspace; leave it out to begin a new one")
		}
	}
	return nil
}

const maxReferred = 100

// named are the ids of the task and the context that a message or an event belongs to.
func named(o wireformat.Object) (ids []string) {
	if s, ok := o["taskId"].(string); ok && s != "" {
		ids = append(ids, aTask+s)
	}
	if s, ok := o["contextId"].(string); ok && s != "" {
		ids = append(ids, aContext+s)
	}
	return ids
}

// made are the tasks and contexts that exist according to an answer of 1.0.
func made(kind wireformat.Kind, v any) (ids []string) {
	o, _ := v.(wireformat.Object)
	ofTask := func(o wireformat.Object) {
		if s, ok := o["id"].(string); ok && s != "" {
			ids = append(ids, aTask+s)
		}
		ids = append(ids, named(wireformat.Object{"contextId": o["contextId"]})...)
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
				ids = append(ids, named(m)...)
			}
		}
	}
	return ids
}

// keep notes the tasks and contexts of an answer as the workspace's, before the client
// learns of them. If one of them belongs to another workspace, keep fails and the client
// gets nothing of the answer.
func keep(v *visit, kind wireformat.Kind, value any) error {
	if !v.own.shared {
		return nil
	}
	var fresh []string
	for _, id := range made(kind, value) {
		if !v.own.kept[id] {
			v.own.kept[id] = true
			fresh = append(fresh, id)
		}
	}
	if len(fresh) == 0 {
		return nil
	}
	return v.call.Keep(v.own.place, fresh...)
}

// divide keeps only the tasks of the caller's workspace in a page. The total over all
// workspaces is not told.
func divide(v *visit, value any) (any, error) {
	o, ok := value.(wireformat.Object)
	list, is := o["tasks"].([]any)
	if !v.own.shared || !ok || !is {
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
		mine, err := v.call.Mine(v.own.place, ids...)
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

// pushes refuses addresses to push to unless the integration allows them. Even then it
// refuses addresses that the gateway itself would not call.
func pushes(v *visit) error {
	q := v.req
	var found []string
	asks := q.op == opPushSet
	var look func(value any, inside bool)
	look = func(value any, inside bool) {
		switch value := value.(type) {
		case map[string]any:
			for name, m := range value {
				if inside && strings.EqualFold(name, "url") {
					found = append(found, textOf(m))
				}
				push := isPush(name)
				asks = asks || push && m != nil
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
		asks = isPush(q.op.name)
		look(q.tree, asks)
	case q.op == opPushSet:
		look(q.tree, true)
	case q.op.sends:
		o, _ := q.tree.(wireformat.Object)
		look(o["configuration"], false)
	}
	if !asks {
		return nil
	}
	if !v.facts.Integration.Pushes() {
		return refuse(codeNoPush, "Push notifications of this agent are not allowed")
	}
	for _, at := range found {
		if _, err := v.call.CheckURL(at, "url"); err != nil {
			return refuse(codeParams, "the address to push to must be a public one, by https or http")
		}
	}
	return nil
}

func isPush(name string) bool {
	return strings.Contains(strings.ToLower(strings.ReplaceAll(name, "_", "")), "pushnotification")
}

func textOf(v any) string {
	s, _ := v.(string) // another type is no address
	return s
}
