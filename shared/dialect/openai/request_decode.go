package openai

import (
	"bytes"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// requestDecoder reads one chat request.
type requestDecoder struct {
	d *wire.Decoder
	r *chat.Request
	// lastFunction is the id that was made for the last legacy function call, so that the
	// function message that answers it can refer to it.
	lastFunction string
	// allowed are the offered tools that tool_choice names, by type and name; nil means
	// all of them.
	allowed map[string]bool
}

// absent skips null and the word for "the provider's default".
func (q *requestDecoder) absent() bool {
	if q.d.Null() {
		return true
	}
	if q.d.Kind() == wire.KindString {
		// Looks for the word without reading the value.
		probe := *q.d
		if raw := probe.RawStr(); string(raw) == defaultWord {
			q.d.Skip()
			return true
		}
	}
	return false
}

func decodeChatRequest(body []byte) (*chat.Request, error) {
	q := requestDecoder{d: wire.NewDecoder(body), r: &chat.Request{Dialect: "openai.chat"}}
	for key := range q.d.Object {
		q.member(key)
	}
	if err := q.d.End(); err != nil {
		return nil, err
	}
	q.offer()
	return q.r, nil
}

// member reads one top-level field of a chat request.
func (q *requestDecoder) member(key []byte) {
	d, r := q.d, q.r
	if q.absent() {
		return
	}
	switch string(key) {
	case "model":
		r.Model = d.Str()
	case "messages":
		q.messages()
	case "tools":
		for range d.Array {
			r.Tools = append(r.Tools, q.tool())
		}
	case "tool_choice":
		r.ToolChoice = q.toolChoice("function.name")
	case "parallel_tool_calls":
		r.Parallel = chat.Some(d.Bool())
	case "functions":
		r.Legacy = true
		for range d.Array {
			t := chat.Tool{}
			q.function(&t)
			r.Tools = append(r.Tools, t)
		}
	case "function_call":
		r.Legacy = true
		r.ToolChoice = q.toolChoice("name")
	case "response_format":
		r.Format = q.format()
	case "reasoning_effort":
		r.Reasoning.Effort = d.Str()
	case "thinking":
		q.thinking()
	case "max_tokens":
		// max_completion_tokens wins when both are given.
		if n := d.Int(); r.MaxTokensField != "max_completion_tokens" {
			r.MaxTokens, r.MaxTokensField = chat.Some(n), "max_tokens"
		}
	case "max_completion_tokens":
		r.MaxTokens, r.MaxTokensField = chat.Some(d.Int()), "max_completion_tokens"
	case "logprobs":
		q.logprobs()
	case "top_logprobs":
		r.TopLogprobs = chat.Some(d.Int())
	default:
		q.sampling(key)
	}
}

// sampling reads the fields that chats and text completions share.
func (q *requestDecoder) sampling(key []byte) {
	d, r := q.d, q.r
	switch string(key) {
	case "temperature":
		r.Temperature = chat.Some(d.Float())
	case "top_p":
		r.TopP = chat.Some(d.Float())
	case "top_k":
		r.TopK = chat.Some(d.Int())
	case "frequency_penalty":
		r.FrequencyPenalty = chat.Some(d.Float())
	case "presence_penalty":
		r.PresencePenalty = chat.Some(d.Float())
	case "seed":
		r.Seed = chat.Some(d.Int())
	case "logit_bias":
		r.LogitBias = bytes.Clone(d.Raw())
	case "stop":
		r.Stop = stops(d)
	case "n":
		r.N = chat.Some(d.Int())
	case "stream":
		r.Stream = d.Bool()
	case "stream_options":
		q.streamOptions()
	case "user":
		r.User = d.Str()
	case "service_tier":
		r.ServiceTier = d.Str()
	default:
		jsonfield.AddCopy(d, string(key), &r.Extra)
	}
}

func stops(d *wire.Decoder) []string {
	if d.Kind() == wire.KindString {
		return []string{d.Str()}
	}
	var out []string
	for range d.Array {
		out = append(out, d.Str())
	}
	return out
}

func (q *requestDecoder) streamOptions() {
	d, r := q.d, q.r
	for key := range d.Object {
		if string(key) == "include_usage" {
			if !d.Null() {
				r.IncludeUsage = chat.Some(d.Bool())
			}
			continue
		}
		name := "stream_options." + string(key)
		if !d.Null() {
			jsonfield.AddCopy(d, name, &r.Extra)
		}
	}
}

// logprobs reads whether log probabilities are wanted, or how many for each token, as some
// hosts take it.
func (q *requestDecoder) logprobs() {
	d, r := q.d, q.r
	if d.Kind() != wire.KindNumber {
		r.Logprobs = chat.Some(d.Bool())
		return
	}
	n := d.Int()
	if r.Logprobs = chat.Some(n > 0); n > 0 && !r.TopLogprobs.Set {
		r.TopLogprobs = chat.Some(n)
	}
}

func (q *requestDecoder) thinking() {
	t := &q.r.Reasoning
	jsonfield.Thinking(q.d, t)
	if t.Thinking == chat.ThinkingUnset { // the type's default
		t.Thinking = chat.ThinkingOff
	}
}

func (q *requestDecoder) format() chat.Format {
	d := q.d
	f := chat.Format{Set: true}
	kind := ""
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			kind = d.Str()
			switch kind {
			case "text":
			case "json_object":
				f.Kind = chat.FormatJSON
			case "json_schema":
				f.Kind = chat.FormatSchema
			default:
				q.r.Assume("response_format.type", "text")
			}
		case "json_schema":
			for name := range d.Object {
				if d.Null() {
					continue
				}
				switch string(name) {
				case "name":
					f.Name = d.Str()
				case "description":
					f.Description = d.Str()
				case "schema":
					f.Schema = jsonfield.Object(d)
				case "strict":
					f.Strict = chat.Some(d.Bool())
				}
			}
		}
	}
	if d.Err() == nil && kind == "json_schema" && f.Schema == nil {
		d.FailWith(fault.Invalid("response_format.json_schema.schema", "response_format.json_schema.schema is required for type json_schema"))
	}
	return f
}

// dataURL splits a data: URL (RFC 2397). ok is false when s is none. The data is
// base64 without white space, unless plain.
func dataURL(s string) (mime, data string, plain, ok bool) {
	if len(s) < 5 || !strings.EqualFold(s[:5], "data:") {
		return "", "", false, false
	}
	head, data, found := strings.Cut(s[5:], ",")
	if !found {
		return "", "", false, false
	}
	plain = true
	for i, part := range strings.Split(head, ";") {
		part = strings.TrimSpace(part)
		switch {
		case i == 0:
			mime = strings.ToLower(part)
		case strings.EqualFold(part, "base64"):
			plain = false
		}
	}
	if mime == "" {
		mime = "text/plain"
	}
	return mime, data, plain, true
}

// Parts of this shape that the other shapes of the OpenAI family use too.

// ReadUsage reads the usage object at d into disjoint classes. total is the provider's own
// total if it is not their sum, otherwise 0.
func ReadUsage(d *wire.Decoder, u *pricing.Usage) (total int64) {
	return readUsage(d, u, nil)
}

// InBandError makes the fault for an error object inside a success. raw is the
// value of its error field.
func InBandError(raw []byte) *fault.Fault { return inBandError(raw) }

// ReadURL reads a data: or web address into media. The type of data is recognized by its
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
