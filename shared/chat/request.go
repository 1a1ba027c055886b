package chat

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

// Opt is a value that may be absent. The zero Opt is absent.
type Opt[T any] struct {
	Value T
	Set   bool
}

// Some returns a present value.
func Some[T any](v T) Opt[T] { return Opt[T]{v, true} }

// Or returns the value, or other if it is absent.
func (o Opt[T]) Or(other T) T {
	if o.Set {
		return o.Value
	}
	return other
}

// Request is one requested turn of a conversation. Dialects decode to it and encode from it;
// encoders change only ToolNames, HiddenResponse and UnboundJSON.
type Request struct {
	// Dialect is the name of the client's dialect.
	Dialect  string
	Model    string
	Messages []Message // in the client's order; system messages may be anywhere
	// Breakpoints is set if the cache markers of its parts are OpenAI's
	// prompt_cache_breakpoint.
	Breakpoints bool

	Tools      []Tool
	ToolChoice ToolChoice
	Parallel   Opt[bool] // several tool calls in one response

	Format    Format // format of the response's text
	Reasoning Reasoning

	MaxTokens Opt[int64] // output token limit, including reasoning
	// MaxTokensField is the field in which the client set MaxTokens.
	MaxTokensField string

	Temperature, TopP                 Opt[float64]
	TopK                              Opt[int64]
	FrequencyPenalty, PresencePenalty Opt[float64]
	Seed                              Opt[int64]
	LogitBias                         json.RawMessage // object of token id to bias
	Stop                              []string
	N                                 Opt[int64]
	Logprobs                          Opt[bool]
	TopLogprobs                       Opt[int64]

	Stream       bool
	IncludeUsage Opt[bool] // the client requests usage at the end of the stream

	User        string // end user's id
	ServiceTier string

	// Legacy is set if the client sent its tools as functions and reads calls as function_call.
	Legacy bool
	// Completion contains the fields of text completions; nil for a chat.
	Completion *Completion

	// Extra are the top-level fields that the client's dialect does not know or that have no
	// canonical form, in order.
	Extra []Field
	// UnknownFields are the paths of unknown fields within messages, at most maxUnread.
	UnknownFields []string
	// Assumed are fields with an unknown value, with the assumed value.
	Assumed []LostField

	// ToolNames maps tool names sent to the provider to the client's names. EncodeRequest sets it
	// if the provider's dialect does not allow a name; the response encoder reads it.
	ToolNames map[string]string
	// HiddenResponse is set by EncodeRequest if the text of the response arrives as arguments of
	// the hidden tool: other text is then not part of it.
	HiddenResponse bool
	// UnboundJSON is set by EncodeRequest if Format requests JSON and only an instruction or
	// the hidden tool enforces it, see Promised.
	UnboundJSON bool

	// LoadReasoning finds the signed reasoning before the tool call with this id, for clients that
	// cannot return it. It may be nil.
	LoadReasoning func(toolCallID string) []Part
	// MatchSchema reports whether a JSON value matches a JSON schema. If it is nil, a schema that was
	// sent as an instruction is not checked.
	MatchSchema func(schema, value []byte) bool
}

// maxUnread is the length limit of Request.UnknownFields.
const maxUnread = 32

// Unknown records an unknown field within a message.
func (r *Request) Unknown(message, part int, member []byte) {
	if len(r.UnknownFields) == maxUnread {
		return
	}
	path := "messages[" + strconv.Itoa(message) + "]"
	if part >= 0 {
		path += ".content[" + strconv.Itoa(part) + "]"
	}
	r.UnknownFields = append(r.UnknownFields, path+"."+clipName(string(member)))
}

// Assume records that the value of a field is unknown and treated as another.
func (r *Request) Assume(path, taken string) {
	r.Assumed = append(r.Assumed, LostField{Path: path, Reason: "not known; treated as " + taken})
}

// ReportUnread adds unknown fields and assumed values to a report. words are the modes of
// ToolChoice.HostMode that the encoder writes.
func (r *Request) ReportUnread(loss *Loss, words ...string) {
	if w := r.ToolChoice.HostMode; w != "" && !slices.Contains(words, w) {
		loss.Add("tool_choice", "not known; treated as auto")
	}
	for _, g := range r.Assumed {
		loss.Add(g.Path, g.Reason)
	}
	for _, path := range r.UnknownFields {
		loss.Add(path, "not known")
	}
}

// Field is a top-level field of a body, verbatim.
type Field struct {
	Name string
	Raw  json.RawMessage
}

// Fields are unsupported fields in order.
type Fields []Field

// Find returns the value of the field name, or nil.
func (fs Fields) Find(name string) []byte {
	for _, f := range fs {
		if f.Name == name {
			return f.Raw
		}
	}
	return nil
}

// Report adds the fields that are not in carried to loss.
func (fs Fields) Report(loss *Loss, reason string, carried ...string) {
	for _, f := range fs {
		if !slices.Contains(carried, f.Name) {
			loss.Add(f.Name, reason)
		}
	}
}

