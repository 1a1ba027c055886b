package wireformat

import (
	"maps"
	"strings"
)

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
