package job

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"hash/maphash"
	"io"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Bounds of files of rows.
const (
	maxRow  = 20 << 20 // bytes
	maxRows = 100_000
)

var (
	errRow  = errors.New("job: row too long")
	errLong = errors.New("job: file too long")
)

// lines reads the lines of a text that are not empty, without their ends.
type lines struct {
	src  *bufio.Reader
	n    int // of the line that was read last
	long []byte
	over bool
}

func newLines(r io.Reader) *lines { return &lines{src: bufio.NewReaderSize(r, 64<<10)} }

// next gives a line, which is valid until the next one; io.EOF at the end.
func (l *lines) next() ([]byte, error) {
	for !l.over {
		line, err := l.src.ReadSlice('\n')
		for l.long = l.long[:0]; errors.Is(err, bufio.ErrBufferFull); line, err = l.src.ReadSlice('\n') {
			if l.long = append(l.long, line...); len(l.long) > maxRow {
				return nil, errRow
			}
		}
		if err != nil && err != io.EOF {
			return nil, err
		}
		l.over = err == io.EOF
		if len(l.long) > 0 {
			l.long = append(l.long, line...)
			line = l.long
		}
		if l.n++; l.n == 1 {
			line = bytes.TrimPrefix(line, []byte("\xef\xbb\xbf"))
		}
		if line = bytes.TrimSpace(line); len(line) > 0 {
			return line, nil
		}
	}
	return nil, io.EOF
}

const embeddingsEndpoint = "/v1/embeddings"

// dialects are the dialects of the rows of batches, by endpoint.
var dialects = map[string]string{
	"/v1/chat/completions": "openai.chat", "/v1/completions": "openai.completions", "/v1/responses": "openai.responses", "/v1/messages": "anthropic.messages",
	embeddingsEndpoint: chat.EmbeddingRows,
}

// rows translates the rows of a batch.
type rows struct {
	j        *chat.Job
	client   string // dialect of the rows
	endpoint string
	natives  []string // what the provider's batches take
	model    string   // of rows that name none
	one      bool     // all rows must be of one model
	// shape makes of the body of a request what stands in a row; nil: nothing else.
	shape func(body []byte) ([]byte, error)
	talks map[string]*chat.Talk
	last  *chat.Talk
	seen  map[uint64]bool
	seed  maphash.Seed
	n     int64
	body  []byte
}

// newRows is for a batch whose provider takes what the wires of natives are:
// dialects of conversations, translators of embeddings.
func newRows(j *chat.Job, a *asked, natives ...string) (*rows, error) {
	var endpoints []string
	for _, native := range natives {
		switch {
		case strings.HasSuffix(native, ".embeddings"):
			endpoints = append(endpoints, embeddingsEndpoint)
		default:
			endpoints = append(endpoints, "/v1/chat/completions", "/v1/completions", "/v1/messages", "/v1/responses")
		}
	}
	slices.Sort(endpoints)
	if endpoints = slices.Compact(endpoints); !slices.Contains(endpoints, a.Endpoint) {
		return nil, fault.Invalid("endpoint", "endpoint must be %s for %s", anyOf(endpoints), j.ProviderName)
	}
	return &rows{j: j, client: dialects[a.Endpoint], endpoint: a.Endpoint, natives: natives, model: a.Model, talks: map[string]*chat.Talk{}}, nil
}

// anyOf writes a list of words as "a, b or c".
func anyOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// source gives what write makes of every row, one row after the other: its custom
// id and the provider's body, which is valid until the next row. Another source
// of the same file can be made when one has been read to its end; it then asks
// nothing of the request any more, so that it may be read after it.
func (r *rows) source(ctx context.Context, f *chat.HeldFile, write func(dst []byte, n int64, id string, body []byte) []byte) io.ReadCloser {
	if r.n > 0 {
		j := *r.j
		j.Loss = new(chat.Loss)
		r = &rows{j: &j, client: r.client, endpoint: r.endpoint, natives: r.natives, model: r.model, one: r.one, shape: r.shape, talks: r.talks, last: r.last}
	}
	r.seen, r.seed = make(map[uint64]bool), maphash.MakeSeed()
	return transform(r.j.Room.Open(ctx, f), func(dst []byte, n int, line []byte) ([]byte, error) {
		id, body, err := r.row(line)
		if err != nil {
			return dst, atLine(n, err)
		}
		return write(dst, r.n, id, body), nil
	})
}

// fault is what a client is told when the rows could not be read to their end.
func (r *rows) fault(err error) error {
	switch {
	case errors.Is(err, errRow):
		return fault.Newf(fault.BodyTooLarge, "input_file_id", "input_file_id: a row must have at most %d bytes", maxRow)
	case errors.Is(err, errLong):
		return fault.Newf(fault.BodyTooLarge, "input_file_id", "input_file_id: the rows of a batch are more bytes than %s takes", r.j.ProviderName)
	case err == nil && r.n == 0:
		return fault.Invalid("input_file_id", "input_file_id must be a file with at least one row")
	}
	return err
}

