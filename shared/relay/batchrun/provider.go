package batchrun

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/relay"
	"gateway/shared/relay/managed"
	"gateway/shared/wire"
)

// Stages of a batch that a provider runs: what is to be done next.
const (
	stageUpload   = "upload"   // the rows
	stageCreate   = "create"   // the batch
	stageCreating = "creating" // the batch, which an earlier try may have made
	stagePoll     = "poll"     // until it has ended
	stageCollect  = "collect"  // its output
)

// maxObject bounds an object that a provider answers with, in bytes.
const maxObject = 1 << 20

// errLater says that the provider cannot do it yet.
var errLater = errors.New("batchrun: the provider is to be asked later")

// handOver does the next stage of a batch that a provider runs.
func (w *work) handOver(ctx context.Context) (made func(*managed.Progress), delay time.Duration, err error) {
	if w.batch.Status == managed.Cancelling && w.batch.Provider.Batch == "" && w.batch.Provider.Stage != stageCreating {
		return func(p *managed.Progress) { p.Provider.Stage = ""; p.Finalize(managed.Cancelled, w.Now()) }, 0, nil
	}
	running, stop := w.running(ctx)
	defer stop()
	switch w.batch.Provider.Stage {
	case stageUpload:
		made, err = w.upload(running)
	case stageCreate, stageCreating:
		made, err = w.create(running)
	case stagePoll:
		made, err = w.poll(running)
		delay = w.pollDelay()
	default:
		made, err = w.collect(running)
	}
	switch {
	case ctx.Err() != nil && err != nil:
		err = errStopped
	case !errors.Is(err, errLater):
	case w.Now().Unix() >= w.batch.Expires+int64(time.Hour/time.Second):
		return func(p *managed.Progress) {
			p.Problems = append(p.Problems, managed.Problem{Code: "batch_expired", Message: "The provider did not end the batch in time"})
			p.End(managed.Expired, w.Now())
		}, 0, nil
	default:
		made, delay, err = func(*managed.Progress) {}, w.pollDelay(), nil
	}
	return made, delay, err
}

// pollDelay grows with the time that the batch has taken.
func (w *work) pollDelay() time.Duration {
	return min(w.Pace.Poll*time.Duration(1+w.batch.Step/10), 10*w.Pace.Poll)
}

// ask takes a request of the gateway's own through the walk, for the batch.
func (w *work) ask(ctx context.Context, into http.ResponseWriter, method, path string, body io.Reader, length int64, kind string) (broken bool, err error) {
	req, err := http.NewRequestWithContext(ctx, method, "/v1"+path, body)
	if err != nil {
		return false, fault.Internal(err)
	}
	if body != nil {
		req.ContentLength = length
	}
	req.Header = managed.Headers(w.batch.Options)
	req.Header.Del("X-Gateway-Config")
	if kind != "" {
		req.Header.Set("Content-Type", kind)
	}
	w.trace(req, "")
	return w.Mux.Run(into, req, &relay.Behalf{Key: w.batch.Key}), nil
}

// object asks for a JSON object.
func (w *work) object(ctx context.Context, method, path string, body io.Reader, length int64, kind string) ([]byte, error) {
	got := &relay.Recorder{Max: maxObject}
	broken, err := w.ask(ctx, got, method, path, body, length, kind)
	if err != nil {
		return nil, err
	}
	if broken || got.Over {
		return nil, errLater
	}
	return got.Body.Bytes(), refused(got)
}

// refused reads an answer that is an error.
func refused(got *relay.Recorder) error {
	if got.Status >= 200 && got.Status <= 299 {
		return nil
	}
	if again(got) {
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
		body.Error.Message = "The provider refused the batch"
	}
	f := fault.New(fault.ProviderError, body.Error.Param, body.Error.Message)
	f.StatusCode = got.Status
	if f.StatusCode >= 500 {
		f.StatusCode = http.StatusBadRequest // it is not worth another try
	}
	return f
}

// upload gives the rows to the provider.
func (w *work) upload(ctx context.Context) (func(*managed.Progress), error) {
	length, err := w.formLength(ctx)
	if err != nil {
		return nil, err
	}
	body, to := io.Pipe()
	form := multipart.NewWriter(to)
	if err := form.SetBoundary(boundary); err != nil {
		return nil, fault.Internal(err)
	}
	go func() { to.CloseWithError(w.writeForm(ctx, form)) }()
	answer, err := w.object(ctx, http.MethodPost, "/files", body, length, form.FormDataContentType())
	_ = body.Close()
	if err != nil {
		return nil, err
	}
	var file struct {
		ID string `json:"id"`
	}
	if json.Unmarshal(answer, &file) != nil || file.ID == "" || len(file.ID) > maxMessage {
		return nil, errLater
	}
	return func(p *managed.Progress) { p.Provider.File, p.Provider.Stage = file.ID, stageCreate }, nil
}

// boundary separates the parts of an upload. Rows are JSON, in which it cannot
// stand at the beginning of a line.
const boundary = "gateway-batch-rows-7f1c0a52e3"

