package job

import (
	"bytes"
	"context"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/textproto"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// This file is shared by providers that run files with OpenAI's rows but have other
// paths, formats and states. The file remains stored for the workspace. When a batch or a
// job is created from it, its rows are checked, given the provider's names and uploaded.

// maxBufferedRows is how many bytes of translated rows are held in memory; longer ones are
// translated twice.
const maxBufferedRows = 8 << 20

// payload is a body that may be too long for memory: such a body is made twice.
type payload struct {
	body   []byte
	open   func() (io.ReadCloser, error)
	length int64
}

// newPayload reads source to its end, to know its length and that it is complete, and puts
// head and tail around it. look is called after each piece; it may be nil.
func newPayload(source func() io.ReadCloser, head, tail string, most int64, look func() error) (*payload, error) {
	src := source()
	defer src.Close()
	p := &payload{length: int64(len(head) + len(tail))}
	var buffered bytes.Buffer
	buffered.WriteString(head)
	for piece := make([]byte, 64<<10); ; {
		n, err := src.Read(piece)
		if p.length += int64(n); p.length <= maxBufferedRows {
			buffered.Write(piece[:n])
		}
		if look != nil {
			if err := look(); err != nil {
				return nil, err
			}
		}
		if p.length > most {
			return nil, errLong
		}
		if err == io.EOF {
			break
		}
		if err != nil {
			return nil, err
		}
	}
	if p.length <= maxBufferedRows {
		p.body = append(buffered.Bytes(), tail...)
		return p, nil
	}
	p.open = func() (io.ReadCloser, error) {
		again := source()
		return struct {
			io.Reader
			io.Closer
		}{io.MultiReader(strings.NewReader(head), again, strings.NewReader(tail)), again}, nil
	}
	return p, nil
}

// into returns the payload to a call.
func (p *payload) into(call *chat.JobCall) *chat.JobCall {
	call.Body, call.Open, call.Length = p.body, p.open, p.length
	return call
}

// hostFile is a file that is sent to a provider: its name and its purpose there.
type hostFile struct {
	name   string
	fields [][2]string
	source func() io.ReadCloser
	most   int64 // bytes
	field  string
}

// sendForm uploads a file as a form and gives the id that the provider gives it.
func sendForm(ctx context.Context, j *chat.Job, f *hostFile, query string) (string, error) {
	var b bytes.Buffer
	w := multipart.NewWriter(&b)
	for _, pair := range f.fields {
		_ = w.WriteField(pair[0], pair[1]) // writes to memory only
	}
	head := make(textproto.MIMEHeader, 2)
	head.Set("Content-Disposition", `form-data; name="`+orElse(f.field, "file")+`"; filename="`+f.name+`"`)
	head.Set("Content-Type", "application/jsonl")
	_, _ = w.CreatePart(head)
	before := b.Len()
	_ = w.Close()
	form := b.String()
	p, err := newPayload(f.source, form[:before], form[before:], f.most, nil)
	if err != nil {
		return "", err
	}
	resp, err := j.Call(ctx, p.into(&chat.JobCall{
		Method: http.MethodPost, Operation: "files_upload", Query: query, Header: http.Header{"Content-Type": {w.FormDataContentType()}},
	}))
	if err != nil {
		return "", err
	}
	var made struct {
		ID string `json:"id"`
	}
	if err := readJSON(resp, &made); err != nil {
		return "", err
	}
	if made.ID == "" {
		return "", upstream.Invalid("The provider's response names no file", nil)
	}
	return made.ID, nil
}

// rowsFile returns the file of a batch's rows: {custom_id, body}. It must be sent before
// other properties of the rows are used.
func (r *rows) rowsFile(ctx context.Context, f *chat.StoredFile, most int64) *hostFile {
	return &hostFile{name: "rows.jsonl", most: most, source: func() io.ReadCloser {
		return r.source(ctx, f, func(dst []byte, _ int64, id string, body []byte) []byte {
			dst = wire.AppendJSONString(append(dst, `{"custom_id":`...), id)
			return append(append(append(dst, `,"body":`...), body...), "}\n"...)
		})
	}}
}

// examplesFile is a file of examples; write turns its lines into the provider's form.
func examplesFile(ctx context.Context, j *chat.Job, field, id string, most int64, write func(dst, line []byte) ([]byte, error)) (*hostFile, *int, error) {
	f, err := inputFile(ctx, j, field, id, "fine-tune")
	if err != nil {
		return nil, nil, err
	}
	count := new(int)
	return &hostFile{name: strings.TrimSuffix(field, "_file") + ".jsonl", most: most, source: func() io.ReadCloser {
		*count = 0
		return transform(j.Files.Open(ctx, f), func(dst []byte, n int, line []byte) ([]byte, error) {
			*count++
			out, err := write(dst, line)
			if err != nil {
				err = fault.Invalid(field, "%s: line %d: %s", field, n, fault.From(err).Message)
			}
			return out, err
		})
	}}, count, nil
}

// appendTalk writes an example as a conversation in OpenAI's shape.
func appendTalk(dst, line []byte) ([]byte, error) {
	e, err := readExample(line)
	if err != nil {
		return dst, err
	}
	if e.prompt == "" {
		return append(append(dst, line...), '\n'), nil
	}
	o := upstream.Begin(dst)
	o.Key("messages")
	o.Open('[')
	for _, turn := range [][2]string{{"user", e.prompt}, {"assistant", e.completion}} {
		o.Open('{')
		o.Str("role", turn[0])
		o.Str("content", turn[1])
		o.Close('}')
	}
	return append(o.B, "]}\n"...), nil
}

// tooLong returns the fault for a file that is longer than the provider's limit.
func tooLong(err error, j *chat.Job, field string, most int64) error {
	if err == errLong {
		return fault.Newf(fault.BodyTooLarge, field, "%s must have at most %d bytes for %s", field, most, j.ProviderName)
	}
	return err
}

// withoutModel removes the model from a row of a batch that names the model.
func withoutModel(body []byte) ([]byte, error) {
	var w wire.Walk
	if err := modelKey.Walk(body, &w); err != nil || w.Spans[0].Absent() {
		return body, err
	}
	return wire.Splice(nil, body, wire.DeleteKey(&w, 0)), nil
}

// readHostRow reads {custom_id, response: {status_code, body} | the response itself,
// error}.
func readHostRow(line []byte) (*result, error) {
	r := &result{kind: "errored"}
	var response, problem []byte
	d := wire.NewDecoder(line)
	for key := range d.Object {
		switch string(key) {
		case "custom_id":
			r.id = upstream.OptString(d)
		case "response":
			response = d.Raw()
		case "error":
			problem = d.Raw()
		default:
			d.Skip()
		}
	}
	if err := d.End(); err != nil {
		return nil, upstream.Invalid("The provider's results cannot be read", err)
	}
	status := http.StatusOK
	if wire.KindOf(response) == wire.KindObject {
		var w wire.Walk
		if err := responseKeys.Walk(response, &w); err != nil {
			return nil, upstream.Invalid("The provider's results cannot be read", err)
		}
		body := response
		if w.Spans[1].Present(response) {
			body = w.Spans[1].Of(response)
		}
		if w.Spans[0].Present(response) {
			_ = json.Unmarshal(w.Spans[0].Of(response), &status) // anything but a number counts as 200
		}
		if wire.KindOf(body) == wire.KindObject && status == http.StatusOK {
			r.kind, r.message, r.model = "succeeded", body, modelOf(body)
			return r, nil
		}
		if problem == nil || wire.IsNull(problem) {
			problem = body
		}
	}
	if wire.KindOf(problem) == wire.KindString {
		r.text, _ = wire.ScanString(problem, "error")
	} else if p := upstream.ReadError(problem); p != nil {
		r.code, r.text = orElse(p.Code, p.Type), p.Message
	}
	r.code, r.text = orElse(r.code, "model_error"), orElse(r.text, unansweredTexts["errored"][1])
	return r, nil
}

var responseKeys = wire.NewKeySet("status_code", "body")

// modelOf is the model that a response names; "" for none.
func modelOf(body []byte) string {
	var w wire.Walk
	if modelKey.Walk(body, &w) != nil || !w.Spans[0].Present(body) {
		return ""
	}
	model, _ := wire.ScanString(w.Spans[0].Of(body), "model")
	return model
}

// hostResults reads the files of rows that the provider wrote, sequentially. The model of
// all rows is the batch's, whatever they name.
func hostResults(ctx context.Context, j *chat.Job, b *Batch, calls []*chat.JobCall) (*results, error) {
	if err := recall(ctx, j, b); err != nil {
		return nil, err
	}
	if len(calls) == 0 {
		return nil, fault.Newf(fault.NotFound, "id", "The batch %q has no results", clip(b.ID))
	}
	p := &parts{ctx: ctx, j: j, call: func(n int) *chat.JobCall { return calls[n] }, most: len(calls)}
	if err := p.next(); err != nil {
		return nil, err
	}
	out := &results{src: p, read: readHostRow, model: b.Model, meter: meteredBy(openai.Chat{})}
	if b.Model != "" {
		out.read = func(line []byte) (*result, error) {
			r, err := readHostRow(line)
			if err == nil {
				r.model = b.Model
			}
			return r, err
		}
	}
	if b.Endpoint == embeddingsEndpoint {
		out.meter = func(r *result) chat.Meter { return openai.MeterEmbeddings(r.message) }
	}
	return out, nil
}

// contents are the calls for those of the provider's files that exist.
func contents(ids ...string) []*chat.JobCall {
	var calls []*chat.JobCall
	for _, id := range ids {
		if id != "" {
			calls = append(calls, &chat.JobCall{Method: http.MethodGet, Operation: "files_content", ID: id})
		}
	}
	return calls
}

// readHosted reads the body of a new batch for a provider that takes no roles and no places
// for results.
func readHosted(j *chat.Job) (*batchRequest, error) {
	want, err := readBatchRequest(j)
	if err != nil {
		return nil, err
	}
	if want.RoleARN != "" || want.JobName != "" || len(want.OutputData) > 0 {
		j.Loss.Add("provider_options", upstream.UnsupportedField)
	}
	return want, j.Loss.Err()
}

// hostEndpoint is the endpoint of the rows at a provider that speaks OpenAI's chat,
// whichever kind of conversation the client has written.
func hostEndpoint(client string) string {
	if client == embeddingsEndpoint {
		return client
	}
	return "/v1/chat/completions"
}