// atLine names the line of the input file that is wrong.
func atLine(n int, err error) error {
	f := fault.From(err)
	if f.Status() >= 500 {
		return err
	}
	at := fault.Newf(f.Code, "input_file_id", "input_file_id: line %d: %s", n, f.Message)
	return at
}

func (r *rows) row(line []byte) (id string, out []byte, err error) {
	var body []byte
	var method, path string
	d := wire.NewDecoder(line)
	for key := range d.Object {
		switch string(key) {
		case "custom_id":
			id = d.Str()
		case "method":
			method = d.Str()
		case "url":
			path = d.Str()
		case "body":
			body = d.Raw()
		default:
			d.Skip()
		}
	}
	if err := d.End(); err != nil {
		return "", nil, err
	}
	switch {
	case id == "":
		return "", nil, fault.Invalid("custom_id", "custom_id is required: a string")
	case method != "" && method != "POST":
		return "", nil, fault.Invalid("method", "method must be POST")
	case path != "" && path != r.endpoint:
		return "", nil, fault.Invalid("url", "url must be the endpoint of the batch, %s", r.endpoint)
	case wire.KindOf(body) != wire.KindObject:
		return "", nil, fault.Invalid("body", "body must be an object")
	}
	mark := maphash.String(r.seed, id)
	if r.seen[mark] {
		return "", nil, fault.Invalid("custom_id", "custom_id must not stand twice in a file")
	}
	if r.seen[mark] = true; len(r.seen) > maxRows {
		return "", nil, fault.Invalid("input_file_id", "a file must have at most %d rows", maxRows)
	}
	r.n++
	if out, err = r.translate(body); err == nil && r.shape != nil {
		out, err = r.shape(out)
	}
	return id, out, err
}

var modelKey = wire.NewKeySet("model")

// translate writes the provider's body for the body of a row.
func (r *rows) translate(body []byte) ([]byte, error) {
	var w wire.Walk
	if err := modelKey.Walk(body, &w); err != nil {
		return nil, err
	}
	model := r.model
	if w.Spans[0].Present(body) {
		var err error
		if model, err = wire.ScanString(w.Spans[0].Of(body), "model"); err != nil {
			return nil, err
		}
	}
	talk, err := r.talk(model)
	if err != nil {
		return nil, err
	}
	if !w.Spans[0].Present(body) {
		body = wire.Splice(nil, body, modelKey.SetKey(&w, 0, wire.AppendJSONString(nil, model)))
	}
	if talk.Translator != nil {
		return r.carry(talk, body)
	}
	if talk.Spoken() {
		return r.pass(talk, body)
	}
	var checked chat.Checked
	if err := talk.Client.Check(body, &checked); err != nil {
		return nil, err
	}
	q, err := talk.Client.DecodeRequest(body)
	if err != nil {
		return nil, err
	}
	q.Model = talk.Model
	q.Stream, q.IncludeUsage = false, chat.Opt[bool]{}
	if r.body, err = chat.Translate(r.body[:0], talk.Client, talk.Provider, q, talk.Traits, r.j.Loss); err != nil {
		return nil, err
	}
	if q.Legacy {
		r.j.Loss.AddAnswer("functions", "the answer holds tool_calls")
	}
	for _, name := range q.Renamed {
		// The answer comes when nobody knows the request any more.
		return nil, fault.Invalid("tools", "tools: the name %q is not taken by %s", clip(name), r.j.ProviderName)
	}
	r.adapt(talk)
	return r.body, r.j.Loss.Err()
}

// adapt changes the body where the host differs from others.
func (r *rows) adapt(talk *chat.Talk) {
	adapted, dropped := talk.Adapt(r.body)
	for _, name := range dropped {
		r.j.Loss.Add(name, "the host refuses it")
	}
	r.body = adapted
}

var passedKeys = wire.NewKeySet("model", "stream", "stream_options", "input")

// pass writes the body of a row that the provider takes as it is: with its own name
// of the model, and nothing of streams.
func (r *rows) pass(talk *chat.Talk, body []byte) ([]byte, error) {
	var w wire.Walk
	if err := passedKeys.Walk(body, &w); err != nil {
		return nil, err
	}
	if talk.Client == nil {
		if kind := wire.KindOf(w.Spans[3].Of(body)); kind != wire.KindString && kind != wire.KindArray {
			return nil, fault.Invalid("input", "input is required: a text or a list of texts")
		}
	} else if err := talk.Client.Check(body, new(chat.Checked)); err != nil {
		return nil, err
	}
	edits := []wire.Edit{passedKeys.SetKey(&w, 0, wire.AppendJSONString(nil, talk.Model))}
	for i := 1; i < 3; i++ {
		if !w.Spans[i].Absent() {
			edits = append(edits, wire.DeleteKey(&w, i))
		}
	}
	r.body = wire.Splice(r.body[:0], body, edits...)
	r.adapt(talk)
	return r.body, r.j.Loss.Err()
}

