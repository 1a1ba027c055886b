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

// next returns a line, which is valid until the next one; io.EOF at the end.
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
	// shape converts the body of a request to the content of a row; if nil, the body is
	// used unchanged.
	shape func(body []byte) ([]byte, error)
	talks map[string]*chat.Conversation
	last  *chat.Conversation
	seen  map[uint64]bool
	seed  maphash.Seed
	n     int64
	body  []byte
}

// newRows is for a batch with a provider that supports the natives: dialects of
// conversations, translators of embeddings.
func newRows(j *chat.Job, a *batchRequest, natives ...string) (*rows, error) {
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
	return &rows{j: j, client: dialects[a.Endpoint], endpoint: a.Endpoint, natives: natives, model: a.Model, talks: map[string]*chat.Conversation{}}, nil
}

// anyOf writes a list of words as "a, b or c".
func anyOf(words []string) string {
	last := len(words) - 1
	if last < 1 {
		return strings.Join(words, "")
	}
	return strings.Join(words[:last], ", ") + " or " + words[last]
}

// source returns what write makes of every row, sequentially, from its custom id and the
// provider's body, which is valid until the next row. When one source has been read to
// its end, another of the same file can be made. The second one does not use the request,
// so it may be read after the request has ended.
func (r *rows) source(ctx context.Context, f *chat.StoredFile, write func(dst []byte, n int64, id string, body []byte) []byte) io.ReadCloser {
	if r.n > 0 {
		j := *r.j
		j.Loss = new(chat.Loss)
		r = &rows{j: &j, client: r.client, endpoint: r.endpoint, natives: r.natives, model: r.model, one: r.one, shape: r.shape, talks: r.talks, last: r.last}
	}
	r.seen, r.seed = make(map[uint64]bool), maphash.MakeSeed()
	return transform(r.j.Files.Open(ctx, f), func(dst []byte, n int, line []byte) ([]byte, error) {
		id, body, err := r.row(line)
		if err != nil {
			return dst, atLine(n, err)
		}
		return write(dst, r.n, id, body), nil
	})
}

// fault returns the error if rows could not be read to their end.
func (r *rows) fault(err error) error {
	switch {
	case errors.Is(err, errRow):
		return fault.Newf(fault.BodyTooLarge, "input_file_id", "input_file_id: each row must have at most %d bytes", maxRow)
	case errors.Is(err, errLong):
		return fault.Newf(fault.BodyTooLarge, "input_file_id", "input_file_id: the rows have more bytes than %s accepts", r.j.ProviderName)
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
		return "", nil, fault.Invalid("custom_id", "custom_id must be unique in the file")
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
	if talk.Native() {
		return r.pass(talk, body)
	}
	if err := checkRow(talk, body); err != nil {
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
		r.j.Loss.AddResponse("functions", "the response contains tool_calls")
	}
	for _, name := range q.ToolNames {
		// When the response comes, the request that names could be mapped back with is gone.
		return nil, fault.Invalid("tools", "tools: the name %q is not accepted by %s", clip(name), r.j.ProviderName)
	}
	r.adapt(talk)
	return r.body, r.j.Loss.Err()
}

// checkRow tests the bounds of a row. The target decides about bounds that it sets wider.
func checkRow(talk *chat.Conversation, body []byte) error {
	checked := chat.Checked{ByTarget: true}
	if err := talk.Client.Check(body, &checked); err != nil {
		return err
	}
	return talk.Traits.Extended.Check(checked.Excess)
}

// adapt changes the body where the host differs from other hosts.
func (r *rows) adapt(talk *chat.Conversation) {
	adapted, dropped := talk.Adapt(r.body)
	for _, name := range dropped {
		r.j.Loss.Add(name, "the host rejects it")
	}
	r.body = adapted
}

var passedKeys = wire.NewKeySet("model", "stream", "stream_options", "input")

// pass writes the body of a row that the provider takes as it is, but with the provider's
// name of the model and without stream fields.
func (r *rows) pass(talk *chat.Conversation, body []byte) ([]byte, error) {
	var w wire.Walk
	if err := passedKeys.Walk(body, &w); err != nil {
		return nil, err
	}
	if talk.Client == nil {
		if kind := wire.KindOf(w.Spans[3].Of(body)); kind != wire.KindString && kind != wire.KindArray {
			return nil, fault.Invalid("input", "input is required: a text or a list of texts")
		}
	} else if err := checkRow(talk, body); err != nil {
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

// talk reports how rows reach a model.
func (r *rows) talk(model string) (*chat.Conversation, error) {
	if model == "" {
		return nil, fault.Invalid("model", "model is required")
	}
	if t := r.talks[model]; t != nil {
		return t, nil
	}
	t, err := r.j.Conversation(r.client, model)
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
