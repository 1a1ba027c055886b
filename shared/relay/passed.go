package relay

import (
	"encoding/json"
	"io"
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/pooled"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/tail"
	"gateway/shared/wire"
)

// sendPassed passes an answer of an operation on as it comes: sound, files,
// streams of events.
func (s *sender) sendPassed(resp *http.Response) error {
	h := s.w.Header()
	for _, name := range [...]string{"Content-Type", "Content-Disposition", "Content-Encoding", "Cache-Control"} {
		if v := resp.Header[name]; len(v) > 0 {
			h[name] = v[:1:1]
		}
	}
	if s.Route.Free && s.Route.Retold == nil && resp.ContentLength >= 0 {
		// Where money is counted the end of the body must wait for the books.
		h["Content-Length"] = []string{strconv.FormatInt(resp.ContentLength, 10)}
	}
	s.answerHeaders(resp.Header)
	s.head(s.guards.Verdict.Status(http.StatusOK))
	if s.Route.Retold != nil && events(resp) {
		s.write(s.guards.FirstEvent(s.Route.Endpoint, s.Strict()))
	}
	meter := tail.New(resp)
	meter.Memory(s.Ctx, s.Lease)
	meter.Wide = true // an event may hold an image
	whole := s.pour(resp.Body, meter, readable(resp.Header.Get("Content-Type")))
	meter.Unpack()
	if meter.Stream {
		s.LearnOperation(s.MeterEvents(meter.Kept))
		s.SettleResponse(meter.WholeEvents(), true)
		if whole {
			judgeRetold(s, meter.WholeEvents())
		}
	} else {
		s.LearnOperation(s.Meter(nil))
	}
	if !whole {
		recordFailure(s.reply, brokeOff())
		s.broken = true // the client must see that the body is not whole
		return nil
	}
	s.keepBooks()
	return nil
}

// readable tells whether a log can show what has a media type.
func readable(contentType string) bool {
	return strings.HasPrefix(contentType, "text/") || strings.HasPrefix(contentType, "application/json")
}

// pour sends a body on as it comes, and keeps it for the log where that can show
// it; whole is false when it broke off.
func (s *sender) pour(body io.Reader, meter *tail.Meter, shown bool) (whole bool) {
	chunk := pooled.For(streamChunk)
	defer chunk.Free()
	p := chunk.B[:cap(chunk.B)]
	s.flushWhenWaiting(body)
	for {
		t := s.Now()
		n, err := body.Read(p)
		s.waited += s.Now().Sub(t)
		if n > 0 {
			meter.Feed(p[:n])
			if shown {
				s.captureAnswer(p[:n])
			} else {
				s.answered += int64(n)
			}
			s.write(p[:n])
			s.flushSoon()
		}
		if err != nil {
			s.flushWritten()
			return err == io.EOF
		}
	}
}

// sendHeld sends an answer that was read whole, as far as it is the workspace's.
func (s *sender) sendHeld(resp *http.Response) error {
	buf := pooled.For(int(min(resp.ContentLength, maxPlainAnswer)) + 1)
	defer buf.Free()
	if err := s.readWhole(buf, resp, maxPlainAnswer); err != nil {
		return s.brokenAnswer(err, buf.B)
	}
	out := buf.B
	if s.Route.Shape == routes.Raw { // before anything can fail: it is used
		meter := tail.New(&http.Response{Header: http.Header{"Content-Type": resp.Header["Content-Type"]}})
		meter.Feed(out)
		s.LearnRaw(meter, resp.StatusCode)
		if plainJSON(resp) {
			holdBatch(s, out)
			s.settleBatch(out)
		}
	} else {
		s.LearnOperation(s.Meter(out))
	}
	if s.Filtered() {
		var err error
		if out, err = s.ownList(out); err != nil {
			return err
		}
	} else if err := s.Keep(out); err != nil {
		return err
	}
	h := s.w.Header()
	if s.Route.Shape == routes.Raw {
		egress.CopyResponseHeaders(h, resp.Header)
		s.stars.Head(h)
		h.Del("Content-Encoding") // it was read and unzipped
		s.answerHeaders(nil)
	} else {
		h["Content-Type"] = jsonType
		s.answerHeaders(resp.Header)
	}
	h["Content-Length"] = []string{strconv.Itoa(len(out))}
	s.sendWhole(resp.StatusCode, out)
	return nil
}

