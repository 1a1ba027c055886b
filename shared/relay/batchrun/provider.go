package batchrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/response"
)

// Stages of a batch that a provider runs: the next action.
const (
	stageJudge    = "judge"    // the rows, by guardrails
	stageUpload   = "upload"   // the rows
	stageCreate   = "create"   // the batch
	stageCreating = "creating" // the batch, which an earlier attempt may have created
	stagePoll     = "poll"     // until it has ended
	stageCollect  = "collect"  // its output
)

// maxObject limits an object in a provider's response, in bytes.
const maxObject = 1 << 20

// errLater reports that the provider cannot do it yet.
var errLater = errors.New("batchrun: the provider must be called later")

// handOver executes the next stage of a batch that a provider runs.
func handOver(w *work, ctx context.Context) (made func(*batch.Progress), delay time.Duration, err error) {
	var left *fault.Fault
	if w.closing, left, err = w.runner.Mux.Admits(context.WithoutCancel(ctx), w.sc, w.batch.Key, &w.batch.Creator); err != nil {
		return nil, 0, err
	}
	if left != nil && w.batch.Status == batch.InProgress {
		return leaving(w, left), 0, nil
	}
	if w.batch.Status == batch.Cancelling && w.batch.Provider.Batch == "" && w.batch.Provider.Stage != stageCreating {
		return func(p *batch.Progress) { p.Provider.Stage = ""; p.Finalize(batch.Cancelled, w.runner.Now()) }, 0, nil
	}
	running, stop := w.running(ctx)
	defer stop()
	switch w.batch.Provider.Stage {
	case stageJudge:
		made, err = judge(w, running)
	case stageUpload:
		made, err = upload(w, running)
	case stageCreate, stageCreating:
		made, err = create(w, running)
	case stagePoll:
		made, err = poll(w, running)
		delay = pollDelay(w)
	default:
		made, err = collect(w, running)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		err = errStopped
	case !errors.Is(err, errLater):
	case w.runner.Now().Unix() >= w.batch.Expires+int64(time.Hour/time.Second):
		return func(p *batch.Progress) {
			p.Problems = append(p.Problems, batch.Problem{Code: "batch_expired", Message: "The provider did not complete the batch in time"})
			p.End(batch.Expired, w.runner.Now())
		}, 0, nil
	default:
		made, delay, err = func(*batch.Progress) {}, pollDelay(w), nil
	}
	return made, delay, err
}

// leaving cancels a batch with a key that is no longer valid. The provider's results until then
// are still read, stored and charged.
func leaving(w *work, left *fault.Fault) func(*batch.Progress) {
	return func(p *batch.Progress) {
		if p.Status == batch.InProgress {
			p.Status, p.Cancelling = batch.Cancelling, w.runner.Now().Unix()
		}
		p.Problems = append(p.Problems, batch.Problem{Code: string(left.Code), Message: "The key that created the batch may no longer run it, so it was cancelled: " + left.Message})
	}
}

// pollDelay grows with the age of the batch.
func pollDelay(w *work) time.Duration {
	return min(w.runner.Timing.Poll*time.Duration(1+w.batch.Step/10), 10*w.runner.Timing.Poll)
}

// ask sends a request by the gateway itself through the pipeline, for the batch.
func ask(w *work, ctx context.Context, into http.ResponseWriter, method, path string, body io.Reader, length int64, kind string) (broken bool, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "/v1"+path, body)
	if err != nil {
		return false, fault.Internal(err)
	}
	if body != nil {
		req.ContentLength = length
	}
	req.Header = batch.Headers(w.batch.Options)
	req.Header.Del("X-Gateway-Config")
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	w.trace(req, "")
	return w.runner.Mux.Run(into, req, &relay.InternalCall{Key: w.batch.Key, Closing: w.closing, Rows: strings.HasPrefix(path, "/files")}), nil
}

// object requests a JSON object.
func object(w *work, ctx context.Context, method, path string, body io.Reader, length int64, kind string) ([]byte, error) {
	got := &response.Recorder{Max: maxObject}
	broken, err := ask(w, ctx, got, method, path, body, length, kind)
	if err != nil {
		return nil, err
	}
	if broken || got.Overflowed {
		return nil, errLater
	}
	return got.Body.Bytes(), rejected(got)
}

// rejected reads an error response.
func rejected(got *response.Recorder) error {
	if got.Status >= 200 && got.Status <= 299 {
		return nil
	}
	if isRetryable(got) {
		return errLater
	}
	var body struct {
		Message string `json:"message"`
		Error   struct {
			Message string `json:"message"`
			Code    string `json:"code"`
			Param   string `json:"param"`
		} `json:"error"`
	}
	_ = json.Unmarshal(got.Body.Bytes(), &body)
	if body.Error.Message == "" {
		body.Error.Message = body.Message
	}
	if body.Error.Message == "" {
		body.Error.Message = "The provider rejected the batch"
	}
	f := fault.New(fault.ProviderError, body.Error.Param, body.Error.Message)
	f.StatusCode = got.Status
	if f.StatusCode >= 500 {
		f.StatusCode = http.StatusBadRequest // it must not be retried
	}
	return f
}

