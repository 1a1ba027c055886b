package job

import (
	"io"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

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
	if err == nil && talk.Native() {
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

// whole writes the row of a response in the client's format.
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

// transformed is a text with lines that are translated while they are read.
type transformed struct {
	from io.Closer
	src  *lines
	each func(dst []byte, n int, line []byte) ([]byte, error)
	out  []byte
	at   int
	err  error
}

// transform returns what each writes for the lines of src; it may write nothing for a
// line. All work is done in Read.
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