// formLength is how long the form will be.
func (w *work) formLength(ctx context.Context) (int64, error) {
	var n counter
	form := multipart.NewWriter(&n)
	if err := form.SetBoundary(boundary); err != nil {
		return 0, fault.Internal(err)
	}
	err := w.writeForm(ctx, form)
	return int64(n), err
}

// counter counts what is written.
type counter int64

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// writeForm writes the upload.
func (w *work) writeForm(ctx context.Context, form *multipart.Writer) error {
	if err := form.WriteField("purpose", "batch"); err != nil {
		return err
	}
	part, err := form.CreateFormFile("file", w.id+".jsonl")
	if err != nil {
		return err
	}
	room, f, err := w.input(ctx)
	if err != nil {
		return err
	}
	src := room.Open(ctx, f)
	defer src.Close()
	lines := managed.NewLines(src, 0, 0)
	var out []byte
	for {
		line, err := lines.Next()
		if err == io.EOF {
			return form.Close()
		}
		if err == nil {
			out, err = w.providersRow(out[:0], line)
		}
		if err == nil {
			_, err = part.Write(out)
		}
		if err != nil {
			return err
		}
	}
}

// providersRow writes a row with the model as the provider knows it.
func (w *work) providersRow(dst, line []byte) ([]byte, error) {
	row, err := managed.ParseRow(line)
	if err != nil {
		return dst, err
	}
	body, err := w.withModel(row.Body)
	if err != nil {
		return dst, err
	}
	var at wire.Walk
	if err := rowMembers.Walk(body, &at); err != nil {
		return dst, err
	}
	if v := at.Spans[0]; v.Present(body) {
		model, err := wire.ScanString(v.Of(body), "model")
		if err != nil {
			return dst, err
		}
		if rest, ok := strings.CutPrefix(model, "@"); ok {
			_, name, _ := strings.Cut(rest, "/")
			body = wire.Splice(nil, body, rowMembers.SetKey(&at, 0, wire.AppendJSONString(nil, name)))
		}
	}
	dst = append(wire.AppendJSONString(append(dst, `{"custom_id":`...), row.CustomID), `,"method":"POST","url":`...)
	dst = append(wire.AppendJSONString(dst, row.URL), `,"body":`...)
	var one bytes.Buffer
	if err := json.Compact(&one, body); err != nil {
		return dst, fault.Invalid("body", "body must be a JSON object")
	}
	return append(append(dst, one.Bytes()...), '}', '\n'), nil
}

// batchObject is what is read of a provider's batch.
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

// create makes the provider's batch, once: a try that broke off is looked for
// among the provider's batches, by the file that only it has.
func (w *work) create(ctx context.Context) (func(*managed.Progress), error) {
	if w.batch.Provider.Stage == stageCreating {
		found, err := w.madeBefore(ctx)
		if err != nil || found != nil {
			return found, err
		}
	}
	if _, err := w.Batches.Change(ctx, w.sc, w.id, w.holder, func(b *managed.Batch) error {
		b.Provider.Stage = stageCreating
		return nil
	}); err != nil {
		return nil, err
	}
	body := map[string]json.RawMessage{}
	_ = json.Unmarshal(w.batch.Create, &body) // "" when there is nothing more to say
	for name, v := range map[string]string{"input_file_id": w.batch.Provider.File, "endpoint": w.batch.Endpoint, "completion_window": managed.Day} {
		body[name], _ = json.Marshal(v)
	}
	if len(w.batch.Metadata) > 0 {
		body["metadata"] = w.batch.Metadata
	}
	raw, err := json.Marshal(body)
	if err != nil {
		return nil, fault.Internal(err)
	}
	answer, err := w.object(ctx, http.MethodPost, "/batches", bytes.NewReader(raw), int64(len(raw)), "application/json")
	if err != nil {
		return nil, err
	}
	var b batchObject
	if json.Unmarshal(answer, &b) != nil || b.ID == "" || len(b.ID) > maxMessage {
		return nil, fault.New(fault.InvalidProviderResponse, "", "The provider's answer names no batch")
	}
	return w.madeAs(&b, answer), nil
}

func (w *work) madeAs(b *batchObject, answer []byte) func(*managed.Progress) {
	return func(p *managed.Progress) {
		p.Provider.Batch, p.Provider.Status, p.Provider.Stage = b.ID, short(b.Status), stagePoll
		p.Provider.Answer = shown(answer)
	}
}

// maxShown bounds what is kept of a provider's batch, in bytes.
const maxShown = 64 << 10

func shown(answer []byte) json.RawMessage {
	if len(answer) > maxShown {
		return nil
	}
	return bytes.Clone(answer)
}

// maxMessage bounds a message of a provider that a batch shows, and an id, in
// bytes.
const maxMessage = 1 << 10

func short(s string) string { return strings.ToValidUTF8(s[:min(len(s), maxMessage)], "") }

