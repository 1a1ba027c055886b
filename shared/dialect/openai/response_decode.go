package openai

import (
	"bytes"
	"net/http"
	"slices"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// decodeResponse reads a plain response of a chat or a text completion.
func decodeResponse(body []byte) (*chat.Response, error) {
	d := wire.NewDecoder(body)
	r := new(chat.Response)
	choices := false
	var failure, list []byte
	var broken *fault.Fault // of a choice
	var usage usageReport
	for key := range d.Object {
		start := d.Offset()
		switch string(key) {
		case "id":
			r.ID = upstream.OptString(d)
		case "model":
			r.Model = upstream.OptString(d)
		case "created":
			if d.Kind() == wire.KindNumber {
				r.Created = parseSeconds(d.Num())
			}
		case "system_fingerprint":
			r.SystemFingerprint = upstream.OptString(d)
		case "service_tier":
			r.ServiceTier = upstream.OptString(d)
		case "choices":
			if d.Kind() == wire.KindArray {
				choices = true
				for i := range d.Array {
					c, f := decodeChoice(d, i)
					if f != nil && broken == nil {
						broken = f
					}
					r.Choices = append(r.Choices, c)
				}
				list = body[start:d.Offset()]
			}
		case "usage":
			usage.readTop(d)
		case "x_groq":
			usage.readGroq(d)
		case "error":
			if k := d.Kind(); k == wire.KindObject || k == wire.KindString {
				failure = d.Raw()
			}
		}
	}
	err := d.End()
	switch {
	case err == nil && failure != nil && !choices:
		return nil, inBandError(failure)
	case err != nil || !choices:
		return nil, invalidResponse(err)
	case broken != nil:
		return nil, broken
	case len(r.Choices) == 0 && failure != nil:
		return nil, inBandError(failure)
	case len(r.Choices) == 0:
		return nil, emptyResponse()
	}
	if !usage.known() {
		usage.readChoices(list)
	}
	m := chat.Meter{PriceFacts: r.PriceFacts}
	usage.classes(&m)
	r.Usage, r.ReportedTotal, r.SearchContext = m.Usage, m.ReportedTotal, m.SearchContext
	return r, nil
}

// invalidResponse is the fault for a success that cannot be read.
func invalidResponse(cause error) *fault.Fault {
	return upstream.Invalid("The provider's response is not a chat completion", cause)
}

// emptyResponse is the fault for a success without any response in it.
func emptyResponse() *fault.Fault {
	return upstream.Invalid("The provider's response contains no choice", nil)
}

// failedStop is the fault for a response that the host aborted, see hosts.Stops.
func failedStop(finish string) *fault.Fault {
	return upstream.Failed(http.StatusBadGateway, finish, "The provider aborted the response with the finish reason "+strconv.Quote(finish))
}

// decodeChoice reads one choice. The fault is that of a choice that the host itself reports
// as failed, or that holds no message.
func decodeChoice(d *wire.Decoder, i int) (chat.Choice, *fault.Fault) {
	c := chat.Choice{Index: i}
	if d.Kind() != wire.KindObject {
		d.Skip()
		return c, nil
	}
	refused, null := false, false
	var failure []byte
	for key := range d.Object {
		switch string(key) {
		case "index":
			if d.Kind() == wire.KindNumber {
				c.Index = int(d.Int())
			}
		case "message":
			switch d.Kind() {
			case wire.KindObject:
				refused = decodeMessage(d, &c)
			case wire.KindNull:
				null = true
			}
		case "error":
			if k := d.Kind(); k == wire.KindObject || k == wire.KindString {
				failure = d.Raw()
			}
		case "text":
			if s := upstream.OptString(d); s != "" {
				c.Parts = append(c.Parts, chat.Part{Kind: chat.Text, Text: s})
			}
		case "logprobs":
			if d.Kind() == wire.KindObject {
				c.Logprobs = bytes.Clone(d.Raw())
			}
		case "finish_reason":
			c.Native = upstream.OptString(d)
		case "stop_reason": // some hosts report the stop string that occurred
			c.StopSequence = upstream.OptString(d)
		}
	}
	stop, failed := hosts.StopOf([]byte(c.Native))
	switch {
	case failure != nil:
		return c, inBandError(failure)
	case failed:
		return c, failedStop(c.Native)
	case null && len(c.Parts) == 0:
		return c, emptyResponse()
	}
	switch c.Stop = stop; {
	case stop == chat.StopEnd && c.StopSequence != "":
		c.Stop = chat.StopSequence
	case stop != chat.StopSequence:
		c.StopSequence = ""
	}
	if refused && c.Stop == chat.StopEnd {
		c.Stop = chat.StopFilter
	}
	return c, nil
}

// decodeMessage reads a message of the assistant into the parts of c.
func decodeMessage(d *wire.Decoder, c *chat.Choice) (refused bool) {
	var thinking, refusal string
	var text []chat.Part
	var calls, blocks, images []chat.Part
	var notes []byte
	for key := range d.Object {
		switch string(key) {
		case "content":
			switch d.Kind() {
			case wire.KindString:
				if s := d.Str(); s != "" {
					text = append(text, chat.Part{Kind: chat.Text, Text: s})
				}
			case wire.KindArray:
				thinking, text = decodeContentList(d, thinking)
			}
		case "reasoning_content", "reasoning":
			if s := upstream.OptString(d); thinking == "" {
				thinking = s
			}
		case "content_blocks":
			if d.Kind() == wire.KindArray {
				blocks = decodeBlocks(d.Raw())
			}
		case "images":
			images = imageParts(d)
		case "annotations":
			if d.Kind() == wire.KindArray {
				notes = d.Raw()
			}
		case "refusal":
			refusal = upstream.OptString(d)
		case "tool_calls":
			if d.Kind() == wire.KindArray {
				for range d.Array {
					if d.Kind() == wire.KindObject {
						calls = append(calls, decodeCall(d))
					}
				}
			}
		case "function_call":
			if d.Kind() == wire.KindObject {
				call := callDelta{}
				call.readFunction(d)
				p := call.part()
				p.Call.ID = functionCallID(0)
				calls = append(calls, p)
			}
		}
	}
	annotations(notes, text)
	switch {
	case len(blocks) > 0: // they have the content and more
		c.Parts = append(c.Parts, blocks...)
	case thinking != "":
		c.Parts = append(c.Parts, chat.Part{Kind: chat.Reasoned, Text: thinking})
		fallthrough
	default:
		c.Parts = append(c.Parts, text...)
	}
	if !slices.ContainsFunc(blocks, isImage) {
		c.Parts = append(c.Parts, images...)
	}
	if refusal != "" {
		c.Parts = append(c.Parts, chat.Part{Kind: chat.Refusal, Text: refusal})
	}
	c.Parts = append(c.Parts, calls...)
	return refusal != ""
}

// decodeBlocks reads content_blocks as they are in a response to a lenient client; nil when
// they have another form.
func decodeBlocks(raw []byte) []chat.Part {
	d := wire.NewDecoder(raw)
	m := message{q: &requestDecoder{d: d, r: new(chat.Request)}}
	parts := m.list()
	if d.End() != nil {
		return nil
	}
	return parts
}

// decodeContentList reads content that is a list of text and thinking parts.
func decodeContentList(d *wire.Decoder, before string) (string, []chat.Part) {
	thinking := []byte(before)
	var text []chat.Part
	for range d.Array {
		if d.Kind() != wire.KindObject {
			continue
		}
		s, thought := contentItem(d)
		switch {
		case thought:
			thinking = append(thinking, s...)
		case s != "":
			text = append(text, chat.Part{Kind: chat.Text, Text: s})
		}
	}
	return string(thinking), text
}

// contentItem reads one element of a content list.
func contentItem(d *wire.Decoder) (text string, thought bool) {
	for key := range d.Object {
		switch string(key) {
		case "type":
			thought = upstream.OptString(d) == "thinking"
		case "text":
			text = upstream.OptString(d)
		case "thinking":
			if d.Kind() != wire.KindArray {
				text = upstream.OptString(d)
				continue
			}
			var all []byte
			for range d.Array {
				if d.Kind() == wire.KindObject {
					s, _ := contentItem(d)
					all = append(all, s...)
				}
			}
			text = string(all)
		}
	}
	return text, thought
}

func decodeCall(d *wire.Decoder) chat.Part {
	var c callDelta
	c.read(d)
	return c.part()
}

// part returns a complete call. Empty arguments become an empty object.
func (c *callDelta) part() chat.Part {
	call := &chat.ToolCall{ID: unquote(c.id), Name: unquote(c.name), Arguments: unquote(c.args)}
	if call.ID == "" {
		call.ID = chat.NewCallID()
	}
	if len(bytes.TrimSpace([]byte(call.Arguments))) == 0 {
		call.Arguments = "{}"
	}
	return chat.Part{Kind: chat.Call, Call: call}
}

func unquote(raw []byte) string {
	if len(raw) < 2 {
		return ""
	}
	return string(wire.AppendUnquoted(nil, raw))
}
