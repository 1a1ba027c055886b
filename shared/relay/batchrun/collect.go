package batchrun

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/relay/managed"
	"gateway/shared/relay/recorder"
)

// collect keeps the provider's files of output.
func (w hosted) collect(ctx context.Context) (func(*managed.Progress), error) {
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
func (w hosted) fetch(ctx context.Context, file, kind string) (id string, rows int64, err error) {
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
	refusal *recorder.Recorder
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
		p.refusal = &recorder.Recorder{Max: maxObject, Status: status}
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