// talk is how rows reach a model.
func (r *rows) talk(model string) (*chat.Talk, error) {
	if model == "" {
		return nil, fault.Invalid("model", "model is required")
	}
	if t := r.talks[model]; t != nil {
		return t, nil
	}
	t, err := r.j.Talk(r.client, model)
	if err != nil {
		return nil, err
	}
	if !slices.Contains(r.natives, t.Wire()) {
		return nil, fault.Invalid("endpoint", "rows of %s for the model %q cannot be run in batches of %s", r.endpoint, clip(model), r.j.ProviderName)
	}
	if r.one && r.last != nil && r.last.Model != t.Model {
		return nil, fault.Invalid("model", "model must be the same in all rows: a batch of %s runs one model", r.j.ProviderName)
	}
	if len(r.talks) >= 1000 {
		return nil, fault.Invalid("model", "a file must not name more than 1000 models")
	}
	r.talks[model], r.last = t, t
	return t, nil
}

// output writes rows of output in OpenAI's shape.
type output struct {
	j      *chat.Job
	batch  string
	client string
	talks  map[string]*chat.Talk
}

// answered writes the row of an answer in the provider's dialect.
// inputs is how many inputs a row for embeddings had.
func (w *output) answered(dst []byte, id, model string, body []byte, inputs int) []byte {
	talk, err := w.talk(model)
	if err == nil && talk.Translator != nil {
		return w.vectors(dst, id, model, talk, body, inputs)
	}
	if err == nil && talk.Spoken() {
		return w.whole(dst, id, body)
	}
	var r *chat.Response
	if err == nil {
		r, err = talk.Provider.DecodeResponse(body, talk.Traits)
	}
	if err != nil {
		f := fault.From(err)
		return w.failed(dst, id, string(f.Code), f.Message)
	}
	o := upstream.Begin(dst)
	o.Str("id", w.rowID(id))
	o.Str("custom_id", id)
	o.Key("response")
	o.Open('{')
	o.Int("status_code", 200)
	o.Str("request_id", orElse(r.ID, w.rowID(id)))
	o.Key("body")
	o.B = talk.Client.EncodeResponse(o.B, r, &chat.Options{
		Strict: w.j.Strict, Model: model, ID: w.rowID(id), Created: w.j.Now.Unix(), ProviderName: w.j.ProviderName, Origin: talk.Provider.Name(),
	})
	o.Close('}')
	o.Raw("error", []byte("null"))
	return append(o.B, "}\n"...)
}

// whole writes the row of an answer that is in the client's shape.
func (w *output) whole(dst []byte, id string, body []byte) []byte {
	o := upstream.Begin(dst)
	o.Str("id", w.rowID(id))
	o.Str("custom_id", id)
	o.Key("response")
	o.Open('{')
	o.Int("status_code", 200)
	o.Str("request_id", w.rowID(id))
	o.Raw("body", body)
	o.Close('}')
	o.Raw("error", []byte("null"))
	return append(o.B, "}\n"...)
}

// failed writes the row of a request that was not answered.
func (w *output) failed(dst []byte, id, code, message string) []byte {
	o := upstream.Begin(dst)
	o.Str("id", w.rowID(id))
	o.Str("custom_id", id)
	o.Raw("response", []byte("null"))
	o.Key("error")
	o.Open('{')
	o.Str("code", code)
	o.Str("message", message)
	return append(o.B, "}}\n"...)
}

func (w *output) talk(model string) (*chat.Talk, error) {
	if t := w.talks[model]; t != nil {
		return t, nil
	}
	t, err := w.j.Talk(w.client, model)
	if err == nil && len(w.talks) < 1000 {
		w.talks[model] = t
	}
	return t, err
}

// rowID names a row of the output.
func (w *output) rowID(custom string) string { return "batch_req_" + w.batch + "_" + Plain(custom) }

func orElse(s, other string) string {
	if s == "" {
		return other
	}
	return s
}

// transformed is a text whose lines are translated as they are read.
type transformed struct {
	from io.Closer
	src  *lines
	each func(dst []byte, n int, line []byte) ([]byte, error)
	out  []byte
	at   int
	err  error
}

// transform gives what each writes for the lines of src, which may be nothing.
// Nothing is done but in Read.
func transform(src io.ReadCloser, each func(dst []byte, n int, line []byte) ([]byte, error)) io.ReadCloser {
	return &transformed{from: src, src: newLines(src), each: each}
}

// Read implements io.Reader.
func (t *transformed) Read(p []byte) (int, error) {
	for t.at == len(t.out) {
		if t.err != nil {
			return 0, t.err
		}
		line, err := t.src.next()
		t.out, t.at = t.out[:0], 0
		if err == nil {
			t.out, err = t.each(t.out, t.src.n, line)
		}
		if err != nil {
			t.out, t.err = t.out[:0], err
		}
	}
	n := copy(p, t.out[t.at:])
	t.at += n
	return n, nil
}

// Close implements io.Closer.
func (t *transformed) Close() error { return t.from.Close() }
