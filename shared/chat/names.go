package chat

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Rename changes the tool names of r for a host that accepts letters, digits, _ and - up to max
// bytes. Invalid names are changed deterministically, and r.Renamed maps them back. If two
// names would become equal, it returns a 400.
func (r *Request) Rename(max int) error {
	r.ToolNames = nil
	if r.namesFit(max) {
		return nil
	}
	own := make(map[string]string)
	r.ToolNames = make(map[string]string)
	take := func(name, path string) error {
		if name == "" {
			return nil
		}
		legal := LegalName(name, max)
		if other, ok := own[legal]; ok && other != name {
			return fault.Invalid(path, "The tool names %q and %q are the same for this provider, which accepts letters, digits, _ and - only, up to %d", clipName(other), clipName(name), max)
		}
		own[legal] = name
		if legal != name {
			r.ToolNames[legal] = name
		}
		return nil
	}
	for i := range r.Tools {
		if err := take(r.Tools[i].Name, "tools"); err != nil {
			return err
		}
	}
	if err := take(r.ToolChoice.Name, "tool_choice"); err != nil {
		return err
	}
	for i := range r.Messages {
		for j := range r.Messages[i].Parts {
			if c := r.Messages[i].Parts[j].Call; c != nil {
				if err := take(c.Name, "messages"); err != nil {
					return err
				}
			}
		}
	}
	return nil
}

func (r *Request) namesFit(max int) bool {
	for i := range r.Tools {
		if !fits(r.Tools[i].Name, max) {
			return false
		}
	}
	for i := range r.Messages {
		for j := range r.Messages[i].Parts {
			if c := r.Messages[i].Parts[j].Call; c != nil && !fits(c.Name, max) {
				return false
			}
		}
	}
	return fits(r.ToolChoice.Name, max)
}

func clipName(s string) string {
	if len(s) > 80 {
		return s[:80]
	}
	return s
}

func legalByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '_' || c == '-'
}

func fits(name string, max int) bool {
	if len(name) > max {
		return false
	}
	for i := range len(name) {
		if !legalByte(name[i]) {
			return false
		}
	}
	return true
}

// LegalName replaces each byte of name that is not a letter, a digit, _ or - by _. A name that
// is too long is truncated and ends in a part of its hash.
func LegalName(name string, max int) string {
	if fits(name, max) {
		return name
	}
	b := []byte(name)
	for i, c := range b {
		if !legalByte(c) {
			b[i] = '_'
		}
	}
	if len(b) > max {
		sum := sha256.Sum256([]byte(name))
		tail := "_" + hex.EncodeToString(sum[:4])
		b = append(b[:max-len(tail)], tail...)
	}
	return string(b)
}

