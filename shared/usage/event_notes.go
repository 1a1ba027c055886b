package usage

import (
	"encoding/binary"
	"strconv"

	"gateway/shared/pricing"
)

// Agent locates a request within a coding agent's work, as reported by its client.
type Agent struct {
	Session, ID, Parent string
}

// Numbers of the notes of version 6. A number is never reused, and readers ignore unknown
// numbers, so a new note needs no new version.
const (
	notedSession = iota + 1
	notedAgent
	notedParentAgent
	notedCall    // encoded by Call.append
	notedRunning // in decimal
	notedRefusal // encoded by Refusal.append
	notedReported
	notedMeasured    // encoded by appendMeasured
	notedCredentials // encoded by appendCredentials
)

// notes returns the text notes, indexed by number.
func (r *Record) notes() [notedParentAgent]*string {
	return [...]*string{&r.Agent.Session, &r.Agent.ID, &r.Agent.Parent}
}

// needsNotes reports whether only version 6 can represent the record.
func (r *Record) needsNotes() bool {
	return r.Agent != Agent{} || r.Call != nil || r.Running != 0 || r.Refusal != nil || r.Reported || len(r.Measured) > 0 || r.namesCredentials()
}

// appendNotes appends the part of version 6: numbers, each with its text.
func (r *Record) appendNotes(b []byte) []byte {
	n := uint64(0)
	for _, text := range r.notes() {
		if *text != "" {
			n++
		}
	}
	if r.Call != nil {
		n++
	}
	if r.Running != 0 {
		n++
	}
	if r.Refusal != nil {
		n++
	}
	if r.Reported {
		n++
	}
	if len(r.Measured) > 0 {
		n++
	}
	if r.namesCredentials() {
		n++
	}
	b = binary.AppendUvarint(b, n)
	for i, text := range r.notes() {
		if *text != "" {
			b = appendString(binary.AppendUvarint(b, uint64(i+1)), *text)
		}
	}
	if r.Call != nil {
		b = appendString(binary.AppendUvarint(b, notedCall), string(r.Call.append(nil)))
	}
	if r.Running != 0 {
		b = appendString(binary.AppendUvarint(b, notedRunning), strconv.FormatInt(int64(r.Running), 10))
	}
	if r.Refusal != nil {
		b = appendString(binary.AppendUvarint(b, notedRefusal), string(r.Refusal.append(nil)))
	}
	if r.Reported {
		b = appendString(binary.AppendUvarint(b, notedReported), "")
	}
	if len(r.Measured) > 0 {
		b = appendString(binary.AppendUvarint(b, notedMeasured), string(appendMeasured(nil, r.Measured)))
	}
	if r.namesCredentials() {
		b = appendString(binary.AppendUvarint(b, notedCredentials), string(appendCredentials(nil, r.Attempts)))
	}
	return b
}

// namesCredentials reports whether an attempt used one of several credentials.
func (r *Record) namesCredentials() bool {
	for i := range r.Attempts {
		if r.Attempts[i].Credential != "" {
			return true
		}
	}
	return false
}

// appendCredentials appends the label of the credential of each attempt.
func appendCredentials(b []byte, list []Attempt) []byte {
	for i := range list {
		b = appendString(b, list[i].Credential)
	}
	return b
}

// credentials reads the output of appendCredentials.
func (c *cursor) credentials(r *Record) {
	for i := range r.Attempts {
		r.Attempts[i].Credential = c.str()
	}
}

// append appends the fields of a refusal. New fields must be appended after them.
func (f *Refusal) append(b []byte) []byte {
	for _, s := range [...]string{f.Subject, f.ID, f.Entity, f.Type, f.Unit} {
		b = appendString(b, s)
	}
	return binary.AppendVarint(b, f.Needed)
}

// refusal reads the output of append.
func (c *cursor) refusal(r *Record) {
	f := new(Refusal)
	for _, s := range [...]*string{&f.Subject, &f.ID, &f.Entity, &f.Type, &f.Unit} {
		*s = c.str()
	}
	f.Needed, r.Refusal = c.int(), f
}

// notes reads the output of appendNotes.
func (c *cursor) notes(r *Record) {
	to := r.notes()
	for range c.count(2) {
		number, text := c.uint(), c.str()
		switch {
		case number >= 1 && number <= uint64(len(to)):
			*to[number-1] = text
		case number == notedCall:
			within := cursor{rest: text}
			within.call(r)
			c.bad = c.bad || within.bad
		case number == notedRefusal:
			within := cursor{rest: text}
			within.refusal(r)
			c.bad = c.bad || within.bad
		case number == notedMeasured:
			within := cursor{rest: text}
			within.measured(r)
			c.bad = c.bad || within.bad
		case number == notedCredentials:
			within := cursor{rest: text}
			within.credentials(r)
			c.bad = c.bad || within.bad
		case number == notedReported:
			r.Reported = true
		case number == notedRunning:
			n, err := strconv.ParseInt(text, 10, 64)
			r.Running, c.bad = pricing.NanoDollars(n), c.bad || err != nil || n == 0
		}
	}
}
