package anthropic

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/citation"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// encodeResponse writes a message. A client of this dialect reads one response.
func encodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	c := &chat.Choice{}
	if len(r.Choices) > 0 {
		c = &r.Choices[0]
	}
	dst = appendHead(dst, r.ID, r.Model, o)
	dst = append(dst, `,"content":[`...)
	n, calls := 0, false
	for i := range c.Parts {
		p := &c.Parts[i]
		start := len(dst)
		if n > 0 {
			dst = append(dst, ',')
		}
		before := len(dst)
		dst = appendBlock(dst, p, o)
		if len(dst) == before {
			dst = dst[:start]
			continue
		}
		n++
		calls = calls || p.Kind == chat.Call
	}
	dst = append(dst, ']')
	dst = appendStop(dst, c.Stop, c.StopSequence, calls, o)
	dst = append(dst, `,"usage":`...)
	dst = appendUsage(dst, &r.Usage)
	return append(dst, '}')
}

// appendHead writes {"id":...,"type":"message","role":"assistant","model":...
// without the closing brace.
func appendHead(dst []byte, id, model string, o *chat.Options) []byte {
	id = o.ResponseID(id, "msg_")
	if model == "" {
		model = o.Model
	}
	dst = append(dst, `{"id":`...)
	dst = wire.AppendJSONString(dst, id)
	dst = append(dst, `,"type":"message","role":"assistant","model":`...)
	return wire.AppendJSONString(dst, model)
}

// appendStop writes ,"stop_reason":...,"stop_sequence":... . If the provider does not
// report which stop string occurred, it must be the client's only one; if the client sent
// several, null is written.
func appendStop(dst []byte, stop chat.StopReason, sequence string, calls bool, o *chat.Options) []byte {
	switch {
	case stop == chat.StopUnknown && calls:
		stop = chat.StopToolCalls
	case stop == chat.StopToolCalls && !calls:
		stop = chat.StopEnd
	case stop == chat.StopSequence && sequence == "" && o.Request != nil:
		switch len(o.Request.Stop) {
		case 0: // a stop string of the provider's own
			stop = chat.StopEnd
		case 1:
			sequence = o.Request.Stop[0]
		}
	}
	dst = append(dst, `,"stop_reason":"`...)
	dst = append(dst, stop.Anthropic()...)
	dst = append(dst, `","stop_sequence":`...)
	if stop != chat.StopSequence || sequence == "" {
		return append(dst, "null"...)
	}
	return wire.AppendJSONString(dst, sequence)
}

// appendCitations writes the sources of a text; nothing when there is none.
func appendCitations(dst, list []byte) []byte {
	if len(list) == 0 {
		return dst
	}
	start := len(dst)
	dst = append(dst, `,"citations":[`...)
	none := len(dst)
	if dst = citation.Join(dst, list, func(dst []byte, c *citation.Citation) []byte { return c.AppendMessages(dst) }); len(dst) == none {
		return dst[:start]
	}
	return append(dst, ']')
}

// appendBlock writes one content block; nothing for an empty one.
func appendBlock(dst []byte, p *chat.Part, o *chat.Options) []byte {
	switch p.Kind {
	case chat.Text, chat.Refusal:
		if p.Text == "" {
			return dst
		}
		dst = append(dst, `{"type":"text","text":`...)
		dst = wire.AppendJSONString(dst, p.Text)
		dst = appendCitations(dst, p.Citations)
	case chat.Reasoned:
		dst = append(dst, `{"type":"thinking","thinking":`...)
		dst = wire.AppendJSONString(dst, p.Text)
		dst = append(dst, `,"signature":`...)
		dst = wire.AppendJSONString(dst, p.Signature)
	case chat.RedactedReasoned:
		dst = append(dst, `{"type":"redacted_thinking","data":`...)
		dst = wire.AppendJSONString(dst, p.Data)
	case chat.Call:
		args := chat.ObjectArguments(p.Call.Arguments)
		if args == "" {
			return dst // an invented call would be run
		}
		dst = append(dst, `{"type":"tool_use","id":`...)
		dst = wire.AppendJSONString(dst, p.Call.ID)
		dst = append(dst, `,"name":`...)
		dst = wire.AppendJSONString(dst, o.ToolName(p.Call.Name))
		dst = append(dst, `,"input":`...)
		dst = append(dst, args...)
	case chat.Foreign:
		if p.Origin == name {
			return append(dst, p.Raw...)
		}
		return dst
	default:
		return dst
	}
	return append(dst, '}')
}

// Messages is the dialect of POST /messages.
type Messages struct{}

var (
	_ chat.TwoWayDialect = Messages{}
	_ chat.Named         = Messages{}
)

// name is the dialect's name.
const name = "anthropic.messages"

// Name implements chat.Dialect.
func (Messages) Name() string { return name }

// Check implements chat.RequestReader.
func (Messages) Check(body []byte, c *chat.Checked) error { return check(body, c) }

// DecodeRequest implements chat.RequestReader.
func (Messages) DecodeRequest(body []byte) (*chat.Request, error) { return decodeRequest(body) }

// EncodeResponse implements chat.ResponseWriter.
func (Messages) EncodeResponse(dst []byte, r *chat.Response, o *chat.Options) []byte {
	return encodeResponse(dst, r, o)
}

// NewStreamEncoder implements chat.ResponseWriter.
func (Messages) NewStreamEncoder(o *chat.Options) chat.StreamEncoder { return newStreamEncoder(o) }

