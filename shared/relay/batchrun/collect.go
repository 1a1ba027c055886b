package batchrun

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"mime/multipart"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/batch"
	"gateway/shared/relay/response"
	"gateway/shared/wire"
)

// collect stores the provider's output files.
func collect(w *work, ctx context.Context) (func(*batch.Progress), error) {
	from := &w.batch.Provider
	output, good, err := fetch(w, ctx, from.Output, "output")
	if err != nil {
		return nil, err
	}
	failures, bad, err := fetch(w, ctx, from.Errors, "error")
	if err != nil {
		return nil, err
	}
	if from.Judged != "" {
		if _, err := w.runner.Files(w.sc).Remove(ctx, from.Judged); err != nil {
			return nil, err
		}
	}
	return func(p *batch.Progress) {
		p.Output, p.Errors = output, failures
		if p.Succeeded+p.Bad == 0 || p.Provider.Judged != "" { // the provider does not count them, or does not count those that guardrails rejected
			p.Succeeded, p.Bad = good, bad
		}
		p.Provider.Stage = ""
		p.End(cmp.Or(batch.Status(from.Status), batch.Completed), w.runner.Now())
	}, nil
}

// fetch stores one file of the provider, and counts its rows. If guardrails judge the rows, they
// also judge the output, and rejected rows are in the file of errors.
func fetch(w *work, ctx context.Context, file, kind string) (id string, rows int64, err error) {
	judged := w.batch.Provider.Judged != ""
	if file == "" && !judged {
		return "", 0, nil
	}
	src, to := io.Pipe()
	done := make(chan error, 1)
	go func() {
		err := download(w, ctx, file, to)
		to.CloseWithError(err)
		done <- err
	}()
	counted := &rowCounter{src: src}
	if judged {
		good := kind == "output"
		counted.src = io.MultiReader(src, w.runner.Batches.Rows(ctx, w.sc, w.id, good))
		if good {
			passed, aerr := openOutput(w, ctx, src)
			if err = aerr; err == nil {
				defer passed.Close()
				counted.src = io.MultiReader(passed, w.runner.Batches.Rows(ctx, w.sc, w.id, good))
			}
		}
	}
	id = batch.FilePrefix + strings.TrimPrefix(w.id, batch.IDPrefix) + "_" + kind
	if err == nil {
		_, err = w.runner.Files(w.sc).SaveAs(ctx, id, w.id+"_"+kind+".jsonl", "batch_output", counted)
	}
	_ = src.CloseWithError(io.ErrClosedPipe)
	if asked := <-done; asked != nil && (err == nil || !errors.Is(asked, io.ErrClosedPipe)) {
		err = asked
	}
	if err == nil && judged && counted.n == 0 {
		_, err = w.runner.Files(w.sc).Remove(ctx, id)
		return "", 0, err
	}
	return id, counted.n, err
}

// download writes a file of the provider; "" is an empty one.
func download(w *work, ctx context.Context, file string, to *io.PipeWriter) error {
	if file == "" {
		return nil
	}
	into := &piped{to: to}
	broken, err := ask(w, ctx, into, http.MethodGet, "/files/"+url.PathEscape(file)+"/content", nil, 0, "")
	if err == nil && broken {
		err = errLater
	}
	if err == nil && into.rejection != nil {
		err = rejected(into.rejection)
	}
	return err
}

// rowCounter counts the lines that it reads.
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

// piped forwards a successful response as it arrives, and buffers any other.
type piped struct {
	to        *io.PipeWriter
	header    http.Header
	status    int
	rejection *response.Recorder
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
		p.rejection = &response.Recorder{Max: maxObject, Status: status}
		for name, v := range p.header {
			p.rejection.Header()[name] = v
		}
	}
}

// Write implements io.Writer.
func (p *piped) Write(b []byte) (int, error) {
	p.WriteHeader(http.StatusOK)
	if p.rejection != nil {
		return p.rejection.Write(b)
	}
	return p.to.Write(b)
}

// upload sends the rows to the provider.
func upload(w *work, ctx context.Context) (func(*batch.Progress), error) {
	length, err := formLength(w, ctx)
	if err != nil {
		return nil, err
	}
	body, to := io.Pipe()
	form := multipart.NewWriter(to)
	if err := form.SetBoundary(boundary); err != nil {
		return nil, fault.Internal(err)
	}
	go func() { to.CloseWithError(writeForm(w, ctx, form)) }()
	answer, err := object(w, ctx, http.MethodPost, "/files", body, length, form.FormDataContentType())
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
	return func(p *batch.Progress) { p.Provider.File, p.Provider.Stage = file.ID, stageCreate }, nil
}

// boundary separates the parts of an upload. Rows are JSON objects, so no line can start with
// it.
const boundary = "gateway-batch-rows-7f1c0a52e3"

// formLength returns the length of the form.
func formLength(w *work, ctx context.Context) (int64, error) {
	var n counter
	form := multipart.NewWriter(&n)
	if err := form.SetBoundary(boundary); err != nil {
		return 0, fault.Internal(err)
	}
	err := writeForm(w, ctx, form)
	return int64(n), err
}

// counter counts the bytes written.
type counter int64

// Write implements io.Writer.
func (c *counter) Write(p []byte) (int, error) {
	*c += counter(len(p))
	return len(p), nil
}

// writeForm writes the upload.
func writeForm(w *work, ctx context.Context, form *multipart.Writer) error {
	if err := form.WriteField("purpose", "batch"); err != nil {
		return err
	}
	part, err := form.CreateFormFile("file", w.id+".jsonl")
	if err != nil {
		return err
	}
	room, f, err := judged(w, ctx)
	if err != nil {
		return err
	}
	src := room.Open(ctx, f)
	defer src.Close()
	lines := batch.NewLines(src, 0, 0)
	var out []byte
	for {
		line, err := lines.Next()
		if err == io.EOF {
			return form.Close()
		}
		if err == nil {
			out, err = providersRow(w, out[:0], line)
		}
		if err == nil {
			_, err = part.Write(out)
		}
		if err != nil {
			return err
		}
	}
}

// providersRow writes a row with the provider's name of the model.
func providersRow(w *work, dst, line []byte) ([]byte, error) {
	row, err := batch.ParseRow(line)
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
	return appendRow(dst, row.CustomID, row.URL, approval.Conceal(body))
}

// appendRow writes a row.
func appendRow(dst []byte, custom, url string, body []byte) ([]byte, error) {
	dst = append(wire.AppendJSONString(append(dst, `{"custom_id":`...), custom), `,"method":"POST","url":`...)
	dst = append(wire.AppendJSONString(dst, url), `,"body":`...)
	var one bytes.Buffer
	if err := json.Compact(&one, body); err != nil {
		return dst, fault.Invalid("body", "body must be a JSON object")
	}
	return append(append(dst, one.Bytes()...), '}', '\n'), nil
}