// batchObject holds the fields read of a provider's batch.
type batchObject struct {
	ID      string `json:"id"`
	Input   string `json:"input_file_id"`
	Status  string `json:"status"`
	Output  string `json:"output_file_id"`
	Errors  string `json:"error_file_id"`
	Counts  counts `json:"request_counts"`
	Problem struct {
		Data []struct {
			Code    string `json:"code"`
			Message string `json:"message"`
			Param   string `json:"param"`
			Line    int    `json:"line"`
		} `json:"data"`
	} `json:"errors"`
}

type counts struct {
	Total     int64 `json:"total"`
	Completed int64 `json:"completed"`
	Failed    int64 `json:"failed"`
}

// create creates the provider's batch, once: an interrupted attempt is found among the
// provider's batches by its unique file.
func create(w *work, ctx context.Context) (func(*batch.Progress), error) {
	if w.batch.Provider.Stage == stageCreating {
		found, err := madeBefore(w, ctx)
		if err != nil || found != nil {
			return found, err
		}
		if w.batch.Status == batch.Cancelling { // no batch was created, and none is needed
			return func(p *batch.Progress) { p.Provider.Stage = ""; p.Finalize(batch.Cancelled, w.runner.Now()) }, nil
		}
	}
	if _, err := w.runner.Batches.Change(ctx, w.sc, w.id, w.holder, func(b *batch.Batch) error {
		b.Provider.Stage = stageCreating
		return nil
	}); err != nil {
		return nil, err
	}
	body := map[string]json.RawMessage{}
	_ = json.Unmarshal(w.batch.Create, &body) // "" if there are no further fields
	for name, v := range map[string]string{"input_file_id": w.batch.Provider.File, "endpoint": w.batch.Endpoint, "completion_window": batch.Day} {
		body[name], _ = json.Marshal(v)
	}
	if len(w.batch.Metadata) > 0 {
		body["metadata"] = w.batch.Metadata
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fault.Internal(err)
	}
	answer, err := object(w, ctx, http.MethodPost, "/batches", bytes.NewReader(raw), int64(len(raw)), "application/json")
	if err != nil {
		return nil, err
	}
	var b batchObject
	if json.Unmarshal(answer, &b) != nil || b.ID == "" || len(b.ID) > maxMessage {
		return nil, fault.New(fault.InvalidProviderResponse, "", "The provider's response contains no batch")
	}
	return madeAs(w, &b, answer), nil
}

func madeAs(w *work, b *batchObject, answer []byte) func(*batch.Progress) {
	return func(p *batch.Progress) {
		p.Provider.Batch, p.Provider.Status, p.Provider.Stage = b.ID, short(b.Status), stagePoll
		p.Provider.Answer = shown(answer)
	}
}

// maxShown limits the stored copy of a provider's batch, in bytes.
const maxShown = 64 << 10

func shown(answer []byte) json.RawMessage {
	if len(answer) > maxShown {
		return nil
	}
	return bytes.Clone(answer)
}

// maxMessage limits a provider's message in a batch, and an id, in bytes.
const maxMessage = 1 << 10

func short(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxMessage)], "") }

// madeBefore finds the provider's batch of this batch's file; nil if there is none.
func madeBefore(w *work, ctx context.Context) (func(*batch.Progress), error) {
	answer, err := object(w, ctx, http.MethodGet, "/batches?limit=100", nil, 0, "")
	if err != nil {
		return nil, err
	}
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	if json.Unmarshal(answer, &list) != nil {
		return nil, errLater
	}
	for _, raw := range list.Data {
		var b batchObject
		if json.Unmarshal(raw, &b) == nil && b.ID != "" && b.Input == w.batch.Provider.File {
			return madeAs(w, &b, raw), nil
		}
	}
	return nil, nil
}

// poll reads the provider's batch. The pipeline charges its usage with the first request that
// sees it ended.
func poll(w *work, ctx context.Context) (func(*batch.Progress), error) {
	path := "/batches/" + url.PathEscape(w.batch.Provider.Batch)
	if w.batch.Status == batch.Cancelling && w.batch.Provider.Status != "cancelling" && !providerEnded(w.batch.Provider.Status) {
		if _, err := object(w, ctx, http.MethodPost, path+"/cancel", nil, 0, ""); err != nil && fault.From(err).Status() >= 500 {
			return nil, err
		} // the cancellation of a finished batch fails: the next poll shows its state
	}
	answer, err := object(w, ctx, http.MethodGet, path, nil, 0, "")
	if err != nil {
		return nil, err
	}
	var b batchObject
	if json.Unmarshal(answer, &b) != nil || b.Status == "" {
		return nil, errLater
	}
	return func(p *batch.Progress) {
		p.Provider.Status, p.Provider.Answer = short(b.Status), shown(answer)
		p.Provider.Output, p.Provider.Errors = short(b.Output), short(b.Errors)
		if b.Counts.Total > 0 {
			p.Succeeded, p.Bad = b.Counts.Completed, b.Counts.Failed
		}
		if !providerEnded(b.Status) {
			return
		}
		for _, e := range b.Problem.Data { // after any of the gateway itself
			if len(p.Problems) < maxProblems {
				p.Problems = append(p.Problems, batch.Problem{Code: short(e.Code), Message: short(e.Message), Param: short(e.Param), Line: e.Line})
			}
		}
		p.Provider.Stage = stageCollect
		p.Finalizing = w.runner.Now().Unix()
		if p.Status == batch.InProgress {
			p.Status = batch.Finalizing
		}
	}, nil
}

func providerEnded(status string) bool { return batch.Status(status).Ended() }