// AppendError implements chat.ErrorWriter.
func (Messages) AppendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendError(dst, f, o)
}

// AppendStreamError implements chat.ErrorWriter.
func (Messages) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendStreamError(dst, f, o)
}

// EncodeRequest implements chat.RequestWriter.
func (Messages) EncodeRequest(dst []byte, r *chat.Request, t *chat.Traits, loss *chat.Loss) ([]byte, error) {
	return encodeRequest(dst, r, t, loss)
}

// DecodeResponse implements chat.ResponseReader.
func (Messages) DecodeResponse(body []byte, _ *chat.Traits) (*chat.Response, error) {
	r, f := decodeResponse(body)
	if f != nil {
		return nil, f
	}
	return r, nil
}

// NewStreamDecoder implements chat.ResponseReader.
func (Messages) NewStreamDecoder(*chat.Traits) chat.StreamDecoder { return new(streamDecoder) }

// DecodeError implements chat.ErrorReader.
func (Messages) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// MeterResponse implements chat.Passer.
func (Messages) MeterResponse(body []byte) chat.Meter { return meterPlain(body) }

// NewStreamFilter implements chat.Passer.
func (Messages) NewStreamFilter(o *chat.FilterOptions) chat.StreamFilter { return new(filter) }

// Support implements chat.ResponseWriter.
func (Messages) Support(*chat.Options) chat.ResponseSupport {
	return chat.ResponseSupport{
		Features: chat.HoldsSequence | chat.HoldsRefusals | chat.HoldsThinking | chat.HoldsSigned | chat.HoldsRedacted |
			chat.HoldsCitations | chat.HoldsCalls | chat.HoldsMoreCalls,
		OwnDialect: name,
		Cites:      func(cite []byte) bool { c := citation.Read(cite); return c.AppendMessages(nil) != nil },
		Content:    "content",
		Broken:     chat.BrokenFail,
	}
}

// clientNames are the client's names of fields that encoders name otherwise.
var clientNames = map[string]string{
	"user": "metadata.user_id", "stop": "stop_sequences", "parallel_tool_calls": "tool_choice.disable_parallel_tool_use",
	"reasoning_effort": "output_config.effort", "response_format": "output_config.format",
	"response_format.json_schema.schema": "output_config.format.schema",
}

// ownOnly marks, in Request.Extra, a field unknown to this dialect with a name that
// encoders use for something else.
const ownOnly = "messages."

// extraName is the name in Request.Extra of the field key.
func extraName(key []byte) string {
	if _, taken := clientNames[string(key)]; taken {
		return ownOnly + string(key)
	}
	return string(key)
}

// ClientPath implements chat.Named: tools[0].function.parameters is
// tools[0].input_schema, messages[1].tool_calls[2] is messages[1].content[2].
func (Messages) ClientPath(path string) string {
	if own, ok := clientNames[path]; ok {
		return own
	}
	if unknown, ok := strings.CutPrefix(path, ownOnly); ok {
		return unknown
	}
	switch {
	case strings.HasPrefix(path, "tools["):
		path = strings.Replace(path, ".function.parameters", ".input_schema", 1)
		return strings.Replace(path, "].function.", "].", 1)
	case strings.HasPrefix(path, "messages["):
		path = strings.Replace(path, ".tool_calls[", ".content[", 1)
		path = strings.Replace(path, ".file.filename", ".title", 1)
		return strings.Replace(path, ".function.arguments", ".input", 1)
	}
	return path
}

// CountTokens carries POST /messages/count_tokens to providers that have it in
// this shape: body and answer pass as they are, but for the model.
type CountTokens struct{}

var _ chat.Translator = CountTokens{}

// Name implements chat.Translator: the dialect's own.
func (CountTokens) Name() string { return name }

var modelKey = wire.NewKeySet("model")

// EncodeRequest implements chat.Translator.
func (CountTokens) EncodeRequest(dst, body []byte, a *chat.TranslatorRequest) ([]byte, string, error) {
	var w wire.Walk
	if err := modelKey.Walk(body, &w); err != nil {
		return dst, "", err
	}
	return wire.Splice(dst, body, modelKey.SetKey(&w, 0, wire.AppendJSONString(nil, a.Model))), "", nil
}

// DecodeResponse implements chat.Translator. Counting costs nothing.
func (CountTokens) DecodeResponse(dst, answer []byte, _ http.Header, _ *chat.TranslatorRequest) ([]byte, string, chat.Meter, error) {
	m := chat.Meter{Complete: true, Started: true}
	m.Usage.Set(pricing.Input, 0)
	d := wire.NewDecoder(answer)
	counted, failed := false, false
	for key := range d.Object {
		switch string(key) {
		case "type":
			failed = upstream.OptString(d) == "error"
		case "input_tokens":
			counted = d.Kind() == wire.KindNumber
		}
	}
	switch err := d.End(); {
	case err == nil && failed:
		return dst, "", m, inBandError(answer)
	case err != nil || !counted:
		return dst, "", m, upstream.Invalid("The provider's response is not a count of tokens", err)
	}
	return append(dst, answer...), "", m, nil
}

// DecodeError implements chat.Translator.
func (CountTokens) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return decodeError(status, h, body)
}

// CheckCount tests the bounds of a body of /messages/count_tokens: those of a message,
// except that the response needs no bound.
func CheckCount(body []byte) error {
	var c chat.Checked
	return checkBody(body, &c, false)
}
