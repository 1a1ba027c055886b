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

// VertexEmbedContent is :embedContent on Vertex AI: one content, one vector. Gemini
// embedding models after the first have it in place of :predict.
type VertexEmbedContent struct{}

var _ chat.Translator = VertexEmbedContent{}

// Name implements chat.Translator.
func (VertexEmbedContent) Name() string { return "vertex.embed_content" }

// EncodeRequest implements chat.Translator.
func (VertexEmbedContent) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	r, err := embedding.Read(body)
	if err != nil {
		return dst, "", err
	}
	if err := r.AtMost(1); err != nil {
		return dst, "", err
	}
	r.Lose(a.Loss, "dimensions", "task_type", "taskType", "title", "auto_truncate")
	o := upstream.Begin(dst)
	if err := appendEmbed(o, r, 0); err != nil {
		return dst, "", err
	}
	if err := appendTruncate(o, r); err != nil {
		return dst, "", err
	}
	o.Close('}')
	return o.B, "", nil
}

// appendEmbed writes the request for input i: the content, and the purpose of its vector.
func appendEmbed(o *upstream.Object, r *embedding.Request, i int) error {
	task, title, err := purpose(r)
	if err != nil {
		return err
	}
	if err := appendContent(o, r, i); err != nil {
		return err
	}
	o.StrIf("taskType", task)
	o.StrIf("title", title)
	o.IntIf("outputDimensionality", r.Dimensions)
	return nil
}

// appendTruncate writes whether an input that is too long is cut.
func appendTruncate(o *upstream.Object, r *embedding.Request) error {
	raw := r.Member("auto_truncate")
	if raw == nil {
		return nil
	}
	v, err := wire.ScanBool(raw, "auto_truncate")
	if err == nil {
		o.Bool("autoTruncate", v)
	}
	return err
}

// appendContent writes input i as a content: its text and its image are one thing.
func appendContent(o *upstream.Object, r *embedding.Request, i int) error {
	in := r.Inputs[i]
	o.Key("content")
	o.Open('{')
	o.Key("parts")
	o.Open('[')
	if in.Text != "" || in.Image == "" {
		o.Open('{')
		o.Str("text", in.Text)
		o.Close('}')
	}
	switch {
	case strings.HasPrefix(in.Image, "gs://"):
		o.Open('{')
		o.Key("fileData")
		o.Open('{')
		o.Str("fileUri", in.Image)
		o.Close('}')
		o.Close('}')
	case in.Image != "":
		mime, data, err := inline(r, i)
		if err != nil {
			return err
		}
		o.Open('{')
		o.Key("inlineData")
		o.Open('{')
		o.Str("mimeType", mime)
		o.Str("data", data)
		o.Close('}')
		o.Close('}')
	}
	o.Close(']')
	o.Close('}')
	return nil
}

// DecodeResponse implements chat.Translator.
func (VertexEmbedContent) DecodeResponse(dst, answer []byte, _ http.Header, a *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	out, m, err := embedded(dst, answer, a, "embedding", func(d *wire.Decoder) []embedding.Vector {
		return []embedding.Vector{{Raw: values(d)}}
	})
	return out, "", m, err
}

// embedded appends the client's answer where the vector is in a member, with the token
// counts beside it.
func embedded(dst, answer []byte, a *chat.TranslatorRequest, member string, read func(*wire.Decoder) []embedding.Vector) ([]byte, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var got embedding.Answer
	var u counts
	for key := range d.Object {
		switch string(key) {
		case member:
			got.Vectors = read(d)
		case "usageMetadata":
			u.readFrom(d)
		}
	}
	if u.prompt > 0 {
		got.Usage.Set(pricing.Input, u.prompt.Get())
	}
	return finish(dst, answer, d, &got, a)
}

// finish appends the client's answer with the vectors that d has read.
func finish(dst, answer []byte, d *wire.Decoder, got *embedding.Answer, a *chat.TranslatorRequest) ([]byte, chat.Meter, error) {
	switch err := d.End(); {
	case err != nil:
		return dst, chat.Meter{}, upstream.Invalid("The provider's answer is not JSON", err)
	case got.Vectors == nil:
		return dst, chat.Meter{}, inBandError(answer)
	}
	return got.Append(dst, a)
}

// DecodeError implements chat.Translator.
func (VertexEmbedContent) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}
