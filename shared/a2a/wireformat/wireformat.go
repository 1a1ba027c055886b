// Package wireformat converts values of the Agent2Agent protocol between the formats of 1.0, of
// 0.3 in JSON-RPC and of 0.3 in HTTP+JSON. Every conversion goes through the format of 1.0.
// Unknown fields are preserved.
//
//	0.3 JSON-RPC   {"kind":"message","role":"user","parts":[{"kind":"text","text":""}]}
//	0.3 HTTP+JSON  {"role":"ROLE_USER","content":[{"text":""}]}
//	1.0            {"role":"ROLE_USER","parts":[{"text":""}]}
package wireformat

import (
	"bytes"
	"encoding/json"
	"maps"
	"strings"
)

// Format is the format of values.
type Format uint8

const (
	V1      Format = iota + 1 // 1.0, in both bindings
	Old                       // 0.3 in JSON-RPC
	OldREST                   // 0.3 in HTTP+JSON
)

// Object is a JSON object.
type Object = map[string]any

// Kind is the type of a value.
type Kind uint8

const (
	Opaque     Kind = iota // not converted
	Send                   // params with a message
	PushSet                // params that create a push notification config
	PushRef                // params that name a push notification config
	PushList               // params that name the push notification configs of a task
	Event                  // result of a message, or an event of a stream
	Task                   // a task
	Tasks                  // a page of tasks
	PushConfig             // a push notification config of a task
	Pushes                 // a list of push notification configs
)

// Read decodes JSON and preserves the text of numbers.
func Read(raw []byte) (any, error) {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var v any
	err := d.Decode(&v)
	return v, err
}

// Convert converts a value from one format to another.
func Convert(from, to Format, kind Kind, v any) any {
	if from == to || kind == Opaque {
		return v
	}
	if from != V1 {
		v = toV1(kind, v)
	}
	if to != V1 {
		v = fromV1(to, kind, v)
	}
	return v
}

// toV1 converts either format of 0.3 to 1.0.
func toV1(kind Kind, v any) any {
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
		return mapField(o, "tasks", taskUp)
	case Pushes:
		return mapField(o, "configs", pushUp)
	}
	return v
}