// madeBefore looks for the batch of this batch's file; nil when there is none.
func (w *work) madeBefore(ctx context.Context) (func(*managed.Progress), error) {
	answer, err := w.object(ctx, http.MethodGet, "/batches?limit=100", nil, 0, "")
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
			return w.madeAs(&b, raw), nil
		}
	}
	return nil, nil
}

// poll looks at the provider's batch. The walk books its usage with the request
// that sees it ended first.
func (w *work) poll(ctx context.Context) (func(*managed.Progress), error) {
	path := "/batches/" + url.PathEscape(w.batch.Provider.Batch)
	if w.batch.Status == managed.Cancelling && w.batch.Provider.Status != "cancelling" && !providerEnded(w.batch.Provider.Status) {
		if _, err := w.object(ctx, http.MethodPost, path+"/cancel", nil, 0, ""); err != nil && fault.From(err).Status() >= 500 {
			return nil, err
		} // one that has ended meanwhile is refused: the next look shows it
	}
	answer, err := w.object(ctx, http.MethodGet, path, nil, 0, "")
	if err != nil {
		return nil, err
	}
	var b batchObject
	if json.Unmarshal(answer, &b) != nil || b.Status == "" {
		return nil, errLater
	}
	return func(p *managed.Progress) {
		p.Provider.Status, p.Provider.Answer = short(b.Status), shown(answer)
		p.Provider.Output, p.Provider.Errors = short(b.Output), short(b.Errors)
		if b.Counts.Total > 0 {
			p.Good, p.Bad = b.Counts.Completed, b.Counts.Failed
		}
		if !providerEnded(b.Status) {
			return
		}
		p.Problems = nil
		for _, e := range b.Problem.Data {
			if len(p.Problems) < maxProblems {
				p.Problems = append(p.Problems, managed.Problem{Code: short(e.Code), Message: short(e.Message), Param: short(e.Param), Line: e.Line})
			}
		}
		p.Provider.Stage = stageCollect
		p.Finalizing = w.Now().Unix()
		if p.Status == managed.InProgress {
			p.Status = managed.Finalizing
		}
	}, nil
}

func providerEnded(status string) bool { return managed.Status(status).Ended() }

// collect keeps the provider's files of output.
func (w *work) collect(ctx context.Context) (func(*managed.Progress), error) {
	from := &w.batch.Provider
	output, good, err := w.fetch(ctx, from.Output, "output")
	if err != nil {
		return nil, err
	}
	failures, bad, err := w.fetch(ctx, from.Errors, "error")
	if err != nil {
		return nil, err
	}
	return func(p *managed.Progress) {
		p.Output, p.Errors = output, failures
		if p.Good+p.Bad == 0 { // the provider does not count
			p.Good, p.Bad = good, bad
		}
		p.Provider.Stage = ""
		p.End(managed.Status(from.Status), w.Now())
	}, nil
}

// fetch keeps one file of the provider, and counts its rows.
func (w *work) fetch(ctx context.Context, file, kind string) (id string, rows int64, err error) {
	if file == "" {
		return "", 0, nil
	}
	src, to := io.Pipe()
	into := &piped{to: to}
	done := make(chan error, 1)
	go func() {
		broken, err := w.ask(ctx, into, http.MethodGet, "/files/"+url.PathEscape(file)+"/content", nil, 0, "")
		if err == nil && broken {
			err = errLater
		}
		if err == nil && into.refusal != nil {
			err = refused(into.refusal)
		}
		to.CloseWithError(err)
		done <- err
	}()
	id = managed.FilePrefix + strings.TrimPrefix(w.id, managed.IDPrefix) + "_" + kind
	counted := &rowCounter{src: src}
	_, err = w.Room(w.sc).SaveAs(ctx, id, w.id+"_"+kind+".jsonl", "batch_output", counted)
	_ = src.CloseWithError(io.ErrClosedPipe)
	if asked := <-done; asked != nil {
		err = asked
	}
	return id, counted.n, err
}

// rowCounter counts the lines that pass.
type rowCounter struct {
	src io.Reader
	n   int64
}

// Read implements io.Reader.
func (r *rowCounter) Read(p []byte) (int, error) {
	n, err := r.src.Read(p)
	r.n += int64(bytes.Count(p[:n], []byte("\n")))
	return n, err
}

// piped hands a good answer on as it comes, and keeps another.
type piped struct {
	to      *io.PipeWriter
	header  http.Header
	status  int
	refusal *relay.Recorder
}

// Header implements http.ResponseWriter.
func (p *piped) Header() http.Header {
	if p.header == nil {
		p.header = make(http.Header)
	}
	return p.header
}

// WriteHeader implements http.ResponseWriter.
func (p *piped) WriteHeader(status int) {
	if p.status != 0 {
		return
	}
	if p.status = status; status < 200 || status > 299 {
		p.refusal = &relay.Recorder{Max: maxObject, Status: status}
		for name, v := range p.header {
			p.refusal.Header()[name] = v
		}
	}
}

// Write implements io.Writer.
func (p *piped) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	if p.refusal != nil {
		return p.refusal.Write(b)
	}
	return p.to.Write(b)
}
