package batchrun

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"net/http"
	"strings"
	"sync"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/response"
	"gateway/shared/wire"
)

// judge has guardrails judge the rows before they are sent to the provider. Rejected rows get
// their response here; the others are stored as guardrails changed them.
func judge(w *work, ctx context.Context) (func(*batch.Progress), error) {
	on, err := guarded(w, ctx)
	if err != nil {
		return nil, err
	}
	if !on {
		return func(p *batch.Progress) { p.Provider.Stage = stageUpload }, nil
	}
	src, to := io.Pipe()
	passed := 0
	done := make(chan error, 1)
	go func() {
		err := judgeRows(w, ctx, to, &passed)
		to.CloseWithError(err)
		done <- err
	}()
	id := batch.FilePrefix + strings.TrimPrefix(w.id, batch.IDPrefix) + "_judged"
	_, err = w.runner.Files(w.sc).SaveAs(ctx, id, w.id+"_judged.jsonl", "batch_output", src)
	_ = src.CloseWithError(io.ErrClosedPipe)
	if judged := <-done; judged != nil {
		err = judged
	}
	if err != nil {
		return nil, err
	}
	return func(p *batch.Progress) {
		p.Provider.Judged, p.Provider.Stage = id, stageUpload
		if passed == 0 { // no rows are left for the provider
			p.Provider.Stage = stageCollect
		}
	}, nil
}

// guarded reports whether a row has guardrails.
func guarded(w *work, ctx context.Context) (bool, error) {
	room, f, err := w.input(ctx)
	if err != nil {
		return false, err
	}
	found := false
	err = eachRow(ctx, room, f, func(row batch.Row, _ int, _ int64) error {
		if found = judgeRow(w, ctx, row, relay.RowPlanned, nil).Guarded; found {
			return io.EOF
		}
		return ctx.Err()
	})
	return found, err
}

// eachRow calls f for each row of a file with its line and offset, until an error; io.EOF ends
// it without one.
func eachRow(ctx context.Context, room batch.FileStore, file *chat.StoredFile, f func(row batch.Row, line int, offset int64) error) error {
	src := room.Open(ctx, file)
	defer src.Close()
	lines := batch.NewLines(src, 0, 0)
	for {
		offset := lines.Offset
		line, err := lines.Next()
		if err == nil {
			var row batch.Row
			if row, err = batch.ParseRow(line); err == nil {
				err = f(row, lines.Number, offset)
			}
		}
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
	}
}

// judgeRow has the guardrails judge a row, as a request, or its response.
func judgeRow(w *work, ctx context.Context, row batch.Row, stage relay.RowStage, answer []byte) relay.RowVerdict {
	body, err := planned(w, row.Body)
	var req *http.Request
	if err == nil {
		req, err = http.NewRequestWithContext(ctx, http.MethodPost, w.batch.Endpoint, bytes.NewReader(body))
	}
	if err != nil {
		refusal := &response.Recorder{Status: fault.From(err).Status()}
		refusal.Body.Write(wire.AppendJSONString(nil, fault.From(err).Message))
		return relay.RowVerdict{Guarded: true, Rejection: refusal}
	}
	req.Header = batch.Headers(w.batch.Options)
	req.Header.Set("Content-Type", "application/json")
	w.trace(req, row.CustomID)
	return w.runner.Mux.JudgeRow(req, &relay.InternalCall{Key: w.batch.Key, Closing: w.closing}, stage, answer)
}

// planned adds the model of the batch's options, or of the provider's batch, to a row without
// one.
func planned(w *work, row []byte) ([]byte, error) {
	body, err := w.withModel(row)
	if err != nil || len(w.batch.Create) == 0 {
		return body, err
	}
	var create struct {
		Model string `json:"model"`
	}
	if json.Unmarshal(w.batch.Create, &create) != nil || create.Model == "" {
		return body, nil
	}
	return withDefaultModel(body, create.Model)
}

// rowJudged is a row after guardrails.
type rowJudged struct {
	row  batch.Row
	line int
	made relay.RowVerdict
}

