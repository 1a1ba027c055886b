package anthropic

import (
	"bytes"

	"gateway/shared/chat"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// block reads one content block of a request.
func (q *requestDecoder) block(message, at int) chat.Part {
	d := q.d
	whole := *d
	var p chat.Part
	var media chat.Media
	var call chat.ToolCall
	var result chat.ToolResult
	kind := ""
	var contentErr error
	var unknown []string
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			kind = d.Str()
		case "text", "thinking":
			p.Text = d.Str()
		case "signature":
			p.Signature = d.Str()
		case "data":
			p.Data = upstream.OptString(d)
		case "cache_control":
			p.Cache = jsonfield.CacheMarker(d)
		case "source":
			q.source(&media)
		case "title":
			media.Name = upstream.OptString(d)
		case "context":
			media.Context = upstream.OptString(d)
		case "citations":
			media.Citations = bytes.Clone(d.Raw())
		case "id":
			call.ID = upstream.OptString(d)
		case "name":
			call.Name = upstream.OptString(d)
		case "input":
			call.Arguments = string(d.Raw())
		case "tool_use_id":
			result.CallID = upstream.OptString(d)
		case "is_error":
			result.IsError = d.Bool()
		case "content":
			contentErr = q.resultContent(&result)
		default:
			if message >= 0 {
				unknown = append(unknown, string(key))
			}
		}
	}
	if d.Err() != nil {
		return p
	}
	switch kind {
	case "text":
		p.Kind, p.Citations = chat.Text, media.Citations
	case "thinking":
		p.Kind, p.Origin = chat.Reasoned, name
	case "redacted_thinking":
		p.Kind, p.Origin = chat.RedactedReasoned, name
	case "image":
		p.Kind, p.Media = chat.Image, &media
	case "document":
		p.Kind, p.Media = chat.Document, &media
	case "tool_use":
		p.Kind, p.Call = chat.Call, &call
		if call.ID == "" || call.Name == "" {
			jsonfield.Missing(d, &whole, "id and name")
		}
	case "tool_result":
		p.Kind, p.Result = chat.Result, &result
		if contentErr != nil {
			d.FailWith(contentErr)
		}
		if result.CallID == "" {
			jsonfield.Missing(d, &whole, "tool_use_id")
		}
	case "":
		jsonfield.Missing(d, &whole, "type")
	default:
		return foreign(&whole, kind, p.Cache)
	}
	if p.Media != nil && p.Media.URL == "" && p.Media.Data == "" && p.Media.FileID == "" {
		return foreign(&whole, kind, p.Cache) // a source that this package does not know
	}
	for _, key := range unknown {
		q.r.Unknown(message, at, []byte(key))
	}
	return p
}

// foreign returns a block that is not interpreted; the decoder is at its beginning.
func foreign(whole *wire.Decoder, kind string, c chat.Cache) chat.Part {
	return chat.Part{Kind: chat.Foreign, Type: kind, Origin: name, Raw: bytes.Clone(whole.Raw()), Cache: c}
}

// source reads where an image or a document is.
func (q *requestDecoder) source(media *chat.Media) {
	d := q.d
	if d.Kind() != wire.KindObject {
		return
	}
	kind := ""
	for key := range d.Object {
		if d.Null() {
			continue
		}
		switch string(key) {
		case "type":
			kind = d.Str()
		case "media_type":
			media.MIME = d.Str()
		case "data":
			media.Data = d.Str()
		case "url":
			media.URL = d.Str()
		case "file_id":
			media.FileID = d.Str()
		}
	}
	if media.Plain = kind == "text"; media.Plain || media.Data == "" {
		return
	}
	// Other shapes put it into an address, where it would not be checked.
	clean, ok := chat.CleanBase64(media.Data)
	if !ok {
		d.Fail("needs data in base64")
		return
	}
	media.Data = clean
}

// resultContent reads the content of a tool_result. The error only counts if the block is one:
// other blocks with content are foreign and unchanged.
func (q *requestDecoder) resultContent(result *chat.ToolResult) error {
	d := q.d
	switch d.Kind() {
	case wire.KindString:
		result.Plain = true
		result.Parts = []chat.Part{{Kind: chat.Text, Text: d.Str()}}
	case wire.KindArray:
		probe := *d
		inner := requestDecoder{d: &probe, r: q.r}
		result.Parts = inner.blocks(-1)
		d.Skip()
		return probe.Err()
	default:
		d.Skip()
	}
	return nil
}

