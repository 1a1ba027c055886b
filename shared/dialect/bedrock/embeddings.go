package bedrock

import (
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/embedding"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// errors reads the error bodies of the service.
type errors struct{}

// DecodeError implements chat.Translator.
func (errors) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return converse.Converse{}.DecodeError(status, h, body)
}

// Embeddings is InvokeModel of Titan, Nova and Cohere models that embed.
type Embeddings struct{ errors }

var _ chat.Translator = Embeddings{}

// Name implements chat.Translator.
func (Embeddings) Name() string { return "bedrock.embeddings" }

// EncodeRequest implements chat.Translator.
func (Embeddings) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := embedding.Read(body)
	if err != nil {
		return dst, "", err
	}
	o := upstream.Begin(dst)
	switch m := a.Model; {
	case strings.Contains(m, "cohere.embed"):
		err = cohereInputs(o, r, a)
	case strings.Contains(m, "titan-embed-image"):
		err = titanImage(o, r, a)
	case strings.Contains(m, "titan-embed"):
		err = titanText(o, r, a)
	case strings.Contains(m, "nova") && strings.Contains(m, "embed"):
		err = nova(o, r, a)
	default:
		err = fault.Newf(fault.UnsupportedOperation, "model", "Embeddings of this model on %s are not supported; use a Titan, Nova or Cohere embedding model", a.ProviderName)
	}
	if err != nil {
		return dst, "", err
	}
	o.Close('}')
	return o.B, "", nil
}

// one is the input of a model that embeds one thing at a time.
func one(r *embedding.Request) (embedding.Input, error) {
	if len(r.Inputs) > 1 {
		return embedding.Input{}, fault.Invalid("input", "input must be one text or image for this model, not a list of %d", len(r.Inputs))
	}
	return r.Inputs[0], nil
}

// bytesOf is the base64 of an image; nothing is fetched from the web.
func bytesOf(r *embedding.Request, i int) (mime, data string, err error) {
	head, data, found := strings.Cut(r.Inputs[i].Image, ";base64,")
	mime, isData := strings.CutPrefix(head, "data:")
	if !found || !isData || data == "" {
		return "", "", fault.Invalid(r.Path(i), "%s must contain its image as base64 or a data: URL for this provider, which fetches nothing from the web", r.Path(i))
	}
	return mime, data, nil
}

func titanText(o *upstream.Object, r *embedding.Request, a *chat.TranslatorRequest) error {
	if _, err := one(r); err != nil {
		return err
	}
	texts, err := r.Texts(1)
	if err != nil {
		return err
	}
	o.Str("inputText", texts[0])
	if strings.Contains(a.Model, "v1") || strings.Contains(a.Model, "g1") { // the first generation takes nothing else
		r.ReportLoss(a.Loss)
		return nil
	}
	r.ReportLoss(a.Loss, "dimensions", "normalize", "embeddingTypes")
	o.IntIf("dimensions", r.Dimensions)
	r.Pass(o, "normalize", "embeddingTypes")
	return nil
}

func titanImage(o *upstream.Object, r *embedding.Request, a *chat.TranslatorRequest) error {
	in, err := one(r)
	if err != nil {
		return err
	}
	r.ReportLoss(a.Loss, "dimensions")
	o.StrIf("inputText", in.Text)
	if in.Image != "" {
		_, data, err := bytesOf(r, 0)
		if err != nil {
			return err
		}
		o.Str("inputImage", data)
	}
	if r.Dimensions.Set {
		o.Key("embeddingConfig")
		o.Open('{')
		o.IntIf("outputEmbeddingLength", r.Dimensions)
		o.Close('}')
	}
	return nil
}

// nova writes a single embedding. Its purpose is an index unless the client names another.
func nova(o *upstream.Object, r *embedding.Request, a *chat.TranslatorRequest) error {
	in, err := one(r)
	if err != nil {
		return err
	}
	purpose, err := r.StringField("embeddingPurpose")
	if err != nil {
		return err
	}
	if purpose == "" {
		purpose = "GENERIC_INDEX"
	}
	r.ReportLoss(a.Loss, "dimensions", "embeddingPurpose")
	o.Str("taskType", "SINGLE_EMBEDDING")
	o.Key("singleEmbeddingParams")
	o.Open('{')
	o.Str("embeddingPurpose", purpose)
	o.IntIf("embeddingDimension", r.Dimensions)
	switch {
	case in.Image != "" && in.Text != "":
		return fault.Invalid(r.Path(0), "%s must be a text or an image for this model, not both", r.Path(0))
	case in.Image != "":
		mime, data, err := bytesOf(r, 0)
		if err != nil {
			return err
		}
		format := strings.TrimPrefix(mime, "image/")
		if format == "jpg" {
			format = "jpeg"
		}
		o.Key("image")
		o.Open('{')
		o.Str("format", format)
		o.Key("source")
		o.Open('{')
		o.Str("bytes", data)
		o.B = append(o.B, "}}"...)
	default:
		o.Key("text")
		o.Open('{')
		o.Str("truncationMode", "END")
		o.Str("value", in.Text)
		o.Close('}')
	}
	o.Close('}')
	return nil
}

