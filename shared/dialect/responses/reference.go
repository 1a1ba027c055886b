package responses

import (
	"strings"

	"gateway/shared/chat"
	"gateway/shared/wire"
)

// A client that lets responses be stored, as is the default, names the items of an earlier response
// in place of sending them. A translated response is stored by the gateway under the part of its id
// that the ids of its items repeat, see envelope.itemID.

var _ chat.Referring = Responses{}

// Output implements chat.Referring.
func (Responses) Output(response []byte) (id string, items []byte) {
	d := wire.NewDecoder(response)
	if d.Kind() != wire.KindObject {
		return "", nil
	}
	for key := range d.Object {
		switch string(key) {
		case "id":
			id = strings.TrimPrefix(optString(d), "resp_")
		case "output":
			if d.Kind() == wire.KindArray {
				items = d.Raw()
			}
		}
	}
	if d.End() != nil || len(items) <= len("[]") {
		return "", nil
	}
	return id, items
}

// responseOf returns the id of the response that an item is of; "" if the gateway did not make it.
func responseOf(item string) string {
	_, rest, _ := strings.Cut(item, "_")
	n := strings.LastIndexByte(rest, '_')
	if n < 0 {
		return ""
	}
	return rest[:n]
}

// Resolve implements chat.Referring. References to items that are not found stay.
func (Responses) Resolve(r *chat.Request, find func(id string) ([]byte, error)) error {
	outputs := map[string][]byte{}
	for i := range r.Messages {
		m := &r.Messages[i]
		if !hasReference(m) {
			continue
		}
		var parts []chat.Part
		for j := range m.Parts {
			p := &m.Parts[j]
			id := referenced(p)
			of := responseOf(id)
			if of == "" {
				parts = append(parts, *p)
				continue
			}
			items, known := outputs[of]
			if !known {
				var err error
				if items, err = find(of); err != nil {
					return err
				}
				outputs[of] = items
			}
			found, ok := itemParts(items, id, p.At)
			if !ok {
				found = []chat.Part{*p}
			}
			parts = append(parts, found...)
		}
		m.Parts, m.Plain = parts, false
	}
	return nil
}

func hasReference(m *chat.Message) bool {
	for i := range m.Parts {
		if referenced(&m.Parts[i]) != "" {
			return true
		}
	}
	return false
}

// referenced returns the id of the item that a part names, "" if it is no reference.
func referenced(p *chat.Part) (id string) {
	if p.Kind != chat.Foreign || p.Type != "item_reference" {
		return ""
	}
	d := wire.NewDecoder(p.Raw)
	for key := range d.Object {
		if string(key) == "id" {
			id = optString(d)
		}
	}
	return id
}

// itemParts returns the parts of the item with an id in a list of items. at is where the client
// named it.
func itemParts(items []byte, id string, at int) (parts []chat.Part, ok bool) {
	d := wire.NewDecoder(items)
	if d.Kind() != wire.KindArray {
		return nil, false
	}
	for range d.Array {
		q := requestDecoder{d: wire.NewDecoder(d.Raw()), r: new(chat.Request)}
		it := item{q: &q}
		if q.d.Kind() != wire.KindObject {
			continue
		}
		if it.read(); it.id != id || q.d.End() != nil {
			continue
		}
		l := itemList{q: &q, turn: -1}
		if l.add(&it); len(q.r.Messages) == 1 {
			parts = q.r.Messages[0].Parts
		}
		for i := range parts {
			parts[i].At = at
		}
		return parts, true
	}
	return nil, false
}
