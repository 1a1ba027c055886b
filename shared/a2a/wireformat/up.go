package wireformat

import (
	"maps"
	"strings"
)

// either gives the first of the members that is present.
func either(o Object, names ...string) (any, bool) {
	for _, n := range names {
		if v, has := o[n]; has {
			return v, true
		}
	}
	return nil, false
}

// without gives a copy that lacks members.
func without(o Object, names ...string) Object {
	out := maps.Clone(o)
	for _, n := range names {
		delete(out, n)
	}
	return out
}

func partUp(p Object) Object {
	out := without(p, "kind", "type", "file")
	if f, ok := p["file"].(Object); ok {
		for _, m := range [...]struct{ to, from, other string }{{"url", "uri", "fileWithUri"}, {"raw", "bytes", "fileWithBytes"}, {"mediaType", "mimeType", ""}, {"filename", "name", ""}} {
			if v, has := either(f, m.from, m.other); has {
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
	out := without(m, "kind", "content")
	if parts, has := either(m, "parts", "content"); has {
		out["parts"] = parts
	}
	if role, has := m["role"]; has {
		out["role"] = roleUp(role)
	}
	return inside(out, "parts", partUp)
}

func statusUp(s Object) Object {
	out := without(s, "update")
	if m, has := either(s, "message", "update"); has {
		out["message"] = m
	}
	if state, has := s["state"]; has {
		out["state"] = stateUp(state)
	}
	return inside(out, "message", messageUp)
}

func artifactUp(a Object) Object { return inside(a, "parts", partUp) }

func taskUp(t Object) Object {
	out := without(t, "kind")
	return inside(inside(inside(out, "status", statusUp), "artifacts", artifactUp), "history", messageUp)
}

func statusEventUp(e Object) Object {
	return inside(without(e, "kind", "final"), "status", statusUp)
}

func artifactEventUp(e Object) Object { return inside(without(e, "kind"), "artifact", artifactUp) }

// eventUp puts an event into the member that is named after its kind.
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
	out := without(e, "msg")
	if m, has := either(e, "message", "msg"); has {
		out["message"] = m
	}
	out = inside(inside(out, "task", taskUp), "message", messageUp)
	return inside(inside(out, "statusUpdate", statusEventUp), "artifactUpdate", artifactEventUp)
}

func sendUp(p Object) Object {
	out := without(p, "request")
	if m, has := either(p, "message", "request"); has {
		out["message"] = m
	}
	return inside(inside(out, "message", messageUp), "configuration", configurationUp)
}

func configurationUp(c Object) Object {
	out := without(c, "blocking", "pushNotificationConfig", "pushNotification")
	if blocking, ok := c["blocking"].(bool); ok {
		out["returnImmediately"] = !blocking
	}
	if push, has := either(c, "pushNotificationConfig", "pushNotification"); has {
		out["taskPushNotificationConfig"] = push
	}
	return inside(out, "taskPushNotificationConfig", addressUp)
}

// addressUp converts the address to push to.
func addressUp(c Object) Object {
	return inside(c, "authentication", func(a Object) Object {
		out := without(a, "schemes")
		if list, ok := a["schemes"].([]any); ok && len(list) > 0 {
			out["scheme"] = list[0]
		}
		return out
	})
}

// pushUp converts a task's push config. In 1.0 the task stands beside the address; in 0.3
// the address is inside a member of its own. The form of HTTP+JSON names task and config by
// a path.
func pushUp(p Object) Object {
	if made, ok := p["config"].(Object); ok {
		p = made
	}
	out := without(p, "pushNotificationConfig", "name")
	if c, ok := p["pushNotificationConfig"].(Object); ok {
		for name, v := range addressUp(c) {
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
