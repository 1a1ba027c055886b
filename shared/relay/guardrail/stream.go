package guardrail

import (
	"encoding/json"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/content"
	"gateway/shared/guard/window"
	"gateway/shared/wire"
)

// Shape is the dialect in which the client reads responses.
type Shape struct {
	Client  chat.TwoWayDialect
	Options chat.Options
	Traits  *chat.Traits
}

// JudgesStream reports whether a stream is judged or changed while it is forwarded.
func (s *State) JudgesStream() bool { return s.Masked.Any() || s.hooks.onTheWay() }

// JudgesEnd reports whether hooks judge a stream once it has ended.
func (s *State) JudgesEnd() bool { return s.Enabled && s.hooks.atTheEnd() }

// Decoder returns a decoder for a stream that is judged while it is forwarded.
func (s *State) Decoder(dec chat.StreamDecoder, shape Shape) chat.StreamDecoder {
	if hooks := s.hooks.by(guard.StreamWindow); len(hooks) > 0 {
		p := newPassing(s, hooks)
		dec = window.Texts(dec, reach(hooks), p.text, p.elements(shape), func() *fault.Fault { return s.Verdict.deny(false, s.Results.After[p.first:]) })
	}
	if hooks := s.hooks.by(guard.StreamHold); len(hooks) > 0 {
		dec = window.JudgeComplete(dec, func(whole *chat.Response) (*chat.Response, *fault.Fault) { return hold(s, hooks, whole, shape) })
	}
	return dec
}

// reach returns how much of a stream hooks must see at a time.
func reach(hooks chain.Hooks) (r guard.MatchWindow) {
	for _, h := range hooks {
		r = r.And(h.MatchWindow())
	}
	return r
}

// passing runs hooks on the parts of a stream as they arrive. The parts have one result for each
// hook: that of the first part that fails, otherwise that of the last one that was not clean, or
// of the first.
type passing struct {
	state        *State
	hooks        chain.Hooks
	first, noted int // indexes of its first results
}

func newPassing(s *State, hooks chain.Hooks) *passing {
	return &passing{s, hooks, len(s.Results.After), len(s.Entries.list)}
}

// run runs the hooks on a part, in the format of a completion.
func (p *passing) run(part []byte) (now []byte, denied *fault.Fault) {
	s, c := p.state, p.state.call
	c = c.WithPart(part)
	o := untold(p.hooks.Run(s.ctx, guard.After, &c))
	if len(s.Results.After) == p.first {
		s.output(&o)
	} else {
		for i := range o.Results {
			have := &s.Results.After[p.first+i]
			*have = have.Then(o.Results[i])
			s.Entries.list[p.noted+i] = note(have, guard.After, s.target)
		}
	}
	if s.Verdict.add(&o); o.Denied {
		return nil, s.Verdict.deny(false, o.Results)
	}
	return o.Body, nil
}

// text judges a piece of a text.
func (p *passing) text(text string) (string, *fault.Fault) {
	if len(p.state.Results.After) > p.first && p.hooks.Clean(p.state.ctx, &p.state.call, text) {
		return text, nil // the results of the earlier pieces remain
	}
	body, denied := p.run(append(wire.AppendJSONString([]byte(`{"choices":[{"text":`), text), `}]}`...))
	if denied != nil || body == nil {
		return text, denied
	}
	var now struct {
		Choices []struct{ Text string }
	}
	if json.Unmarshal(body, &now) != nil || len(now.Choices) != 1 {
		return "", p.state.Verdict.deny(false, p.state.Results.After[p.first:]) // the changed text cannot be read
	}
	return now.Choices[0].Text, nil
}

// element judges a part that is not text. Most parts have no string that is judged.
func (p *passing) element(part []byte) (now []byte, denied *fault.Fault) {
	if f := unreadBody(p.hooks, p.state.exempts, p.state.call.Kind, part, true, "all of the response"); f != nil {
		return nil, f
	}
	if found := content.InResponse(p.state.call.Kind, part, content.LastMessage); len(found.Texts) == 0 {
		return nil, nil
	}
	return p.run(part)
}

// elements judges the content of a stream other than text.
func (p *passing) elements(shape Shape) window.Elements {
	return window.Elements{Support: shape.Client.Support(&shape.Options), Origin: shape.Options.Origin, Judge: p.element}
}

// untold removes the text that checks quote: it must not reach the client in the hook results.
func untold(o chain.Outcome) chain.Outcome {
	o.Results = chain.Unquoted(o.Results)
	return o
}

