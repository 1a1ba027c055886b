package guarded

import (
	"encoding/json"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/said"
	"gateway/shared/guard/window"
	"gateway/shared/wire"
)

// Shape is how the client reads answers.
type Shape struct {
	Client  chat.Spoken
	Options chat.Options
	Traits  *chat.Traits
}

// OnItsWay tells whether a stream is judged or changed on its way.
func (s *State) OnItsWay() bool { return s.Taken.Any() || s.hooks.onTheWay() }

// JudgesEnd tells whether hooks judge a stream once it has ended.
func (s *State) JudgesEnd() bool { return s.On && s.hooks.atTheEnd() }

// Decoder gives a decoder whose stream is judged on its way.
func (s *State) Decoder(dec chat.StreamDecoder, shape Shape) chat.StreamDecoder {
	if hooks := s.hooks.by(guard.StreamWindow); len(hooks) > 0 {
		dec = window.Texts(dec, reach(hooks), s.pieces(hooks), func() *fault.Fault { return s.Verdict.deny(false) })
	}
	if hooks := s.hooks.by(guard.StreamHold); len(hooks) > 0 {
		dec = window.Whole(dec, func(whole *chat.Response) (*chat.Response, *fault.Fault) { return hold(s, hooks, whole, shape) })
	}
	return dec
}

// reach is how much of a stream hooks must see at once.
func reach(hooks chain.Hooks) (r guard.Reach) {
	for _, h := range hooks {
		r = r.And(h.Sees())
	}
	return r
}

// pieces judges pieces of a stream. The pieces have one result for each hook: that of the
// first piece that fails, otherwise that of the last one that was not clean, or of the
// first.
func (s *State) pieces(hooks chain.Hooks) window.Judge {
	first, noted := len(s.Results.After), len(s.Notes.list)
	return func(text string) (string, *fault.Fault) {
		if len(s.Results.After) > first && hooks.Clean(s.ctx, &s.call, text) {
			return text, nil // the results of the pieces before stay as they are
		}
		c := s.call
		c.Shape, c.Status = "complete", 200
		c.Response = append(wire.AppendJSONString([]byte(`{"choices":[{"text":`), text), `}]}`...)
		o := untold(hooks.Run(s.ctx, guard.After, &c))
		if len(s.Results.After) == first {
			s.Results.After = append(s.Results.After, o.Results...)
			s.Notes.add(o.Results, guard.After, s.target)
		} else {
			for i := range o.Results {
				have := &s.Results.After[first+i]
				changed := have.Transformed || o.Results[i].Transformed
				if have.Verdict {
					*have = o.Results[i]
				}
				have.Transformed = changed
				s.Notes.list[noted+i] = note(have, guard.After, s.target)
			}
		}
		s.Verdict.failed = s.Verdict.failed || o.Failed
		switch {
		case o.Denied:
			return "", s.Verdict.deny(false)
		case o.Body == nil:
			return text, nil
		}
		var now struct {
			Choices []struct{ Text string }
		}
		if json.Unmarshal(o.Body, &now) != nil || len(now.Choices) != 1 {
			return "", s.Verdict.deny(false) // what was changed cannot be told
		}
		return now.Choices[0].Text, nil
	}
}

// untold removes what checks quote of a text: it must not reach the client in that way.
func untold(o chain.Outcome) chain.Outcome {
	for i := range o.Results {
		for j := range o.Results[i].Checks {
			o.Results[i].Checks[j].Data = nil
		}
	}
	return o
}

// hold judges a whole stream.
func hold(s *State, hooks chain.Hooks, whole *chat.Response, shape Shape) (*chat.Response, *fault.Fault) {
	o := shape.Options
	s.call.Response, s.call.Status = shape.Client.EncodeResponse(nil, whole, &o), 200
	if h := hooks.Blocks(s.exempts); h != nil && said.Unread(s.call.Kind, s.call.Response, true) {
		return nil, unread(h, "all of the response")
	}
	out := untold(hooks.Run(s.ctx, guard.After, &s.call))
	s.Results.After = append(s.Results.After, out.Results...)
	s.Notes.add(out.Results, guard.After, s.target)
	s.Verdict.failed = s.Verdict.failed || out.Failed
	switch {
	case out.Denied:
		return nil, s.Verdict.deny(out.Soft)
	case out.Body == nil:
		return nil, nil
	}
	now, err := shape.Client.DecodeResponse(out.Body, shape.Traits)
	if err != nil {
		return nil, s.Verdict.deny(false) // what was changed cannot be told
	}
	now.Usage, now.Billed, now.Served = whole.Usage, whole.Billed, whole.Served
	return now, nil
}

// End runs the hooks that judge a stream once it has ended. They tell what they think
// of it; all of it has been sent.
func (s *State) End(answer []byte) {
	s.call.Response, s.call.Status = answer, 200
	if len(s.hooks.outBeside) > 0 {
		runAside(s, s.hooks.outBeside, guard.After)
	}
	o := s.hooks.by(guard.StreamAfter).Run(s.ctx, guard.After, &s.call)
	s.Verdict.spoiled = s.Verdict.spoiled || o.Failed || o.Denied || o.Body != nil
	s.Results.After = append(s.Results.After, o.Results...)
	s.Notes.add(o.Results, guard.After, s.target)
}
