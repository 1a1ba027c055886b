package batchrun

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"io"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/relay/batch"
	"gateway/shared/relay/response"
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
		if p.Good+p.Bad == 0 || p.Provider.Judged != "" { // the provider does not count them, or does not count those that guardrails rejected
			p.Good, p.Bad = good, bad
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
			passed, aerr := openAnswers(w, ctx, src)
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
	if err == nil && into.refusal != nil {
		err = refused(into.refusal)
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
	to      *io.PipeWriter
	header  http.Header
	status  int
	refusal *response.Recorder
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
		p.refusal = &response.Recorder{Max: maxObject, Status: status}
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
