package batchrun

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/relay/approval"
	"gateway/shared/relay/batch"
	"gateway/shared/wire"
)

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
