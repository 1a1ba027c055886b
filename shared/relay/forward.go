package relay

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/record"
	"gateway/shared/relay/response"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/wire"
)

// sendPassed forwards the response of an operation as it arrives: audio, files, streams of
// events.
func sendPassed(c *call, resp *http.Response) error {
	h := c.reply.w.Header()
	for _, name := range [...]string{"Content-Type", "Content-Disposition", "Content-Encoding", "Cache-Control"} {
		if v := resp.Header[name]; len(v) > 0 {
			h[name] = v[:1:1]
		}
	}
	if c.req.Route.Free && c.req.Route.EarlierResponse == nil && resp.ContentLength >= 0 {
		// If budgets are in force, the end of the body must wait for the settlement.
		h["Content-Length"] = []string{strconv.FormatInt(resp.ContentLength, 10)}
	}
	setResponseHeaders(c, resp.Header)
	c.reply.head(c.guards.Verdict.Status(http.StatusOK))
	if c.req.Route.EarlierResponse != nil && events(resp) {
		c.reply.write(c.guards.FirstEvent(c.req.Route.Endpoint, c.target.StrictOpenAI()))
	}
	meter := response.NewUsageTail(resp)
	meter.Memory(c.req.Ctx, c.req.Lease)
	meter.KeepsLargeEnd = true // an event may hold an image
	whole := pour(c.relay, &c.reply, &c.log, resp.Body, meter, readable(resp.Header.Get("Content-Type")))
	meter.Unpack()
	if meter.Stream {
		accounting.RecordOperationUsage(&c.bill, accounting.MeterEvents(&c.bill, meter.Retained))
		accounting.SettleResponse(&c.bill, meter.Events(), true)
		if whole {
			judgeRepeated(&c.target, &c.reply, &c.log, &c.guards, meter.Events())
		}
	} else {
		accounting.RecordOperationUsage(&c.bill, accounting.Meter(&c.bill, nil))
	}
	if !whole {
		c.log.Reject(brokeOff())
		c.reply.broken = true // the client must see that the body is incomplete
		return nil
	}
	settleAndRecord(c)
	return nil
}

// readable reports whether a log can show a media type.
func readable(contentType string) bool {
	return strings.HasPrefix(contentType, "text/") || strings.HasPrefix(contentType, "application/json")
}

// pour forwards a body as it arrives, and logs it if it is readable; the result is false if it was
// truncated.
func pour(r *Relay, rw *reply, log *record.Log, body io.Reader, meter *response.UsageTail, shown bool) (whole bool) {
	chunk := buffer.For(streamChunk)
	defer chunk.Free()
	p := chunk.B[:cap(chunk.B)]
	rw.flushWhenWaiting(body)
	for {
		t := r.Now()
		n, err := body.Read(p)
		log.Wait(r.Now().Sub(t))
		if n > 0 {
			meter.Feed(p[:n])
			if shown {
				log.Body(record.Response, p[:n])
			} else {
				log.Count(int64(n))
			}
			rw.write(p[:n])
			rw.flushSoon()
		}
		if err != nil {
			rw.flushWritten()
			return err == io.EOF
		}
	}
}

// sendHeld sends a buffered response, filtered to the workspace's objects.
func sendHeld(c *call, resp *http.Response) error {
	buf := buffer.For(int(min(resp.ContentLength, maxPlainResponse)) + 1)
	defer buf.Free()
	if err := readWhole(&c.req, buf, resp, maxPlainResponse); err != nil {
		return brokenResponse(c, err, buf.B)
	}
	out := buf.B
	if c.req.Route.BodyMode == routes.Raw { // before anything can fail: it was used
		meter := response.NewUsageTail(&http.Response{Header: http.Header{"Content-Type": resp.Header["Content-Type"]}})
		meter.Feed(out)
		accounting.RecordRawUsage(&c.bill, meter, resp.StatusCode)
		if plainJSON(resp) {
			holdBatch(&c.req, &c.body, &c.bill, out)
			settleBatch(c, out)
		}
	} else {
		accounting.RecordOperationUsage(&c.bill, accounting.Meter(&c.bill, out))
	}
	if target.Filtered(&c.target) {
		var err error
		if out, err = ownList(c, out); err != nil {
			return err
		}
	} else if err := target.RecordOwnership(&c.target, out); err != nil {
		return err
	}
	h := c.reply.w.Header()
	if c.req.Route.BodyMode == routes.Raw {
		egress.CopyResponseHeaders(h, resp.Header)
		c.mask.Head(h)
		h.Del("Content-Encoding") // it was read and inflated
		setResponseHeaders(c, nil)
	} else {
		h["Content-Type"] = jsonType
		setResponseHeaders(c, resp.Header)
	}
	h["Content-Length"] = []string{strconv.Itoa(len(out))}
	sendWhole(c, resp.StatusCode, out)
	return nil
}

