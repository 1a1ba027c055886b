package batchrun

import (
	"bytes"
	"context"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/response"
	"gateway/shared/wire"
)

// Limits of one step, in bytes.
const (
	maxFlush    = 16 << 20 // of rows, except the first of them
	maxResponse = 64 << 20 // of one row's response
)

// request is one row of a step.
type request struct {
	line   int
	custom string
	body   []byte
}

// flush runs the next rows. After the last of them the next step is due immediately.
func flush(w *work, ctx context.Context) (made func(*batch.Progress), delay time.Duration, err error) {
	rows, offset, line, over, err := next(w, ctx)
	if err != nil {
		return nil, 0, err
	}
	if !over {
		delay = w.runner.Timing.Pause
	}
	numbers := make([]int, len(rows))
	for i := range rows {
		numbers[i] = rows[i].line
	}
	good, err := w.runner.Batches.Accepted(ctx, w.sc, w.id, numbers)
	if err != nil {
		return nil, 0, fault.Unavailable(err)
	}
	if err := runRows(w, ctx, rows, good); err != nil {
		return nil, 0, err
	}
	return func(p *batch.Progress) {
		for _, n := range numbers {
			if good[n] {
				p.Succeeded++
			} else {
				p.Bad++
			}
		}
		p.Offset, p.Line = offset, line
		switch {
		case p.Status == batch.Cancelling:
			p.Finalize(batch.Cancelled, w.runner.Now())
		case over:
			p.Finalize(batch.Completed, w.runner.Now())
		}
	}, delay, nil
}

// next reads the rows of a step; over reports that they are the last.
func next(w *work, ctx context.Context) (rows []request, offset int64, line int, over bool, err error) {
	room, f, err := w.input(ctx)
	if err != nil {
		return nil, 0, 0, false, err
	}
	src := room.OpenAt(ctx, f, w.batch.Offset)
	defer src.Close()
	lines := batch.NewLines(src, w.batch.Line, w.batch.Offset)
	for size := 0; ; {
		offset, line = lines.Offset, lines.Number
		text, err := lines.Next()
		if err == io.EOF {
			return rows, offset, line, true, nil
		}
		if err != nil {
			return nil, 0, 0, false, err
		}
		if len(rows) == w.runner.Timing.Flush || len(rows) > 0 && size+len(text) > maxFlush {
			return rows, offset, line, false, nil
		}
		row, err := batch.ParseRow(text)
		if err != nil {
			return nil, 0, 0, false, err
		}
		size += len(text)
		rows = append(rows, request{lines.Number, row.CustomID, bytes.Clone(row.Body)})
	}
}

// runRows runs the rows without a response, concurrently as far as memory for their responses
// allows, and records in good whether they succeeded.
func runRows(w *work, ctx context.Context, rows []request, good map[int]bool) error {
	running, stop := w.running(ctx)
	defer stop()
	var mu sync.Mutex
	var wg sync.WaitGroup
	var errs []error
	left := slices.DeleteFunc(slices.Clone(rows), func(q request) bool {
		_, done := good[q.line]
		return done
	})
	room := newResponseMemory()
	for i := range left {
		q := &left[i]
		wg.Go(func() {
			isGood, err := false, errStopped
			if n := rowUnits(w, q); room.take(running, n) {
				isGood, err = row(w, running, q)
				room.release(n)
			}
			mu.Lock()
			defer mu.Unlock()
			if err != nil {
				errs = append(errs, err)
				return
			}
			good[q.line] = isGood
		})
	}
	wg.Wait()
	if ctx.Err() != nil && len(errs) > 0 {
		return errStopped
	}
	return errors.Join(errs...)
}

// rowUnits returns how many units of memory the response of a row needs.
func rowUnits(w *work, q *request) int {
	if w.batch.Endpoint != "/v1/embeddings" {
		return 1
	}
	return unitsOf(q.body)
}

