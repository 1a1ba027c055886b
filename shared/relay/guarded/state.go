package guarded

import (
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/judge"
	"gateway/shared/guard/scan/mask"
	"gateway/shared/relay/admitted"
	"gateway/shared/relay/chosen"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
	"gateway/shared/usage"
)

// StatusFailed is that of a good answer of which a guardrail that does not deny has
// failed.
const StatusFailed = 246

// Noted is what the record tells of one hook.
type Noted = usage.Guard

// State is what the guardrails of a request know. The zero value has none.
type State struct {
	On      bool // the target that is tried has guardrails
	Results chain.Results
	// Sent is what guardrails made of the body for the target that was tried last;
	// nil: nothing.
	Sent []byte
	// Answer is the answer in the client's shape, as guardrails left it; nil where
	// they were not shown one.
	Answer  []byte
	Changed bool     // guardrails changed the answer
	Names   []string // of the guardrails of the target

	means     *Means
	live      *Live // of a session
	in, out   chain.Hooks
	outBeside chain.Hooks
	call      chain.Call
	failed    bool // of this target, before it or behind it
	failedIn  bool
	denied    bool
	spoiled   bool // a stream that has been sent would have been refused or changed
	soft      bool
	restore   mask.Restorer
	headers   http.Header
	notes     []Noted
	aside     *aside
	target    string
	request   string
	ctx       context.Context
}

// Fresh forgets the target before.
func (s *State) Fresh() {
	if !s.On {
		return
	}
	*s = State{means: s.means, notes: s.notes, aside: s.aside}
}

// kinds are the types of requests whose bodies have texts, and whether their answers
// do. The others are judged by their type alone.
var kinds = map[string]bool{
	"chatComplete": true, "complete": true, "messages": true, "createModelResponse": true,
	"embed": false, "moderate": false, "rerank": false, "imageGenerate": false, "createSpeech": false,
}

// Input runs the guardrails before a target. changed is what they make of the body for
// it; nil: nothing. fetch gets images for it.
func (s *State) Input(m *Means, t *chosen.Target, leaf *route.Leaf, body []byte, fetch judge.Fetch) (changed []byte, err error) {
	s.On, s.means, s.target, s.request, s.ctx = true, m, leaf.Path, t.ULID, t.Ctx
	if err := s.gather(t.Ctx, m, &t.Caller, leaf, t.Route.Endpoint); err != nil {
		return nil, err
	}
	s.call = m.callOf(t)
	s.call.Request, s.call.Fetch = body, fetch
	answers, texts := kinds[t.Route.Endpoint]
	s.call.Passed = t.Route.Shape != routes.Unified || !texts || len(body) == 0
	live := t.Route.Shape == routes.Socket
	if (!answers || s.call.Passed) && t.Route.Retold == nil && !live {
		s.out, s.outBeside = nil, nil
	}
	beside, in := s.in.Apart(s.call.Kind)
	s.in = in
	s.Names = slices.Concat(in.Names(), beside.Names(), s.out.Names(), s.outBeside.Names())
	if live { // they judge what is said in the session, not its upgrade
		s.out, s.outBeside = nil, nil
	}
	if t.Rehearsing {
		s.in = in.Here() // nothing is sent
	} else if len(beside) > 0 {
		s.runAside(beside, guard.Before)
	}
	o := s.in.Run(t.Ctx, guard.Before, &s.call)
	s.Results.Before, s.headers = o.Results, o.Headers
	s.note(o.Results, guard.Before)
	if len(o.Restore) > 0 {
		s.restore.Add(o.Restore)
	}
	s.failed, s.failedIn = o.Failed, o.Failed
	if o.Denied {
		return nil, s.denial(o.Soft && answers)
	}
	if o.Body != nil {
		s.Sent, s.call.Request = o.Body, o.Body
	}
	if made := t.Route.Retold; made != nil {
		// Nobody knows the request any more that the answer was made for.
		s.call.Kind, s.call.Passed, s.call.Request = made.Endpoint, false, nil
	}
	return o.Body, nil
}

// gather finds the hooks of a target that hold for a caller's requests of a kind.
func (s *State) gather(ctx context.Context, m *Means, who *admitted.Caller, leaf *route.Leaf, kind string) error {
	made := m.ofLeaf(leaf)
	input, output := who.WS.Guardrails(who.Org)
	var err error
	if s.in, err = m.hooks(ctx, who, made.input, input); err != nil {
		return err
	}
	out, err := m.hooks(ctx, who, made.output, output)
	if err != nil {
		return err
	}
	s.outBeside, s.out = out.Apart(kind)
	return nil
}