// maxCohere is the most inputs that Cohere's models take at once.
const maxCohere = 96

// cohereInputs writes texts or images. The purpose of the input is required; if the client
// does not name it, it is a document.
func cohereInputs(o *upstream.Object, r *embedding.Request, a *chat.TranslatorRequest) error {
	if err := r.AtMost(maxCohere); err != nil {
		return err
	}
	images := r.Inputs[0].Image != ""
	fourth := strings.Contains(a.Model, "embed-v4")
	carried := []string{"input_type", "truncate", "embedding_types"}
	if fourth {
		carried = append(carried, "dimensions", "max_tokens")
	}
	r.ReportLoss(a.Loss, carried...)
	name := "texts"
	if images {
		name = "images"
	}
	o.Key(name)
	o.Open('[')
	for i, in := range r.Inputs {
		if (in.Image != "") != images || images && in.Text != "" {
			return fault.Invalid(r.Path(i), "%s must be like the first input: all texts, or all images", r.Path(i))
		}
		if !images {
			o.Text(in.Text)
			continue
		}
		if _, _, err := bytesOf(r, i); err != nil {
			return err
		}
		o.Text(in.Image)
	}
	o.Close(']')
	r.Pass(o, "input_type", "truncate", "embedding_types")
	if r.Member("input_type") == nil {
		kind := "search_document"
		if images {
			kind = "image"
		}
		o.Str("input_type", kind)
	}
	if fourth {
		o.IntIf("output_dimension", r.Dimensions)
		r.Pass(o, "max_tokens")
	}
	return nil
}

// inputTokens returns the service's count, if a header contains it.
func inputTokens(h http.Header) chat.Opt[int64] {
	n, err := strconv.ParseInt(h.Get("X-Amzn-Bedrock-Input-Token-Count"), 10, 64)
	if err != nil || n < 0 {
		return chat.Opt[int64]{}
	}
	return chat.Some(n)
}

// DecodeResponse implements chat.Translator.
func (Embeddings) DecodeResponse(dst, answer []byte, h http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var read embedding.Response
	tokens := inputTokens(h)
	for key := range d.Object {
		switch string(key) {
		case "embedding":
			if d.Kind() == wire.KindArray {
				read.Vectors = []embedding.Vector{{Raw: upstream.Clone(d.Raw())}}
			}
		case "embeddings":
			readVectors(d, &read)
		case "inputTextTokenCount":
			upstream.Count(d, &tokens)
		}
	}
	switch {
	case d.End() != nil:
		return dst, "", chat.Meter{}, upstream.Invalid("The provider's response is not JSON", d.End())
	case read.Vectors == nil:
		return dst, "", chat.Meter{}, upstream.InBand(answer)
	}
	if tokens.Set {
		read.Usage.Set(pricing.Input, tokens.Value)
	}
	out, m, err := read.Append(dst, a)
	return out, "", m, err
}

// readVectors reads [[...]], [{embedding:[...]}] or {float:[[...]]}.
func readVectors(d *wire.Decoder, read *embedding.Response) {
	switch d.Kind() {
	case wire.KindObject:
		for key := range d.Object {
			if vectors := embedding.ReadList(d); len(vectors) > 0 && (read.Vectors == nil || string(key) == "float") {
				read.Vectors = vectors
			}
		}
	case wire.KindArray:
		for i := range d.Array {
			if d.Kind() != wire.KindObject {
				read.Vectors = append(read.Vectors, embedding.Vector{Index: i, Raw: upstream.Clone(d.Raw())})
				continue
			}
			v := embedding.Vector{Index: i}
			for key := range d.Object {
				if string(key) == "embedding" {
					v.Raw = upstream.Clone(d.Raw())
				}
			}
			read.Vectors = append(read.Vectors, v)
		}
	}
}