// running returns the context of rows: it outlives the stop of the process for a while.
func (w *work) running(ctx context.Context) (context.Context, context.CancelFunc) {
	running, cancel := context.WithCancel(context.WithoutCancel(ctx))
	forget := context.AfterFunc(ctx, func() {
		t := time.AfterFunc(w.runner.Timing.Stop, cancel)
		context.AfterFunc(running, func() { t.Stop() })
	})
	return running, func() { forget(); cancel() }
}

// row runs one row until a response can be accepted.
func row(w *work, ctx context.Context, q *request) (good bool, err error) {
	limited, cancel := context.WithTimeout(ctx, w.runner.Timing.Row)
	defer cancel()
	body, err := w.withModel(q.body)
	var got *response.Recorder
	behalf := &relay.InternalCall{Key: w.batch.Key}
	broken := false
	for try := 0; err == nil; try++ {
		got, broken = sendOnce(w, limited, q, body, behalf)
		if ctx.Err() != nil {
			return false, errStopped // its response may be that of a disconnected client
		}
		if limited.Err() != nil || try >= w.runner.Timing.Retries || !broken && !isRetryable(got) {
			break
		}
		if !wait(w, limited, w.runner.Timing.Backoff<<try, got) {
			break
		}
	}
	var out []byte
	switch {
	case err != nil:
		f := fault.From(err)
		out = batch.AppendFailure(nil, w.id, q.line, q.custom, string(f.Code), f.Message)
	case limited.Err() != nil:
		out = batch.AppendFailure(nil, w.id, q.line, q.custom, string(fault.RequestTimeout), "The request took too long")
	case broken:
		out = batch.AppendFailure(nil, w.id, q.line, q.custom, string(fault.InvalidProviderResponse), "The response was truncated")
	case got.Overflowed:
		out = batch.AppendFailure(nil, w.id, q.line, q.custom, string(fault.InvalidProviderResponse), "The response is too long to be stored")
	default:
		good = got.Status >= 200 && got.Status <= 299
		out = batch.AppendResult(nil, w.id, q.line, q.custom, got.Status, behalf.Request, got.Body.Bytes())
	}
	good, err = w.runner.Batches.Accept(context.WithoutCancel(ctx), w.sc, w.id, q.line, good, out)
	if err != nil {
		return false, fault.Unavailable(err)
	}
	return good, nil
}

// sendOnce sends a row through the pipeline once.
func sendOnce(w *work, ctx context.Context, q *request, body []byte, behalf *relay.InternalCall) (*response.Recorder, bool) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, w.batch.Endpoint, bytes.NewReader(body))
	if err != nil { // endpoints are validated
		return &response.Recorder{Status: http.StatusInternalServerError}, false
	}
	req.Header = batch.Headers(w.batch.Options)
	req.Header.Set("Content-Type", "application/json")
	w.trace(req, q.custom)
	got := &response.Recorder{Max: maxResponse}
	broken := w.runner.Mux.Run(got, req, behalf)
	return got, broken
}

// trace records the batch in a request.
func (w *work) trace(req *http.Request, custom string) {
	req.Header.Set("X-Gateway-Trace-Id", w.id)
	meta, _ := wire.ParseMetadata(req.Header.Get("X-Gateway-Metadata"))
	out := append([]byte(nil), '{')
	for k, v := range meta {
		if k != "batch_id" && k != "custom_id" {
			out = wire.AppendJSONString(out, k)
			out = append(wire.AppendJSONString(append(out, ':'), v), ',')
		}
	}
	out = append(wire.AppendJSONString(append(out, `"batch_id":`...), w.id), ',')
	out = append(wire.AppendJSONString(append(out, `"custom_id":`...), clip(custom)), '}')
	req.Header.Set("X-Gateway-Metadata", string(out))
}

// clip truncates a text for metadata.
func clip(s string) string {
	n := 0
	for i := range s {
		if n++; n > 128 {
			return s[:i]
		}
	}
	return s
}

