package openai

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// tailWindow is how many bytes at the end of a response are searched for usage, before the
// entire response is traversed.
const tailWindow = 2048

// nearWindow is how many bytes from the end usage mostly is.
const nearWindow = 512

// meterPlain reads what accounting need of a plain response: id and model from its head,
// usage and finish reason from its tail. outputs is the field that holds the output;
// everything before it is the head.
func meterPlain(body []byte, outputs string) chat.Meter {
	m := chat.Meter{Complete: true, Started: true}
	var d wire.Decoder
	d.Reset(body)
	if meterHead(&d, &m, outputs); m.Err != nil {
		return m
	}
	near, from := max(0, len(body)-nearWindow), max(0, len(body)-tailWindow)
	raw := lastString(body, near, `"finish_reason"`)
	if raw == nil {
		raw = lastString(body, from, `"finish_reason"`)
	}
	m.Finish = finishName(raw)
	if outputs == "choices" && looksFailed(body, m.Finish) {
		if _, err := decodeResponse(body); err != nil {
			m = meterWalk(body, m, outputs) // what it used is paid for
			m.Err, m.Complete, m.Started = fault.From(err), false, false
			return m
		}
	}
	if !tailUsage(&d, body, near, &m) && !tailUsage(&d, body, from, &m) {
		return meterWalk(body, m, outputs)
	}
	if outputs == "choices" && !m.Usage.HasOutput() {
		m.OutputBytes = outputBytes(body)
	}
	if m.Mode == "" && tailMember(&d, body, near, `"service_tier"`) {
		m.Mode = pricing.ModeOf(upstream.OptString(&d))
	}
	if m.ID == "" && tailMember(&d, body, from, `"id"`) {
		m.ID = upstream.OptString(&d)
	}
	if m.Model == "" && tailMember(&d, body, from, `"model"`) {
		m.Model = upstream.OptString(&d)
	}
	return m
}

// looksFailed reports whether a success may be an error and must be parsed: it has no
// choice or no message, an error, or a finish reason of a host that aborted. The quotes
// of a key in a JSON string are escaped, so a match is a key.
func looksFailed(body []byte, finish string) bool {
	if _, failed := hosts.StopOf([]byte(finish)); failed {
		return true
	}
	if at := valueOf(body, `"choices"`); at < len(body) && body[at] == '[' && nextByte(body, at+1) == ']' {
		return true
	}
	if bytes.HasPrefix(body[valueOf(body, `"message"`):], []byte("null")) {
		return true
	}
	at := valueOf(body, `"error"`)
	return at < len(body) && body[at] != 'n'
}

// valueOf is where the value of the first field key begins; the end of body without one.
func valueOf(body []byte, key string) int {
	n := bytes.Index(body, []byte(key))
	if n < 0 {
		return len(body)
	}
	colon := skipSpace(body, n+len(key))
	if at(body, colon) != ':' {
		return len(body)
	}
	return skipSpace(body, colon+1)
}

// nextByte is the first byte at or after i that is not white space; 0 at the end.
func nextByte(body []byte, i int) byte { return at(body, skipSpace(body, i)) }

// tailUsage reads the usage of the body, if it is at or after from.
func tailUsage(d *wire.Decoder, body []byte, from int, m *chat.Meter) bool {
	const key = `"usage"`
	n := bytes.Index(body[from:], []byte(key))
	if n < 0 {
		return false
	}
	colon := skipSpace(body, from+n+len(key))
	if from+n > 0 && body[from+n-1] != '\\' && at(body, colon) == ':' {
		var r reported
		value := skipSpace(body, colon+1)
		if end, ok := r.readPlain(body[value:]); ok && closesOne(body[value+end:]) {
			m.ReportedTotal = r.classes(&m.Usage)
			return m.Usage.IsReported()
		}
	}
	if !tailMember(d, body, from, key) {
		return false
	}
	if d.Kind() == wire.KindObject {
		m.ReportedTotal = readUsage(d, &m.Usage, &m.SearchContext)
	}
	return m.Usage.IsReported()
}

// finishNames are the reasons that most answers give.
var finishNames = [...]string{"stop", "length", "tool_calls", "content_filter"}

// finishName is a finish reason as a string.
func finishName(raw []byte) string {
	for _, name := range finishNames {
		if string(raw) == name {
			return name
		}
	}
	return string(raw)
}

// tailMember puts d before the value of a top-level field of the body that is at or after
// from; false when there is none. key has its quotes.
func tailMember(d *wire.Decoder, body []byte, from int, key string) bool {
	at := topLevel(body, from, key)
	if at < 0 {
		return false
	}
	d.Reset(body[skipSpace(body, at+len(key))+1:]) // after the colon
	return true
}

// errFound ends a decode that has found what it looks for.
var errFound = &foundError{}

type foundError struct{}

func (*foundError) Error() string { return "openai: found" }

// meterHead reads fields up to outputs. An error object before it, in a response without
// outputs, becomes m.Err.
func meterHead(d *wire.Decoder, m *chat.Meter, outputs string) {
	for key := range d.Object {
		switch string(key) {
		case "id":
			m.ID = upstream.OptString(d)
		case "model":
			m.Model = upstream.OptString(d)
		case "service_tier":
			m.Mode = pricing.ModeOf(upstream.OptString(d))
		case "error":
			if d.Kind() == wire.KindObject || d.Kind() == wire.KindString {
				m.Err = inBandError(d.Raw())
				m.Complete, m.Started = false, false
				d.FailWith(errFound)
			}
		case outputs:
			d.FailWith(errFound)
		}
	}
}