// rules are the fields of a body that are tested, in the order of the walk's
// keys.
var rules = []struct {
	key  string
	test func(key string, raw []byte) error
}{
	{"model", testName},
	{"max_tokens", testWhole}, // 0 warms a cache
	{"messages", testMessages},
	{"system", testSystem},
	{"stop_sequences", testStrings},
	{"stream", testBool},
	{"temperature", testFraction},
	{"top_p", testFraction},
	{"top_k", testWhole},
	{"tools", testArray},
	{"tool_choice", testObject},
	{"metadata", testObject},
	{"thinking", testObject},
	{"output_config", testObject},
	{"service_tier", testText},
	{"speed", testText},
}

var keys = func() *wire.KeySet {
	names := make([]string, len(rules))
	for i := range rules {
		names[i] = rules[i].key
	}
	return wire.NewKeySet(names...)
}()

// check tests the bounds of a body of /messages.
func check(body []byte, c *chat.Checked) error { return checkBody(body, c, true) }

// checkBody is check; a body that requests no response needs no max_tokens.
func checkBody(body []byte, c *chat.Checked, answered bool) error {
	c.Keys, c.Excess = keys, c.Excess[:0]
	if err := keys.Walk(body, &c.Walk); err != nil {
		return err
	}
	for i := range rules {
		span := c.Walk.Spans[i]
		key := rules[i].key
		if !span.Present(body) {
			if key == "max_tokens" && answered || key == "messages" {
				return fault.Invalid(key, "%s is required", key)
			}
			continue
		}
		if err := rules[i].test(key, span.Of(body)); err != nil {
			return err
		}
	}
	return nil
}

func kind(key string, raw []byte, want wire.Kind) error {
	if got := wire.KindOf(raw); got != want {
		return fault.Invalid(key, "%s must be %s, not %s", key, want, got)
	}
	return nil
}

func testName(key string, raw []byte) error {
	if err := kind(key, raw, wire.KindString); err != nil {
		return err
	}
	if len(raw) == 2 {
		return fault.Invalid(key, "%s must not be empty", key)
	}
	return nil
}

func testBool(key string, raw []byte) error   { return kind(key, raw, wire.KindBool) }
func testText(key string, raw []byte) error   { return kind(key, raw, wire.KindString) }
func testArray(key string, raw []byte) error  { return kind(key, raw, wire.KindArray) }
func testObject(key string, raw []byte) error { return kind(key, raw, wire.KindObject) }

func testWhole(key string, raw []byte) error {
	n, err := wire.ScanInt(raw, key)
	if err == nil && n < 0 {
		err = fault.Invalid(key, "%s must be at least 0", key)
	}
	return err
}

func testFraction(key string, raw []byte) error {
	v, err := wire.ScanFloat(raw, key)
	if err == nil && (v < 0 || v > 1) {
		err = fault.Invalid(key, "%s must be between 0 and 1", key)
	}
	return err
}

func testMessages(key string, raw []byte) error {
	if err := kind(key, raw, wire.KindArray); err != nil {
		return err
	}
	i := 1
	for i < len(raw) && (raw[i] == ' ' || raw[i] == '\n' || raw[i] == '\r' || raw[i] == '\t') {
		i++
	}
	switch raw[i] {
	case '{':
		return nil
	case ']':
		return fault.Invalid(key, "%s must contain at least one message", key)
	}
	return fault.Invalid(key+"[0]", "%s[0] must be an object", key)
}

func testSystem(key string, raw []byte) error {
	if k := wire.KindOf(raw); k != wire.KindString && k != wire.KindArray {
		return fault.Invalid(key, "%s must be a string or a list of text blocks, not %s", key, k)
	}
	return nil
}

func testStrings(key string, raw []byte) error {
	if err := kind(key, raw, wire.KindArray); err != nil {
		return err
	}
	d := wire.NewDecoderAt(raw, key)
	for range d.Array {
		d.RawStr()
	}
	return d.Err()
}
