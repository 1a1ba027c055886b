package response

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

// UsageTail reads usage from one passed-through response: it retains the end of it, where providers
// report usage.
type UsageTail struct {
	Stream   bool
	events   bool // a stream of server-sent events
	JSON     bool
	lines    bool // a stream of JSON objects, one on each line
	Cut      bool // the response was truncated
	head     http.Header
	Wide     bool // the retained end of a stream may be large
	Total    int64
	Retained []byte
	ctx      context.Context
	lease    *egress.Lease // nil: its memory is not counted
	leased   int64
	packed   bool // the buffer is the beginning of a compressed response; see Unpack
}

const (
	keep     = 32 << 10
	maxPlain = 4 << 20 // JSON responses are buffered completely up to this
)

// NewUsageTail returns a meter for the body of resp.
func NewUsageTail(resp *http.Response) *UsageTail {
	kind := resp.Header.Get("Content-Type")
	m := &UsageTail{
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

// Memory counts the meter's buffer on a lease.
func (m *UsageTail) Memory(ctx context.Context, l *egress.Lease) { m.ctx, m.lease = ctx, l }

// room reports whether n more bytes may be buffered.
func (m *UsageTail) room(n int) bool {
	need := int64(len(m.Retained) + n)
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

// Feed consumes bytes of the body.
func (m *UsageTail) Feed(p []byte) {
	m.Total += int64(len(p))
	if !m.JSON && !m.Stream {
		return
	}
	if m.packed {
		m.feedPacked(p)
		return
	}
	if !m.room(len(p)) {
		m.Retained = m.Retained[len(m.Retained)-min(len(m.Retained), keep):] // usage is at the end
	}
	m.Retained = append(m.Retained, p...)
	bound := maxPlain
	if m.Stream && !m.Wide {
		bound = keep
	}
	if len(m.Retained) > 2*bound {
		m.Retained = append(m.Retained[:0], m.Retained[len(m.Retained)-bound:]...)
	}
}

// Events returns the tail of a stream of server-sent events without a partial event at its
// start.
func (m *UsageTail) Events() []byte {
	if m.Total > int64(len(m.Retained)) {
		for _, end := range []string{"\n\n", "\r\n\r\n"} {
			if _, rest, found := bytes.Cut(m.Retained, []byte(end)); found && m.events {
				return rest
			}
		}
	}
	return m.Retained
}

// Read returns the usage in the dialect of the provider.
func (m *UsageTail) Read(d chat.Passer) chat.Meter {
	if d == nil || len(m.Retained) == 0 {
		return chat.Meter{OutputBytes: m.Total}
	}
	var got chat.Meter
	switch {
	case m.JSON:
		got = d.MeterResponse(m.Retained)
	case m.lines:
		return d.MeterResponse(lastLine(m.Retained))
	default:
		f := d.NewStreamFilter(&chat.FilterOptions{IncludeUsage: true})
		_, _ = f.Feed(m.Events())
		f.End()
		if got = f.Meter(); !got.Usage.Known() && m.events {
			// An event may hold a complete response, as those of older APIs do at the end.
			if last := MeterEvents(d.MeterResponse, m.Events()); last.Usage.Known() {
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

// toldInHeaders returns the usage that Bedrock reports in the headers of an InvokeModel
// response, for any model format.
func toldInHeaders(h http.Header) (u pricing.Usage) {
	for name, class := range map[string]pricing.Class{"X-Amzn-Bedrock-Input-Token-Count": pricing.Input, "X-Amzn-Bedrock-Output-Token-Count": pricing.Output} {
		if n, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && n >= 0 {
			u.Set(class, n)
		}
	}
	return u
}
