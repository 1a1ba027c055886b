package openai

import (
	"encoding/base64"
	"encoding/binary"
	"math"
	"strconv"

	"gateway/shared/wire"
)

// Many hosts ignore encoding_format: they send lists of numbers to a client that
// requested base64, as OpenAI's library for Node does by default, or the reverse. The
// client then reads an empty or a wrong vector.

var (
	embeddingKey  = []byte(`"embedding"`)
	embeddingAsks = wire.NewKeySet("encoding_format", "output_dtype")
)

// ConformEmbeddings returns a response of /embeddings with its vectors in the encoding
// that request specifies. It returns body itself if they have it already, if the client
// specified an encoding that OpenAI does not have, or if a vector is unreadable.
func ConformEmbeddings(body, request []byte) []byte {
	lists, strings := anyValue(body, embeddingKey, '['), anyValue(body, embeddingKey, '"')
	if !lists && !strings {
		return body
	}
	packed, ok := wantsBase64(request)
	if !ok || packed && !lists || !packed && !strings {
		return body
	}
	c := conformer{body: body}
	d := wire.NewDecoder(body)
	for key := range d.Object {
		if string(key) != "data" || d.Kind() != wire.KindArray {
			continue
		}
		for range d.Array {
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				if string(key) == "embedding" && !c.vector(d, packed) {
					return body
				}
			}
		}
	}
	if d.End() != nil {
		return body
	}
	return c.edited()
}

// wantsBase64 reports whether the client wants base64; ok is false if it wants something
// that is neither that nor numbers.
func wantsBase64(request []byte) (packed, ok bool) {
	var w wire.Walk
	if embeddingAsks.Walk(request, &w) != nil {
		return false, false
	}
	if kind := string(w.Spans[1].Of(request)); kind != "" && kind != "null" && kind != `"float"` {
		return false, false
	}
	switch string(w.Spans[0].Of(request)) {
	case `"base64"`:
		return true, true
	case "", "null", `"float"`:
		return false, true
	}
	return false, false
}

// vector rewrites the vector at d; false if it cannot be read.
func (c *conformer) vector(d *wire.Decoder, packed bool) bool {
	kind := d.Kind()
	raw, at := c.value(d)
	switch {
	case kind == wire.KindArray && packed:
		var floats []byte
		in := wire.NewDecoder(raw)
		for range in.Array {
			if in.Kind() != wire.KindNumber {
				return false
			}
			floats = binary.LittleEndian.AppendUint32(floats, math.Float32bits(float32(in.Float())))
		}
		if in.End() != nil {
			return false
		}
		text := base64.StdEncoding.AppendEncode([]byte{'"'}, floats)
		c.edits = append(c.edits, edit{at, append(text, '"')})
	case kind == wire.KindString && !packed:
		floats, err := base64.StdEncoding.DecodeString(string(wire.AppendUnquoted(nil, raw)))
		if err != nil || len(floats)%4 != 0 {
			return false
		}
		list := []byte{'['}
		for ; len(floats) > 0; floats = floats[4:] {
			f := float64(math.Float32frombits(binary.LittleEndian.Uint32(floats)))
			if math.IsNaN(f) || math.IsInf(f, 0) {
				return false
			}
			if len(list) > 1 {
				list = append(list, ',')
			}
			list = strconv.AppendFloat(list, f, 'g', -1, 32)
		}
		c.edits = append(c.edits, edit{at, append(list, ']')})
	}
	return true
}
