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
	r.ReportLoss(a.Loss, "dimensions", "task_type", "taskType", "title", "auto_truncate")
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

// embedded appends the client's response where the vector is in a field, with the token
// counts beside it.
func embedded(dst, answer []byte, a *chat.TranslatorRequest, member string, read func(*wire.Decoder) []embedding.Vector) ([]byte, chat.Meter, error) {
	d := wire.NewDecoder(answer)
	var got embedding.Response
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

// finish appends the client's response with the vectors that d has read.
func finish(dst, answer []byte, d *wire.Decoder, got *embedding.Response, a *chat.TranslatorRequest) ([]byte, chat.Meter, error) {
	switch err := d.End(); {
	case err != nil:
		return dst, chat.Meter{}, upstream.Invalid("The provider's response is not JSON", err)
	case got.Vectors == nil:
		return dst, chat.Meter{}, inBandError(answer)
	}
	return got.Append(dst, a)
}

// DecodeError implements chat.Translator.
func (VertexEmbedContent) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// extras are the client's fields that have no canonical form but a place in this shape.
type extras struct {
	safety, cached, labels, modalities, image, speech, resolution, store []byte
	retrieval                                                            []byte // of the Google Maps tool
}

// sort finds the fields that this provider knows, and reports the others.
func (x *extras) sort(e *requestEncoder) {
	for _, f := range e.r.Extra {
		kind := wire.KindOf(f.Raw)
		switch {
		case (f.Name == "safety_settings" || f.Name == "safetySettings") && kind == wire.KindArray:
			x.safety = f.Raw
		case (f.Name == "cached_content" || f.Name == "cachedContent") && kind == wire.KindString:
			x.cached = f.Raw
		case f.Name == "labels" && kind == wire.KindObject && e.t.Provider != "google":
			x.labels = f.Raw
		case f.Name == "modalities" && kind == wire.KindArray:
			x.modalities = f.Raw
		case (f.Name == "image_config" || f.Name == "imageConfig") && kind == wire.KindObject:
			x.image = f.Raw
		case (f.Name == "speech_config" || f.Name == "speechConfig") && kind == wire.KindObject:
			x.speech = f.Raw
		case (f.Name == "media_resolution" || f.Name == "mediaResolution") && kind == wire.KindString:
			x.resolution = f.Raw
		case f.Name == "store" && kind == wire.KindBool && e.t.Provider == "google":
			x.store = f.Raw
		case f.Name == "audio":
			e.loss.AddResponse(f.Name, notTaken)
		default:
			e.loss.Add(f.Name, notTaken)
		}
	}
}

// writeExtra writes those that belong beside generationConfig.
func writeExtra(e *requestEncoder) {
	x := &e.extra
	for _, m := range [...]struct {
		name string
		raw  []byte
	}{{"safetySettings", x.safety}, {"cachedContent", x.cached}, {"labels", x.labels}, {"store", x.store}} {
		if m.raw != nil {
			encodeRaw(e, m.name, m.raw)
		}
	}
	switch tier := e.r.ServiceTier; {
	case tier == "" || tier == "auto":
	case e.t.Provider == "vertex-ai":
		e.loss.Add("service_tier", notTaken)
	case tier == "default" || tier == "standard" || tier == "standard_only":
		str(e, "serviceTier", "standard")
	case tier == "flex" || tier == "priority":
		str(e, "serviceTier", tier)
	default:
		e.loss.Add("service_tier", notTaken)
	}
}

// config writes those that belong into generationConfig.
func (x *extras) config(e *requestEncoder) {
	if x.modalities != nil {
		encodeKey(e, "responseModalities")
		e.b = append(e.b, '[')
		d := wire.NewDecoder(x.modalities)
		for range d.Array {
			if d.Kind() != wire.KindString {
				continue
			}
			item(e)
			e.b = wire.AppendJSONString(e.b, strings.ToUpper(d.Str()))
		}
		e.b = append(e.b, ']')
	}
	if x.image != nil {
		encodeKey(e, "imageConfig")
		camelObject(e, x.image)
	}
	if x.speech != nil {
		encodeRaw(e, "speechConfig", x.speech)
	}
	if x.resolution != nil {
		encodeKey(e, "mediaResolution")
		word := strings.ToUpper(wire.NewDecoder(x.resolution).Str())
		if !strings.HasPrefix(word, "MEDIA_RESOLUTION_") {
			word = "MEDIA_RESOLUTION_" + word
		}
		e.b = wire.AppendJSONString(e.b, word)
	}
}

// camelObject writes an object with its own fields' names in camel case.
func camelObject(e *requestEncoder, raw []byte) {
	e.b = append(e.b, '{')
	d := wire.NewDecoder(raw)
	for key := range d.Object {
		item(e)
		e.b = wire.AppendJSONString(e.b, camel(string(key)))
		e.b = append(append(e.b, ':'), d.Raw()...)
	}
	e.b = append(e.b, '}')
}

// camel turns aspect_ratio into aspectRatio.
func camel(s string) string {
	if !strings.Contains(s, "_") {
		return s
	}
	var b strings.Builder
	up := false
	for i := range len(s) {
		switch c := s[i]; {
		case c == '_' && b.Len() > 0:
			up = true
		case up && c >= 'a' && c <= 'z':
			b.WriteByte(c - 'a' + 'A')
			up = false
		default:
			b.WriteByte(c)
			up = false
		}
	}
	return b.String()
}
