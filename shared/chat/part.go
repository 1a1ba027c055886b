package chat

import "encoding/json"

// PartKind says which fields of a Part count.
type PartKind uint8

// The kinds of part.
const (
	Text             PartKind = iota + 1 // Text
	Image                                // Media
	Document                             // Media
	Audio                                // Media
	Call                                 // Call
	Result                               // Result
	Reasoned                             // Text, Signature: thinking shown to the client
	RedactedReasoned                     // Data: thinking that only the provider can read
	Refusal                              // Text
	Foreign                              // Raw: a block that only its own dialect knows
)

// Part is one piece of a message or answer.
type Part struct {
	Kind  PartKind
	Cache Cache // the prefix up to and with this part is to be cached

	Text      string
	Signature string // of thinking
	Data      string // of redacted thinking
	Media     *Media
	Call      *ToolCall
	Result    *ToolResult

	// Raw is a foreign block as its dialect wrote it; Type its type.
	Raw  json.RawMessage
	Type string
	// Origin names the dialect that made a signed or foreign part; empty when it
	// is not known.
	Origin string
	// Citations are sources of a text, as the provider wrote them.
	Citations json.RawMessage
	// At is the index in the content list that the part came from.
	At int
}

// Cache marks where a prompt prefix ends that the provider is to keep.
type Cache uint8

// The cache markers.
const (
	NoCache    Cache = iota
	CacheShort       // the provider's usual time, five minutes
	Cache5m          // five minutes, as said by the client
	Cache1h          // an hour
)

// Media is an image, a document or audio: exactly one of URL, Data and FileID.
type Media struct {
	URL    string // https address
	Data   string // base64 without white space, or text when Plain
	FileID string // id of a file kept by the provider
	MIME   string // type of Data, e.g. image/jpeg; may be empty for URL and FileID
	Plain  bool   // Data is text
	Name   string // file name or title
	Detail string // of an image: auto, low, high
	Format string // of audio: wav, mp3

	// Context and Citations are fields of a document that only some hosts know.
	Context   string
	Citations json.RawMessage
}

// ToolCall is a call that the model made.
type ToolCall struct {
	ID   string
	Name string
	// Arguments is a JSON object as text, byte for byte as the model wrote it. It
	// may be empty or not be JSON in what a client sends.
	Arguments string
	// Custom says that Arguments is free text, not JSON.
	Custom bool
	// Signature of the reasoning that led to the call, where a host keeps it there.
	Signature string
}

// ToolResult is what a tool gave back.
type ToolResult struct {
	CallID  string
	Name    string // of the tool, where the client said it
	Parts   []Part // text, images, documents
	IsError bool
	Plain   bool // the content was one string
}
