package gemini

import (
	"strings"

	"gateway/shared/wire"
)

// extras are the client's members that have no canonical form but a place in this shape.
type extras struct {
	safety, cached, labels, modalities, image, speech, resolution, store []byte
	retrieval                                                            []byte // of the Google Maps tool
}

// sort finds the members that this provider knows, and reports the others.
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
			e.loss.AddAnswer(f.Name, notTaken)
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

// camelObject writes an object with its own members' names in camel case.
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