// judgeRows writes the rows that pass.
func judgeRows(w *work, ctx context.Context, to io.Writer, passed *int) error {
	room, f, err := w.input(ctx)
	if err != nil {
		return err
	}
	var some []rowJudged
	var size int
	var out []byte
	flush := func() error {
		numbers := make([]int, len(some))
		for i := range some {
			numbers[i] = some[i].line
		}
		refused, err := w.runner.Batches.Accepted(ctx, w.sc, w.id, numbers) // by an earlier attempt
		if err != nil {
			return fault.Unavailable(err)
		}
		var wg sync.WaitGroup
		for i := range some {
			if q := &some[i]; !has(refused, q.line) {
				wg.Go(func() { q.made = judgeRow(w, ctx, q.row, relay.RowSent, nil) })
			}
		}
		wg.Wait()
		for i := range some {
			q := &some[i]
			if has(refused, q.line) {
				continue
			}
			if q.made.Rejection != nil {
				if err := reject(w, ctx, q.line, q.row.CustomID, &q.made); err != nil {
					return err
				}
				continue
			}
			body := q.row.Body
			if q.made.Body != nil {
				body = q.made.Body
			}
			if out, err = appendRow(out[:0], q.row.CustomID, q.row.URL, body); err != nil {
				return err
			}
			if _, err := to.Write(out); err != nil {
				return err
			}
			*passed++
		}
		some, size = some[:0], 0
		return nil
	}
	err = eachRow(ctx, room, f, func(row batch.Row, line int, _ int64) error {
		row.Body = bytes.Clone(row.Body)
		some, size = append(some, rowJudged{row: row, line: line}), size+len(row.Body)
		if len(some) >= max(w.runner.Timing.Flush, 1) || size > maxFlush {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	return err
}

func has(of map[int]bool, line int) bool {
	_, ok := of[line]
	return ok
}

// reject stores the response to a row that guardrails reject, or that has a rejected response.
func reject(w *work, ctx context.Context, line int, custom string, made *relay.RowVerdict) error {
	if ctx.Err() != nil || isRetryable(made.Rejection) {
		return errLater
	}
	status := made.Rejection.Status
	out := batch.AppendResult(nil, w.id, line, custom, status, made.Request, made.Rejection.Body.Bytes())
	if _, err := w.runner.Batches.Accept(ctx, w.sc, w.id, line, status >= 200 && status <= 299, out); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// judged finds the file of the rows for the provider.
func judged(w *work, ctx context.Context) (batch.FileStore, *chat.StoredFile, error) {
	if w.batch.Provider.Judged == "" {
		return w.input(ctx)
	}
	room := w.runner.Files(w.sc)
	f, err := room.File(ctx, w.batch.Provider.Judged)
	if err == nil && f == nil {
		err = fault.New(fault.NotFound, "input_file_id", "The file of checked rows was deleted")
	}
	return room, f, err
}

// judgedOutput are the output rows that guardrails allow. It implements io.Reader.
type judgedOutput struct {
	batch  *work
	ctx    context.Context
	memory batch.FileStore
	file   *chat.StoredFile // the rows that were sent
	at     map[string]rowAt
	in     *batch.Lines
	rows   io.ReadCloser
	lines  *batch.Lines // of rows
	out    []byte
}

// rowAt is the position of a row: its line in the input, and its offset in the file that was
// sent.
type rowAt struct {
	line   int
	offset int64
}

// openOutput returns a reader of the provider's rows of output.
func openOutput(w *work, ctx context.Context, src io.Reader) (*judgedOutput, error) {
	a := &judgedOutput{batch: w, ctx: ctx, at: map[string]rowAt{}, in: batch.NewLines(src, 0, 0)}
	room, f, err := w.input(ctx)
	if err != nil {
		return nil, err
	}
	numbers := map[string]int{}
	if err := eachRow(ctx, room, f, func(row batch.Row, line int, _ int64) error {
		numbers[row.CustomID] = line
		return nil
	}); err != nil {
		return nil, err
	}
	if a.memory, a.file, err = judged(w, ctx); err != nil {
		return nil, err
	}
	return a, eachRow(ctx, a.memory, a.file, func(row batch.Row, _ int, offset int64) error {
		a.at[row.CustomID] = rowAt{numbers[row.CustomID], offset}
		return nil
	})
}

// Read implements io.Reader.
func (a *judgedOutput) Read(p []byte) (int, error) {
	for len(a.out) == 0 {
		line, err := a.in.Next()
		if err != nil {
			return 0, err
		}
		if a.out, err = a.judge(a.out, line); err != nil {
			return 0, err
		}
	}
	n := copy(p, a.out)
	a.out = a.out[n:]
	return n, nil
}

// Close closes the file of the rows.
func (a *judgedOutput) Close() error {
	if a.rows == nil {
		return nil
	}
	return a.rows.Close()
}

// responseRow holds the fields read of a row of a provider's output.
type responseRow struct {
	CustomID string `json:"custom_id"`
	Response *struct {
		Status  int             `json:"status_code"`
		Request string          `json:"request_id"`
		Body    json.RawMessage `json:"body"`
	} `json:"response"`
}

// judge writes an output row as guardrails change it. A row without a matching request is
// dropped: it cannot be judged.
func (a *judgedOutput) judge(dst, line []byte) ([]byte, error) {
	var one responseRow
	if json.Unmarshal(line, &one) != nil {
		return dst, nil
	}
	at, ok := a.at[one.CustomID]
	if !ok {
		return dst, nil
	}
	if one.Response == nil || one.Response.Status < 200 || one.Response.Status > 299 {
		return append(append(dst, line...), '\n'), nil // an error
	}
	row, err := a.row(at)
	if err != nil {
		return dst, err
	}
	made := judgeRow(a.batch, a.ctx, row, relay.RowAnswered, one.Response.Body)
	if made.Rejection != nil {
		return dst, reject(a.batch, a.ctx, at.line, one.CustomID, &made)
	}
	body := []byte(one.Response.Body)
	if made.Body != nil {
		body = made.Body
	}
	// Rewritten, so that the client gets only the judged content.
	return batch.AppendResult(dst, a.batch.id, at.line, one.CustomID, one.Response.Status, one.Response.Request, body), nil
}

// row reads a row that was sent. Providers mostly respond in the order of the rows.
func (a *judgedOutput) row(at rowAt) (batch.Row, error) {
	if a.lines == nil || a.lines.Offset != at.offset {
		_ = a.Close()
		a.rows = a.memory.OpenAt(a.ctx, a.file, at.offset)
		a.lines = batch.NewLines(a.rows, 0, at.offset)
	}
	line, err := a.lines.Next()
	if err != nil {
		return batch.Row{}, err
	}
	return batch.ParseRow(line)
}
