package relay

import (
	"bytes"
	"context"
	"net/http"
	"net/url"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/pricing"
)

// rawPath is the path behind the gateway's base, as it came on the wire.
// /proxy/{anything} reaches paths that the gateway's own routes shadow.
func (b *clientBody) rawPath() string {
	path := b.req.URL.EscapedPath()
	if b.req.RequestURI != "" {
		path, _, _ = strings.Cut(b.req.RequestURI, "?")
	}
	path = strings.TrimPrefix(path, "/v1")
	if b.slug != "" && b.pathID != "" {
		path = strings.TrimSuffix(path, b.pathID) + url.PathEscape(b.id) // the saved provider was named in it
	}
	if rest, ok := strings.CutPrefix(path, "/proxy/"); ok {
		return "/" + rest
	}
	return path
}

// tailMeter reads usage out of an answer that is passed through: it keeps the
// end of it, where providers report usage.
type tailMeter struct {
	stream bool
	events bool // a stream of server-sent events
	json   bool
	lines  bool // a stream of JSON objects, one on each line
	cut    bool // the answer broke off
	head   http.Header
	wide   bool // the end of a stream may be long
	total  int64
	tail   []byte
	ctx    context.Context
	lease  *egress.Lease // nil: its memory is not counted
	leased int64
}

const (
	tailKeep = 32 << 10
	tailMax  = 4 << 20 // plain JSON answers are kept whole up to this
)

func newTailMeter(resp *http.Response) *tailMeter {
	kind := resp.Header.Get("Content-Type")
	m := &tailMeter{
		stream: strings.HasPrefix(kind, "text/event-stream") || strings.HasPrefix(kind, "application/vnd.amazon.eventstream"),
		json:   strings.HasPrefix(kind, "application/json"),
		lines:  strings.HasPrefix(kind, "application/stream+json") || strings.HasPrefix(kind, "application/x-ndjson"),
		head:   resp.Header,
	}
	if resp.Header.Get("Content-Encoding") != "" {
		m.stream, m.json, m.lines = false, false, false // its bytes say nothing without decoding
	}
	m.stream = m.stream || m.lines
	m.events = m.stream && strings.HasPrefix(kind, "text/event-stream")
	return m
}

// memory counts what the meter keeps as the call's.
func (m *tailMeter) memory(q *request) { m.ctx, m.lease = q.ctx, q.lease }

// room tells whether n bytes more may be kept.
func (m *tailMeter) room(n int) bool {
	need := int64(len(m.tail) + n)
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

func (m *tailMeter) feed(p []byte) {
	m.total += int64(len(p))
	if !m.json && !m.stream {
		return
	}
	if !m.room(len(p)) {
		m.tail = m.tail[len(m.tail)-min(len(m.tail), tailKeep):] // what counts stands at the end
	}
	m.tail = append(m.tail, p...)
	keep := tailMax
	if m.stream && !m.wide {
		keep = tailKeep
	}
	if len(m.tail) > 2*keep {
		m.tail = append(m.tail[:0], m.tail[len(m.tail)-keep:]...)
	}
}

// wholeEvents is the tail of a stream of server-sent events without the event that
// it may begin in the middle of, which nothing could read.
func (m *tailMeter) wholeEvents() []byte {
	if m.total > int64(len(m.tail)) {
		for _, end := range []string{"\n\n", "\r\n\r\n"} {
			if _, rest, found := bytes.Cut(m.tail, []byte(end)); found && m.events {
				return rest
			}
		}
	}
	return m.tail
}

// meter reads the usage in the dialect of the provider.
func (m *tailMeter) meter(d chat.Passer) chat.Meter {
	if d == nil || len(m.tail) == 0 {
		return chat.Meter{OutputBytes: m.total}
	}
	var got chat.Meter
	switch {
	case m.json:
		got = d.MeterResponse(m.tail)
	case m.lines:
		return d.MeterResponse(lastLine(m.tail))
	default:
		f := d.NewStreamFilter(&chat.FilterOptions{IncludeUsage: true})
		_, _ = f.Feed(m.wholeEvents())
		f.End()
		if got = f.Meter(); !got.Usage.Known() && m.events {
			// An event may hold a plain answer, as those of older APIs do at the end.
			if last := meterEvents(d.MeterResponse, m.wholeEvents()); last.Usage.Known() {
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

// learnRaw takes over what a passed-through answer reported. Elsewhere than on the
// paths that meterRaw knows, usage that is not reported is not guessed: the paths
// of pass-through have no common shape.
func (me *meters) learnRaw(m *tailMeter, status int) {
	var u pricing.Usage
	if status >= 200 && status < 300 {
		got := me.meterRaw(m)
		if got.Model != "" {
			me.rec.Model = got.Model
			if me.to.model == "" {
				me.to.model = got.Model
			}
		}
		me.rec.FinishReason = got.Finish
		var told bool
		if u, told = me.usedRaw(m, got); !told || u.Known() && u == got.Usage {
			if came, ok := me.cutRaw(m); ok {
				u, told = came, true
			}
		}
		if !told && me.reserved != nil && me.outBound > 0 && me.model != "" && me.req.Method == http.MethodPost {
			// A budget is in force: it is settled at an estimate, never at nothing.
			u = me.estimate(tokensOf(int(m.total)))
		}
	}
	u.Add(pricing.Requests, 1)
	me.charge(u)
	if me.rec.Cost > 0 && me.costsNothing() {
		me.spend() // of a run that has ended
	}
}
