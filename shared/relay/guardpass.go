package relay

import (
	"bytes"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/guard/content"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/form"
	"gateway/shared/relay/guardrail"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/wire"
)

// requestContent returns the input of guardrails from the request. Every body is judged, or
// marked as unread, for any path.
func requestContent(tg *target.Target) guardrail.Content {
	body := tg.Body.In
	if tg.To.Body != nil {
		body = tg.To.Body
	}
	var shown guardrail.Content
	streamed := tg.Req.Req.Body != nil && tg.Req.Req.Body != http.NoBody && tg.Req.Req.ContentLength != 0
	switch raw := tg.Req.Route.Shape == routes.Raw; {
	case tg.Body.Form != nil:
		shown = formContent(tg.Body.Form, tg.Req.Route.Endpoint)
	case len(body) > 0 && raw && !content.IsJSON(body):
		shown.Unread = true
	case len(body) > 0:
		shown.JSON, shown.Own, shown.Unread = body, true, rowsUnread(tg.Req, tg.Body, body)
	case raw:
		shown.Unread = streamed
	}
	if tg.Req.Route.Shape == routes.Raw {
		shown.Query = content.Address(tg.Req.Req.URL.Path, tg.Req.Req.URL.RawQuery)
	}
	return shown
}

// mediaRoutes read the files of a form as images or audio, regardless of their declared type.
var mediaRoutes = map[string]bool{"createTranscription": true, "createTranslation": true, "imageEdit": true, "imageVariation": true}

// formContent returns the input of guardrails from a form: its fields, and its text files.
func formContent(f *form.Form, endpoint string) guardrail.Content {
	// An uploaded file may later be read by a model, in any form.
	c := guardrail.Content{Unread: !f.Complete() || endpoint == "uploadFile"}
	doc := []byte{'{'}
	add := func(name, value string) {
		doc = wire.AppendJSONString(append(wire.AppendJSONString(doc, name), ':'), value)
		doc = append(doc, ',')
	}
	for name, value := range f.Fields() {
		add(strings.TrimSuffix(name, "[]"), value)
	}
	for _, file := range f.Attachments() {
		if text, ok := content.ReadFile(file.Type, file.Body, mediaRoutes[endpoint]); !ok {
			c.Unread = true
		} else if text != "" {
			add("text", text)
		}
	}
	c.JSON = append(bytes.TrimSuffix(doc, []byte{','}), '}')
	return c
}

// rowsUnread reports whether the request creates a batch, or starts the run of an evaluation,
// with rows that were not judged. Those of a batch that the gateway submits to a provider were
// judged one by one.
func rowsUnread(q *admission.Request, in *body.Body, body []byte) bool {
	if q.Behalf != nil || q.Req.Method != http.MethodPost {
		return false
	}
	return target.RowsFile(in.RawPath(), body) != "" || target.EvalRowsElsewhere(in.RawPath(), body)
}

// guardPassed runs the output guardrails on a passed-through response. One that they may deny is
// read completely before any of it is sent; otherwise they judge it after it was sent.
func guardPassed(c *call, a answer) answer {
	resp := a.resp
	if c.req.Route.Shape == routes.Socket || c.req.Route.Retold != nil || resp.StatusCode < 200 || resp.StatusCode > 299 || !c.guards.Outputs() {
		return a
	}
	kind := resp.Header.Get("Content-Type")
	if !c.guards.Waits(strings.HasPrefix(kind, "text/event-stream") || strings.HasPrefix(kind, "application/vnd.amazon.eventstream")) {
		resp.Body = &overheard{ReadCloser: resp.Body, ended: func(body []byte) { c.guards.Ended(kind, body) }}
		return a
	}
	buf := new(buffer.Buffer) // its memory becomes part of the answer
	if err := readWhole(&c.req, buf, resp, maxPlainAnswer); err != nil {
		return answer{fault: fault.From(brokenAnswer(c, err, buf.B)), failed: resp.Header}
	}
	_ = resp.Body.Close()
	resp.Header.Del("Content-Encoding") // it was read and inflated
	out, err := c.guards.JudgeResponse(kind, buf.B)
	if err != nil {
		learnWithheld(&c.req, &c.bill, resp, buf.B)
		return answer{fault: fault.From(err), failed: resp.Header}
	}
	if resp.Header.Get("Content-Length") != "" {
		resp.Header.Set("Content-Length", strconv.Itoa(len(out)))
	}
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(out)), int64(len(out))
	return a
}

// learnWithheld charges a response that was created and is not sent.
func learnWithheld(q *admission.Request, bill *accounting.Bill, resp *http.Response, body []byte) {
	if q.Route.Shape != routes.Raw {
		accounting.LearnOperation(bill, accounting.Meter(bill, body))
		return
	}
	meter := response.NewUsageTail(&http.Response{Header: http.Header{"Content-Type": resp.Header["Content-Type"]}})
	meter.Wide = true
	meter.Feed(body)
	accounting.LearnRaw(bill, meter, resp.StatusCode)
}

// maxOverheard limits the bytes of a stream that are buffered for guardrails that judge it at
// its end.
const maxOverheard = 8 << 20

// overheard buffers the bytes read from a body, and passes them to ended at its end. A longer
// body is judged by its beginning.
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
