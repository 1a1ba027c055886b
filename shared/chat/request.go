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

// Or returns the value, or other when it is absent.
func (o Opt[T]) Or(other T) T {
	if o.Set {
		return o.Value
	}
	return other
}

// Request is one conversation turn asked for. Dialects decode to it and encode
// from it; encoders change nothing in it but Renamed, HiddenAnswer and UnboundJSON.
type Request struct {
	// Dialect is the name of the dialect that the client speaks.
	Dialect  string
	Model    string
	Messages []Message // in the client's order; system messages anywhere
	// Breakpoints: cache markers of its parts are OpenAI's prompt_cache_breakpoint.
	Breakpoints bool

	Tools      []Tool
	ToolChoice ToolChoice
	Parallel   Opt[bool] // several tool calls in one response

	Format    Format // shape of the response's text
	Reasoning Reasoning

	MaxTokens Opt[int64] // most output tokens, reasoning included
	// MaxTokensField is the field by which the client gave MaxTokens.
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
	IncludeUsage Opt[bool] // the client wants usage at the end of the stream

	User        string // end user's id
	ServiceTier string

	// Legacy says that the client gave its tools as functions and reads calls as
	// function_call.
	Legacy bool
	// Completion holds what only text completions have; nil for a chat.
	Completion *Completion

	// Extra are the top-level fields that the client's dialect does not know or that have no
	// canonical form, in their order.
	Extra []Field
	// Unread are the paths of fields inside of messages that the client's dialect does not
	// know, at most maxUnread.
	Unread []string
	// Guessed are fields whose value is not known here, with what it is taken for.
	Guessed []Lost

	// Renamed maps tool names as sent to the provider to the client's names. It is set by
	// EncodeRequest when the provider's dialect forbids a name, and read when the response is
	// encoded.
	Renamed map[string]string
	// HiddenAnswer is set by EncodeRequest when the text of the response comes as arguments of
	// the hidden tool: other text is then not part of it.
	HiddenAnswer bool
	// UnboundJSON is set by EncodeRequest when Format asks for JSON and only words or the
	// hidden tool make the model give it, see Promised.
	UnboundJSON bool

	// Recall finds the signed reasoning that came before the tool call with this
	// id, for clients that cannot give it back. May be nil.
	Recall func(toolCallID string) []Part
	// Fits reports whether a JSON value matches a JSON schema. If it is nil, a schema that was
	// given in words is not checked.
	Fits func(schema, value []byte) bool
}

// maxUnread bounds Request.Unread.
const maxUnread = 32

// Unknown notes a field inside of a message that the dialect does not know.
func (r *Request) Unknown(message, part int, member []byte) {
	if len(r.Unread) == maxUnread {
		return
	}
	path := "messages[" + strconv.Itoa(message) + "]"
	if part >= 0 {
		path += ".content[" + strconv.Itoa(part) + "]"
	}
	r.Unread = append(r.Unread, path+"."+clipName(string(member)))
}

// Guess notes that the value of a field is not known here and is taken for another.
func (r *Request) Guess(path, taken string) {
	r.Guessed = append(r.Guessed, Lost{Path: path, Reason: "not known; taken for " + taken})
}

// ReportUnread adds what was not read, and what was guessed, to a report. words are the modes of
// ToolChoice.Word that the encoder writes.
func (r *Request) ReportUnread(loss *Loss, words ...string) {
	if w := r.ToolChoice.Word; w != "" && !slices.Contains(words, w) {
		loss.Add("tool_choice", "not known; taken for auto")
	}
	for _, g := range r.Guessed {
		loss.Add(g.Path, g.Reason)
	}
	for _, path := range r.Unread {
		loss.Add(path, "not known")
	}
}

// Field is a top-level field of a body, verbatim.
type Field struct {
	Name string
	Raw  json.RawMessage
}

// Fields are fields that a shape has no place for, in their order.
type Fields []Field

// Find returns the value of the field name; nil when it is absent.
func (fs Fields) Find(name string) []byte {
	for _, f := range fs {
		if f.Name == name {
			return f.Raw
		}
	}
	return nil
}

// Report adds those that are not among carried to loss.
func (fs Fields) Report(loss *Loss, reason string, carried ...string) {
	for _, f := range fs {
		if !slices.Contains(carried, f.Name) {
			loss.Add(f.Name, reason)
		}
	}
}

