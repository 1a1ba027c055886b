package basic

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"maps"
	"slices"
	"strings"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
	"gateway/shared/identity/bearer"
	"gateway/shared/wire"
)

var errNoText = errors.New("basic: no text to put a prefix before")

type prefixData struct {
	Prefix      string `json:"prefix"`
	Role        string `json:"applyToRole"`
	Explanation string `json:"explanation"`
}

// prefixer inserts a text before the first message of a role.
type prefixer struct {
	prefix, role string
	add, ifEmpty bool
}

// addPrefix inserts a text into a message, or adds it as the first message.
func addPrefix(raw map[string]json.RawMessage) judge.Func {
	a := prefixer{
		prefix: judge.Get(raw, "prefix", "Please respond helpfully and accurately to the following: "), role: judge.Get(raw, "applyToRole", "user"),
		add: judge.Get(raw, "addToExisting", true), ifEmpty: judge.Get(raw, "onlyIfEmpty", false),
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		d := &prefixData{Prefix: excerpt(a.prefix), Role: a.role, Explanation: "The prefix was added"}
		body, err := a.apply(s.Kind, s.Request)
		switch {
		case err != nil:
			v := failed("The request has no messages that a prefix could be added to")
			v.Pass = true
			return v
		case body == nil:
			d.Explanation = "The message has content: no prefix was added"
		}
		return judge.Verdict{Pass: true, Data: d, Body: body}
	}
}

// apply returns the changed body, or nil if it does not change.
func (a *prefixer) apply(kind string, body []byte) ([]byte, error) {
	switch kind {
	case "complete":
		return a.prompt(body)
	case "messages":
		if a.role == "system" {
			return a.system(body)
		}
		return a.messages(body, "messages")
	case "createModelResponse":
		return a.messages(body, "input")
	}
	return a.messages(body, "messages")
}

// field finds a field of the body.
func member(body []byte, name string) (wire.Walk, *wire.KeySet, []byte, error) {
	keys := wire.NewKeySet(name)
	var w wire.Walk
	if err := keys.Walk(body, &w); err != nil {
		return w, keys, nil, err
	}
	return w, keys, w.Spans[0].Of(body), nil
}

func set(body []byte, w *wire.Walk, keys *wire.KeySet, raw []byte) []byte {
	return wire.Splice(nil, body, keys.SetKey(w, 0, raw))
}

func text(s string) []byte { return wire.AppendJSONString(nil, s) }

// prompt changes the first prompt of a text completion.
func (a *prefixer) prompt(body []byte) ([]byte, error) {
	w, keys, raw, err := member(body, "prompt")
	if err != nil {
		return nil, err
	}
	var one string
	var list []json.RawMessage
	switch {
	case json.Unmarshal(raw, &one) == nil:
		if one != "" && a.ifEmpty {
			return nil, nil
		}
		return set(body, &w, keys, text(a.prefix+one)), nil
	case json.Unmarshal(raw, &list) == nil && len(list) > 0 && json.Unmarshal(list[0], &one) == nil:
		if one != "" && a.ifEmpty {
			return nil, nil
		}
		list[0] = text(a.prefix + one)
		return set(body, &w, keys, array(list)), nil
	}
	return nil, errNoText
}

// system changes the system prompt that is beside the messages.
func (a *prefixer) system(body []byte) ([]byte, error) {
	w, keys, raw, err := member(body, "system")
	if err != nil {
		return nil, err
	}
	if raw == nil || wire.IsNull(raw) {
		return set(body, &w, keys, text(a.prefix)), nil
	}
	now, err := a.contentOf(raw, "text")
	if err != nil || now == nil {
		return nil, err
	}
	return set(body, &w, keys, now), nil
}

// messages changes the first message of the role in a list, or adds one.
func (a *prefixer) messages(body []byte, name string) ([]byte, error) {
	w, keys, raw, err := member(body, name)
	if err != nil {
		return nil, err
	}
	kind := "text"
	if name == "input" {
		kind = "input_text"
		var one string
		if json.Unmarshal(raw, &one) == nil { // the input is one user message
			raw = array([]json.RawMessage{message("user", text(one))})
		}
	}
	var list []json.RawMessage
	if err := json.Unmarshal(raw, &list); err != nil {
		return nil, err
	}
	at := slices.IndexFunc(list, a.speaks)
	if at < 0 {
		at = len(list)
		if a.role == "system" {
			at = 0
		}
		list = slices.Insert(list, at, json.RawMessage(message(a.role, text(a.prefix))))
		return set(body, &w, keys, array(list)), nil
	}
	mw, mkeys, content, err := member(list[at], "content")
	if err != nil {
		return nil, err
	}
	if a.ifEmpty && !empty(content) {
		return nil, nil
	}
	if !a.add {
		list = slices.Insert(list, at, json.RawMessage(message(a.role, text(a.prefix))))
		return set(body, &w, keys, array(list)), nil
	}
	now, err := a.contentOf(content, kind)
	if err != nil || now == nil {
		return nil, err
	}
	list[at] = set(list[at], &mw, mkeys, now)
	return set(body, &w, keys, array(list)), nil
}

func (a *prefixer) speaks(m json.RawMessage) bool {
	var who struct{ Role string }
	return json.Unmarshal(m, &who) == nil && who.Role == a.role
}