// isRetryable reports whether a response justifies a retry. A route with retries has already done so.
func isRetryable(got *response.Recorder) bool {
	if n := got.Header().Get("X-Gateway-Retry-Attempt-Count"); n != "" && n != "0" {
		return false
	}
	switch got.Status {
	case http.StatusRequestTimeout, http.StatusTooManyRequests, http.StatusInternalServerError, http.StatusBadGateway,
		http.StatusServiceUnavailable, http.StatusGatewayTimeout, 529:
		return true
	}
	return false
}

// wait waits before a retry: as long as the response requires. It returns false if that is too
// long, or if the context ends.
func wait(w *work, ctx context.Context, d time.Duration, got *response.Recorder) bool {
	if n, err := strconv.Atoi(got.Header().Get("Retry-After")); err == nil && n > 0 {
		if d = max(d, time.Duration(n)*time.Second); d > w.runner.Timing.Wait {
			return false
		}
	}
	pause(ctx, d)
	return ctx.Err() == nil
}

var rowMembers = wire.NewKeySet("model", "stream")

// notStreamed rejects rows that request a stream.
func notStreamed(body []byte) error {
	var at wire.Walk
	if err := rowMembers.Walk(body, &at); err != nil {
		return err
	}
	if v := at.Spans[1]; v.Present(body) {
		if on, err := wire.ScanBool(v.Of(body), "body.stream"); err != nil {
			return err
		} else if on {
			return fault.Invalid("body.stream", "body.stream must be false or omitted: rows of a batch are not streamed")
		}
	}
	return nil
}

// withModel adds the model of the batch's options to a row without one.
func (w *work) withModel(body []byte) ([]byte, error) {
	model := w.batch.Options["x-gateway-provider-model"]
	if model == "" {
		return body, nil
	}
	return withDefaultModel(body, model)
}

// modeled adds a model to a body without one.
func withDefaultModel(body []byte, model string) ([]byte, error) {
	var at wire.Walk
	if err := rowMembers.Walk(body, &at); err != nil {
		return nil, err
	}
	if at.Spans[0].Present(body) {
		return body, nil
	}
	return wire.Splice(nil, body, rowMembers.SetKey(&at, 0, wire.AppendJSONString(nil, model))), nil
}

// Responses to the rows of a step are in memory at the same time. Those of chats are short;
// those of embeddings have a vector for every input.
const (
	memoryUnits = 64       // estimated limit for the responses of one step together
	memoryUnit  = 1 << 20  // bytes
	vectorSize  = 64 << 10 // bytes of an encoded vector of 3,072 numbers
)

// responseMemory starts rows as long as there is memory for their responses.
type responseMemory struct {
	free chan struct{} // one for each unit
	next sync.Mutex    // only one row at a time collects units, so that no two wait for each other
}

func newResponseMemory() *responseMemory {
	r := &responseMemory{free: make(chan struct{}, memoryUnits)}
	for range memoryUnits {
		r.free <- struct{}{}
	}
	return r
}

// take waits for n units, at most the total number. It returns false if ctx ends first.
func (r *responseMemory) take(ctx context.Context, n int) bool {
	r.next.Lock()
	defer r.next.Unlock()
	if ctx.Err() != nil {
		return false
	}
	for got := range n {
		select {
		case <-r.free:
		case <-ctx.Done():
			r.release(got)
			return false
		}
	}
	return true
}

func (r *responseMemory) release(n int) {
	for range n {
		r.free <- struct{}{}
	}
}

var inputKey = wire.NewKeySet("input")

// unitsOf estimates the memory for the response to a row, from one unit to all.
func unitsOf(body []byte) int {
	var at wire.Walk
	if inputKey.Walk(body, &at) != nil || !at.Spans[0].Present(body) {
		return 1
	}
	input := at.Spans[0].Of(body)
	if wire.KindOf(input) != wire.KindArray {
		return 1
	}
	n := 0
	d := wire.NewDecoder(input)
	for range d.Array {
		if d.Kind() == wire.KindNumber { // the tokens of one text
			n = 1
			break
		}
		d.Skip()
		n++
	}
	return max(1, min(memoryUnits, n*vectorSize/memoryUnit))
}
