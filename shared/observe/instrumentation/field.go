package instrumentation

import (
	"slices"
	"strings"
)

// field is what an attribute says about a request.
type field uint8

const (
	_ field = iota

	operation // of the conventions
	kind      // the sender's own word for the operation
	provider
	system // provider, in names that frameworks use for themselves as well
	asked
	model
	finish
	response // id
	tier
	cost // in dollars

	input
	output
	total
	cacheRead
	cacheWrite
	cacheWrite5m
	cacheWrite1h
	reasoning
	textIn
	textOut
	audioIn
	audioCacheRead
	audioOut
	imageIn
	imageOut

	session
	user
	agent
	url
	stream
	first       // seconds to the first chunk
	firstMillis // the same in milliseconds
	firstAt     // time of the first chunk
	status
	errType
	errText
	level
	ours // log of the gateway

	question
	reply
	calls
	instructions
	tools
	metadataObject

	numFields
)

// Fields of names that have the same beginning.
const (
	questions field = numFields + iota
	replies
	toolList
	metadata
)

// slot is a field, and how good a name for it is: 0 is the best.
type slot struct {
	field field
	rank  uint16
}

// prefix is a beginning of names.
type prefix struct {
	text  string
	field field
}

// sender is a row in the form in which spans are read.
type sender struct {
	*row
	slots    map[string]slot
	objects  map[string]bool // attributes with JSON, and fields of it, that are parsed
	prefixes []prefix
}

// compiled has a reader for each row; the last one is for unknown senders.
var compiled = func() (all []sender) {
	for i := range table {
		all = append(all, compile(&table[i]))
	}
	return append(all, compile(&conventions))
}()

// compile makes the reader of a row: its own names come first, then those of the
// conventions, then those of all others.
func compile(of *row) sender {
	s := sender{row: of, slots: map[string]slot{}, objects: map[string]bool{}}
	var rank [numFields]uint16
	add := func(r *row) {
		for f := range numFields {
			for _, name := range r.names[f] {
				if _, known := s.slots[name]; known {
					continue
				}
				s.slots[name] = slot{f, rank[f]}
				rank[f]++
				if object, member, ok := strings.Cut(name, "#"); ok {
					s.objects[object] = true
					if outer, _, nested := strings.Cut(member, "."); nested {
						s.objects[object+"#"+outer] = true
					}
				}
			}
		}
		for _, f := range []field{questions, replies, toolList, metadata} {
			for _, text := range r.names[f] {
				if p := (prefix{text, f}); !slices.Contains(s.prefixes, p) {
					s.prefixes = append(s.prefixes, p)
				}
			}
		}
	}
	// Whom a request was for has the same precedence everywhere, by the conventions.
	common := row{names: map[field][]string{session: conventions.names[session][:1], user: conventions.names[user][:1]}}
	add(&common)
	add(of)
	add(&conventions)
	for i := range table {
		add(&table[i])
	}
	return s
}

// senderOf returns the sender of a span: that of its scope, else that of an attribute which
// only it uses, else the conventions.
func senderOf(scope string, has func(mark string) bool) *sender {
	best, length := -1, 0
	for i := range table {
		for _, of := range table[i].scopes {
			// A scope is a name or begins with it: "ai" does not identify "airflow".
			if rest, ok := strings.CutPrefix(scope, of); ok && len(of) > length && (rest == "" || strings.HasSuffix(of, "/") || strings.HasSuffix(of, ".") || strings.IndexByte("-._/", rest[0]) >= 0) {
				best, length = i, len(of)
			}
		}
	}
	if best >= 0 {
		return &compiled[best]
	}
	for i := range table {
		if slices.ContainsFunc(table[i].marks, has) {
			return &compiled[i]
		}
	}
	return &compiled[len(table)]
}

// allKinds are the kinds of all rows.
var allKinds = func() map[string]string {
	all := map[string]string{}
	for i := range table {
		for word, endpoint := range table[i].kinds {
			all[word] = endpoint
		}
	}
	return all
}()
