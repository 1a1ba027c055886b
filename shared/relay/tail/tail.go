// Package tail reads the usage out of answers that are passed on as they come: from
// their end, where providers tell it.
package tail

import (
	"bytes"
	"context"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/pricing"
)

// Meter reads usage out of one answer that is passed through: it keeps the
// end of it, where providers report usage.
type Meter struct {
	Stream bool
	events bool // a stream of server-sent events
	JSON   bool
	lines  bool // a stream of JSON objects, one on each line
	Cut    bool // the answer broke off
	head   http.Header
	Wide   bool // the end of a stream may be long
	Total  int64
	Kept   []byte
	ctx    context.Context
	lease  *egress.Lease // nil: its memory is not counted
	leased int64
	packed bool // what is kept is the beginning of what came compressed; see Unpack
}

const (
	keep = 32 << 10
	most = 4 << 20 // plain JSON answers are kept whole up to this
)

// New makes a meter for the body of resp.
func New(resp *http.Response) *Meter {
	kind := resp.Header.Get("Content-Type")
	m := &Meter{
		Stream: strings.HasPrefix(kind, "text/event-stream") || strings.HasPrefix(kind, "application/vnd.amazon.eventstream"),
		JSON:   strings.HasPrefix(kind, "application/json"),
		lines:  strings.HasPrefix(kind, "application/stream+json") || strings.HasPrefix(kind, "application/x-ndjson"),
		head:   resp.Header,
	}
	m.Stream = m.Stream || m.lines
	m.events = m.Stream && strings.HasPrefix(kind, "text/event-stream")
	m.packed = (m.Stream || m.JSON) && resp.Header.Get("Content-Encoding") != ""
	return m
}

// Memory counts what the meter keeps on a lease.
func (m *Meter) Memory(ctx context.Context, l *egress.Lease) { m.ctx, m.lease = ctx, l }

// room tells whether n bytes more may be kept.
func (m *Meter) room(n int) bool {
	need := int64(len(m.Kept) + n)
	if m.lease == nil || need <= max(egress.Uncounted, m.leased) {
		return true
	}
	more := max(need-m.leased, m.leased)
	if m.lease.Take(m.ctx, more) != nil {
		return false
	}
	m.leased += more
	return true
}

// Feed takes what arrived of the body.
func (m *Meter) Feed(p []byte) {
	m.Total += int64(len(p))
	if !m.JSON && !m.Stream {
		return
	}
	if m.packed {
		m.feedPacked(p)
		return
	}
	if !m.room(len(p)) {
		m.Kept = m.Kept[len(m.Kept)-min(len(m.Kept), keep):] // what counts stands at the end
	}
	m.Kept = append(m.Kept, p...)
	bound := most
	if m.Stream && !m.Wide {
		bound = keep
	}
	if len(m.Kept) > 2*bound {
		m.Kept = append(m.Kept[:0], m.Kept[len(m.Kept)-bound:]...)
	}
}

// WholeEvents is the tail of a stream of server-sent events without the event in whose
// middle it may begin.
func (m *Meter) WholeEvents() []byte {
	if m.Total > int64(len(m.Kept)) {
		for _, end := range []string{"\n\n", "\r\n\r\n"} {
			if _, rest, found := bytes.Cut(m.Kept, []byte(end)); found && m.events {
				return rest
			}
		}
	}
	return m.Kept
}

// Read gives the usage in the dialect of the provider.
func (m *Meter) Read(d chat.Passer) chat.Meter {
	if d == nil || len(m.Kept) == 0 {
		return chat.Meter{OutputBytes: m.Total}
	}
	var got chat.Meter
	switch {
	case m.JSON:
		got = d.MeterResponse(m.Kept)
	case m.lines:
		return d.MeterResponse(lastLine(m.Kept))
	default:
		f := d.NewStreamFilter(&chat.FilterOptions{IncludeUsage: true})
		_, _ = f.Feed(m.WholeEvents())
		f.End()
		if got = f.Meter(); !got.Usage.Known() && m.events {
			// An event may hold a plain answer, as those of older APIs do at the end.
			if last := MeterEvents(d.MeterResponse, m.WholeEvents()); last.Usage.Known() {
				return last
			}
		}
	}
	if !got.Usage.Known() {
		got.Usage = toldInHeaders(m.head)
	}
	return got
}

func lastLine(text []byte) []byte {
	text = bytes.TrimRight(text, "\r\n \t")
	return text[bytes.LastIndexByte(text, '\n')+1:]
}

// toldInHeaders is what Bedrock tells of a call of InvokeModel in its headers, whatever
// the shape of the model is.
func toldInHeaders(h http.Header) (u pricing.Usage) {
	for name, class := range map[string]pricing.Class{"X-Amzn-Bedrock-Input-Token-Count": pricing.Input, "X-Amzn-Bedrock-Output-Token-Count": pricing.Output} {
		if n, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && n >= 0 {
			u.Set(class, n)
		}
	}
	return u
}