// maxEmptyPages bounds how many pages that hold nothing of this workspace are passed over
// in search of one that does.
const maxEmptyPages = 50

// ownList leaves the workspace's own things in a page of a list. Pages that hold
// none are passed over: clients take an empty one for the end.
func (s *sender) ownList(page []byte) ([]byte, error) {
	for range maxEmptyPages {
		own, err := s.owners.Divide(s.Ctx, s.Who.Scope, &s.To.Wall, page)
		if err != nil || own.Entries > 0 || !own.More || own.Last == "" {
			return own.List, err
		}
		if page, err = s.nextPage(own.Last); err != nil {
			return nil, err
		}
	}
	return nil, fault.Newf(fault.NotFound, "after", "The first %d pages of the list hold nothing of this workspace; ask for longer pages by limit", maxEmptyPages)
}

// nextPage reads the page of a list behind an id.
func (s *sender) nextPage(after string) ([]byte, error) {
	q := s.Req.URL.Query()
	name := "after"
	if s.To.Target.Provider.Dialect == provider.AnthropicMessages && s.To.Jobs == nil {
		name = "after_id"
	}
	q.Set(name, after)
	resp, err := s.again(chosen.Part{Op: s.To.Op, ID: s.ID, Query: q.Encode()})
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	buf := new(pooled.Buffer)
	if err := s.readWhole(buf, resp, maxPlainAnswer); err != nil {
		return nil, s.brokenAnswer(err, buf.B)
	}
	return buf.B, nil
}

// again calls the target once more in the same request, for what belongs to the
// same answer.
func (s *sender) again(of chosen.Part) (*http.Response, error) {
	s.part, s.part.Further = of, true
	a := s.attempt(nil)
	if a.fault != nil {
		return nil, a.fault
	}
	if a.resp.StatusCode < 200 || a.resp.StatusCode > 299 {
		a.drop()
		return nil, fault.Newf(fault.ProviderError, "", "%s refused a part of the answer", s.To.Target.Provider.ID)
	}
	return a.resp, nil
}

// batchState is what the gateway reads of a batch.
type batchState struct {
	Status string          `json:"status"`
	Output string          `json:"output_file_id"`
	Failed string          `json:"error_file_id"`
	Errors json.RawMessage `json:"errors"`
}

// sendOutput answers with the rows that a batch made: those of its output file,
// then those that failed.
func (s *sender) sendOutput(resp *http.Response) error {
	buf := pooled.New()
	defer buf.Free()
	if err := s.readWhole(buf, resp, maxErrorAnswer); err != nil {
		return s.brokenAnswer(err, buf.B)
	}
	var b batchState
	if err := json.Unmarshal(buf.B, &b); err != nil {
		return s.unusable(err, buf.B)
	}
	if err := s.Keep(buf.B); err != nil {
		return err
	}
	s.settleBatch(buf.B)
	if b.Output == "" && b.Failed == "" {
		if len(b.Errors) > 0 && !wire.IsNull(b.Errors) {
			s.sendJSON(b.Errors, resp.Header)
			return nil
		}
		return fault.Newf(fault.NotFound, "id", "The batch %q is %s and has no output", clipText(s.ID), clipText(b.Status))
	}
	return s.sendFiles(b.Output, b.Failed)
}

// sendFiles answers with the contents of files, one behind the other.
func (s *sender) sendFiles(ids ...string) error {
	whole, sent := true, false
	meter := tail.New(&http.Response{Header: http.Header{}})
	for _, id := range ids {
		if id == "" {
			continue
		}
		resp, err := s.again(chosen.Part{Op: provider.FilesContent, ID: id, Query: s.Req.URL.RawQuery})
		if err != nil {
			if !sent {
				return err
			}
			whole = false
			break
		}
		if !sent {
			sent = true
			s.w.Header()["Content-Type"] = []string{"application/jsonl"}
			s.answerHeaders(resp.Header)
			s.head(http.StatusOK)
		}
		whole = s.pour(tail.Lines(resp.Body), meter, true)
		_ = resp.Body.Close()
		if !whole {
			break
		}
	}
	s.LearnOperation(s.Meter(nil))
	if !whole {
		recordFailure(s.reply, brokeOff())
		s.broken = true
		return nil
	}
	s.keepBooks()
	return nil
}
