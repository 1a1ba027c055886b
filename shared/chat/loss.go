package chat

import (
	"strconv"
	"strings"

	"gateway/shared/fault"
)

// Lost is a field that did not reach the provider or the client.
type Lost struct {
	Path   string // JSON path in the client's body, e.g. messages[2].content[1]
	Reason string // short, without content of the request
	answer bool   // the client will miss it in the response
}

// Loss reports what an encoder does not support. The zero Loss only reports.
type Loss struct {
	// Strict rejects a request that would lose anything.
	Strict bool
	// StrictAnswer rejects a request that would lose something that the client expects in the
	// response (log probabilities, audio). It is set for clients that rely on the exact OpenAI
	// format.
	StrictAnswer bool

	Entries []Lost
	More    int // losses after the first maxLost, without entries
	refused bool

	// Missed lists what the client does not receive of the provider's response, by the names of
	// the client's format. It is paid for and not a reason for a rejection.
	Missed     []Lost
	MoreMissed int
}

// maxLost is the number of entries of a report.
const maxLost = 100

// Add and AddMissed are not inlined: most of their 300 callers are rarely executed.

// Add reports that path was not encoded.
//
//go:noinline
func (l *Loss) Add(path, reason string) { l.Entries = note(l.Entries, &l.More, path, reason) }

// AddMissed reports that path of the response does not reach the client.
//
//go:noinline
func (l *Loss) AddMissed(path, reason string) {
	l.Missed = note(l.Missed, &l.MoreMissed, path, reason)
}

// note adds a loss to a list, once per path.
func note(list []Lost, more *int, path, reason string) []Lost {
	for i := range list {
		if list[i].Path == path {
			return list
		}
	}
	if len(list) == maxLost {
		*more++
		return list
	}
	return append(list, Lost{Path: path, Reason: reason})
}

// AddAnswer reports that the client will miss path in the response.
func (l *Loss) AddAnswer(path, reason string) {
	l.Add(path, reason)
	for i := range l.Entries {
		if l.Entries[i].Path == path {
			l.Entries[i].answer = true
		}
	}
	l.refused = l.refused || l.StrictAnswer
}

// Reset clears the report for the next target.
func (l *Loss) Reset() {
	l.Entries, l.More, l.refused = l.Entries[:0], 0, false
	l.Missed, l.MoreMissed = l.Missed[:0], 0
}

// Empty reports whether nothing was lost in either direction.
func (l *Loss) Empty() bool { return len(l.Entries) == 0 && len(l.Missed) == 0 }

// Err returns a 400 that names what would be lost if the report rejects the request, otherwise
// nil. It does not name losses that do not matter to the client.
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
		if len(why.Entries) == 0 { // the reason is after the entries of the report
			why = l
		}
	}
	return fault.Newf(fault.TranslationLoss, why.Entries[0].Path, "The provider of this target cannot be told everything: %s", why.Header())
}

// ofAnswer is the prefix of recorded paths of responses.
const ofAnswer = "answer: "

// OfAnswer returns the path in the response of an entry of Paths. ok is false if the entry
// refers to the request.
func OfAnswer(lost string) (path string, ok bool) { return strings.CutPrefix(lost, ofAnswer) }

// Paths returns the losses for the record: of the request, then of the response, see OfAnswer.
func (l *Loss) Paths() []string {
	if l.Empty() {
		return nil
	}
	paths := make([]string, 0, len(l.Entries)+len(l.Missed))
	for i := range l.Entries {
		paths = append(paths, l.Entries[i].Path)
	}
	for i := range l.Missed {
		paths = append(paths, ofAnswer+l.Missed[i].Path)
	}
	return paths
}

// maxHeader is the size limit of the header value in bytes.
const maxHeader = 2048

// Header returns the value of the x-gateway-translation header: "dropped=path (reason), path
// (reason)" of the request, "missed=path (reason)" of the response, separated by "; ". It is
// printable ASCII.
func (l *Loss) Header() string {
	var b strings.Builder
	header(&b, "dropped=", l.Entries, l.More)
	header(&b, "missed=", l.Missed, l.MoreMissed)
	return b.String()
}

func header(b *strings.Builder, word string, list []Lost, more int) {
	if len(list) == 0 {
		return
	}
	if b.Len() > 0 {
		b.WriteString("; ")
	}
	b.WriteString(word)
	for i, e := range list {
		if b.Len()+len(e.Path)+len(e.Reason) > maxHeader {
			b.WriteString(", ...")
			break
		}
		if i > 0 {
			b.WriteString(", ")
		}
		appendPrintable(b, e.Path)
		b.WriteString(" (")
		appendPrintable(b, e.Reason)
		b.WriteByte(')')
	}
	if more > 0 {
		b.WriteString(", and ")
		b.WriteString(strconv.Itoa(more))
		b.WriteString(" more")
	}
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
