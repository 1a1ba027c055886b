package gemini

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/embedding"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Bounds of inputs in one request.
const (
	maxBatch     = 100 // batchEmbedContents
	maxInstances = 250 // predict
)

// Embeddings is :batchEmbedContents of AI Studio: one request for each input.
type Embeddings struct{}

var _ chat.Translator = Embeddings{}

// Name implements chat.Translator.
func (Embeddings) Name() string { return "gemini.embeddings" }

// EncodeRequest implements chat.Translator.
func (Embeddings) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := embedding.Read(body)
	if err != nil {
		return dst, "", err
	}
	if err := r.AtMost(maxBatch); err != nil {
		return dst, "", err
	}
	r.ReportLoss(a.Loss, "dimensions", "task_type", "taskType", "title")
	o := upstream.Begin(dst)
	o.Key("requests")
	o.Open('[')
	for i := range r.Inputs {
		o.Open('{')
		o.Str("model", "models/"+strings.TrimPrefix(a.Model, "models/"))
		if err := appendEmbed(o, r, i); err != nil {
			return dst, "", err
		}
		o.Close('}')
	}
	o.Close(']')
	o.Close('}')
	return o.B, "", nil
}

// purpose reads what the vectors are for.
func purpose(r *embedding.Request) (task, title string, err error) {
	if task, err = r.StringField("task_type"); task == "" && err == nil {
		task, err = r.StringField("taskType")
	}
	if err == nil {
		title, err = r.StringField("title")
	}
	return strings.ToUpper(task), title, err
}

// inline is the type and content of the image of input i, which must be in the
// request itself.
func inline(r *embedding.Request, i int) (mime, data string, err error) {
	head, data, ok := strings.Cut(r.Inputs[i].Image, ";base64,")
	mime, isData := strings.CutPrefix(head, "data:")
	if !ok || !isData || data == "" {
		return "", "", fault.Invalid(r.Path(i), "%s must contain its image as a base64 data: URL for this provider", r.Path(i))
	}
	return mime, data, nil
}

// DecodeResponse implements chat.Translator.
func (Embeddings) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	out, m, err := embedded(dst, answer, a, "embeddings", func(d *wire.Decoder) []embedding.Vector {
		if d.Kind() != wire.KindArray {
			d.Skip()
			return nil
		}
		all := []embedding.Vector{}
		for i := range d.Array {
			all = append(all, embedding.Vector{Index: i, Raw: values(d)})
		}
		return all
	})
	return out, "", m, err
}

// values reads the list of numbers of {values:[...]}.
func values(d *wire.Decoder) (raw []byte) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return nil
	}
	for key := range d.Object {
		if string(key) == "values" {
			raw = compact(d.Raw())
		}
	}
	return raw
}

// DecodeError implements chat.Translator.
func (Embeddings) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// VertexEmbeddings is :predict of the embedding models on Vertex AI: one instance
// for each input.
type VertexEmbeddings struct{}

var _ chat.Translator = VertexEmbeddings{}

// Name implements chat.Translator.
func (VertexEmbeddings) Name() string { return "vertex.embeddings" }

// multimodal reports whether a model also embeds images; it has a separate format.
func multimodal(model string) bool { return strings.HasPrefix(model, "multimodalembedding") }

// EncodeRequest implements chat.Translator.
func (VertexEmbeddings) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := embedding.Read(body)
	if err != nil {
		return dst, "", err
	}
	if err := r.AtMost(maxInstances); err != nil {
		return dst, "", err
	}
	o := upstream.Begin(dst)
	if multimodal(a.Model) {
		r.ReportLoss(a.Loss, "dimensions", "labels")
		err = bothInstances(o, r)
	} else {
		r.ReportLoss(a.Loss, "dimensions", "task_type", "taskType", "title", "auto_truncate", "labels")
		err = textInstances(o, r)
	}
	if err != nil {
		return dst, "", err
	}
	r.Pass(o, "labels")
	o.Close('}')
	return o.B, "", nil
}

