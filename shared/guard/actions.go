package guard

import (
	"encoding/json"
	"fmt"
	"slices"

	"gateway/shared/fault"
)

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
		_, said := in["deny"]
		if !said {
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
		var said string
		if json.Unmarshal(raw, &said) == nil {
			if !word(said) {
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
