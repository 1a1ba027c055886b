package wireformat

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
)

// Shape is how values are written.
type Shape uint8

// The shapes.
const (
	V1      Shape = iota + 1 // of 1.0, in both bindings
	Old                      // of 0.3 in JSON-RPC
	OldREST                  // of 0.3 in HTTP+JSON
)

// Object is a JSON object.
type Object = map[string]any

// Kind is what a value is.
type Kind uint8

// The kinds.
const (
	Nothing    Kind = iota // it is left as it is
	Send                   // params of a message
	PushSet                // params that make a push notification config
	PushRef                // params that name one
	PushList               // params that name those of a task
	Event                  // result of a message, or an event of a stream
	Task                   // a task
	Tasks                  // a page of tasks
	PushConfig             // a push notification config of a task
	Pushes                 // a list of those
)

// Read gives the value of JSON; numbers stay as they were written.
func Read(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// Between turns a value of one shape into another.
func Between(from, to Shape, kind Kind, v any) any {
	if from == to || kind == Nothing {
		return v
	}
	if from != V1 {
		v = up(kind, v)
	}
	if to != V1 {
		v = down(to, kind, v)
	}
	return v
}

// up turns either form of 0.3 into 1.0.
func up(kind Kind, v any) any {
	if list, ok := v.([]any); ok && kind == Pushes {
		return Object{"configs": each(list, pushUp)}
	}
	o, ok := v.(Object)
	if !ok {
		return v
	}
	switch kind {
	case Send:
		return sendUp(o)
	case PushSet, PushConfig:
		return pushUp(o)
	case PushRef:
		return rename(o, "id", "taskId", "pushNotificationConfigId", "id")
	case PushList:
		return rename(o, "id", "taskId")
	case Event:
		return eventUp(o)
	case Task:
		return taskUp(o)
	case Tasks:
		return inside(o, "tasks", taskUp)
	case Pushes:
		return inside(o, "configs", pushUp)
	}
	return v
}

// down turns 1.0 into a form of 0.3.
func down(to Shape, kind Kind, v any) any {
	o, ok := v.(Object)
	if !ok {
		return v
	}
	w := writer(to == OldREST)
	switch kind {
	case Send:
		return w.send(o)
	case PushSet, PushConfig:
		return w.push(o)
	case PushRef:
		return rename(o, "taskId", "id", "id", "pushNotificationConfigId")
	case PushList:
		return rename(o, "taskId", "id")
	case Event:
		return w.event(o)
	case Task:
		return w.task(o)
	case Tasks:
		return inside(o, "tasks", w.task)
	case Pushes:
		o = inside(o, "configs", w.push)
		if w {
			return o
		}
		list, _ := o["configs"].([]any)
		if list == nil {
			list = []any{}
		}
		return list
	}
	return v
}

// rename gives a copy with members under other names, in pairs.
func rename(o Object, pairs ...string) Object {
	out := maps.Clone(o)
	for i := 0; i < len(pairs); i += 2 {
		delete(out, pairs[i])
	}
	for i := 0; i < len(pairs); i += 2 {
		if v, has := o[pairs[i]]; has {
			out[pairs[i+1]] = v
		}
	}
	return out
}

// inside gives a copy in which change was applied to a member: to an object, or to each
// object of a list.
func inside(o Object, name string, change func(Object) Object) Object {
	v, has := o[name]
	if !has {
		return o
	}
	out := maps.Clone(o)
	switch v := v.(type) {
	case Object:
		out[name] = change(v)
	case []any:
		out[name] = each(v, change)
	}
	return out
}

func each(list []any, change func(Object) Object) []any {
	out := make([]any, len(list))
	for i, v := range list {
		if o, ok := v.(Object); ok {
			out[i] = change(o)
		} else {
			out[i] = v
		}
	}
	return out
}

func text(v any) string {
	s, _ := v.(string) // another type is no text
	return s
}

const (
	statePrefix = "TASK_STATE_"
	unspecified = statePrefix + "UNSPECIFIED"
	rolePrefix  = "ROLE_"
)

// stateUp and stateDown write the states of tasks.
func stateUp(v any) any {
	s, ok := v.(string)
	switch {
	case !ok || strings.HasPrefix(s, statePrefix):
		return v
	case s == "unknown":
		return unspecified
	}
	return statePrefix + strings.ToUpper(strings.ReplaceAll(s, "-", "_"))
}

func stateDown(v any) any {
	s, ok := v.(string)
	switch {
	case !ok || !strings.HasPrefix(s, statePrefix):
		return v
	case s == unspecified:
		return "unknown"
	}
	return strings.ToLower(strings.ReplaceAll(s[len(statePrefix):], "_", "-"))
}

func roleUp(v any) any {
	if s, ok := v.(string); ok && !strings.HasPrefix(s, rolePrefix) {
		return rolePrefix + strings.ToUpper(s)
	}
	return v
}

func roleDown(v any) any {
	if s, ok := v.(string); ok && strings.HasPrefix(s, rolePrefix) {
		return strings.ToLower(s[len(rolePrefix):])
	}
	return v
}

// Final tells whether a stream ends with a task state of 1.0: the task is over, or waits
// for the client.
func Final(state string) bool {
	switch strings.TrimPrefix(text(stateUp(state)), statePrefix) {
	case "COMPLETED", "FAILED", "CANCELED", "REJECTED", "INPUT_REQUIRED", "AUTH_REQUIRED":
		return true
	}
	return false
}
