package responses

import (
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
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

// maxReference is the length of an item in bytes up to which it may be a reference.
const maxReference = 1024

// maxInlined limits a body in which references were replaced.
const maxInlined = 20 << 20

// Inline implements chat.Referring.
func (Responses) Inline(body []byte, native bool, find func(id string) ([]byte, error)) ([]byte, error) {
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return nil, nil
	}
	var input []byte
	var at wire.Span
	for key := range d.Object {
		if string(key) == "input" && d.Kind() == wire.KindArray {
			input = d.Raw()
			at = wire.Span{Start: d.Offset() - len(input), End: d.Offset()}
		}
	}
	list, err := inlined(input, native, len(body), find)
	if list == nil || err != nil {
		return nil, err
	}
	return wire.Splice(nil, body, wire.Replace(at, list)), nil
}

// inlined returns a list of items with the items that it names in place of references; nil if there
// are none. References to items that are not found stay.
func inlined(input []byte, native bool, length int, find func(id string) ([]byte, error)) (list []byte, err error) {
	d := wire.NewDecoder(input)
	if len(input) == 0 {
		return nil, nil
	}
	outputs := map[string][]byte{}
	list, found := []byte{'['}, false
	for range d.Array {
		raw := d.Raw()
		if id := referenced(raw); id != "" {
			of := responseOf(id)
			items, known := outputs[of]
			if of != "" && !known {
				if items, err = find(of); err != nil {
					return nil, err
				}
				outputs[of] = items
			}
			if item, kind := itemOf(items, id); item != nil {
				found = true
				if native && kind == "reasoning" {
					continue // the provider has no such item, and does not read what another has signed
				}
				raw = item
			}
		}
		if len(list) > 1 {
			list = append(list, ',')
		}
		if list = append(list, raw...); len(list)+length > maxInlined {
			return nil, fault.Newf(fault.BodyTooLarge, "input", "input refers to items of more than %d MiB together; send those that the model needs", maxInlined>>20)
		}
	}
	if !found || d.Err() != nil {
		return nil, nil
	}
	return append(list, ']'), nil
}

// referenced returns the id of the item that an item names, "" if it is no reference.
func referenced(raw []byte) string {
	if len(raw) > maxReference || wire.KindOf(raw) != wire.KindObject {
		return ""
	}
	id, kind, own := "", "", false
	d := wire.NewDecoder(raw)
	for key := range d.Object {
		switch string(key) {
		case "id":
			id = optString(d)
		case "type":
			kind = optString(d)
		case "role", "content":
			own = true
		}
	}
	if d.End() != nil || kind != "item_reference" && (kind != "" || own) {
		return ""
	}
	return id
}

// itemOf returns the item with an id in a list of items, and its type; nil if there is none.
func itemOf(items []byte, id string) (raw []byte, kind string) {
	d := wire.NewDecoder(items)
	if len(items) == 0 || d.Kind() != wire.KindArray {
		return nil, ""
	}
	for range d.Array {
		raw = d.Raw()
		if wire.KindOf(raw) != wire.KindObject {
			continue
		}
		its, kind := "", ""
		of := wire.NewDecoder(raw)
		for key := range of.Object {
			switch string(key) {
			case "id":
				its = optString(of)
			case "type":
				kind = optString(of)
			}
		}
		if its == id && of.End() == nil {
			return raw, kind
		}
	}
	return nil, ""
}
