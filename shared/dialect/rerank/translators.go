package rerank

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// Voyage is POST /rerank of Voyage AI: texts, top_k, results in data.
type Voyage struct{ upstream.Errors }

var _ chat.Translator = Voyage{}

// Name implements chat.Translator.
func (Voyage) Name() string { return "voyage.rerank" }

// EncodeRequest implements chat.Translator.
func (Voyage) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := Read(body)
	if err != nil {
		return dst, "", err
	}
	query, err := r.Text()
	if err != nil {
		return dst, "", err
	}
	texts, err := r.Texts(1000, a.Loss)
	if err != nil {
		return dst, "", err
	}
	r.Lose(a.Loss, "truncation")
	o := upstream.Begin(dst)
	o.Str("model", a.Model)
	o.Str("query", query)
	o.IntIf("top_k", r.TopN)
	r.Pass(o, "truncation")
	o.List("documents", texts)
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator.
func (Voyage) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return decode(dst, answer, a, "data")
}

// Jina is POST /rerank of Jina AI: texts and images, documents omitted.
type Jina struct{ upstream.Errors }

var _ chat.Translator = Jina{}

// Name implements chat.Translator.
func (Jina) Name() string { return "jina.rerank" }

// EncodeRequest implements chat.Translator.
func (Jina) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := Read(body)
	if err != nil {
		return dst, "", err
	}
	r.Lose(a.Loss)
	o := upstream.Begin(dst)
	o.Str("model", a.Model)
	if r.QueryRaw != nil {
		o.Raw("query", r.QueryRaw)
	} else {
		o.Str("query", r.Query)
	}
	o.IntIf("top_n", r.TopN)
	o.Bool("return_documents", false)
	o.Key("documents")
	o.Open('[')
	for i := range r.Documents {
		if doc := &r.Documents[i]; doc.Object && len(r.Fields) == 0 && isImage(doc.Raw) {
			o.Element(doc.Raw)
			continue
		}
		text, err := r.text(i, a.Loss)
		if err != nil {
			return dst, "", err
		}
		o.Text(text)
	}
	o.Close(']')
	o.Close('}')
	return o.B, "", nil
}

// isImage reports whether a document is {"image": ...}.
func isImage(raw []byte) bool {
	d := wire.NewDecoder(raw)
	n, image := 0, false
	for key := range d.Object {
		n++
		image = image || string(key) == "image" && d.Kind() == wire.KindString
	}
	return n == 1 && image
}

// DecodeResponse implements chat.Translator.
func (Jina) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return decode(dst, answer, a, "results")
}

// decode reads {id, model, results or data, usage: {total_tokens}}.
func decode(dst, answer []byte, a *chat.TranslatorRequest, list string) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var read Answer
	for key := range d.Object {
		switch string(key) {
		case "id":
			read.ID = upstream.OptString(d)
		case "model":
			read.Model = upstream.OptString(d)
		case list:
			read.Results = ReadResults(d)
		case "usage":
			upstream.TotalTokens(d, &read.Usage)
		}
	}
	if err := d.End(); err != nil {
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's answer is not JSON", err)
	}
	if read.Results == nil {
		return dst, "", chat.Meter{}, upstream.InBand(answer)
	}
	out, m, err := read.Append(dst, a)
	return out, "", m, err
}
