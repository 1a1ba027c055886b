package wireformat

// writer converts values from 1.0 to 0.3; true selects the format of HTTP+JSON.
type writer bool

func (w writer) part(p Object) Object {
	out := withoutFields(p, "url", "raw", "mediaType", "filename")
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

// withKind adds the kind field in the format that has it.
func (w writer) withKind(o Object, kind string) Object {
	if !w {
		o["kind"] = kind
	}
	return o
}

func (w writer) message(m Object) Object {
	out := mapField(withoutFields(m), "parts", w.part)
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
	return w.withKind(out, "message")
}

func (w writer) status(s Object) Object {
	out := mapField(withoutFields(s), "message", w.message)
	if state, has := s["state"]; has && !bool(w) {
		out["state"] = stateDown(state)
	}
	return out
}

func (w writer) artifact(a Object) Object { return mapField(a, "parts", w.part) }

func (w writer) task(t Object) Object {
	out := mapField(mapField(mapField(withoutFields(t), "status", w.status), "artifacts", w.artifact), "history", w.message)
	return w.withKind(out, "task")
}

func (w writer) statusEvent(e Object) Object {
	out := mapField(withoutFields(e), "status", w.status)
	status, _ := e["status"].(Object)
	out["final"] = Final(text(status["state"]))
	return w.withKind(out, "status-update")
}

func (w writer) artifactEvent(e Object) Object {
	return w.withKind(mapField(withoutFields(e), "artifact", w.artifact), "artifact-update")
}

// event unwraps a result or event from the field that is named after its kind.
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
	out := mapField(mapField(withoutFields(p, "tenant"), "message", w.message), "configuration", w.configuration)
	if m, has := out["message"]; has && bool(w) {
		delete(out, "message")
		out["request"] = m
	}
	return out
}

func (w writer) configuration(c Object) Object {
	out := withoutFields(c, "returnImmediately", "taskPushNotificationConfig")
	at, _ := c["returnImmediately"].(bool)
	out["blocking"] = !at
	if push, ok := c["taskPushNotificationConfig"].(Object); ok {
		name := "pushNotificationConfig"
		if w {
			name = "pushNotification"
		}
		out[name] = address(withoutFields(push, "taskId", "tenant"))
	}
	return out
}

func address(c Object) Object {
	return mapField(c, "authentication", func(a Object) Object {
		out := withoutFields(a, "scheme")
		if s, has := a["scheme"]; has {
			out["schemes"] = []any{s}
		}
		return out
	})
}

func (w writer) push(p Object) Object {
	task := p["taskId"]
	config := address(withoutFields(p, "taskId", "tenant"))
	if w {
		return Object{"name": "tasks/" + text(task) + "/pushNotificationConfigs/" + text(p["id"]), "pushNotificationConfig": config}
	}
	return Object{"taskId": task, "pushNotificationConfig": config}
}
