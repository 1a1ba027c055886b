package guarded

import (
	"context"
	"sync"

	"gateway/shared/guard"
	"gateway/shared/guard/chain"
)

// Live are the guardrails of a realtime session, which judge what is said while it runs.
// What they are shown has the shape of Responses: instructions and input, or output. It
// may be asked by several goroutines at once.
type Live struct {
	means           *Means
	call            chain.Call
	in, hold, after chain.Hooks
	beside, behind  chain.Hooks // whose outcome nobody waits for
	target, request string

	mu    sync.Mutex
	notes []Noted
	aside aside
}

// Word is what guardrails say of what is said.
type Word struct {
	Results        chain.Results
	Denied, Failed bool
	Body           []byte // changed; nil: it stays
}

// goesLive keeps the hooks of a session for what is said in it: they are not for the
// upgrade.
func (s *State) goesLive(beside chain.Hooks) {
	l := &Live{means: s.means, call: s.call, in: s.in, beside: beside, behind: s.outBeside, target: s.target, request: s.request}
	for _, h := range s.out {
		if h.Streams() == guard.StreamAfter {
			l.after = append(l.after, h)
		} else {
			l.hold = append(l.hold, h)
		}
	}
	l.call.Headers, l.call.Passed, l.call.Stream, l.call.Request = s.call.Headers.Clone(), false, true, nil
	s.out, s.outBeside = nil, nil
	if len(l.in)+len(l.beside)+len(l.hold)+len(l.after)+len(l.behind) > 0 {
		s.live = l
	}
}

// Live are the guardrails of the session that was opened; nil where there are none.
func (s *State) Live() *Live { return s.live }

// Hears tells whether something judges what clients say.
func (l *Live) Hears() bool { return len(l.in)+len(l.beside) > 0 }

// Holds tells whether an answer is judged before it is sent.
func (l *Live) Holds() bool { return len(l.hold) > 0 }

// Judges tells whether something judges answers at all.
func (l *Live) Judges() bool { return len(l.hold)+len(l.after)+len(l.behind) > 0 }

// Said judges what a client has said.
func (l *Live) Said(ctx context.Context, body []byte) Word {
	c := l.call
	c.Request = body
	l.apart(ctx, l.beside, guard.Before, c)
	o := l.in.Run(ctx, guard.Before, &c)
	l.note(o.Results, guard.Before)
	return Word{chain.Results{Before: o.Results}, o.Denied, o.Failed, o.Body}
}

// Held judges an answer of which nothing was sent. about is what the session was told to
// do.
func (l *Live) Held(ctx context.Context, about, answer []byte) Word {
	o := untold(l.run(ctx, l.hold, about, answer))
	return Word{chain.Results{After: o.Results}, o.Denied, o.Failed, o.Body}
}

// Over judges an answer that was sent: it tells, and changes nothing.
func (l *Live) Over(ctx context.Context, about, answer []byte) Word {
	c := l.call
	c.Request, c.Response, c.Status = about, answer, 200
	l.apart(ctx, l.behind, guard.After, c)
	o := l.run(ctx, l.after, about, answer)
	return Word{Results: chain.Results{After: o.Results}, Failed: o.Failed || o.Denied}
}

func (l *Live) run(ctx context.Context, hooks chain.Hooks, about, answer []byte) chain.Outcome {
	c := l.call
	c.Request, c.Response, c.Status = about, answer, 200
	o := hooks.Run(ctx, guard.After, &c)
	l.note(o.Results, guard.After)
	return o
}

func (l *Live) apart(ctx context.Context, hooks chain.Hooks, phase guard.Phase, c chain.Call) {
	if len(hooks) > 0 {
		l.aside.run(l.means, ctx, hooks, phase, c, l.target, l.request)
	}
}

func (l *Live) note(results []chain.Result, phase guard.Phase) {
	l.mu.Lock()
	defer l.mu.Unlock()
	for i := range results {
		l.notes = append(l.notes, note(&results[i], phase, l.target))
	}
}

// take gives what was noted since the last time.
func (l *Live) take() (notes []Noted) {
	l.mu.Lock()
	defer l.mu.Unlock()
	notes, l.notes = l.notes, nil
	return notes
}

// Heard has the record of a request tell what a session's guardrails have said since the
// last one.
func (s *State) Heard(l *Live) { s.notes = append(s.notes, l.take()...) }

// Ended has the record of the session tell what is left, also of those that ran beside.
func (s *State) Ended() {
	if s.live != nil {
		s.notes = append(append(s.notes, s.live.take()...), s.live.aside.end(true)...)
	}
}