func (s *State) runAside(hooks chain.Hooks, phase guard.Phase) {
	if s.aside == nil {
		s.aside = new(aside)
	}
	s.aside.run(s.means, s.ctx, hooks, phase, s.call, s.target, s.request)
}

// denial is what the client is told.
func (s *State) denial(soft bool) *fault.Fault {
	s.denied, s.soft = true, soft
	f := fault.New(fault.GuardrailDenied, "", Denied)
	if soft {
		f.StatusCode = http.StatusOK
	}
	return f
}

// Denied is the message of a denial.
const Denied = "The guardrail checks defined in the config failed. You can find more information in the `hook_results` object."

// Headers are what checks add to the request to the target; one without values is taken
// out of it.
func (s *State) Headers() http.Header { return s.headers }

// Again forgets what the hooks behind an answer said: the target is called once more.
func (s *State) Again() {
	s.Results.After, s.Answer, s.Changed, s.failed, s.denied, s.soft = nil, nil, false, s.failedIn, false, false
}

// Output runs the guardrails behind a whole answer, in the client's shape, as far as
// they are for it.
func (s *State) Output(answer []byte) *fault.Fault {
	s.Answer = answer
	return s.judge(s.out, answer)
}

// Outputs tells whether guardrails judge the answer.
func (s *State) Outputs() bool { return s.On && len(s.out)+len(s.outBeside) > 0 }

func (s *State) judge(hooks chain.Hooks, answer []byte) *fault.Fault {
	s.call.Response, s.call.Status = answer, http.StatusOK
	if len(s.outBeside) > 0 {
		s.runAside(s.outBeside, guard.After)
	}
	o := hooks.Run(s.ctx, guard.After, &s.call)
	s.Results.After = append(s.Results.After, o.Results...)
	s.note(o.Results, guard.After)
	if s.failed = s.failed || o.Failed; o.Denied {
		s.Answer = nil
		return s.denial(o.Soft)
	}
	if o.Body != nil {
		s.Answer, s.Changed = o.Body, true
	}
	return nil
}

// Status is that of an answer.
func (s *State) Status(status int) int {
	if status == http.StatusOK && s.failed {
		return StatusFailed
	}
	return status
}

// Failed tells whether a guardrail that does not deny has failed.
func (s *State) Failed() bool { return s.failed }

// Passed tells whether the answer may be used again for others whom the same guardrails
// judge: none has failed, also of those that look at a stream once it has ended.
func (s *State) Passed() bool { return !s.failed && !s.denied && !s.spoiled }

// Print tells apart the guardrails behind the answer; empty where there are none. Those
// that run beside the request decide nothing.
func (s *State) Print() string { return s.out.Print() }

// Refused tells whether a guardrail denied, and soft whether that is told as an answer.
func (s *State) Refused() (refused, soft bool) { return s.denied, s.soft }

// Restores tells whether values are put back into the answer.
func (s *State) Restores() bool { return s.On && !s.restore.Empty() }

// Restored is an answer with the values of the request in the place of their tokens.
func (s *State) Restored(answer []byte) []byte {
	if !s.Restores() {
		return answer
	}
	return s.restore.JSON(answer)
}

// Told is an answer with what the hooks said. after: those behind it count.
func (s *State) Told(answer []byte, after bool) []byte {
	if !s.On || s.Results.Empty() {
		return answer
	}
	return s.Results.Into(make([]byte, 0, len(answer)+1024), answer, after)
}

// note keeps what the record tells of hooks.
func (s *State) note(results []chain.Result, phase guard.Phase) {
	for i := range results {
		s.notes = append(s.notes, note(&results[i], phase, s.target))
	}
}

func note(r *chain.Result, phase guard.Phase, target string) Noted {
	n := Noted{Hook: r.ID, Phase: usage.GuardBefore, Path: target, Verdict: r.Verdict, Denied: r.Deny, Async: r.Async, Transformed: r.Transformed, TookMS: r.Time}
	if phase == guard.After {
		n.Phase = usage.GuardAfter
	}
	if f := r.Feedback; f != nil {
		n.Feedback = &usage.GuardFeedback{Value: f.Value, Weight: f.Weight, Metadata: "{}"}
		if raw, err := json.Marshal(f.Metadata); err == nil {
			n.Feedback.Metadata = string(raw)
		}
	}
	for i := range r.Checks {
		switch c := &r.Checks[i]; {
		case c.Error != nil:
			n.Errored = append(n.Errored, c.ID)
		case !c.Verdict:
			n.Failed = append(n.Failed, c.ID)
		}
	}
	return n
}

// Notes are what the record tells, of all targets that were tried. wait: those hooks
// are waited for that run beside the request.
func (s *State) Notes(wait bool) []Noted {
	if s.aside == nil {
		return s.notes
	}
	return append(s.notes, s.aside.end(wait)...)
}
