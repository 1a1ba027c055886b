package responses

import (
	"encoding/json"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// requestDecoder reads one body of /responses.
type requestDecoder struct {
	d *wire.Decoder
	r *chat.Request

	instructions chat.Opt[string]
	topLogprobs  chat.Opt[int64]
	summary      string // reasoning.summary
}

func decodeRequest(body []byte) (*chat.Request, error) {
	q := requestDecoder{d: wire.NewDecoder(body), r: &chat.Request{Dialect: name}}
	for key := range q.d.Object {
		if !q.absent() {
			q.member(key)
		}
	}
	if err := q.d.End(); err != nil {
		return nil, err
	}
	q.finish()
	return q.r, nil
}

// absent skips null and the word for "the provider's default".
func (q *requestDecoder) absent() bool {
	if q.d.Null() {
		return true
	}
	if q.d.Kind() == wire.KindString {
		probe := *q.d
		if string(probe.RawStr()) == defaultWord {
			return q.d.Skip()
		}
	}
	return false
}

func clone(raw []byte) json.RawMessage {
	if raw == nil {
		return nil
	}
	return append(json.RawMessage(nil), raw...)
}

// lose stores a field without a canonical form, so that encoders report it.
func (q *requestDecoder) lose(path string) {
	q.r.Extra = append(q.r.Extra, chat.Field{Name: path, Raw: clone(q.d.Raw())})
}

// ownOnly marks, in Request.Extra, fields that chat completions have too, but that have
// no effect at a provider that does not store responses.
const ownOnly = "responses."

func (q *requestDecoder) member(key []byte) {
	d, r := q.d, q.r
	switch string(key) {
	case "model":
		r.Model = d.Str()
	case "input":
		q.input()
	case "instructions":
		q.instructions = chat.Some(d.Str())
	case "max_output_tokens":
		r.MaxTokens, r.MaxTokensField = chat.Some(d.Int()), "max_output_tokens"
	case "temperature":
		r.Temperature = chat.Some(d.Float())
	case "top_p":
		r.TopP = chat.Some(d.Float())
	case "top_logprobs":
		q.topLogprobs = chat.Some(d.Int())
	case "stream":
		r.Stream = d.Bool()
	case "user":
		r.User = d.Str()
	case "service_tier":
		r.ServiceTier = d.Str()
	case "parallel_tool_calls":
		r.Parallel = chat.Some(d.Bool())
	case "tools":
		for range d.Array {
			q.tool()
		}
	case "tool_choice":
		q.toolChoice()
	case "text":
		q.text()
	case "reasoning":
		q.reasoning()
	case "thinking":
		openai.ReadThinking(d, r)
	case "include":
		q.include()
	default:
		q.setting(string(key))
	}
}

// setting reads a field that providers of other dialects do not get. A value that equals
// the default is no loss.
func (q *requestDecoder) setting(key string) {
	d := q.d
	switch key {
	case "store", "background":
		probe := *d
		if probe.Kind() == wire.KindBool && !probe.Bool() {
			d.Skip()
			return
		}
		q.lose(ownOnly + key)
	case "truncation":
		probe := *d
		if probe.Kind() == wire.KindString && string(probe.Bytes()) == "disabled" {
			d.Skip()
			return
		}
		q.lose(key)
	case "metadata":
		q.lose(ownOnly + key)
	case "stream_options":
		for inner := range d.Object {
			if string(inner) == "include_obfuscation" {
				probe := *d
				if probe.Kind() == wire.KindNull || probe.Kind() == wire.KindBool && !probe.Bool() {
					continue
				}
			}
			q.lose("stream_options." + string(inner))
		}
	default:
		q.lose(key)
	}
}

// finish decides what depends on several fields.
func (q *requestDecoder) finish() {
	r := q.r
	if q.instructions.Set {
		first := chat.Message{Role: chat.System, Parts: []chat.Part{{Kind: chat.Text, Text: q.instructions.Value}}, At: -1, IsString: true}
		r.Messages = append([]chat.Message{first}, r.Messages...)
	}
	if q.topLogprobs.Set {
		if r.Logprobs.Value {
			r.TopLogprobs = q.topLogprobs
		} else if q.topLogprobs.Value > 0 {
			r.Extra = append(r.Extra, chat.Field{Name: ownOnly + "top_logprobs", Raw: strconv.AppendInt(nil, q.topLogprobs.Value, 10)})
		}
	}
	if q.summary != "" {
		if r.Reasoning.On() {
			r.Reasoning.Display = "summarized"
		} else {
			r.Extra = append(r.Extra, chat.Field{Name: "reasoning.summary", Raw: wire.AppendJSONString(nil, q.summary)})
		}
	}
}

func (q *requestDecoder) reasoning() {
	d, r := q.d, q.r
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch inner := string(key); inner {
		case "effort":
			r.Reasoning.Effort = d.Str()
		case "summary", "generate_summary":
			q.summary = d.Str()
		default:
			q.lose("reasoning." + inner)
		}
	}
}