// Pass hands those among names to write.
func (fs Fields) Pass(write func(name string, value []byte), names ...string) {
	for _, f := range fs {
		if slices.Contains(names, f.Name) {
			write(f.Name, f.Raw)
		}
	}
}

// Completion is what a text completion asks beyond a chat.
type Completion struct {
	Echo   bool
	Suffix string
	BestOf Opt[int64]
	// Logprobs is how many alternatives are given for each token.
	Logprobs Opt[int64]
	// Prompts says how many prompts were given; each makes N choices.
	Prompts int
}

// Role is who speaks in a message.
type Role uint8

// The roles. Tool messages hold tool results only.
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
	// At is the index in the client's messages, -1 for a system prompt that
	// stood outside of them.
	At int
	// Plain says that the content was one string and not a list.
	Plain bool
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

// Tool is a function that the model may call, or a tool of the provider's own.
type Tool struct {
	Name        string
	Description Opt[string]
	// Schema is the JSON schema of the arguments, byte for byte; nil when the
	// client gave none.
	Schema json.RawMessage
	Strict Opt[bool]
	Cache  Cache
	// Extra are further fields of the tool that only some hosts know.
	Extra []Field
	// Custom says that the client's tool takes free text: Schema is then an object
	// with the one string "input", and calls are given back as their text.
	Custom bool
	// Namespace is the group in which the client knows the tool; Name has it in front, see
	// JoinNamespace.
	Namespace string
	// Foreign is set for a tool that is not a function: its type, with Raw the
	// whole tool as the client's dialect writes it.
	Foreign string
	Raw     json.RawMessage
}

// ToolChoiceMode says whether tools must, may or must not be called.
type ToolChoiceMode uint8

// The modes; the zero value says that the client did not choose.
const (
	ToolsUnsaid ToolChoiceMode = iota
	ToolsAuto
	ToolsNone
	ToolsRequired
	ToolsNamed
)

// ToolChoice is which tools may be called.
type ToolChoice struct {
	Mode ToolChoiceMode
	Name string // of the one tool, for ToolsNamed
	// Word is a mode that only some hosts know, such as validated; Mode is then the closest one.
	Word string
}

// Forced reports whether the response must call a tool.
func (c ToolChoice) Forced() bool { return c.Mode == ToolsRequired || c.Mode == ToolsNamed }

// FormatKind is the kind of text that a response must be.
type FormatKind uint8

// The kinds of format; the zero value is plain text.
const (
	FormatText   FormatKind = iota
	FormatJSON              // any JSON object
	FormatSchema            // JSON of a schema
)

// Format is the shape that the text of the response must have.
type Format struct {
	Kind        FormatKind
	Set         bool // the client said so, be it text
	Name        string
	Description string
	Schema      json.RawMessage
	Strict      Opt[bool]
	// AssumedStrict: the client's dialect enforces every schema, so Strict is true although
	// the client did not say so. Hosts that take only some schemas are told so for a schema
	// that they take, see HoldsStrict.
	AssumedStrict bool
}

// WritesStrict reports whether the field strict is written, for a host that knows it.
func (f *Format) WritesStrict(t *Traits) bool {
	return f.Strict.Set && !(f.AssumedStrict && (t.NoAssumedStrict || !HoldsStrict(f.Schema)))
}

// Thinking is whether the model reasons before it answers.
type Thinking uint8

// The kinds of thinking; the zero value says that the client did not choose.
const (
	ThinkingUnsaid Thinking = iota
	ThinkingOff
	ThinkingBudget   // on, with a budget of tokens
	ThinkingAdaptive // the model decides
)

// Reasoning is how much the model may think.
type Reasoning struct {
	Effort   string // none, minimal, low, medium, high, xhigh, max; empty: not said
	Thinking Thinking
	Way      string     // a type of thinking that is not known here; Thinking is then adaptive
	Budget   Opt[int64] // tokens
	Display  string     // how thinking is shown: summarized, omitted; empty: not said
}

// On reports whether the client asked for thinking, in either way.
func (r Reasoning) On() bool {
	return r.Thinking >= ThinkingBudget || r.Thinking == ThinkingUnsaid && r.Effort != "" && r.Effort != "none" && r.Effort != "minimal"
}