// hold judges a complete stream.
func hold(s *State, hooks chain.Hooks, whole *chat.Response, shape Shape) (*chat.Response, *fault.Fault) {
	o := shape.Options
	whole.Attribute(o.Origin)
	s.call = s.call.WithResponse(shape.Client.EncodeResponse(nil, whole, &o))
	if f := unreadBody(hooks, s.exempts, s.call.Kind, s.call.Response, true, "all of the response"); f != nil {
		return nil, f
	}
	out := untold(hooks.Run(s.ctx, guard.After, &s.call))
	s.output(&out)
	s.Verdict.add(&out)
	switch {
	case out.Denied:
		return nil, s.Verdict.deny(out.Soft, out.Results)
	case out.Body == nil:
		return nil, nil
	}
	now, err := shape.Client.DecodeResponse(out.Body, shape.Traits)
	if err != nil {
		return nil, s.Verdict.deny(false, out.Results) // the changed response cannot be encoded
	}
	now.Usage, now.Billed, now.PriceFacts = whole.Usage, whole.Billed, whole.PriceFacts
	return now, nil
}

// End runs the hooks that judge a stream once it has ended. They only report, because all of it
// has been sent.
func (s *State) End(answer []byte) {
	s.call = s.call.WithResponse(answer)
	if len(s.hooks.outBeside) > 0 {
		runAside(s, s.hooks.outBeside, guard.After)
	}
	o := s.hooks.by(guard.StreamAfter).Run(s.ctx, guard.After, &s.call)
	s.Verdict.addSent(&o)
	s.output(&o)
}

// StatusFailed is the status of a successful response for which a non-denying guardrail has
// failed.
const StatusFailed = 246

// Verdict holds the decisions of a target's guardrails so far, on input and output. The zero
// value allows everything.
type Verdict struct {
	failed   bool // on input or output
	failedIn bool // on input
	denied   bool
	soft     bool // the denial is sent as a normal response
	spoiled  bool // a stream that was sent would have been denied or changed
}

// deny records a denial by results, and returns the error for the client.
func (v *Verdict) deny(soft bool, results []chain.Result) *fault.Fault {
	v.denied, v.soft = true, soft
	status := 0
	if soft {
		status = http.StatusOK
	}
	return &fault.Fault{Code: fault.GuardrailDenied, Message: chain.Denial(results), StatusCode: status}
}

// add records the outcome of output hooks that deny nothing.
func (v *Verdict) add(o *chain.Outcome) { v.failed = v.failed || o.Failed }

// addSent records the outcome of hooks on a stream that was sent.
func (v *Verdict) addSent(o *chain.Outcome) {
	v.spoiled = v.spoiled || o.Failed || o.Denied || o.Body != nil
}

// again clears the decisions on output.
func (v *Verdict) again() { v.failed, v.denied, v.soft = v.failedIn, false, false }

// Status returns the status of a response.
func (v *Verdict) Status(status int) int {
	if status >= 200 && status <= 299 && v.failed {
		return StatusFailed
	}
	return status
}

// Failed reports whether a non-denying guardrail has failed.
func (v *Verdict) Failed() bool { return v.failed }

// Passed reports whether the response may be cached for requests with the same guardrails: none
// has failed, including those that judge a stream once it has ended.
func (v *Verdict) Passed() bool { return !v.failed && !v.denied && !v.spoiled }

// Denied reports whether a guardrail denied, and soft whether the denial is sent as a normal
// response.
func (v *Verdict) Denied() (refused, soft bool) { return v.denied, v.soft }

// unread returns the error for content that a denying guardrail cannot read.
func unread(h *chain.Hook, what string) *fault.Fault {
	return fault.Newf(fault.GuardrailUnread, "", "The guardrail %q can deny requests, but cannot read %s. Send it as JSON or as a form of at most 8 MiB, or list the request type or the path in the guardrail's allow_unread", h.ID, what)
}

// unreadBody returns the error for a body that one of the hooks must read and cannot; nil if
// there is none. what names the body, answer says that it is a response.
func unreadBody(hooks chain.Hooks, exempts func(names []string) bool, kind string, body []byte, answer bool, what string) *fault.Fault {
	h := hooks.Blocks(exempts)
	if h == nil {
		return nil
	}
	field, is := content.HasUnreadable(kind, body, answer)
	switch {
	case !is:
		return nil
	case field == "":
		return unread(h, what)
	}
	return fault.Newf(fault.GuardrailUnread, field, "The guardrail %q can deny requests, but cannot read the token ids of this field. Send the text, or list the request type or the path in the guardrail's allow_unread", h.ID)
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
	if h := s.hooks.out.Blocks(s.exempts); h != nil && doc.Unreadable {
		return nil, unread(h, "all of the response")
	}
	f := s.Output(doc.JSON)
	changed, made := s.Changed, s.Response
	s.Response = nil
	switch {
	case f != nil:
		return nil, f
	case !changed:
		return body, nil
	case doc.IsBody:
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
