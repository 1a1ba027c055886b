package relay

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/guard/said"
	"gateway/shared/relay/guarded"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/tail"
	"gateway/shared/wire"
)

// content is what guardrails are shown of the request. Whatever has a body is shown to them,
// or is said to be unread: the path by which it came does not matter.
func (rq *requests) content() guarded.Content {
	body := rq.In
	if rq.To.Body != nil {
		body = rq.To.Body
	}
	switch {
	case rq.Form != nil:
		doc := []byte{'{'}
		for name, value := range rq.Form.Fields() {
			doc = wire.AppendJSONString(append(wire.AppendJSONString(doc, strings.TrimSuffix(name, "[]")), ':'), value)
			doc = append(doc, ',')
		}
		// An uploaded file may be read by a model later; pictures and sound are not text.
		return guarded.Content{JSON: append(bytes.TrimSuffix(doc, []byte{','}), '}'), Unread: !rq.Form.Whole() || rq.Route.Endpoint == "uploadFile"}
	case len(body) > 0:
		if rq.Route.Shape == routes.Raw && !said.IsJSON(body) {
			return guarded.Content{Unread: true}
		}
		return guarded.Content{JSON: body, Own: true}
	}
	streamed := rq.Req.Body != nil && rq.Req.Body != http.NoBody && rq.Req.ContentLength != 0
	return guarded.Content{Unread: rq.Route.Shape == routes.Raw && streamed}
}

// guardPassed has the guardrails behind a target judge an answer that is passed on as it
// comes. One that they may withhold is read whole before any of it is sent; otherwise they
// judge it once it has been sent.
func (x *exchanges) guardPassed(a answer) answer {
	resp := a.resp
	if x.Route.Shape == routes.Socket || x.Route.Retold != nil || resp.StatusCode < 200 || resp.StatusCode > 299 || !x.guards.Outputs() {
		return a
	}
	kind := resp.Header.Get("Content-Type")
	if !x.guards.Waits(strings.HasPrefix(kind, "text/event-stream") || strings.HasPrefix(kind, "application/vnd.amazon.eventstream")) {
		resp.Body = &overheard{ReadCloser: resp.Body, ended: func(body []byte) { x.guards.Ended(kind, body) }}
		return a
	}
	buf := new(pooled.Buffer) // its memory goes into the answer
	if err := x.readWhole(buf, resp, maxPlainAnswer); err != nil {
		return answer{fault: fault.From(x.brokenAnswer(err, buf.B)), failed: resp.Header}
	}
	_ = resp.Body.Close()
	resp.Header.Del("Content-Encoding") // it was read and unzipped
	out, err := x.guards.Whole(kind, buf.B)
	if err != nil {
		x.learnWithheld(resp, buf.B)
		return answer{fault: fault.From(err), failed: resp.Header}
	}
	if resp.Header.Get("Content-Length") != "" {
		resp.Header.Set("Content-Length", strconv.Itoa(len(out)))
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(out)), int64(len(out))
	return a
}

// learnWithheld charges an answer that was made and is not sent.
func (x *exchanges) learnWithheld(resp *http.Response, body []byte) {
	if x.Route.Shape != routes.Raw {
		x.LearnOperation(x.Meter(body))
		return
	}
	meter := tail.New(&http.Response{Header: http.Header{"Content-Type": resp.Header["Content-Type"]}})
	meter.Wide = true
	meter.Feed(body)
	x.LearnRaw(meter, resp.StatusCode)
}

// maxOverheard bounds how much of a stream is kept for guardrails that judge it at its end.
const maxOverheard = 8 << 20

// overheard keeps what is read of a body, and hands it over at its end. A longer body is
// judged by its beginning.
type overheard struct {
	io.ReadCloser
	kept  []byte
	ended func(body []byte)
}

// Read implements io.Reader.
func (o *overheard) Read(p []byte) (int, error) {
	n, err := o.ReadCloser.Read(p)
	o.kept = append(o.kept, p[:min(n, maxOverheard-len(o.kept))]...)
	if err == io.EOF && o.ended != nil {
		o.ended(o.kept)
		o.ended = nil
	}
	return n, err
}
