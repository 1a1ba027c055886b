package realtime

import (
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"unicode/utf8"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// The types of events that are not merely forwarded.
const (
	SessionUpdate    = "session.update" // of the client
	SessionOld       = "transcription_session.update"
	ItemCreate       = "conversation.item.create"
	ResponseCreate   = "response.create"
	SessionCreated   = "session.created" // of the provider
	SessionUpdated   = "session.updated"
	SessionUpdateOld = "transcription_session.updated"
	ResponseCreated  = "response.created"
	ResponseDone     = "response.done"
	Transcribed      = "conversation.item.input_audio_transcription.completed"
	Failed           = "error"
)

// keys of events that are read.
var keys = wire.NewKeySet("type", "event_id", "response_id", "delta", "session", "response", "item")

const (
	keyType = iota
	keyEventID
	keyResponseID
	keyDelta
	keySession
	keyResponse
	keyItem
)

// Reader reads events sequentially, in memory that it reuses.
type Reader struct{ walk wire.Walk }

// Event is one event. Its texts refer to the event's bytes.
type Event struct {
	Type     string // "" if it has none
	ID       string // event_id
	Response string // response_id
	Delta    int    // bytes of the value of delta
	Body     []byte

	session, response, item []byte // fields, nil when they are absent
}

// maxName bounds the types and ids that are read, in bytes.
const maxName = 512

// Read parses an event. It returns a 400 if the bytes are not a JSON object, or if
// another parser might find other fields in them.
func (r *Reader) Read(body []byte) (Event, error) {
	e := Event{Body: body}
	if !utf8.Valid(body) {
		return e, fault.Invalid("event", "must be UTF-8")
	}
	if err := keys.Walk(body, &r.walk); err != nil {
		return e, err
	}
	var err error
	if e.Type, err = r.text(body, keyType, "type"); err != nil {
		return e, err
	}
	if e.Type == "" {
		return e, fault.Invalid("type", "is required: the type of the event")
	}
	if e.ID, err = r.text(body, keyEventID, "event_id"); err != nil {
		return e, err
	}
	if e.Response, err = r.text(body, keyResponseID, "response_id"); err != nil {
		return e, err
	}
	e.Delta = len(r.member(body, keyDelta))
	e.session, e.response, e.item = r.member(body, keySession), r.member(body, keyResponse), r.member(body, keyItem)
	return e, nil
}

func (r *Reader) member(body []byte, key int) []byte {
	if s := r.walk.Spans[key]; s.Present(body) {
		return s.Of(body)
	}
	return nil
}

// text is a field that is a string; "" when it is absent.
func (r *Reader) text(body []byte, key int, name string) (string, error) {
	s := r.walk.Spans[key]
	if !s.Present(body) {
		return "", nil
	}
	if raw := s.Of(body); len(raw) > maxName {
		return "", fault.Invalid(name, "must have at most %d bytes", maxName)
	} else if known := common[string(raw)]; known != "" {
		return known, nil
	}
	return wire.ScanString(s.Of(body), name)
}

// common are frequent types, which are shared so that no memory is allocated for them.
var common = func() map[string]string {
	m := map[string]string{}
	for _, t := range [...]string{
		"input_audio_buffer.append", "input_audio_buffer.commit", ItemCreate, ResponseCreate, ResponseDone,
		"response.output_audio.delta", "response.audio.delta", "response.output_text.delta", "response.text.delta",
		"response.output_audio_transcript.delta", "response.audio_transcript.delta", "conversation.item.input_audio_transcription.delta",
	} {
		m[`"`+t+`"`] = t
	}
	return m
}()

// WithBody returns the event with another body.
func (e Event) WithBody(body []byte) Event {
	e.Body = body
	return e
}

// Item is the item of an event, RawResponse its response; nil where it has none.
func (e *Event) Item() []byte { return e.item }

// RawResponse is the response that an event is about, or requests; nil if there is none.
func (e *Event) RawResponse() []byte { return e.response }

// RawSession is the session that an event is about, or requests; nil if there is none.
func (e *Event) RawSession() []byte { return e.session }

// Audio reports whether an event brings sound.
func (e *Event) Audio() bool {
	return e.Type == "response.output_audio.delta" || e.Type == "response.audio.delta" || e.Type == "input_audio_buffer.append"
}

// Added is what a client's event adds to the conversation: bytes of text and of Base64 audio,
// and images.
type Added struct{ Text, Audio, Images int }

// Added returns what an event adds to the conversation; nothing for an event of another type.
func (e *Event) Added() (a Added) {
	switch e.Type {
	case "input_audio_buffer.append":
		a.Audio = len(e.Body)
	case ItemCreate:
		a.Text = len(e.Body)
		var item struct {
			Content []struct {
				Audio json.RawMessage `json:"audio"`
				Image json.RawMessage `json:"image_url"`
			} `json:"content"`
		}
		if json.Unmarshal(e.item, &item) != nil {
			return a
		}
		for _, part := range item.Content {
			a.Text -= len(part.Audio) + len(part.Image)
			a.Audio += len(part.Audio)
			if len(part.Image) > 0 {
				a.Images++
			}
		}
	}
	return a
}

// Session is the data of an event about the session; if the client sent it, the requested
// settings.
type Session struct {
	Model          string
	Transcription  string // the model that transcribes the input
	MaxOutput      int64  // tokens of a response; 0 means not given, or without a bound
	Instructions   string
	UnboundedField string // field by which the provider adds input of any length: a saved prompt, or a tool that it runs
	DuplicateField string // field that is given in two spellings, of which a provider reads one
}

// Members inside of a client's event. A field that decides anything is rejected when it
// comes twice or in another spelling.
var (
	sessionKeys       = wire.NewKeySet("model", "instructions", "max_output_tokens", "max_response_output_tokens", "input_audio_transcription", "audio", "prompt")
	promptKeys        = wire.NewKeySet("id")
	audioKeys         = wire.NewKeySet("input")
	inputKeys         = wire.NewKeySet("transcription")
	transcriptionKeys = wire.NewKeySet("model")
	responseKeys      = wire.NewKeySet("instructions", "max_output_tokens", "max_response_output_tokens", "input")
)

// members walks a field that is an object, and returns those of its fields that are
// looked for; nil for an absent one.
func members(set *wire.KeySet, raw []byte, field string) (map[string][]byte, error) {
	if raw == nil || wire.IsNull(raw) {
		return nil, nil
	}
	var w wire.Walk
	if err := set.Walk(raw, &w); err != nil {
		f := fault.From(err)
		f.Field = strings.TrimSuffix(field+"."+f.Field, ".")
		return nil, f
	}
	found := map[string][]byte{}
	for i, key := range set.Keys() {
		if s := w.Spans[i]; s.Present(raw) {
			found[key] = s.Of(raw)
		}
	}
	return found, nil
}

// stringField reads a string field.
func stringField(in map[string][]byte, key, field string) (string, error) {
	raw := in[key]
	if raw == nil || wire.IsNull(raw) {
		return "", nil
	}
	return wire.ScanString(raw, field+"."+key)
}

var (
	sessionKey = wire.NewKeySet("session")
	modelKey   = wire.NewKeySet("model")
)

// WithModel returns the event with another model in its session, which must have one.
func (e *Event) WithModel(model string) ([]byte, error) {
	var of, in wire.Walk
	if err := sessionKey.Walk(e.Body, &of); err != nil {
		return nil, err
	}
	session := of.Spans[0]
	if err := modelKey.Walk(session.Of(e.Body), &in); err != nil {
		return nil, err
	}
	at := wire.Span{Start: session.Start + in.Spans[0].Start, End: session.Start + in.Spans[0].End}
	return wire.Splice(nil, e.Body, wire.Replace(at, wire.AppendJSONString(nil, model))), nil
}

// Session reads the session of an event.
func (e *Event) Session() (s Session, err error) {
	in, err := members(sessionKeys, e.session, "session")
	if err != nil {
		return s, err
	}
	if s.Model, err = stringField(in, "model", "session"); err != nil {
		return s, err
	}
	if s.Instructions, err = stringField(in, "instructions", "session"); err != nil {
		return s, err
	}
	if s.MaxOutput, err = bound(in, "session"); err != nil {
		return s, err
	}
	saved, err := members(promptKeys, in["prompt"], "session.prompt")
	if err != nil {
		return s, err
	}
	if id, err := stringField(saved, "id", "session.prompt"); err != nil {
		return s, err
	} else if id != "" {
		s.UnboundedField = "session.prompt.id"
	} else if tools := reference.FindHosted(e.session); len(tools) > 0 {
		s.UnboundedField = "session." + tools[0].Field
	}
	s.DuplicateField = twice(in, "session")
	at, transcription := "session.input_audio_transcription", in["input_audio_transcription"]
	if audio := in["audio"]; audio != nil {
		sound, err := members(audioKeys, audio, "session.audio")
		if err != nil {
			return s, err
		}
		input, err := members(inputKeys, sound["input"], "session.audio.input")
		if err != nil {
			return s, err
		}
		if t := input["transcription"]; stated(t) {
			if stated(transcription) {
				s.DuplicateField = at
			}
			at, transcription = "session.audio.input.transcription", t
		}
	}
	by, err := members(transcriptionKeys, transcription, at)
	if err == nil {
		s.Transcription, err = stringField(by, "model", at)
	}
	return s, err
}

// boundKeys are the spellings of the bound of a response.
var boundKeys = [...]string{"max_output_tokens", "max_response_output_tokens"}

// stated reports whether a field has a value.
func stated(raw []byte) bool { return raw != nil && !wire.IsNull(raw) }

// twice returns the field of a bound that is given in both spellings, or "".
func twice(in map[string][]byte, field string) string {
	for _, key := range boundKeys {
		if !stated(in[key]) {
			return ""
		}
	}
	return field + "." + boundKeys[1]
}

// bound returns the maximum of output tokens in a field, in the general or in the beta
// spelling.
func bound(in map[string][]byte, field string) (int64, error) {
	for _, key := range boundKeys {
		if n, err := tokens(in[key], field+"."+key); n > 0 || err != nil {
			return n, err
		}
	}
	return 0, nil
}

// unreadable reports that a field does not have the required shape.
func unreadable(field string, err error) *fault.Fault {
	if wrong := (*json.UnmarshalTypeError)(nil); errors.As(err, &wrong) && wrong.Field != "" {
		field = wrong.Field
	}
	return fault.Invalid(field, "is not of the type that it must have")
}

// MaxTokens is the largest valid limit of a response's tokens.
const MaxTokens = 1 << 20

// tokens reads a bound: a number, or "inf".
func tokens(raw []byte, field string) (int64, error) {
	if len(raw) == 0 || wire.IsNull(raw) || string(raw) == `"inf"` {
		return 0, nil
	}
	var n int64
	if err := json.Unmarshal(raw, &n); err != nil || n < 0 || n > MaxTokens {
		return 0, fault.Invalid(field, `must be a whole number from 1 to %d, or "inf"`, MaxTokens)
	}
	return n, nil
}

// ResponseRequest is the content of a client's response.create.
type ResponseRequest struct {
	MaxOutput      int64
	Unbounded      bool // it states that it has no bound, whatever the session's is
	Instructions   string
	DuplicateField string // as of Session
}

// ResponseRequest reads a response.create.
func (e *Event) ResponseRequest() (a ResponseRequest, err error) {
	in, err := members(responseKeys, e.response, "response")
	if err != nil {
		return a, err
	}
	if a.Instructions, err = stringField(in, "instructions", "response"); err != nil {
		return a, err
	}
	a.DuplicateField = twice(in, "response")
	for _, key := range boundKeys {
		a.Unbounded = a.Unbounded || string(in[key]) == `"inf"`
	}
	a.MaxOutput, err = bound(in, "response")
	return a, err
}

// ErrorOf is the message of a provider's error, and the id of the client's event that
// caused it. The fault is nil when it cannot be read.
func ErrorOf(body []byte) (event string, f *fault.Fault) {
	var e struct {
		Error struct {
			EventID string `json:"event_id"`
			Code    string `json:"code"`
			Message string `json:"message"`
			Param   string `json:"param"`
		} `json:"error"`
	}
	if json.Unmarshal(body, &e) != nil {
		return "", nil
	}
	f = fault.New(fault.ProviderError, fault.Clip(e.Error.Param, maxName), fault.Clip(e.Error.Message, maxName))
	f.Source, f.StatusCode = fault.SourceProvider, http.StatusBadRequest
	return e.Error.EventID, f
}

// AppendError writes an error event for the client; about is the id of the client's event
// that caused it, "" for none.
func AppendError(dst []byte, f *fault.Fault, id, about string) []byte {
	member := func(name, value string) {
		dst = append(append(append(dst, ',', '"'), name...), `":`...)
		if value == "" {
			dst = append(dst, "null"...)
			return
		}
		dst = wire.AppendJSONString(dst, value)
	}
	dst = append(dst, `{"type":"error"`...)
	member("event_id", id)
	dst = append(dst, `,"error":{"type":`...)
	dst = wire.AppendJSONString(dst, f.Type())
	member("code", string(f.Code))
	member("message", f.Message)
	member("param", f.Field)
	member("event_id", about)
	return append(dst, "}}"...)
}

// Delete is the event that removes an item from the conversation.
func Delete(item string) []byte {
	return append(wire.AppendJSONString([]byte(`{"type":"conversation.item.delete","item_id":`), item), '}')
}

// Cancel returns the event that ends a response; an empty id means the running one.
func Cancel(response string) []byte {
	if response == "" {
		return []byte(`{"type":"response.cancel"}`)
	}
	return append(wire.AppendJSONString([]byte(`{"type":"response.cancel","response_id":`), response), '}')
}