// fromV1 converts 1.0 to a format of 0.3.
func fromV1(to Format, kind Kind, v any) any {
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
		return mapField(o, "tasks", w.task)
	case Pushes:
		o = mapField(o, "configs", w.push)
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

// rename returns a copy with renamed fields. pairs are old and new names.
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

// mapField returns a copy in which change was applied to a field: to an object, or to each
// object of a list.
func mapField(o Object, name string, change func(Object) Object) Object {
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
	s, _ := v.(string) // an unexpected type counts as empty
	return s
}

const (
	statePrefix = "TASK_STATE_"
	unspecified = statePrefix + "UNSPECIFIED"
	rolePrefix  = "ROLE_"
)

// stateUp and stateDown convert task states.
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

// Final reports whether a 1.0 task state ends a stream: the task has ended or waits for the
// client.
func Final(state string) bool {
	switch strings.TrimPrefix(text(stateUp(state)), statePrefix) {
	case "COMPLETED", "FAILED", "CANCELED", "REJECTED", "INPUT_REQUIRED", "AUTH_REQUIRED":
		return true
	}
	return false
}

// firstField returns the first field that is present.
func firstField(o Object, names ...string) (any, bool) {
	for _, n := range names {
		if v, has := o[n]; has {
			return v, true
		}
	}
	return nil, false
}

// withoutFields returns a copy without the fields.
func withoutFields(o Object, names ...string) Object {
	out := maps.Clone(o)
	for _, n := range names {
		delete(out, n)
	}
	return out
}

func partUp(p Object) Object {
	out := withoutFields(p, "kind", "type", "file")
	if f, ok := p["file"].(Object); ok {
		for _, m := range [...]struct{ to, from, other string }{{"url", "uri", "fileWithUri"}, {"raw", "bytes", "fileWithBytes"}, {"mediaType", "mimeType", ""}, {"filename", "name", ""}} {
			if v, has := firstField(f, m.from, m.other); has {
				out[m.to] = v
			}
		}
	}
	if d, ok := p["data"].(Object); ok && p["kind"] == nil && len(d) == 1 && d["data"] != nil {
		out["data"] = d["data"]
	}
	return out
}

func messageUp(m Object) Object {
	out := withoutFields(m, "kind", "content")
	if parts, has := firstField(m, "parts", "content"); has {
		out["parts"] = parts
	}
	if role, has := m["role"]; has {
		out["role"] = roleUp(role)
	}
	return mapField(out, "parts", partUp)
}

func statusUp(s Object) Object {
	out := withoutFields(s, "update")
	if m, has := firstField(s, "message", "update"); has {
		out["message"] = m
	}
	if state, has := s["state"]; has {
		out["state"] = stateUp(state)
	}
	return mapField(out, "message", messageUp)
}

func artifactUp(a Object) Object { return mapField(a, "parts", partUp) }

func taskUp(t Object) Object {
	out := withoutFields(t, "kind")
	return mapField(mapField(mapField(out, "status", statusUp), "artifacts", artifactUp), "history", messageUp)
}

func statusEventUp(e Object) Object {
	return mapField(withoutFields(e, "kind", "final"), "status", statusUp)
}

func artifactEventUp(e Object) Object {
	return mapField(withoutFields(e, "kind"), "artifact", artifactUp)
}

// eventUp wraps an event in the field that is named after its kind.
func eventUp(e Object) Object {
	switch text(e["kind"]) {
	case "task":
		return Object{"task": taskUp(e)}
	case "message":
		return Object{"message": messageUp(e)}
	case "status-update":
		return Object{"statusUpdate": statusEventUp(e)}
	case "artifact-update":
		return Object{"artifactUpdate": artifactEventUp(e)}
	}
	out := withoutFields(e, "msg")
	if m, has := firstField(e, "message", "msg"); has {
		out["message"] = m
	}
	out = mapField(mapField(out, "task", taskUp), "message", messageUp)
	return mapField(mapField(out, "statusUpdate", statusEventUp), "artifactUpdate", artifactEventUp)
}

func sendUp(p Object) Object {
	out := withoutFields(p, "request")
	if m, has := firstField(p, "message", "request"); has {
		out["message"] = m
	}
	return mapField(mapField(out, "message", messageUp), "configuration", configurationUp)
}

func configurationUp(c Object) Object {
	out := withoutFields(c, "blocking", "pushNotificationConfig", "pushNotification")
	if blocking, ok := c["blocking"].(bool); ok {
		out["returnImmediately"] = !blocking
	}
	if push, has := firstField(c, "pushNotificationConfig", "pushNotification"); has {
		out["taskPushNotificationConfig"] = push
	}
	return mapField(out, "taskPushNotificationConfig", pushAddressUp)
}

// pushAddressUp converts a push notification address.
func pushAddressUp(c Object) Object {
	return mapField(c, "authentication", func(a Object) Object {
		out := withoutFields(a, "schemes")
		if list, ok := a["schemes"].([]any); ok && len(list) > 0 {
			out["scheme"] = list[0]
		}
		return out
	})
}

// pushUp converts a task's push notification config. In 1.0 the task id is beside the address;
// in 0.3 the address is in a separate field. HTTP+JSON names task and config by a path.
func pushUp(p Object) Object {
	if made, ok := p["config"].(Object); ok {
		p = made
	}
	out := withoutFields(p, "pushNotificationConfig", "name")
	if c, ok := p["pushNotificationConfig"].(Object); ok {
		for name, v := range pushAddressUp(c) {
			out[name] = v
		}
	}
	if task, id, ok := strings.Cut(strings.TrimPrefix(text(p["name"]), "tasks/"), "/pushNotificationConfigs/"); ok {
		out["taskId"] = task
		if out["id"] == nil && id != "" {
			out["id"] = id
		}
	}
	return out
}
