package response

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/pricing"
	"gateway/shared/relay/admission"
)

// UsageTail reads usage from one passed-through response: it retains the end of it, where providers
// report usage.
type UsageTail struct {
	Stream        bool
	events        bool // a stream of server-sent events
	JSON          bool
	lines         bool // a stream of JSON objects, one on each line
	Cut           bool // the response was truncated
	head          http.Header
	KeepsLargeEnd bool // the retained end of a stream may be large
	Total         int64
	Retained      []byte
	ctx           context.Context
	lease         *egress.Lease // nil: its memory is not counted
	leased        int64
	packed        bool // the buffer is the beginning of a compressed response; see Unpack
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

// fits reports whether n more bytes may be buffered.
func (m *UsageTail) fits(n int) bool {
	need := int64(len(m.Retained) + n)
	if m.lease == nil || need <= max(egress.Uncounted, m.leased) {
		return true
	}
	more := max(need-m.leased, m.leased)
	if m.lease.Reserve(m.ctx, more) != nil {
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
	if !m.fits(len(p)) {
		m.Retained = m.Retained[len(m.Retained)-min(len(m.Retained), keep):] // usage is at the end
	}
	m.Retained = append(m.Retained, p...)
	bound := maxPlain
	if m.Stream && !m.KeepsLargeEnd {
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
		if got = f.Meter(); !got.Usage.IsReported() && m.events {
			// An event may hold a complete response, as those of older APIs do at the end.
			if last := MeterEvents(d.MeterResponse, m.Events()); last.Usage.IsReported() {
				return last
			}
		}
	}
	if !got.Usage.IsReported() {
		got.Usage = headerUsage(m.head)
	}
	return got
}

func lastLine(text []byte) []byte {
	text = bytes.TrimRight(text, "\r\n \t")
	return text[bytes.LastIndexByte(text, '\n')+1:]
}

// headerUsage returns the usage that Bedrock reports in the headers of an InvokeModel
// response, for any model format.
func headerUsage(h http.Header) (u pricing.Usage) {
	for name, class := range map[string]pricing.Class{"X-Amzn-Bedrock-Input-Token-Count": pricing.Input, "X-Amzn-Bedrock-Output-Token-Count": pricing.Output} {
		if n, err := strconv.ParseInt(h.Get(name), 10, 64); err == nil && n >= 0 {
			u.Set(class, n)
		}
	}
	return u
}

// EndLines reads a text so that its last line is ended.
func EndLines(src io.Reader) io.Reader { return &lines{src: src} }

type lines struct {
	src  io.Reader
	last byte
}

// Read implements io.Reader.
func (l *lines) Read(p []byte) (int, error) {
	n, err := l.src.Read(p)
	if n > 0 {
		l.last = p[n-1]
	}
	if err == io.EOF && n < len(p) && l.last != 0 && l.last != '\n' {
		p[n], l.last = '\n', '\n'
		n++
	}
	return n, err
}

// mostInflated limits the inflated size of a compressed response that is searched for usage, in
// bytes. It is inflated in pieces; of a stream only the end is retained.
const mostInflated = 64 << 20

// feedPacked buffers a compressed response from its beginning: it can only be inflated from
// there.
func (m *UsageTail) feedPacked(p []byte) {
	if len(m.Retained)+len(p) > maxPlain || !m.fits(len(p)) {
		m.stop()
		return
	}
	m.Retained = append(m.Retained, p...)
}

// stop stops metering an unreadable response.
func (m *UsageTail) stop() {
	m.Stream, m.JSON, m.lines, m.events, m.Retained = false, false, false, false, nil
}

// Unpack inflates a response that was compressed without a request for it. It is called before
// the meter is read and does nothing for other responses. A response is not read if egress
// cannot inflate it, if its compression ratio is excessive, or if it is too large to buffer. Of
// a truncated one, the beginning is read. unread reports that the usage is unknown for one of
// these reasons.
func (m *UsageTail) Unpack() (unread bool) {
	if !m.packed {
		return false
	}
	kept, head := m.Retained, m.head.Clone()
	inner := *m
	inner.packed, inner.Retained, inner.Total = false, nil, 0
	resp := &http.Response{Header: head, Body: io.NopCloser(bytes.NewReader(kept))}
	if !m.JSON && !m.Stream || egress.Inflate(resp, mostInflated) != nil {
		m.stop()
		return true
	}
	var piece [8 << 10]byte
	for {
		n, err := resp.Body.Read(piece[:])
		inner.Feed(piece[:n])
		if err == nil {
			continue
		}
		inner.Cut = inner.Cut || err != io.EOF
		if err != io.EOF && err != io.ErrUnexpectedEOF { // not truncated: it is damaged, or a decompression bomb
			m.stop()
			return true
		}
		*m = inner
		return false
	}
}

// Recorder is a ResponseWriter that buffers a response of at most Max bytes.
type Recorder struct {
	Max        int
	Status     int
	Overflowed bool // the response was longer
	header     http.Header
	Body       bytes.Buffer
}

// Header implements http.ResponseWriter.
func (r *Recorder) Header() http.Header {
	if r.header == nil {
		r.header = make(http.Header)
	}
	return r.header
}

// WriteHeader implements http.ResponseWriter.
func (r *Recorder) WriteHeader(status int) {
	if r.Status == 0 {
		r.Status = status
	}
}

// Write implements io.Writer.
func (r *Recorder) Write(p []byte) (int, error) {
	r.WriteHeader(http.StatusOK)
	if r.Overflowed || r.Body.Len()+len(p) > r.Max {
		r.Overflowed = true
		return len(p), nil // the rest is still read, so that it is charged
	}
	return r.Body.Write(p)
}

// limitPrefix is the prefix of a provider's forwarded rate limit headers.
const limitPrefix = "X-Gateway-Provider-"

// PassHeaders forwards the provider's request id, and its rate limits under a prefix.
func PassHeaders(h, from http.Header) {
	for name, values := range from {
		switch {
		case name == "X-Request-Id" || name == "Request-Id":
			h[admission.ProviderRequestID] = values
		case strings.HasPrefix(name, "X-Ratelimit-") || strings.HasPrefix(name, "Anthropic-Ratelimit-"):
			h[limitPrefix+strings.TrimPrefix(name, "X-")] = values
		}
	}
}

// PassRetry forwards the provider's retry headers, unchanged.
func PassRetry(h, told http.Header) {
	for _, name := range [...]string{"Retry-After", "Retry-After-Ms", "X-Should-Retry"} {
		if v := told[name]; len(v) > 0 {
			h[name] = v[:1:1]
		}
	}
}
