package reference

import (
	"bytes"
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"unicode/utf8"

	"gateway/shared/fault"
)

// Value is a secret as its manager gave it. It is shared and never changed.
type Value struct {
	text string
	// object says that the manager stores members, not a text.
	object  bool
	members map[string]json.RawMessage // members of the text, if it is a JSON object
}

// Formats in which a secret is read.
const (
	FormatString = "string"
	FormatJSON   = "json"
)

// newValue makes a Value from a text.
func newValue(text string) (*Value, error) {
	if !utf8.ValidString(text) {
		return nil, refused("is not a text in UTF-8")
	}
	v := &Value{text: text}
	if err := json.Unmarshal([]byte(text), &v.members); err != nil {
		v.members = nil
	}
	return v, nil
}

// newObject makes a Value from members.
func newObject(members map[string]json.RawMessage) (*Value, error) {
	text, err := json.Marshal(members)
	if err != nil {
		return nil, refused("cannot be read")
	}
	return &Value{text: string(text), object: true, members: members}, nil
}

// Read gives a member of the secret, or with key "" all of it. If the secret has only one
// member, "" gives that member. format json gives JSON, anything else a text.
func (v *Value) Read(key, format string) (string, error) {
	raw := json.RawMessage(nil)
	switch {
	case key != "":
		if v.members == nil {
			return "", refused("is no JSON object, so that it has no secret_key %s", strconv.Quote(fault.Clip(key, 80)))
		}
		raw = v.members[key]
		if raw == nil || string(raw) == "null" {
			return "", refused("has no member %s", strconv.Quote(fault.Clip(key, 80)))
		}
	case v.object && format != FormatJSON:
		if len(v.members) != 1 {
			return "", refused("has %d members: name one by secret_key, or map all of it with value_format json", len(v.members))
		}
		for _, only := range v.members {
			raw = only
		}
	}
	text := v.text
	if raw != nil {
		var err error
		if text, err = asText(raw, format); err != nil {
			return "", err
		}
	}
	if format == FormatJSON {
		var out bytes.Buffer
		if json.Compact(&out, []byte(text)) != nil {
			return "", refused("is not JSON, as value_format says")
		}
		text = out.String()
	}
	if text == "" {
		return "", refused("is empty")
	}
	return text, nil
}

// asText is a member as a text: the content of a string; numbers and truth values as they
// are written.
func asText(raw json.RawMessage, format string) (string, error) {
	switch raw[0] {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", refused("cannot be read")
		}
		return s, nil
	case '{', '[':
		if format != FormatJSON {
			return "", refused("is no text there: map it with value_format json")
		}
	}
	return string(raw), nil
}

// Members are the names of a secret's members, in order; a text has none.
func (v *Value) Members() []string { return slices.Sorted(maps.Keys(v.members)) }