func textInstances(o *upstream.Object, r *embedding.Request) error {
	texts, err := r.Texts(0)
	if err != nil {
		return err
	}
	task, title, err := purpose(r)
	if err != nil {
		return err
	}
	o.Key("instances")
	o.Open('[')
	for _, text := range texts {
		o.Open('{')
		o.Str("content", text)
		o.StrIf("task_type", task)
		o.StrIf("title", title)
		o.Close('}')
	}
	o.Close(']')
	if !r.Dimensions.Set && r.Member("auto_truncate") == nil {
		return nil
	}
	o.Key("parameters")
	o.Open('{')
	o.IntIf("outputDimensionality", r.Dimensions)
	if err := appendTruncate(o, r); err != nil {
		return err
	}
	o.Close('}')
	return nil
}

// bothInstances rejects a text with an image: they would result in two vectors, and a
// response can contain only one.
func bothInstances(o *upstream.Object, r *embedding.Request) error {
	o.Key("instances")
	o.Open('[')
	for i, in := range r.Inputs {
		o.Open('{')
		switch {
		case in.Image != "" && in.Text != "":
			return fault.Invalid(r.Path(i), "%s must be a text or an image: this model makes a vector of each", r.Path(i))
		case in.Image != "":
			_, data, err := inline(r, i)
			if err != nil {
				return err
			}
			o.Key("image")
			o.Open('{')
			o.Str("bytesBase64Encoded", data)
			o.Close('}')
		default:
			o.Str("text", in.Text)
		}
		o.Close('}')
	}
	o.Close(']')
	if r.Dimensions.Set {
		o.Key("parameters")
		o.Open('{')
		o.IntIf("dimension", r.Dimensions)
		o.Close('}')
	}
	return nil
}

// DecodeResponse implements chat.Translator.
func (VertexEmbeddings) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var read embedding.Response
	var tokens chat.Opt[int64]
	for key := range d.Object {
		if string(key) != "predictions" || d.Kind() != wire.KindArray {
			continue
		}
		read.Vectors = []embedding.Vector{}
		for i := range d.Array {
			read.Vectors = append(read.Vectors, embedding.Vector{Index: i, Raw: prediction(d, &tokens)})
		}
	}
	if tokens.Set {
		read.Usage.Set(pricing.Input, tokens.Value)
	}
	if n := images(a.Body); n > 0 && multimodal(a.Model) {
		read.Usage.Set(pricing.InputImages, n)
	}
	out, m, err := finish(dst, answer, d, &read, a)
	return out, "", m, err
}

// images counts the images that were given.
func images(body []byte) (n int64) {
	if r, err := embedding.Read(body); err == nil {
		for _, in := range r.Inputs {
			if in.Image != "" {
				n++
			}
		}
	}
	return n
}

// prediction reads one vector, and adds the tokens that it took.
func prediction(d *wire.Decoder, tokens *chat.Opt[int64]) (raw []byte) {
	if d.Kind() != wire.KindObject {
		d.Skip()
		return nil
	}
	for key := range d.Object {
		switch string(key) {
		case "textEmbedding", "imageEmbedding":
			raw = compact(d.Raw())
		case "embeddings":
			if d.Kind() != wire.KindObject {
				continue
			}
			for inner := range d.Object {
				switch {
				case string(inner) == "values":
					raw = compact(d.Raw())
				case string(inner) == "statistics" && d.Kind() == wire.KindObject:
					for name := range d.Object {
						if string(name) == "token_count" && d.Kind() == wire.KindNumber {
							if n := d.Float(); n >= 0 && n < 1e12 {
								*tokens = chat.Some(tokens.Value + int64(n))
							}
						}
					}
				}
			}
		}
	}
	return raw
}

// DecodeError implements chat.Translator.
func (VertexEmbeddings) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}