// TextTool is the schema of a free-text tool for providers with tools that take JSON.
const TextTool = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`

// CustomTool reports whether the client's tool of this name takes free text. r may be nil.
func (r *Request) CustomTool(name string) bool {
	t := r.tool(name)
	return t != nil && t.Custom
}

// tool returns the client's tool of this name, or nil.
func (r *Request) tool(name string) *Tool {
	if r == nil {
		return nil
	}
	for i := range r.Tools {
		if t := &r.Tools[i]; t.Name == name && t.ForeignType == "" {
			return t
		}
	}
	return nil
}

// WrapText returns free text as JSON arguments.
func WrapText(text string) string {
	return string(append(wire.AppendJSONString([]byte(`{"input":`), text), '}'))
}

// UnwrapText returns the free text in arguments created by WrapText or by a model. It returns
// other arguments unchanged.
func UnwrapText(args string) string {
	d := wire.NewDecoder([]byte(args))
	text, ok := "", false
	if d.Kind() == wire.KindObject {
		for key := range d.Object {
			if string(key) == "input" && d.Kind() == wire.KindString {
				text, ok = d.Str(), true
			}
		}
	}
	if !ok || d.End() != nil {
		return args
	}
	return text
}

// JoinNamespace returns the name of a tool of a namespace for providers without namespaces.
func JoinNamespace(namespace, name string) string {
	if namespace == "" {
		return name
	}
	return namespace + "__" + name
}

// SplitNamespace returns the client's namespace of a tool, and its name there. r may be nil.
func (r *Request) SplitNamespace(name string) (namespace, own string) {
	if t := r.tool(name); t != nil && t.Namespace != "" {
		return t.Namespace, name[len(JoinNamespace(t.Namespace, "")):]
	}
	return "", name
}

// threadMember is the field of a Messages request with which the provider stores the
// conversation, so that the client sends only new messages.
const threadMember = "thread"

// ThreadError returns the error by which Anthropic's clients recognize that a thread is not
// stored, so that they send the complete conversation: thread_not_found if the request
// continues one, thread_unsupported_request otherwise. It returns nil if the request has no
// thread, or if the target supports threads. Without the error, a conversation would lose all
// of its earlier turns.
func (r *Request) ThreadError(unsupported bool) error {
	if !unsupported || r.Dialect != "anthropic.messages" {
		return nil
	}
	thread := Fields(r.Extra).Find(threadMember)
	switch {
	case thread == nil:
		return nil
	case bytes.Contains(thread, []byte(`"previous_message_id"`)), bytes.Contains(thread, []byte(`"continue"`)):
		return fault.New(fault.ThreadNotFound, threadMember, "thread is not stored by the provider of this target; send the whole conversation in messages")
	}
	return fault.New(fault.ThreadUnsupported, threadMember, "thread is not supported by the provider of this target; send the whole conversation in messages")
}

// NamesThread reports whether a body in a client's format may have a thread, without parsing
// it.
func NamesThread(client Dialect, body []byte) bool {
	return client.Name() == "anthropic.messages" && bytes.Contains(body, []byte(`"`+threadMember+`"`))
}

// Member is a field of Request with its path in a client's body.
type Member struct {
	Field string // of Request
	// Path is the path in chat completions, which encoders report; Named converts it to the
	// client's. It is empty for fields that no client writes.
	Path string
	// isSet reports whether the client set the field. It is nil for fields with subfields and
	// for fields that concern the entire request: each encoder handles those.
	isSet func(r *Request) bool
}

// Members lists all fields of Request. A test checks that it is complete, and that no encoder
// drops a field silently.
var Members = []Member{
	{"Temperature", "temperature", func(r *Request) bool { return r.Temperature.Set }},
	{"TopP", "top_p", func(r *Request) bool { return r.TopP.Set }},
	{"TopK", "top_k", func(r *Request) bool { return r.TopK.Set }},
	{"FrequencyPenalty", "frequency_penalty", func(r *Request) bool { return r.FrequencyPenalty.Set }},
	{"PresencePenalty", "presence_penalty", func(r *Request) bool { return r.PresencePenalty.Set }},
	{"Seed", "seed", func(r *Request) bool { return r.Seed.Set }},
	{"LogitBias", "logit_bias", func(r *Request) bool { return r.LogitBias != nil }},
	{"Stop", "stop", func(r *Request) bool { return len(r.Stop) > 0 }},
	{"User", "user", func(r *Request) bool { return r.User != "" }},
	{"ServiceTier", "service_tier", func(r *Request) bool { return r.ServiceTier != "" }},

	{"Model", "model", nil},
	{"Messages", "messages", nil},
	{"Tools", "tools", nil},
	{"ToolChoice", "tool_choice", nil},
	{"Parallel", "parallel_tool_calls", nil},
	{"Format", "response_format", nil},
	{"Reasoning", "reasoning_effort", nil},
	{"MaxTokens", "max_tokens", nil},
	{"N", "n", nil},
	{"Logprobs", "logprobs", nil},
	{"TopLogprobs", "top_logprobs", nil},
	{"Stream", "stream", nil},
	{"IncludeUsage", "stream_options", nil},
	{"Completion", "suffix", nil},
	{"Extra", "extra", nil}, // by their own names
	{"UnknownFields", "messages", nil},
	{"Assumed", "response_format.type", nil},

	{"Dialect", "", nil},
	{"MaxTokensField", "", nil},
	{"Legacy", "", nil},
	{"ToolNames", "", nil},
	{"HiddenResponse", "", nil},
	{"UnboundJSON", "", nil},
	{"LoadReasoning", "", nil},
	{"MatchSchema", "", nil},
	{"Breakpoints", "", nil}, // how Messages are marked
}

// ReportLoss reports, with reason, the fields that the client set and that are not in carried, which
// contains paths of Members. An encoder that calls it also reports fields that are added later.
func (r *Request) ReportLoss(loss *Loss, reason string, carried ...string) {
	for i := range Members {
		m := &Members[i]
		if m.isSet != nil && m.isSet(r) && !slices.Contains(carried, m.Path) {
			loss.Add(m.Path, reason)
		}
	}
}
