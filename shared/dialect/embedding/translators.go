package embedding

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Voyage is POST /embeddings of Voyage AI: texts, vectors of a chosen length, no
// encoding_format float.
type Voyage struct{ upstream.Errors }

var _ chat.Translator = Voyage{}

// Name implements chat.Translator.
func (Voyage) Name() string { return "voyage.embeddings" }

// EncodeRequest implements chat.Translator.
func (Voyage) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := Read(body)
	if err != nil {
		return dst, "", err
	}
	texts, err := r.Texts(1000)
	if err != nil {
		return dst, "", err
	}
	r.ReportLoss(a.Loss, "dimensions", "input_type", "truncation", "output_dimension", "output_dtype")
	o := upstream.Begin(dst)
	o.Str("model", a.Model)
	r.Pass(o, "input_type", "truncation", "output_dimension", "output_dtype")
	if r.Member("output_dimension") == nil {
		o.IntIf("output_dimension", r.Dimensions)
	}
	if r.Base64 {
		o.Str("encoding_format", "base64")
	}
	o.List("input", texts)
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator.
func (Voyage) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return fromOpenAI(dst, answer, a)
}

func fromOpenAI(dst, answer []byte, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	read, err := readOpenAI(answer)
	if err != nil {
		return dst, "", chat.Meter{}, err
	}
	out, m, err := read.Append(dst, a)
	return out, "", m, err
}

// Jina is POST /embeddings of Jina AI: texts and images, embedding_type in place
// of encoding_format.
type Jina struct{ upstream.Errors }

var _ chat.Translator = Jina{}

// Name implements chat.Translator.
func (Jina) Name() string { return "jina.embeddings" }

// EncodeRequest implements chat.Translator.
func (Jina) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := Read(body)
	if err != nil {
		return dst, "", err
	}
	r.ReportLoss(a.Loss, "dimensions", "task", "late_chunking", "truncate", "normalized", "embedding_type", "return_multivector")
	o := upstream.Begin(dst)
	o.Str("model", a.Model)
	r.Pass(o, "task", "late_chunking", "truncate", "normalized", "embedding_type", "return_multivector")
	o.IntIf("dimensions", r.Dimensions)
	if r.Base64 && r.Member("embedding_type") == nil {
		o.Str("embedding_type", "base64")
	}
	o.Key("input")
	o.Open('[')
	for i, in := range r.Inputs {
		switch {
		case in.Image != "" && in.Text != "":
			return dst, "", fault.Invalid(r.Path(i), "%s must be a text or an image for this provider, not both", r.Path(i))
		case in.Image != "":
			o.Open('{')
			o.Str("image", in.Image)
			o.Close('}')
		default:
			o.Text(in.Text)
		}
	}
	o.Close(']')
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator.
func (Jina) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	return fromOpenAI(dst, answer, a)
}

// Nomic is POST /embedding/text of Nomic.
type Nomic struct{ upstream.Errors }

var _ chat.Translator = Nomic{}

// Name implements chat.Translator.
func (Nomic) Name() string { return "nomic.embeddings" }

// EncodeRequest implements chat.Translator.
func (Nomic) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := Read(body)
	if err != nil {
		return dst, "", err
	}
	texts, err := r.Texts(0)
	if err != nil {
		return dst, "", err
	}
	r.ReportLoss(a.Loss, "dimensions", "task_type", "input_type", "dimensionality", "long_text_mode", "max_tokens_per_text")
	o := upstream.Begin(dst)
	o.Str("model", a.Model)
	r.Pass(o, "task_type", "dimensionality", "long_text_mode", "max_tokens_per_text")
	if r.Member("task_type") == nil {
		if raw := r.Member("input_type"); raw != nil {
			o.Raw("task_type", raw)
		}
	}
	if r.Member("dimensionality") == nil {
		o.IntIf("dimensionality", r.Dimensions)
	}
	o.List("texts", texts)
	o.Close('}')
	return o.B, "", nil
}

// DecodeResponse implements chat.Translator.
func (Nomic) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var read Response
	for key := range d.Object {
		switch string(key) {
		case "embeddings":
			read.Vectors = ReadList(d)
		case "model":
			read.Model = upstream.OptString(d)
		case "usage":
			upstream.TotalTokens(d, &read.Usage)
		}
	}
	if err := d.End(); err != nil {
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's response is not JSON", err)
	}
	if read.Vectors == nil {
		return dst, "", chat.Meter{}, upstream.InBand(answer)
	}
	out, m, err := read.Append(dst, a)
	return out, "", m, err
}
