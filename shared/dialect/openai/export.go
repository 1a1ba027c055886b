package openai

import (
	"gateway/shared/chat"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Parts of this shape that the other shapes of the OpenAI family use too.

// ReadUsage reads the usage object at d into disjoint classes. total is the provider's own
// total if it is not their sum, otherwise 0.
func ReadUsage(d *wire.Decoder, u *pricing.Usage) (total int64) {
	return readUsage(d, u, nil)
}

// InBandError makes the fault for an error object inside a success. raw is the
// value of its error member.
func InBandError(raw []byte) *fault.Fault { return inBandError(raw) }

// ReadURL reads a data: or web address into media. The type of data is recognised by its
// first bytes.
func ReadURL(d *wire.Decoder, media *chat.Media) {
	q := requestDecoder{d: d}
	q.url(media)
}

// SetFileData puts the data of a file, base64 or a data: URL, into media. A mistake in it
// is reported for the value that d has just read.
func SetFileData(d *wire.Decoder, data string, media *chat.Media) {
	q := requestDecoder{d: d}
	if mime, content, plain, ok := dataURL(data); ok {
		q.setData(media, mime, content, plain)
		return
	}
	q.setData(media, "application/pdf", data, false)
}

// ReadThinking reads {type, budget_tokens, display} into r.
func ReadThinking(d *wire.Decoder, r *chat.Request) {
	q := requestDecoder{d: d, r: r}
	q.thinking()
}

// ReadCacheMarker reads {type:"ephemeral",ttl:"5m"|"1h"}.
func ReadCacheMarker(d *wire.Decoder) chat.Cache { return jsonfield.CacheMarker(d) }

// Missing sets the fault for an object without the field name; whole is at the object.
func Missing(d, whole *wire.Decoder, name string) { jsonfield.Missing(d, whole, name) }

// AppendURL writes the address of media as a JSON string: as it is, or as a
// data: URL.
func AppendURL(dst []byte, m *chat.Media) []byte { return appendURL(dst, m) }

// Conversation is a stable name of r's conversation: it depends on its beginning
// only, up to the first message of the user.
func Conversation(r *chat.Request) string {
	e := requestEncoder{r: r}
	return e.conversation()
}
