package chat

import (
	"strconv"
	"strings"

	"gateway/shared/fault"
)

// Lost is one thing of the request that the provider was not told.
type Lost struct {
	Path   string // JSON path in the client's body, e.g. messages[2].content[1]
	Reason string // short, without content of the request
	answer bool   // the client will miss it in the answer
}

// Loss reports what an encoder could not carry. The zero Loss only reports.
type Loss struct {
	// Strict refuses a request that would lose anything.
	Strict bool
	// StrictAnswer refuses a request that would lose what the client will look
	// for in the answer (log probabilities, audio): set it for clients that rely
	// on the exact OpenAI shape.
	StrictAnswer bool

	Entries []Lost
	More    int // losses beyond the first maxLost, which have no entry
	refused bool
}

// maxLost bounds the entries of a report.
const maxLost = 100

// Add reports that path was not carried.
func (l *Loss) Add(path, reason string) {
	for _, e := range l.Entries {
		if e.Path == path {
			return
		}
	}
	if len(l.Entries) == maxLost {
		l.More++
		return
	}
	l.Entries = append(l.Entries, Lost{Path: path, Reason: reason})
}

// AddAnswer reports that the client will miss path in the answer.
func (l *Loss) AddAnswer(path, reason string) {
	l.Add(path, reason)
	for i := range l.Entries {
		if l.Entries[i].Path == path {
			l.Entries[i].answer = true
		}
	}
	l.refused = l.refused || l.StrictAnswer
}

// Reset forgets what was reported, for the next target.
func (l *Loss) Reset() { l.Entries, l.More, l.refused = l.Entries[:0], 0, false }

// Empty reports whether everything was carried.
func (l *Loss) Empty() bool { return len(l.Entries) == 0 }

// Err is a 400 that names what would be lost, when the report refuses; else nil.
// What is lost without harm to the client is not among the reasons.
func (l *Loss) Err() error {
	if len(l.Entries) == 0 || !l.Strict && !l.refused {
		return nil
	}
	why := l
	if !l.Strict {
		why = new(Loss)
		for _, e := range l.Entries {
			if e.answer {
				why.Entries = append(why.Entries, e)
			}
		}
		if len(why.Entries) == 0 { // it came behind more than the report holds
			why = l
		}
	}
	return fault.Newf(fault.TranslationLoss, why.Entries[0].Path, "The provider of this target cannot be told everything: %s", why.Header())
}

// Paths lists what was lost, for the record.
func (l *Loss) Paths() []string {
	if len(l.Entries) == 0 {
		return nil
	}
	paths := make([]string, len(l.Entries))
	for i, e := range l.Entries {
		paths[i] = e.Path
	}
	return paths
}

// maxHeader bounds the header value in bytes.
const maxHeader = 2048

// Header is the value of the x-gateway-translation header:
// "dropped=path (reason), path (reason)". It is printable ASCII.
func (l *Loss) Header() string {
	if len(l.Entries) == 0 {
		return ""
	}
	var b strings.Builder
	b.WriteString("dropped=")
	for i, e := range l.Entries {
		if b.Len()+len(e.Path)+len(e.Reason) > maxHeader {
			b.WriteString(", ...")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		appendPrintable(&b, e.Path)
		b.WriteString(" (")
		appendPrintable(&b, e.Reason)
		b.WriteByte(')')
	}
	if l.More > 0 {
		b.WriteString(", and ")
		b.WriteString(strconv.Itoa(l.More))
		b.WriteString(" more")
	}
	return b.String()
}

func appendPrintable(b *strings.Builder, s string) {
	for i := range len(s) {
		if c := s[i]; c >= 0x20 && c < 0x7f {
			b.WriteByte(c)
		} else {
			b.WriteByte('?')
		}
	}
}