// maxEmptyPages limits the pages without objects of this workspace that are skipped in search of
// one with some.
const maxEmptyPages = 50

// ownList filters a page of a list to the workspace's own objects. Empty pages are skipped:
// clients treat one as the end.
func ownList(c *call, page []byte) ([]byte, error) {
	for range maxEmptyPages {
		own, err := c.relay.owners.Divide(c.req.Ctx, c.req.Principal.Scope, &c.target.Choice.Isolation, page)
		if err != nil || own.Entries > 0 || !own.More || own.Last == "" {
			return own.List, err
		}
		if page, err = nextPage(c, own.Last); err != nil {
			return nil, err
		}
	}
	return nil, fault.Newf(fault.NotFound, "after", "The first %d pages of the list contain no objects of this workspace; request longer pages with limit", maxEmptyPages)
}

// nextPage reads the page of a list after an id.
func nextPage(c *call, after string) ([]byte, error) {
	q := c.req.Req.URL.Query()
	name := "after"
	if c.target.Choice.Target.Provider.Dialect == provider.AnthropicMessages && c.target.Choice.Jobs == nil {
		name = "after_id"
	}
	q.Set(name, after)
	resp, err := fetchPart(c, target.Part{Op: c.target.Choice.Op, ID: c.body.ID, Query: q.Encode()})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	buf := new(buffer.Buffer)
	if err := readWhole(&c.req, buf, resp, maxPlainResponse); err != nil {
		return nil, brokenResponse(c, err, buf.B)
	}
	return buf.B, nil
}

// fetchPart calls the target once more in the same request, for a further part: one of the same response, or a file that the request names.
func fetchPart(c *call, of target.Part) (*http.Response, error) {
	c.out.part, c.out.part.Further = of, true
	a := attempt(c, nil)
	if a.fault != nil {
		return nil, a.fault
	}
	if !succeeded(a.resp.StatusCode) {
		a.drop()
		return nil, fault.Newf(fault.ProviderError, "", "%s rejected a request for a part of the response", c.target.Choice.Target.Provider.ID)
	}
	return a.resp, nil
}

// batchState holds the fields read of a batch.
type batchState struct {
	Status string          `json:"status"`
	Output string          `json:"output_file_id"`
	Failed string          `json:"error_file_id"`
	Errors json.RawMessage `json:"errors"`
}

// sendOutput sends the rows of a batch: those of its output file, then those that failed.
func sendOutput(c *call, resp *http.Response) error {
	buf := buffer.New()
	defer buf.Free()
	if err := readWhole(&c.req, buf, resp, maxErrorResponse); err != nil {
		return brokenResponse(c, err, buf.B)
	}
	var b batchState
	if err := json.Unmarshal(buf.B, &b); err != nil {
		return unusable(&c.target, &c.bill, &c.log, &c.mask, err, buf.B)
	}
	if err := target.RecordOwnership(&c.target, buf.B); err != nil {
		return err
	}
	settleBatch(c, buf.B)
	if b.Output == "" && b.Failed == "" {
		if len(b.Errors) > 0 && !wire.IsNull(b.Errors) {
			sendJSON(c, b.Errors, resp.Header)
			return nil
		}
		return fault.Newf(fault.NotFound, "id", "The batch %q is %s and has no output", clipText(c.body.ID), clipText(b.Status))
	}
	return sendFiles(c, b.Output, b.Failed)
}

// sendFiles sends the contents of files, one after the other.
func sendFiles(c *call, ids ...string) error {
	whole, sent := true, false
	meter := response.NewUsageTail(&http.Response{Header: http.Header{}})
	for _, id := range ids {
		if id == "" {
			continue
		}
		resp, err := fetchPart(c, target.Part{Op: provider.FilesContent, ID: id, Query: c.req.Req.URL.RawQuery})
		if err != nil {
			if !sent {
				return err
			}
			whole = false
			break
		}
		if !sent {
			sent = true
			c.reply.w.Header()["Content-Type"] = []string{"application/jsonl"}
			setResponseHeaders(c, resp.Header)
			c.reply.head(http.StatusOK)
		}
		whole = pour(c.relay, &c.reply, &c.log, response.EndLines(resp.Body), meter, true)
		_ = resp.Body.Close()
		if !whole {
			break
		}
	}
	accounting.RecordOperationUsage(&c.bill, accounting.Meter(&c.bill, nil))
	if !whole {
		c.log.Reject(brokeOff())
		c.reply.broken = true
		return nil
	}
	settleAndRecord(c)
	return nil
}
