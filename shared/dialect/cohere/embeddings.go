package cohere

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/embedding"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// maxInputs is how many things one request may embed.
const maxInputs = 96

// Embeddings is POST /v2/embed. Texts go as texts, images as images, and things
// of both as inputs. input_type, which the provider requires, is search_document
// unless the client says otherwise, or image for images.
type Embeddings struct{}

var _ chat.Translator = Embeddings{}

// Name implements chat.Translator.
func (Embeddings) Name() string { return "cohere.embeddings" }

// EncodeRequest implements chat.Translator.
func (Embeddings) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := embedding.Read(body)
	if err != nil {
		return dst, "", err
	}
	if err := r.AtMost(maxInputs); err != nil {
		return dst, "", err
	}
	r.ReportLoss(a.Loss, "dimensions", "input_type", "embedding_types", "truncate", "output_dimension", "max_tokens", "priority")
	o := upstream.Begin(dst)
	o.Str("model", a.Model)
	if err := inputType(o, r); err != nil {
		return dst, "", err
	}
	kind, err := vectorKind(r)
	if err != nil {
		return dst, "", err
	}
	o.List("embedding_types", []string{kind})
	r.Pass(o, "truncate", "output_dimension", "max_tokens", "priority")
	if r.Member("output_dimension") == nil {
		o.IntIf("output_dimension", r.Dimensions)
	}
	writeInputs(o, r)
	o.Close('}')
	return o.B, "", nil
}

func inputType(o *upstream.Object, r *embedding.Request) error {
	kind, err := r.StringField("input_type")
	if err != nil {
		return err
	}
	if kind == "" {
		kind = "search_document"
		if images(r) == len(r.Inputs) {
			kind = "image"
		}
	}
	o.Str("input_type", kind)
	return nil
}

// vectorKind returns the one requested kind of vectors: a response can contain only one.
func vectorKind(r *embedding.Request) (string, error) {
	raw := r.Member("embedding_types")
	if raw == nil {
		return "float", nil
	}
	kind, n := "", 0
	d := wire.NewDecoderAt(raw, "embedding_types")
	for range d.Array {
		kind = d.Str()
		n++
	}
	if err := d.End(); err != nil {
		return "", err
	}
	if n != 1 {
		return "", fault.Invalid("embedding_types", "embedding_types must contain one type: the response format has one vector per input")
	}
	return kind, nil
}

// images counts the inputs that are images only.
func images(r *embedding.Request) int {
	n := 0
	for _, in := range r.Inputs {
		if in.Image != "" && in.Text == "" {
			n++
		}
	}
	return n
}

func writeInputs(o *upstream.Object, r *embedding.Request) {
	n, texts := images(r), 0
	for _, in := range r.Inputs {
		if in.Image == "" {
			texts++
		}
	}
	list := make([]string, len(r.Inputs))
	switch len(r.Inputs) {
	case texts:
		for i, in := range r.Inputs {
			list[i] = in.Text
		}
		o.List("texts", list)
		return
	case n:
		for i, in := range r.Inputs {
			list[i] = in.Image
		}
		o.List("images", list)
		return
	}
	o.Key("inputs")
	o.Open('[')
	for _, in := range r.Inputs {
		o.Open('{')
		o.Key("content")
		o.Open('[')
		if in.Text != "" || in.Image == "" {
			o.Open('{')
			o.Str("type", "text")
			o.Str("text", in.Text)
			o.Close('}')
		}
		if in.Image != "" {
			o.Open('{')
			o.Str("type", "image_url")
			o.Key("image_url")
			o.Open('{')
			o.Str("url", in.Image)
			o.Close('}')
			o.Close('}')
		}
		o.Close(']')
		o.Close('}')
	}
	o.Close(']')
}

// DecodeResponse implements chat.Translator. Vectors come by type, or as a plain
// list from older models.
func (Embeddings) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var read embedding.Response
	var u counts
	id := ""
	for key := range d.Object {
		switch string(key) {
		case "id":
			id = upstream.OptString(d)
		case "embeddings":
			if d.Kind() == wire.KindArray {
				read.Vectors = embedding.ReadList(d)
				continue
			}
			each(d, func(string) {
				if vectors := embedding.ReadList(d); len(vectors) > 0 {
					read.Vectors = vectors
				}
			})
		case "meta":
			u.read(d)
		}
	}
	switch {
	case d.End() != nil:
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's response is not JSON", d.End())
	case read.Vectors == nil:
		return dst, "", chat.Meter{}, upstream.InBand(answer)
	}
	if u.input.Set {
		read.ReportedTokens = u.input
	}
	if u.billedIn.Set {
		read.Usage.Set(pricing.Input, u.billedIn.Value)
	} else if u.input.Set {
		read.Usage.Set(pricing.Input, u.input.Value)
	}
	if u.billedImages.Set {
		read.Usage.Set(pricing.ImageIn, u.billedImages.Value)
	}
	if u.images.Set {
		read.Usage.Set(pricing.InputImages, u.images.Value)
	}
	out, m, err := read.Append(dst, a)
	m.ID = id
	return out, "", m, err
}

// DecodeError implements chat.Translator.
func (Embeddings) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}
