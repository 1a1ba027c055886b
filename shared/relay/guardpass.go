package relay

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/guard/said"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/form"
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
	var c guarded.Content
	streamed := rq.Req.Body != nil && rq.Req.Body != http.NoBody && rq.Req.ContentLength != 0
	switch raw := rq.Route.Shape == routes.Raw; {
	case rq.Form != nil:
		c = formContent(rq.Form, rq.Route.Endpoint)
	case len(body) > 0 && raw && !said.IsJSON(body):
		c.Unread = true
	case len(body) > 0:
		c.JSON, c.Own, c.Unread = body, true, rowsUnread(rq, body)
	case raw:
		c.Unread = streamed
	}
	if rq.Route.Shape == routes.Raw {
		c.Query = said.Query(rq.Req.URL.RawQuery)
	}
	return c
}

// mediaRoutes read the files of a form as pictures or sound, whatever they are declared to be.
var mediaRoutes = map[string]bool{"createTranscription": true, "createTranslation": true, "imageEdit": true, "imageVariation": true}

// formContent is what guardrails are shown of a form: its fields, and its files that are text.
func formContent(f *form.Form, endpoint string) guarded.Content {
	// An uploaded file may be read by a model later, in whatever form.
	c := guarded.Content{Unread: !f.Whole() || endpoint == "uploadFile"}
	doc := []byte{'{'}
	add := func(name, value string) {
		doc = wire.AppendJSONString(append(wire.AppendJSONString(doc, name), ':'), value)
		doc = append(doc, ',')
	}
	for name, value := range f.Fields() {
		add(strings.TrimSuffix(name, "[]"), value)
	}
	for _, file := range f.Attachments() {
		if text, ok := said.ReadFile(file.Type, file.Body, mediaRoutes[endpoint]); !ok {
			c.Unread = true
		} else if text != "" {
			add("text", text)
		}
	}
	c.JSON = append(bytes.TrimSuffix(doc, []byte{','}), '}')
	return c
}

// rowsUnread reports whether the request creates a batch, or starts the run of an evaluation,
// whose rows were not judged. Those of a batch that the gateway submits to a provider were
// judged one by one.
func rowsUnread(rq *requests, body []byte) bool {
	if rq.Behalf != nil || rq.Req.Method != http.MethodPost {
		return false
	}
	return chosen.RowsFile(rq.RawPath(), body) != "" || chosen.EvalRowsElsewhere(rq.RawPath(), body)
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
