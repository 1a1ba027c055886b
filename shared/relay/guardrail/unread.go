package guardrail

import (
	"strings"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/content"
)

// unread returns the error for content that a denying guardrail cannot read.
func unread(h *chain.Hook, what string) *fault.Fault {
	return fault.Newf(fault.GuardrailUnread, "", "The guardrail %q denies by what it reads, and cannot read %s. Send it in a form that can be read, as JSON and at most 8 MiB of a form, or list the request type or the path in the guardrail's allow_unread", h.ID, what)
}

// unreadBody returns the error for a body that one of the hooks must read and cannot; nil if
// there is none. what names the body, answer says that it is a response.
func unreadBody(hooks chain.Hooks, exempts func(names []string) bool, kind string, body []byte, answer bool, what string) *fault.Fault {
	h := hooks.Blocks(exempts)
	if h == nil {
		return nil
	}
	field, is := content.Unread(kind, body, answer)
	switch {
	case !is:
		return nil
	case field == "":
		return unread(h, what)
	}
	return fault.Newf(fault.GuardrailUnread, field, "The guardrail %q denies by what it reads, and cannot read the token ids of this field. Send the text, or list the request type or the path in the guardrail's allow_unread", h.ID)
}

// exempt reports whether names list a route: by its request type, or by the beginning of its
// path. A path in an unusual spelling is never exempt.
func exempt(names []string, endpoint, path string) bool {
	plain := !strings.ContainsAny(path, `%;\`) && !strings.Contains(path, "//") && !strings.Contains(path, "/.")
	for _, name := range names {
		if name == endpoint {
			return true
		}
		if rest, ok := strings.CutPrefix(path, strings.TrimSuffix(name, "/")); ok && plain && name[0] == '/' && (rest == "" || rest[0] == '/' || rest[0] == ':') {
			return true
		}
	}
	return false
}

// Waits reports whether a passed-through response must be read completely first, because a
// guardrail may deny or change it. stream: it is a stream of events.
func (s *State) Waits(stream bool) bool {
	if !s.Outputs() {
		return false
	}
	if !stream {
		return true
	}
	for _, h := range s.hooks.out {
		if h.Deny || h.Streams() != guard.StreamAfter {
			return true
		}
	}
	return false
}

// JudgeResponse runs the output guardrails on a passed-through response. The result is sent to the
// client; it differs from body only in the texts that a guardrail changed.
func (s *State) JudgeResponse(contentType string, body []byte) ([]byte, error) {
	doc, ok := content.Read(contentType, body)
	if !ok {
		if h := s.hooks.out.Blocks(s.exempts); h != nil {
			return nil, unread(h, "the response")
		}
		return body, nil
	}
	if h := s.hooks.out.Blocks(s.exempts); h != nil && doc.Unread {
		return nil, unread(h, "all of the response")
	}
	f := s.Output(doc.JSON)
	changed, made := s.Changed, s.Answer
	s.Answer = nil
	switch {
	case f != nil:
		return nil, f
	case !changed:
		return body, nil
	case doc.Own:
		return made, nil
	}
	out, ok := content.Rewrite(contentType, body, made)
	if !ok {
		return nil, s.Verdict.deny(false, s.Results.After) // the change cannot be written into the stream
	}
	return out, nil
}

// Ended runs the guardrails that judge a stream once it has been forwarded. They only report.
func (s *State) Ended(contentType string, body []byte) {
	if doc, ok := content.Read(contentType, body); ok {
		s.End(doc.JSON)
	}
}
