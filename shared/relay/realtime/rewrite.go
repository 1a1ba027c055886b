package realtime

import (
	"encoding/json"
	"reflect"
)

// changed reads the texts of a response as guardrails changed them; nil if the change cannot be
// sent, because audio and tool calls cannot be changed.
func (r *response) changed(body []byte) []string {
	var in shownResponse
	var m shownMessage
	if json.Unmarshal(body, &in) != nil || len(in.Output) != len(r.calls)+1 || json.Unmarshal(in.Output[0], &m) != nil || len(m.Content) != len(r.parts) {
		return nil
	}
	for i, call := range r.calls {
		if !same(call, in.Output[i+1]) {
			return nil
		}
	}
	out := make([]string, len(r.parts))
	for i, p := range r.parts {
		if out[i] = m.Content[i].Text; p.sound && out[i] != p.text.String() {
			return nil
		}
	}
	return out
}

func same(a, b []byte) bool {
	var x, y any
	return json.Unmarshal(a, &x) == nil && json.Unmarshal(b, &y) == nil && reflect.DeepEqual(x, y)
}

// rewritten returns the events of a response with other texts. The first delta of a text carries
// all of the new text, and each occurrence of the complete old text is replaced.
func (r *response) rewritten(now []string, done []byte) (events [][]byte, end []byte) {
	whole := map[string]string{}
	for i, p := range r.parts {
		if old := p.text.String(); old != now[i] {
			whole[old] = now[i]
		}
	}
	sent := make([]bool, len(r.parts))
	for _, raw := range r.held {
		var e struct {
			Type string `json:"type"`
			piece
		}
		if json.Unmarshal(raw, &e) != nil {
			continue // it cannot be judged
		}
		if _, text := kinds[e.Type]; !text {
			events = append(events, replaced(raw, whole))
			continue
		}
		for i, p := range r.parts {
			if p.item != e.ItemID || p.index != e.Index || p.kind != "" {
				continue
			}
			if p.text.String() == now[i] {
				events = append(events, raw)
			} else if !sent[i] {
				sent[i] = true
				events = append(events, change(raw, map[string]any{"delta": now[i]}))
			}
		}
	}
	return events, replaced(done, whole)
}

// replaced returns an event with texts replaced.
func replaced(raw []byte, whole map[string]string) []byte {
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return []byte("{}")
	}
	out, err := json.Marshal(swap(v, whole))
	if err != nil {
		return []byte("{}")
	}
	return out
}

func swap(v any, whole map[string]string) any {
	switch v := v.(type) {
	case string:
		if now, ok := whole[v]; ok {
			return now
		}
	case []any:
		for i := range v {
			v[i] = swap(v[i], whole)
		}
	case map[string]any:
		for k := range v {
			v[k] = swap(v[k], whole)
		}
	}
	return v
}
