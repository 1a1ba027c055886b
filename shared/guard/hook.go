package guard

import (
	"cmp"
	"encoding/json"
	"fmt"
	"hash/fnv"
	"maps"
	"regexp"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// Hook is a guardrail of a request: a saved one, or one in a config.
type Hook struct {
	ID      string
	Label   string // its name, may be empty
	Mutator bool   // it changes texts and does not judge
	Checks  []Applied
	Actions Actions
	// Feedback is given only if it was configured.
	OnSuccess, OnFail bool
	Credentials       json.RawMessage
	Stored            bool // it is a saved guardrail
}

// Labeled names a hook that has no label, and returns it.
func (h *Hook) Labeled(name string) *Hook {
	if h.Label == "" {
		h.Label = name
	}
	return h
}

// When is when the output hooks judge a stream.
type When string

// Values of When. The zero value means StreamWindow for a guardrail that denies and StreamAfter
// for others.
const (
	StreamAfter  When = "after"  // after it has ended, without delay
	StreamHold   When = "hold"   // before any of it is sent
	StreamWindow When = "window" // in pieces: a text is sent once the following text has also passed
)

// Limits of the window in characters.
const (
	StandardWindow = 200
	MinWindow      = 20
	MaxWindow      = 10_000
)

// MaxUnread is the number of routes that a guardrail may exempt.
const MaxUnread = 50

// HookOf returns a saved guardrail as a hook.
func (s *Saved) HookOf() *Hook {
	return &Hook{ID: s.Slug, Label: cmp.Or(s.Name, s.Slug), Checks: s.Checks, Actions: s.Actions, OnSuccess: true, OnFail: true, Stored: true}
}

// reservedMembers are the fields of a guardrail in a config that are not checks.
var reservedMembers = words("deny async sequential on_fail on_success onFail onSuccess id type guardrail_version_id checks soft_deny_200 stream stream_window allow_unread credentials name is_enabled")

// ReadHook parses a guardrail in a config: with a list of checks, or in short form with a field
// for each check. before is set for input guardrails and determines the default id. Invalid
// checks are reported when they run.
func ReadHook(raw json.RawMessage, before, mutator bool) *Hook {
	h, _ := parseHook(raw, before, mutator, nil)
	return h
}

// CheckHook returns all faults of a guardrail in a config to be saved, with paths relative to
// the guardrail.
func CheckHook(raw json.RawMessage, check URLCheck) []fault.Detail {
	_, bad := parseHook(raw, true, false, &reader{url: check, inline: true})
	return bad
}

func parseHook(raw json.RawMessage, before, mutator bool, r *reader) (*Hook, []fault.Detail) {
	strict := r != nil
	if !strict {
		r = &reader{}
	}
	in := objectOf(raw)
	h := &Hook{Mutator: mutator}
	_ = json.Unmarshal(in["id"], &h.ID)
	_ = json.Unmarshal(in["name"], &h.Label)
	h.Label = cmp.Or(h.Label, h.ID)
	var kind string
	if json.Unmarshal(in["type"], &kind) == nil && kind == "mutator" {
		h.Mutator = true
	}
	if strict && kind != "" && kind != "mutator" && kind != "guardrail" {
		r.add("type", "must be guardrail or mutator")
	}
	var wrong []fault.Detail
	h.Actions, wrong = ParseActions(raw)
	h.OnSuccess, h.OnFail = wantsFeedback(in, "on_success", "onSuccess"), wantsFeedback(in, "on_fail", "onFail")
	r.bad = append(r.bad, wrong...)
	h.Credentials = in["credentials"]
	if h.ID == "" {
		side := "output"
		if before {
			side = "input"
		}
		h.ID = side + "_guardrail_" + shortHash(raw)
	}
	if list, ok := in["checks"]; ok {
		h.readList(list, r, strict)
	}
	for _, name := range slices.Sorted(maps.Keys(in)) {
		if !slices.Contains(reservedMembers, name) {
			h.readShortForm(name, in[name], r, strict)
		}
	}
	if strict && len(h.Checks) > MaxChecks {
		r.add("checks", "must have at most %d checks", MaxChecks)
	}
	return h, r.bad
}

// wantsFeedback reports whether feedback was configured.
func wantsFeedback(in map[string]json.RawMessage, names ...string) bool {
	for _, name := range names {
		if f, ok := objectOf(in[name])["feedback"]; ok && string(f) != "null" {
			return true
		}
	}
	return false
}

// shortHash returns a short hash of a text.
func shortHash(raw []byte) string {
	const letters = "abcdefghijklmnopqrstuvwxyz0123456789"
	f := fnv.New32a()
	_, _ = f.Write(raw)
	n := f.Sum32()
	var out [3]byte
	for i := range out {
		out[i] = letters[n%36]
		n /= 36
	}
	return string(out[:])
}

// readList parses a list of checks.
func (h *Hook) readList(raw json.RawMessage, r *reader, strict bool) {
	var list []json.RawMessage
	if json.Unmarshal(raw, &list) != nil {
		r.add("checks", "must be a list of checks")
		return
	}
	for i, one := range list {
		var a Applied
		if strict {
			r.applied(&a, one, fmt.Sprintf("checks[%d]", i))
		} else {
			a = readUnchecked(one)
		}
		h.Checks = append(h.Checks, a)
	}
}

// readUnchecked parses a check without validating it.
func readUnchecked(raw json.RawMessage) Applied {
	in := objectOf(raw)
	a := Applied{Enabled: true, Parameters: objectOf(in["parameters"])}
	_ = json.Unmarshal(in["id"], &a.ID)
	_ = json.Unmarshal(in["name"], &a.Name)
	if json.Unmarshal(in["is_enabled"], &a.Enabled) != nil {
		a.Enabled = true
	}
	_ = json.Unmarshal(in["forward_headers"], &a.Forward)
	return a.canonical()
}

// canonical replaces an alias of a check by its id.
func (a Applied) canonical() Applied {
	if row, ok := Find(a.ID); ok {
		a.ID = row.ID
	}
	if a.Parameters == nil {
		a.Parameters = map[string]json.RawMessage{}
	}
	return a
}

// readShortForm parses a check in short form: the name is its id, the value its parameters.
func (h *Hook) readShortForm(name string, raw json.RawMessage, r *reader, strict bool) {
	a := Applied{ID: name, Enabled: true, Parameters: objectOf(raw)}
	if !strings.Contains(name, ".") {
		a.ID = "default." + name
	}
	_ = json.Unmarshal(a.Parameters["id"], &a.ID)
	if json.Unmarshal(a.Parameters["is_enabled"], &a.Enabled) != nil {
		a.Enabled = true
	}
	_ = json.Unmarshal(a.Parameters["forward_headers"], &a.Forward)
	for _, own := range []string{"id", "is_enabled", "forward_headers"} {
		delete(a.Parameters, own)
	}
	a = a.canonical()
	h.Checks = append(h.Checks, a)
	if !strict {
		return
	}
	if objectOf(raw) == nil {
		r.add(name, "must be an object: the parameters of the check")
		return
	}
	if len(a.Forward) > 0 {
		r.headers(a.Forward, name+".forward_headers")
	}
	row, ok := Find(a.ID)
	switch {
	case ok:
		r.parameters(row, a.Parameters, name)
	case !IsForeign(a.ID):
		r.add(name, "is not a check%s", similarIDs(a.ID))
	}
}

var foreignID = regexp.MustCompile(`^[a-z0-9][a-z0-9_-]*\.[A-Za-z0-9][A-Za-z0-9_-]*$`)

// maxIDPart is the length limit of each side of a check's id. It is not part of the pattern
// because that would make the pattern large, and every process compiles it at startup.
const maxIDPart = 64

// IsForeign reports whether an id may be that of an unknown vendor's check. Such a check can be
// saved. When it runs it has no verdict, and a hook that denies then rejects the request.
func IsForeign(id string) bool {
	plugin, check, _ := strings.Cut(id, ".")
	return plugin != "default" && plugin != "gateway" && max(len(plugin), len(check)) <= maxIDPart && foreignID.MatchString(id)
}

// Saved reports whether an id may be that of a saved guardrail.
func (h *Hook) Saved() bool { return strings.HasPrefix(h.ID, "pg-") }

// ParseActions parses the actions for each outcome. Unknown fields are ignored. onFail and
// onSuccess may also be a keyword: block denies; log and warn do not.
func ParseActions(raw json.RawMessage) (Actions, []fault.Detail) {
	a, r := StandardActions(), &reader{}
	in := objectOf(raw)
	if in == nil {
		return a, []fault.Detail{{Message: "must be an object with deny, async, on_success and on_fail"}}
	}
	for name, to := range map[string]*bool{"deny": &a.Deny, "async": &a.Async, "sequential": &a.Sequential, "soft_deny_200": &a.Soft} {
		r.into(in, name, "", to, "true or false")
	}
	if r.into(in, "stream", "", &a.Stream, "after, hold or window") && !slices.Contains([]When{StreamAfter, StreamHold, StreamWindow}, a.Stream) {
		r.add(".stream", "must be after, hold or window")
	}
	if r.into(in, "stream_window", "", &a.Window, "a whole number of characters") && (a.Window < MinWindow || a.Window > MaxWindow) {
		r.add(".stream_window", "must be %d to %d", MinWindow, MaxWindow)
	}
	if r.into(in, "allow_unread", "", &a.Unread, "a list of request types or of paths that begin with /") {
		if len(a.Unread) > MaxUnread {
			r.add(".allow_unread", "must have at most %d entries", MaxUnread)
		}
		for i, name := range a.Unread {
			if name == "" || name == "/" || len(name) > 200 {
				r.add(fmt.Sprintf(".allow_unread[%d]", i), "must be a request type such as uploadFile, or the beginning of a path such as /uploads")
			}
		}
	}
	r.branch(in, []string{"on_success", "onSuccess"}, &a.OnSuccess, isWord)
	r.branch(in, []string{"on_fail", "onFail"}, &a.OnFail, func(word string) bool {
		_, present := in["deny"]
		if !present {
			a.Deny = word == "block"
		}
		return isWord(word)
	})
	for i := range r.bad { // errors about the entire value have no field name
		if r.bad[i].Field != "" && r.bad[i].Field[0] == '.' {
			r.bad[i].Field = r.bad[i].Field[1:]
		}
	}
	return a, r.bad
}

func isWord(s string) bool { return slices.Contains([]string{"block", "log", "warn"}, s) }

func (r *reader) branch(in map[string]json.RawMessage, names []string, b *Branch, word func(string) bool) {
	for _, name := range names {
		raw, ok := in[name]
		if !ok || string(raw) == "null" {
			continue
		}
		var value string
		if json.Unmarshal(raw, &value) == nil {
			if !word(value) {
				r.add(name, "must be an object, or block, log or warn")
			}
			continue
		}
		members := objectOf(raw)
		if members == nil {
			r.add(name, "must be an object with feedback")
			continue
		}
		if f, ok := members["feedback"]; ok && string(f) != "null" {
			r.feedback(f, &b.Feedback, name+".feedback")
		}
	}
}

func (r *reader) feedback(raw json.RawMessage, f *Feedback, path string) {
	in := objectOf(raw)
	if in == nil {
		r.add(path, "must be an object with value, weight and metadata")
		return
	}
	if r.into(in, "value", path, &f.Value, "a whole number from -10 to 10") && (f.Value < -10 || f.Value > 10) {
		r.add(path+".value", "must be a whole number from -10 to 10")
	}
	if r.into(in, "weight", path, &f.Weight, "a number from 0 to 1") && (f.Weight < 0 || f.Weight > 1) {
		r.add(path+".weight", "must be a number from 0 to 1")
	}
	if m, ok := in["metadata"]; ok && string(m) != "null" {
		if m[0] != '"' && m[0] != '{' {
			r.add(path+".metadata", "must be a string or an object")
		}
		f.Metadata = m
	}
}