func (q *requestDecoder) include() {
	d := q.d
	for i := range d.Array {
		switch probe := *d; string(probe.Bytes()) {
		case "reasoning.encrypted_content": // it is always given
		case "message.output_text.logprobs":
			q.r.Logprobs = chat.Some(true)
		default:
			q.lose("include[" + strconv.Itoa(i) + "]")
		}
	}
}

func (q *requestDecoder) text() {
	d := q.d
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch inner := string(key); inner {
		case "format":
			q.format()
		case "verbosity":
			q.lose("verbosity")
		default:
			q.lose("text." + inner)
		}
	}
}

func (q *requestDecoder) format() {
	d := q.d
	f := chat.Format{Set: true}
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			switch d.Str() {
			case "text":
			case "json_object":
				f.Kind = chat.FormatJSON
			case "json_schema":
				f.Kind = chat.FormatSchema
			default:
				q.r.Assume("response_format.type", "text")
			}
		case "name":
			f.Name = d.Str()
		case "description":
			f.Description = d.Str()
		case "schema":
			if d.Kind() != wire.KindObject {
				d.Fail("must be an object")
			}
			f.Schema = clone(d.Raw())
		case "strict":
			f.Strict = chat.Some(d.Bool())
		default:
			q.lose("text.format." + string(key))
		}
	}
	if d.Err() == nil && f.Kind == chat.FormatSchema && f.Schema == nil {
		d.FailWith(fault.Invalid("text.format.schema", "text.format.schema is required for type json_schema"))
	}
	q.r.Format = f
}

// Portable implements chat.Portable.
func (Responses) Portable(r *chat.Request) error {
	for _, x := range r.Extra {
		switch x.Name {
		case "previous_response_id":
			return fault.New(fault.UnsupportedOperation, x.Name, "unsupported: previous_response_id names a response that is not stored: this provider is reached by translation, for which the gateway stores its own translated responses for 24 hours, if they and their input have at most 256 KiB and store is not false. Send the whole conversation in input")
		case "conversation", "prompt", ownOnly + "background":
			field := clientName(x.Name)
			return fault.Newf(fault.UnsupportedOperation, field, "unsupported: %s needs a provider that stores responses; this request is translated for another API. Send the whole conversation in input", field)
		}
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		for j := range m.Parts {
			if p := &m.Parts[j]; p.Kind == chat.Foreign && p.Type == "item_reference" {
				at := itemPath(p.At)
				return fault.Newf(fault.UnsupportedOperation, at, "unsupported: %s refers to an item that is not stored: this provider is reached by translation, for which the gateway stores items of up to 256 KiB for 24 hours unless store is false. Send the items themselves and set store to false (AI SDK: providerOptions.openai.store)", at)
			}
		}
	}
	return nil
}