// contentOf inserts the prefix into a content, which is a string or a list of parts. In a list
// it changes the first text.
func (a *prefixer) contentOf(raw []byte, kind string) ([]byte, error) {
	var one string
	if raw == nil || wire.IsNull(raw) || json.Unmarshal(raw, &one) == nil {
		if one != "" && a.ifEmpty {
			return nil, nil
		}
		return text(a.prefix + one), nil
	}
	var parts []json.RawMessage
	if err := json.Unmarshal(raw, &parts); err != nil {
		return nil, err
	}
	for i, p := range parts {
		var part struct {
			Type string
			Text *string
		}
		if json.Unmarshal(p, &part) != nil || part.Text == nil || part.Type != kind {
			continue
		}
		w, keys, _, err := member(p, "text")
		if err != nil {
			return nil, err
		}
		parts[i] = set(p, &w, keys, text(a.prefix+*part.Text))
		return array(parts), nil
	}
	own := append([]byte(`{"type":"`+kind+`","text":`), text(a.prefix)...)
	return array(slices.Insert(parts, 0, json.RawMessage(append(own, '}')))), nil
}

// empty reports whether a content has no text.
func empty(raw []byte) bool {
	trimmed := bytes.TrimSpace(raw)
	return len(trimmed) == 0 || wire.IsNull(trimmed) || string(trimmed) == `""` || string(trimmed) == "[]"
}

func message(role string, content []byte) []byte {
	m := wire.AppendJSONString([]byte(`{"role":`), role)
	return append(append(append(m, `,"content":`...), content...), '}')
}

func array(list []json.RawMessage) []byte {
	return append(append([]byte{'['}, bytes.Join(asBytes(list), []byte{','})...), ']')
}

func asBytes(list []json.RawMessage) [][]byte {
	out := make([][]byte, len(list))
	for i := range list {
		out[i] = list[i]
	}
	return out
}

type metadataData struct {
	Missing     []string `json:"missing_metadata_keys"`
	Found       []string `json:"found_metadata_keys"`
	Operator    string   `json:"operator"`
	Verdict     bool     `json:"verdict"`
	Explanation string   `json:"explanation"`
}

// unsupported returns an error verdict for an unsupported request. The check then passes.
func unsupported(message string) judge.Verdict {
	v := failed(message)
	v.Pass = true
	return v
}

// metadataKeys passes a request with metadata that has all, any or none of the keys.
func metadataKeys(raw map[string]json.RawMessage) judge.Func {
	keys, ok := judge.Read[[]string](raw, "metadataKeys")
	operator := judge.Get(raw, "operator", "all")
	if !ok || len(keys) == 0 {
		return constant(unsupported("Missing or invalid metadataKeys"))
	}
	if !slices.Contains(operators, operator) {
		return constant(unsupported(badOperator))
	}
	return func(_ context.Context, s *judge.Subject) judge.Verdict {
		d := &metadataData{Missing: []string{}, Found: []string{}, Operator: operator}
		for _, k := range keys {
			if _, has := s.Metadata[k]; has {
				d.Found = append(d.Found, k)
			} else {
				d.Missing = append(d.Missing, k)
			}
		}
		d.Verdict, d.Explanation = quantify(operator, len(d.Found), len(d.Missing), "metadata keys")
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

type pairsData struct {
	Missing     []string `json:"missing_metadata_pairs"`
	Found       []string `json:"found_metadata_pairs"`
	Operator    string   `json:"operator"`
	MatchType   string   `json:"matchType"`
	Verdict     bool     `json:"verdict"`
	Explanation string   `json:"explanation"`
}

// metadataPairs passes a request with metadata that has all, any or none of the pairs. A value
// is compared by equality, by a part, by all of several parts, or by a pattern.
func metadataPairs(raw map[string]json.RawMessage) judge.Func {
	pairs, ok := judge.Object[map[string]json.RawMessage](raw, "metadataPairs")
	operator, how := judge.Get(raw, "operator", "all"), judge.Get(raw, "matchType", "exact")
	if !ok || len(pairs) == 0 {
		return constant(unsupported("Missing or invalid metadataPairs"))
	}
	wanted := make(map[string][]string, len(pairs))
	for key, value := range pairs {
		wanted[key] = Primitives(value)
	}
	keys := slices.Sorted(maps.Keys(wanted))
	return func(ctx context.Context, s *judge.Subject) judge.Verdict {
		fit := func(pattern, text string) (bool, error) { return FitsPattern(ctx, pattern, text) }
		d := &pairsData{Missing: []string{}, Found: []string{}, Operator: operator, MatchType: how}
		for _, key := range keys {
			value, has := s.Metadata[key]
			fits, err := bearer.Matches(how, value, wanted[key], fit)
			if errors.Is(err, guard.ErrTime) {
				return judge.TooSlow()
			}
			if err != nil {
				return unsupported(err.Error())
			}
			if has && fits {
				d.Found = append(d.Found, key)
			} else {
				d.Missing = append(d.Missing, key)
			}
		}
		d.Verdict, d.Explanation = quantify(operator, len(d.Found), len(d.Missing), "metadata pairs")
		return judge.Verdict{Pass: d.Verdict, Data: d}
	}
}

// Primitives returns a value, or the entries of a list, as strings.
func Primitives(raw json.RawMessage) []string {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		list = []json.RawMessage{raw}
	}
	out := make([]string, 0, len(list))
	for _, e := range list {
		var text string
		if json.Unmarshal(e, &text) != nil {
			text = strings.TrimSpace(string(e)) // a number, true or false
		}
		out = append(out, text)
	}
	return out
}

// FitsPattern reports whether a guardrail pattern matches a text.
func FitsPattern(ctx context.Context, pattern, text string) (bool, error) {
	re, err := guard.PatternOf(pattern)
	if err != nil {
		return false, err
	}
	return re.Match(ctx, text)
}
