package reference

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/wire"
)

// Item is an item of a response's input, or of a conversation, that has an id.
type Item struct {
	Field string // path of the item, such as input[0]
	ID    string
	// Reference is set if the item has no payload, so that the provider looks it up by
	// its id.
	Reference bool
	id        wire.Span
}

// payload lists the fields that make an item of one type self-contained. A field with a
// name ending in "+" must not be empty.
type payload struct {
	all []string // required fields
	any []string // and one of these
}

// payloads are the types of items of the Responses API. Other types have a payload if they have
// any field that bookkeeping does not list.
var payloads = map[string]payload{
	"":                        {all: []string{"content"}},
	"message":                 {all: []string{"role", "content"}},
	"item_reference":          {any: []string{}},
	"reasoning":               {any: []string{"encrypted_content+", "content+"}}, // a summary is not what the model thought
	"compaction":              {all: []string{"encrypted_content+"}},
	"compaction_trigger":      {any: []string{}},
	"configuration_update":    {any: []string{"reasoning", "text"}},
	"additional_tools":        {all: []string{"tools"}},
	"function_call":           {all: []string{"name", "arguments"}},
	"function_call_output":    {all: []string{"output"}, any: []string{"call_id", "name"}},
	"custom_tool_call":        {all: []string{"call_id", "name", "input"}},
	"custom_tool_call_output": {all: []string{"call_id", "output"}},
	"file_search_call":        {all: []string{"queries"}},
	"web_search_call":         {all: []string{"action"}},
	"tool_search_call":        {all: []string{"arguments"}},
	"tool_search_output":      {all: []string{"tools"}},
	"computer_call":           {all: []string{"call_id"}, any: []string{"action", "actions"}},
	"computer_call_output":    {all: []string{"call_id", "output"}},
	"image_generation_call":   {all: []string{"result+"}},
	"code_interpreter_call":   {all: []string{"code"}},
	"local_shell_call":        {all: []string{"call_id", "action"}},
	"local_shell_call_output": {all: []string{"output"}},
	"shell_call":              {all: []string{"call_id", "action"}},
	"shell_call_output":       {all: []string{"call_id", "output"}},
	"apply_patch_call":        {all: []string{"call_id", "operation"}},
	"apply_patch_call_output": {all: []string{"call_id", "status"}},
	"mcp_list_tools":          {all: []string{"server_label", "tools"}},
	"mcp_call":                {all: []string{"server_label", "name", "arguments"}},
	"mcp_approval_request":    {all: []string{"server_label", "name", "arguments"}},
	"mcp_approval_response":   {all: []string{"approval_request_id", "approve"}},
	"program":                 {all: []string{"call_id", "code"}},
	"program_output":          {all: []string{"call_id", "result"}},
}

// bookkeeping are fields of items that carry nothing for the model.
var bookkeeping = []string{"id", "type", "status", "object", "created_at", "created_by", "phase"}

// carried reports whether an item with these non-null fields says everything itself; filled are
// those that are not empty. An item with two types is read as either.
func carried(types, fields, filled []string) bool {
	if len(types) == 0 {
		types = []string{""}
	}
	has := func(name string) bool {
		if plain, ok := strings.CutSuffix(name, "+"); ok {
			return slices.Contains(filled, plain)
		}
		return slices.Contains(fields, name)
	}
	for _, kind := range types {
		p, known := payloads[kind]
		switch {
		case !known && !slices.ContainsFunc(fields, func(f string) bool { return !slices.Contains(bookkeeping, f) }),
			slices.ContainsFunc(p.all, func(f string) bool { return !has(f) }),
			p.any != nil && !slices.ContainsFunc(p.any, has):
			return false
		}
	}
	return true
}

// Items returns the items with ids in the body of a response, or of a conversation. What
// precedes an error in a body that is not JSON counts.
func Items(body []byte) (items []Item) {
	eachItem(body, func(it *scanned) {
		reference := !carried(it.types, it.fields, it.filled)
		for _, id := range it.ids {
			items = append(items, Item{Field: it.at, ID: id.text, Reference: reference, id: id.at})
		}
	})
	return items
}

// FindStored returns the path of the first item with content that is not in the body, and that known
// does not have: the provider looks it up, or it represents a compacted conversation. It returns ""
// if there is none.
func FindStored(body []byte, known func(id string) bool) (field string) {
	if !bytes.Contains(body, []byte(`"id"`)) && !bytes.Contains(body, []byte("compact")) && !bytes.Contains(body, []byte(`\u00`)) && !bytes.Contains(body, []byte(`"ID"`)) {
		return ""
	}
	eachItem(body, func(it *scanned) {
		switch compacted := slices.Contains(it.types, "compaction"); {
		case field != "":
		case compacted, len(it.ids) > 0 && !carried(it.types, it.fields, it.filled) && (len(it.ids) > 1 || !known(it.ids[0].text)):
			field = it.at
		}
	})
	return field
}