// meterMembers reads the fields of a complete response.
func meterMembers(d *wire.Decoder, raw []byte, m *chat.Meter) {
	d.Reset(raw)
	var usage usageReport
	var choices []byte
	for key := range d.Object {
		switch string(key) {
		case "usage":
			usage.readTop(d)
		case "x_groq":
			usage.readGroq(d)
		case "choices":
			choices = d.Raw()
		case "id":
			m.ID = upstream.OptString(d)
		case "model":
			m.Model = upstream.OptString(d)
		case "service_tier":
			m.Mode = pricing.ModeOf(upstream.OptString(d))
		}
	}
	if !usage.known() && choices != nil {
		usage.readChoices(choices)
	}
	usage.classes(m)
}

// meterWalk is meterPlain for a response with usage that is not near its end or is
// incomplete. If the output was not counted, its length is measured.
func meterWalk(body []byte, m chat.Meter, outputs string) chat.Meter {
	var d wire.Decoder
	meterMembers(&d, body, &m)
	if outputs == "choices" && !m.Usage.HasOutput() {
		m.OutputBytes = outputBytes(body)
	}
	return m
}

// outputBytes measures the output of a plain response.
func outputBytes(body []byte) int64 {
	r, err := decodeResponse(body)
	if err != nil {
		return 0
	}
	return r.Meter().OutputBytes
}

// topLevel returns the position of key, given with its quotes, as a top-level field at or
// after from; -1 if there is none. Inside a JSON string a quote is preceded by a
// backslash, so the bytes of a quoted key with a colon after it can only be a key. Only
// its depth remains to be checked.
func topLevel(body []byte, from int, key string) int {
	for i := from; ; {
		n := bytes.Index(body[i:], []byte(key))
		if n < 0 {
			return -1
		}
		at := i + n
		i = at + len(key)
		if at > 0 && body[at-1] == '\\' {
			continue
		}
		if colon := skipSpace(body, i); colon < len(body) && body[colon] == ':' && closesOne(body[colon+1:]) {
			return at
		}
	}
}

// closesOne reports whether rest, which starts outside of a string, closes one bracket more
// than it opens. Then what comes before it is at the top level.
func closesOne(rest []byte) bool {
	depth := 0
	for i := 0; i < len(rest); i++ {
		switch rest[i] {
		case '"':
			for i++; i < len(rest) && rest[i] != '"'; i++ {
				if rest[i] == '\\' {
					i++
				}
			}
		case '{', '[':
			depth++
		case '}', ']':
			depth--
		}
	}
	return depth == -1
}

// lastString is the inside of the string after the last key in body at or after from; nil
// if there is none.
func lastString(body []byte, from int, key string) []byte {
	var last []byte
	for b := body[from:]; ; {
		n := bytes.Index(b, []byte(key))
		if n < 0 {
			return last
		}
		at := len(body) - len(b) + n
		b = b[n+len(key):]
		i := skipSpace(b, 0)
		if at > 0 && body[at-1] == '\\' || i >= len(b) || b[i] != ':' {
			continue
		}
		if i = skipSpace(b, i+1); i >= len(b) || b[i] != '"' {
			continue
		}
		if end := bytes.IndexByte(b[i+1:], '"'); end >= 0 {
			last = b[i+1 : i+1+end]
		}
	}
}

func skipSpace(b []byte, i int) int {
	for i < len(b) && (b[i] == ' ' || b[i] == '\n' || b[i] == '\t' || b[i] == '\r') {
		i++
	}
	return i
}

// usageReport combines the usage objects of one response. Hosts write usage beside the
// choices, within a choice (Moonshot) or in x_groq (Groq), some in two places and some in
// several events. The counts are totals of the response, so they are never added: a later
// count replaces an earlier one, and one beside the choices those elsewhere.
type usageReport struct {
	top, side       reported // beside the choices; elsewhere
	hasTop, hasSide bool
}

// readTop reads a usage object beside the choices.
func (u *usageReport) readTop(d *wire.Decoder) { readInto(d, &u.top, &u.hasTop) }

// readSide reads a usage object elsewhere.
func (u *usageReport) readSide(d *wire.Decoder) { readInto(d, &u.side, &u.hasSide) }

func readInto(d *wire.Decoder, r *reported, has *bool) {
	read := unreported
	if read.readFrom(d); !read.known() {
		return
	}
	mergeInto(r, &read, has)
}

func mergeInto(r, later *reported, has *bool) {
	if !*has {
		*r, *has = *later, true
		return
	}
	r.merge(later)
}

// readGroq reads the usage in an x_groq object.
func (u *usageReport) readGroq(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return
	}
	for key := range d.Object {
		if string(key) == "usage" {
			u.readSide(d)
		}
	}
}

// readChoices reads the usage in the choices of a plain response.
func (u *usageReport) readChoices(choices []byte) {
	d := wire.NewDecoder(choices)
	if d.Kind() != wire.KindArray {
		return
	}
	for range d.Array {
		if d.Kind() != wire.KindObject {
			d.Skip()
			continue
		}
		for key := range d.Object {
			if string(key) == "usage" {
				u.readSide(d)
			}
		}
	}
}

// merge takes over what a later event of the same response reports.
func (u *usageReport) merge(later *usageReport) {
	if later.hasTop {
		mergeInto(&u.top, &later.top, &u.hasTop)
	}
	if later.hasSide {
		mergeInto(&u.side, &later.side, &u.hasSide)
	}
}

// known reports whether any usage was found.
func (u *usageReport) known() bool { return u.hasTop || u.hasSide }

// classes splits the result into the disjoint classes of m.
func (u *usageReport) classes(m *chat.Meter) {
	r := u.top
	switch {
	case !u.known():
		return
	case !u.hasTop:
		r = u.side
	case u.hasSide:
		r = u.side
		r.merge(&u.top)
	}
	m.ReportedTotal, m.SearchContext = r.classes(&m.Usage), r.context
}
