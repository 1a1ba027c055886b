package chat

import (
	"bytes"
	"encoding/json"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/wire"
)

// asText returns the text of an Anthropic-only block that any model can read: a search result,
// or the name of a found tool.
func (p *Part) asText() (string, bool) {
	if p.Kind != Foreign || p.Type != "search_result" && p.Type != "tool_reference" {
		return "", false
	}
	var lines []string
	d := wire.NewDecoder(p.Raw)
	for key := range d.Object {
		switch string(key) {
		case "title", "source", "tool_name":
			if d.Kind() == wire.KindString {
				lines = append(lines, d.Str())
			}
		case "content":
			if d.Kind() != wire.KindArray {
				continue
			}
			for range d.Array {
				if d.Kind() != wire.KindObject {
					continue
				}
				for inner := range d.Object {
					if string(inner) == "text" && d.Kind() == wire.KindString {
						lines = append(lines, d.Str())
					}
				}
			}
		}
	}
	return strings.Join(lines, "\n"), d.Err() == nil && len(lines) > 0
}

// withTexts returns r with such blocks converted to text and reported, or r itself if it has
// none.
func (r *Request) withTexts(loss *Loss) *Request {
	out := r
	for i := range r.Messages {
		m := &r.Messages[i]
		parts := inText(m.Parts, loss, func(p *Part) string { return m.Path(p) })
		for j := range parts {
			p := &parts[j]
			if p.Result == nil {
				continue
			}
			inner := inText(p.Result.Parts, loss, func(q *Part) string { return m.inResult(p, q) })
			if len(inner) > 0 && &inner[0] != &p.Result.Parts[0] {
				if &parts[0] == &m.Parts[0] {
					parts = slices.Clone(parts)
					p = &parts[j]
				}
				result := *p.Result
				result.Parts, result.Plain, p.Result = inner, false, &result
			}
		}
		if len(parts) > 0 && &parts[0] != &m.Parts[0] {
			if out == r {
				c := *r
				c.Messages, out = slices.Clone(r.Messages), &c
			}
			out.Messages[i].Parts = parts
		}
	}
	return out
}

// inText returns parts with such blocks converted to text, or parts itself if it has none.
func inText(parts []Part, loss *Loss, path func(*Part) string) []Part {
	out := parts
	for i := range parts {
		text, ok := parts[i].asText()
		if !ok {
			continue
		}
		if &out[0] == &parts[0] {
			out = slices.Clone(parts)
		}
		out[i] = Part{Kind: Text, Text: text, Cache: parts[i].Cache, At: parts[i].At}
		loss.Add(path(&parts[i]), "given as text")
	}
	return out
}

// PartKind determines which fields of a Part are set.
type PartKind uint8

const (
	Text             PartKind = iota + 1 // Text
	Image                                // Media
	Document                             // Media
	Audio                                // Media
	Call                                 // Call
	Result                               // Result
	Reasoned                             // Text, Signature: visible thinking
	RedactedReasoned                     // Data: thinking that only the provider can read
	Refusal                              // Text
	Foreign                              // Raw: a block of one dialect
)

// Part is one part of a message or response.
type Part struct {
	Kind  PartKind
	Cache Cache // the prefix up to and including this part is to be cached

	Text      string
	Signature string // of thinking
	Data      string // of redacted thinking
	Media     *Media
	Call      *ToolCall
	Result    *ToolResult

	// Raw is a foreign block in its dialect's format; Type is its type.
	Raw  json.RawMessage
	Type string
	// Origin names the dialect that created a signed or foreign part; empty if unknown.
	Origin string
	// Citations are sources of a text in the provider's format.
	Citations json.RawMessage
	// At is the index of the part in its content list.
	At int
}

// Change changes the text of the part, and its JSON. A tool call is replaced, not changed.
func (p *Part) Change(text func(string) string, raw func([]byte) []byte) {
	p.Text, p.Raw, p.Citations = text(p.Text), raw(p.Raw), raw(p.Citations)
	if p.Call != nil {
		call := *p.Call
		call.Arguments = string(raw([]byte(call.Arguments)))
		p.Call = &call
	}
}

// WithMedia returns the part with media content instead of an address.
func (p Part) WithMedia(kind PartKind, mime, data string, plain bool) Part {
	media := *p.Media
	media.URL, media.MIME, media.Data, media.Plain = "", mime, data, plain
	p.Kind, p.Media = kind, &media
	return p
}

// WithResult returns the part with other content of its tool result.
func (p Part) WithResult(parts []Part) Part {
	result := *p.Result
	result.Parts = parts
	p.Result = &result
	return p
}

// Cache marks the end of a prompt prefix that the provider should cache.
type Cache uint8

const (
	NoCache    Cache = iota
	CacheShort       // the provider's default time, five minutes
	Cache5m          // five minutes, set by the client
	Cache1h          // an hour
)

// Media is an image, a document or audio: exactly one of URL, Data and FileID.
type Media struct {
	URL    string // https address
	Data   string // base64 without white space, or text when IsString
	FileID string // id of a file stored by the provider
	MIME   string // type of Data, e.g. image/jpeg; may be empty for URL and FileID
	Plain  bool   // Data is text
	Name   string // file name or title
	Detail string // of an image: auto, low, high
	Format string // of audio: wav, mp3

	// Context and Citations are document fields that only some hosts support.
	Context   string
	Citations json.RawMessage
}

