package job

import (
	"io"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/embedding"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// output writes rows of output in OpenAI's shape.
type output struct {
	j      *chat.Job
	batch  string
	client string
	talks  map[string]*chat.Conversation
}

// writeRow writes the row of a response in the provider's dialect.
// inputs is how many inputs a row for embeddings had.
func (w *output) writeRow(dst []byte, id, model string, body []byte, inputs int) []byte {
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

func (w *output) talk(model string) (*chat.Conversation, error) {
	if t := w.talks[model]; t != nil {
		return t, nil
	}
	t, err := w.j.Conversation(w.client, model)
	if err == nil && len(w.talks) < 1000 {
		w.talks[model] = t
	}
	return t, err
}

// rowID names a row of the output.
func (w *output) rowID(custom string) string {
	return "batch_req_" + w.batch + "_" + EscapeSegment(custom)
}

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

// carry writes the provider's body for an embedding row. Vectors are returned as numbers,
// because the request is no longer known when the response is written.
func (r *rows) carry(talk *chat.Conversation, body []byte) ([]byte, error) {
	var err error
	if r.body, _, err = talk.Translator.EncodeRequest(r.body[:0], body, r.translatorRequest(talk, body)); err != nil {
		return nil, err
	}
	if got, err := embedding.Read(body); err == nil && got.Base64 {
		r.j.Loss.AddResponse("encoding_format", "vectors are lists of numbers")
	}
	return r.body, r.j.Loss.Err()
}

func (r *rows) translatorRequest(talk *chat.Conversation, body []byte) *chat.TranslatorRequest {
	return &chat.TranslatorRequest{
		Body: body, Model: talk.Model, Operation: "embeddings", Traits: talk.Traits, Loss: r.j.Loss, Field: r.j.Field,
		ID: r.j.Request, Created: r.j.Now.Unix(), ProviderName: r.j.ProviderName, Strict: r.j.Strict,
	}
}

// inputsBody is the body of a request for the vectors of so many texts.
func inputsBody(n int) []byte {
	return []byte(`{"input":["x"` + strings.Repeat(`,"x"`, n-1) + `]}`)
}

// vectors writes the row of a response with vectors.
func (w *output) vectors(dst []byte, id, model string, talk *chat.Conversation, body []byte, inputs int) []byte {
	req := &chat.TranslatorRequest{
		Body: inputsBody(inputs), Model: model, Operation: "embeddings", Traits: talk.Traits, Loss: new(chat.Loss), Field: w.j.Field,
		ID: w.rowID(id), Created: w.j.Now.Unix(), ProviderName: w.j.ProviderName, Strict: w.j.Strict,
	}
	answer, _, _, err := talk.Translator.DecodeResponse(nil, body, http.Header{}, req)
	if err != nil {
		f := fault.From(err)
		return w.failed(dst, id, string(f.Code), f.Message)
	}
	return w.whole(dst, id, answer)
}

// meteredVectors reads what a row for embeddings used.
func meteredVectors(t chat.Translator, model string, field func(string) string) func(*result) chat.Meter {
	return func(r *result) chat.Meter {
		req := &chat.TranslatorRequest{Body: inputsBody(max(r.inputs, 1)), Model: model, Operation: "embeddings", Traits: new(chat.Traits), Loss: new(chat.Loss), Field: field}
		_, _, m, err := t.DecodeResponse(nil, r.message, http.Header{}, req)
		if err != nil {
			return chat.Meter{}
		}
		return m
	}
}
