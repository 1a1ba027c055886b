package wireformat

// writer writes 0.3; it is true for the form of HTTP+JSON.
type writer bool

func (w writer) part(p Object) Object {
	out := without(p, "url", "raw", "mediaType", "filename")
	if v, has := p["data"]; has {
		structure, ok := v.(Object)
		if !ok {
			structure = Object{"value": v}
		}
		if out["data"] = structure; w {
			out["data"] = Object{"data": structure}
		} else {
			out["kind"] = "data"
		}
		return out
	}
	url, isURL := p["url"]
	raw, isRaw := p["raw"]
	if !isURL && !isRaw {
		if !w {
			out["kind"] = "text"
		}
		return out
	}
	file := Object{}
	for _, m := range [...]struct {
		has     bool
		v       any
		to, alt string
	}{{isURL, url, "uri", "fileWithUri"}, {isRaw, raw, "bytes", "fileWithBytes"}, {p["mediaType"] != nil, p["mediaType"], "mimeType", "mimeType"}, {p["filename"] != nil, p["filename"], "name", "name"}} {
		if !m.has {
			continue
		}
		if w {
			file[m.alt] = m.v
		} else {
			file[m.to] = m.v
		}
	}
	if out["file"] = file; !w {
		out["kind"] = "file"
	}
	return out
}

// kinded adds the kind of a value, in the form that has such a member.
func (w writer) kinded(o Object, kind string) Object {
	if !w {
		o["kind"] = kind
	}
	return o
}

func (w writer) message(m Object) Object {
	out := inside(without(m), "parts", w.part)
	if w {
		if parts, has := out["parts"]; has {
			delete(out, "parts")
			out["content"] = parts
		}
		return out
	}
	if role, has := m["role"]; has {
		out["role"] = roleDown(role)
	}
	return w.kinded(out, "message")
}

func (w writer) status(s Object) Object {
	out := inside(without(s), "message", w.message)
	if state, has := s["state"]; has && !bool(w) {
		out["state"] = stateDown(state)
	}
	return out
}

func (w writer) artifact(a Object) Object { return inside(a, "parts", w.part) }

func (w writer) task(t Object) Object {
	out := inside(inside(inside(without(t), "status", w.status), "artifacts", w.artifact), "history", w.message)
	return w.kinded(out, "task")
}

func (w writer) statusEvent(e Object) Object {
	out := inside(without(e), "status", w.status)
	status, _ := e["status"].(Object)
	out["final"] = Final(text(status["state"]))
	return w.kinded(out, "status-update")
}

func (w writer) artifactEvent(e Object) Object {
	return w.kinded(inside(without(e), "artifact", w.artifact), "artifact-update")
}

// event takes the content of an answer or an event out of the member that is named after
// its kind.
func (w writer) event(e Object) Object {
	for _, m := range [...]struct {
		name, to string
		write    func(Object) Object
	}{{"task", "task", w.task}, {"message", "msg", w.message}, {"statusUpdate", "statusUpdate", w.statusEvent}, {"artifactUpdate", "artifactUpdate", w.artifactEvent}} {
		if o, ok := e[m.name].(Object); ok {
			if w {
				return Object{m.to: m.write(o)}
			}
			return m.write(o)
		}
	}
	return e
}

func (w writer) send(p Object) Object {
	out := inside(inside(without(p, "tenant"), "message", w.message), "configuration", w.configuration)
	if m, has := out["message"]; has && bool(w) {
		delete(out, "message")
		out["request"] = m
	}
	return out
}

func (w writer) configuration(c Object) Object {
	out := without(c, "returnImmediately", "taskPushNotificationConfig")
	at, _ := c["returnImmediately"].(bool)
	out["blocking"] = !at
	if push, ok := c["taskPushNotificationConfig"].(Object); ok {
		name := "pushNotificationConfig"
		if w {
			name = "pushNotification"
		}
		out[name] = address(without(push, "taskId", "tenant"))
	}
	return out
}

func address(c Object) Object {
	return inside(c, "authentication", func(a Object) Object {
		out := without(a, "scheme")
		if s, has := a["scheme"]; has {
			out["schemes"] = []any{s}
		}
		return out
	})
}

func (w writer) push(p Object) Object {
	task := p["taskId"]
	config := address(without(p, "taskId", "tenant"))
	if w {
		return Object{"name": "tasks/" + text(task) + "/pushNotificationConfigs/" + text(p["id"]), "pushNotificationConfig": config}
	}
	return Object{"taskId": task, "pushNotificationConfig": config}
}