// ToolCall is a call by the model.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is a JSON object as text, verbatim from the model. From a client it may be
	// empty or invalid.
	Arguments string
	// Custom is set if Arguments is free text, not JSON.
	Custom bool
	// Signature of the reasoning that led to the call, if the host attaches it to the call.
	Signature string
}

// ToolResult is the result of a tool.
type ToolResult struct {
	CallID  string
	Name    string // of the tool, if the client named it
	Parts   []Part // text, images, documents
	IsError bool
	Plain   bool // the content was one string
}

// ResponseTool is a hidden tool. If a host cannot force a model to follow a schema, the model
// returns its response as this tool's arguments. Clients never see the tool: responses and
// streams show the arguments as text.
const ResponseTool = "gateway_json_answer"

// Instructions to a model for JSON responses.
const (
	ResponseToolDescription = "Give the answer to the user by calling this tool once. Its arguments are the whole answer."
	JSONInstruction         = "Answer with one JSON object and nothing else: no text around it, no code fence."
)

// ShowResponse replaces the text of the response by the arguments of the hidden tool. Text around the
// call is dropped.
func (c *Choice) ShowResponse() {
	hidden, others := -1, false
	for i := range c.Parts {
		if call := c.Parts[i].Call; call != nil {
			if call.Name == ResponseTool {
				hidden = i
			} else {
				others = true
			}
		}
	}
	if hidden < 0 {
		return
	}
	answer := Part{Kind: Text, Text: c.Parts[hidden].Call.Arguments}
	parts := c.Parts[:0]
	for i, p := range c.Parts {
		switch {
		case i == hidden:
			parts = append(parts, answer)
		case p.Kind == Text, p.Call != nil && p.Call.Name == ResponseTool:
		default:
			parts = append(parts, p)
		}
	}
	c.Parts = parts
	if c.Stop == StopToolCalls && !others {
		c.Stop = StopEnd
	}
}

// SchemaInstruction returns the instruction that contains the schema of the response.
func SchemaInstruction(schema []byte) string {
	return JSONInstruction + " The JSON object must match this JSON schema: " + string(schema)
}

// NestedFields is a set of nested request fields that few wire formats support and that encoders do
// not check individually.
type NestedFields uint8

const (
	BelowCitations      NestedFields = 1 << iota // sources of earlier responses
	BelowDocuments                               // fields of documents: context, citations
	BelowTitles                                  // names of media
	BelowRemoteTitles                            // names of media that are text, or that the provider fetches or stores
	BelowCallSignatures                          // signatures on tool calls
	BelowResultMarkers                           // cache markers within tool results
	BelowWay                                     // Reasoning.UnknownType, if it is treated as adaptive
)

// ReportBelow reports those of fields that the request has, for an encoder that supports none
// of them. All encoders call it, so a new field is reported by every encoder that does not
// support it.
func (r *Request) ReportBelow(loss *Loss, members NestedFields) {
	if members&BelowWay != 0 && r.Reasoning.UnknownType != "" {
		loss.Add("thinking.type", "not known; treated as adaptive")
	}
	for i := range r.Messages {
		m := &r.Messages[i]
		for j := range m.Parts {
			p := &m.Parts[j]
			reportBelow(m.Path, p, loss, members&^BelowResultMarkers)
			if p.Result == nil {
				continue
			}
			within := func(q *Part) string { return m.inResult(p, q) }
			for k := range p.Result.Parts {
				reportBelow(within, &p.Result.Parts[k], loss, members)
			}
		}
	}
}

// inResult returns the path of a part of a tool result, which is a separate message in chat
// completions and a part in other formats.
func (m *Message) inResult(result, p *Part) string {
	at := m.Path(nil)
	if m.Role != ToolRole || len(m.Parts) > 1 {
		at = m.Path(result)
	}
	return at + ".content[" + strconv.Itoa(p.At) + "]"
}

func reportBelow(path func(*Part) string, p *Part, loss *Loss, members NestedFields) {
	if members&BelowResultMarkers != 0 && p.Cache != NoCache {
		loss.Add(path(p)+".cache_control", "not accepted inside of the result of a tool")
	}
	if members&BelowCitations != 0 && p.Kind == Text && len(p.Citations) > 0 {
		loss.Add(path(p)+".citations", "sources of earlier responses are not accepted by this provider")
	}
	if members&BelowCallSignatures != 0 && p.Call != nil && p.Call.Signature != "" {
		loss.Add(path(p)+".function.thought_signature", "signature of another provider")
	}
	if p.Media != nil {
		reportMedia(path, p, loss, members)
	}
}

func reportMedia(path func(*Part) string, p *Part, loss *Loss, members NestedFields) {
	const notTaken = "not accepted by this provider"
	media := p.Media
	if members&BelowDocuments != 0 {
		if media.Context != "" {
			loss.Add(path(p)+".context", notTaken)
		}
		if bytes.Contains(media.Citations, []byte("true")) {
			loss.Add(path(p)+".citations", notTaken)
		}
	}
	remote := media.Plain || media.Data == ""
	if media.Name != "" && (members&BelowTitles != 0 || members&BelowRemoteTitles != 0 && remote) {
		loss.Add(path(p)+".file.filename", notTaken)
	}
}