// ItemsInRow is Items for a row of a batch, which contains the body of a request.
func ItemsInRow(line []byte) []Item {
	var row struct {
		Body json.RawMessage `json:"body"`
	}
	if json.Unmarshal(line, &row) != nil {
		return nil
	}
	return Items(row.Body)
}

// scanned is the relevant content of one item.
type scanned struct {
	at        string
	types     []string
	fields    []string // not null, in lower case
	filled    []string // neither null nor empty
	ids       []spelled
	approvals []spelled // ids of requests for approval
}

// spelled is a text and its place in the body.
type spelled struct {
	text string
	at   wire.Span
}

// eachItem reads the items of a body. Names of fields are compared without case, as some
// servers do.
func eachItem(body []byte, visit func(*scanned)) {
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return
	}
	for key := range d.Object {
		name := strings.ToLower(string(key))
		if name != "input" && name != "items" || d.Kind() != wire.KindArray {
			continue
		}
		for i := range d.Array {
			if d.Kind() != wire.KindObject {
				continue
			}
			it := scanned{at: name + "[" + strconv.Itoa(i) + "]"}
			it.read(d)
			visit(&it)
		}
	}
}

func (it *scanned) read(d *wire.Decoder) {
	for key := range d.Object {
		name := strings.ToLower(string(key))
		raw := d.Raw()
		if len(raw) == 0 || wire.IsNull(raw) {
			continue
		}
		it.fields = append(it.fields, name)
		if wire.KindOf(raw) != wire.KindString {
			if len(raw) > 2 {
				it.filled = append(it.filled, name)
			}
			continue
		}
		text, err := wire.ScanString(raw, name)
		if err != nil {
			continue
		}
		if text != "" {
			it.filled = append(it.filled, name)
		}
		switch at := (wire.Span{Start: d.Offset() - len(raw), End: d.Offset()}); name {
		case "type":
			it.types = append(it.types, text)
		case "id":
			if text != "" {
				it.ids = append(it.ids, spelled{text, at})
			}
		case "approval_request_id":
			it.approvals = append(it.approvals, spelled{text, at})
		}
	}
	if len(it.types) == 1 && it.types[0] == "local_shell_call_output" { // its id may be that of the call
		it.ids = slices.DeleteFunc(it.ids, func(s spelled) bool { return strings.HasPrefix(s.text, "call_") })
	}
}

// ReplaceForeign returns the body with other ids in place of the foreign ones of its items. A
// foreign id cannot be omitted, since many types of items require one; the new id begins
// like the old one and is that of no object. Ids of requests for approval are replaced in
// the items that approve them as well.
func ReplaceForeign(body []byte, foreign map[string]bool) []byte {
	if len(foreign) == 0 {
		return body
	}
	var edits []wire.Edit
	eachItem(body, func(it *scanned) {
		for _, s := range slices.Concat(it.ids, it.approvals) {
			if foreign[s.text] {
				edits = append(edits, wire.Replace(s.at, wire.AppendJSONString(nil, disowned(s.text))))
			}
		}
	})
	if len(edits) == 0 {
		return body
	}
	return wire.Splice(nil, body, edits...)
}

// disowned returns the replacement of a foreign id: the same at every turn, for the
// provider's prompt cache.
func disowned(id string) string {
	prefix, _, ok := strings.Cut(id, "_")
	if !ok || len(prefix) > 16 {
		prefix = "item"
	}
	sum := sha256.Sum256([]byte(id))
	return prefix + "_" + hex.EncodeToString(sum[:24])
}

// CreatedItems returns the ids of the items that a response of responses or conversations has, or
// one event of its stream.
func CreatedItems(answer []byte) (ids []string) {
	d := wire.NewDecoder(answer)
	if d.Kind() != wire.KindObject {
		return nil
	}
	for key := range d.Object {
		switch name := string(key); {
		case (name == "output" || name == "data") && d.Kind() == wire.KindArray:
			for range d.Array {
				ids = appendID(d, ids)
			}
		case name == "item":
			ids = appendID(d, ids)
		case name == "response" && d.Kind() == wire.KindObject:
			ids = append(ids, CreatedItems(d.Raw())...)
		}
	}
	return ids
}

// appendID appends the id of an object that is an item.
func appendID(d *wire.Decoder, ids []string) []string {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return ids
	}
	for key := range d.Object {
		if string(key) == "id" && d.Kind() == wire.KindString {
			if id := d.Str(); id != "" {
				ids = append(ids, id)
			}
		}
	}
	return ids
}
