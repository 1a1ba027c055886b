package chat

import "encoding/json"

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
	Data   string // base64 without white space, or text when Plain
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