// Pass calls write for the fields in names.
func (fs Fields) Pass(write func(name string, value []byte), names ...string) {
	for _, f := range fs {
		if slices.Contains(names, f.Name) {
			write(f.Name, f.Raw)
		}
	}
}

// Completion contains the fields of a text completion that a chat does not have.
type Completion struct {
	Echo   bool
	Suffix string
	BestOf Opt[int64]
	// Logprobs is the number of alternatives per token.
	Logprobs Opt[int64]
	// Prompts is the number of prompts; each has N choices.
	Prompts int
}

// Role is the sender of a message.
type Role uint8

// The roles. Tool messages contain only tool results.
const (
	System Role = iota + 1
	Developer
	User
	Assistant
	ToolRole
)

var roleNames = [...]string{"", "system", "developer", "user", "assistant", "tool"}

// String returns the role's usual name.
func (r Role) String() string { return roleNames[r] }

// Message is one message.
type Message struct {
	Role  Role
	Name  string // of the participant
	Parts []Part
	// At is the index in the client's messages, -1 for a separate system prompt.
	At int
	// IsString is set if the content was one string and not a list.
	IsString bool
}

// WithParts returns the message with other parts.
func (m Message) WithParts(parts []Part) Message {
	m.Parts = parts
	return m
}

// Text joins the text parts of a message.
func (m *Message) Text() string {
	switch n := len(m.Parts); {
	case n == 0:
		return ""
	case n == 1 && m.Parts[0].Kind == Text:
		return m.Parts[0].Text
	}
	var s strings.Builder
	for i := range m.Parts {
		if m.Parts[i].Kind == Text {
			s.WriteString(m.Parts[i].Text)
		}
	}
	return s.String()
}

// Tool is a function that the model may call, or a built-in tool of the provider.
type Tool struct {
	Name        string
	Description Opt[string]
	// Schema is the JSON schema of the arguments, verbatim; nil if the client sent none.
	Schema json.RawMessage
	Strict Opt[bool]
	Cache  Cache
	// Extra are further fields of the tool that only some hosts support.
	Extra []Field
	// Custom is set if the client's tool takes free text: Schema is then an object with the one
	// string "input", and calls are returned as their text.
	Custom bool
	// Namespace is the client's namespace of the tool; Name has it as a prefix, see
	// JoinNamespace.
	Namespace string
	// ForeignType is the type of a tool that is not a function; Raw is the complete tool in the
	// client's dialect.
	ForeignType string
	Raw         json.RawMessage
}

// ToolChoiceMode states whether tools must, may or must not be called.
type ToolChoiceMode uint8

// The modes; the zero value means that the client did not choose.
const (
	ToolsUnset ToolChoiceMode = iota
	ToolsAuto
	ToolsNone
	ToolsRequired
	ToolsNamed
)

// ToolChoice restricts which tools may be called.
type ToolChoice struct {
	Mode ToolChoiceMode
	Name string // of the one tool, for ToolsNamed
	// HostMode is a mode that only some hosts support, such as validated; Mode is then the closest
	// one.
	HostMode string
}

// Forced reports whether the response must call a tool.
func (c ToolChoice) Forced() bool { return c.Mode == ToolsRequired || c.Mode == ToolsNamed }

// FormatKind is the kind of a response's text.
type FormatKind uint8

// The kinds of format; the zero value is plain text.
const (
	FormatText   FormatKind = iota
	FormatJSON              // any JSON object
	FormatSchema            // JSON of a schema
)

// Format is the required format of the response's text.
type Format struct {
	Kind        FormatKind
	Set         bool // the client set it, even to text
	Name        string
	Description string
	Schema      json.RawMessage
	Strict      Opt[bool]
	// AssumedStrict is set if the client's dialect enforces every schema, so Strict is true
	// although the client did not set it. Hosts that accept only some schemas as strict get
	// strict only for those, see HoldsStrict.
	AssumedStrict bool
}

// WritesStrict reports whether the field strict is written for a host that supports it.
func (f *Format) WritesStrict(t *Traits) bool {
	return f.Strict.Set && !(f.AssumedStrict && (t.NoAssumedStrict || !HoldsStrict(f.Schema)))
}

// Thinking states whether the model reasons before it responds.
type Thinking uint8

// The kinds of thinking; the zero value means that the client did not choose.
const (
	ThinkingUnset Thinking = iota
	ThinkingOff
	ThinkingBudget   // on, with a budget of tokens
	ThinkingAdaptive // the model decides
)

// Reasoning limits how much the model may think.
type Reasoning struct {
	Effort      string // none, minimal, low, medium, high, xhigh, max; may be empty
	Thinking    Thinking
	UnknownType string     // an unknown type of thinking; Thinking is then adaptive
	Budget      Opt[int64] // tokens
	Display     string     // how thinking is shown: summarized, omitted; may be empty
}

// On reports whether the client requested thinking of any kind.
func (r Reasoning) On() bool {
	return r.Thinking >= ThinkingBudget || r.Thinking == ThinkingUnset && r.Effort != "" && r.Effort != "none" && r.Effort != "minimal"
}
