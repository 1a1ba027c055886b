package guardrail

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/judge"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/target"
	"gateway/shared/route"
	"gateway/shared/wire"
)

// State is the guardrail state of a request. The zero value has none.
type State struct {
	Enabled bool // the current target has guardrails
	Results chain.Results
	// Request is the body as guardrails last changed it, for this target or an earlier one, and
	// also if they denied it; nil if none changed it. It is what the log shows: nothing that
	// a guardrail has removed is stored.
	Request []byte
	// Response is the response in the client's format after guardrails; nil if they did not judge
	// one.
	Response []byte
	Changed  bool         // guardrails changed the response
	Names    []string     // of the guardrails of the target
	Verdict  Verdict      // on the target
	Masked   MaskedValues // from the request
	Entries  HookEntries  // of all targets that were tried
	Judged   Judged       // whether input guardrails have judged the request

	means   *Deps
	live    *Live // of a session
	hooks   found
	call    chain.Call
	exempts func(names []string) bool // reports whether a guardrail exempts the route
	headers http.Header
	target  string
	request string
	ctx     context.Context
	budget  *guard.Budget // of all targets
}

// ResetTarget clears the state of the previous target.
func (s *State) ResetTarget() {
	if !s.Enabled {
		return
	}
	*s = State{means: s.means, Entries: s.Entries, Judged: s.Judged, Request: s.Request, budget: s.budget}
}

// time returns the time that the local checks of the request share.
func (s *State) time() *guard.Budget {
	if s.budget == nil {
		s.budget = guard.NewBudget()
	}
	return s.budget
}

// Content is a guardrail's input from a request.
type Content struct {
	JSON       []byte // the body, or its representation; nil: there is none
	IsBody     bool   // JSON is the body itself, so that changes are sent
	Unreadable bool   // there is a body, or a part of one, that cannot be read
	Query      []byte // texts of the path and the query string as a JSON object; nil: there are none
	Judged     bool   // it was judged already: only the output guardrails are prepared
}

// silent are the types of requests with responses without model text: vectors, scores, audio,
// counts and states.
var silent = map[string]bool{
	"embed": true, "moderate": true, "createSpeech": true, "messagesCountTokens": true, "models": true,
	"uploadFile": true, "createBatch": true, "createFinetune": true,
}

// stored are the operations that return texts which a provider stores: messages of a
// conversation, and files that models wrote.
var stored = map[provider.Operation]bool{
	provider.ResponsesInputItems: true, provider.FilesContent: true, provider.BatchesOutput: true,
}

// answers reports whether guardrails judge the response of a route.
func answers(rt *routes.Route) bool {
	switch rt.BodyMode {
	case routes.Listing, routes.Socket:
		return false
	case routes.Resource:
		return rt.EarlierResponse != nil || stored[rt.Operation]
	}
	return !silent[rt.Endpoint]
}

// Input runs the guardrails before a target. changed is the body as they changed it; nil:
// unchanged. fetch gets images for it.
func (s *State) Input(m *Deps, t *target.Target, leaf *route.Leaf, body Content, fetch judge.Fetch) (changed []byte, err error) {
	s.Enabled, s.means, s.target, s.request, s.ctx = true, m, leaf.Path, t.Req.ULID, t.Req.Ctx
	if s.hooks, err = m.gather(t.Req.Ctx, &t.Req.Caller, leaf, t.Req.Route.Endpoint); err != nil {
		return nil, err
	}
	s.exempts = func(names []string) bool { return exempt(names, t.Req.Route.Endpoint, t.Body.RawPath()) }
	s.call = m.callOf(t, false, withQuery(body.JSON, body.Query), fetch, s.time())
	if live := t.Req.Route.BodyMode == routes.Socket; !answers(t.Req.Route) && !live {
		s.hooks = found{in: s.hooks.in}
	}
	beside, in := s.hooks.in.SplitAsync(s.call.Kind)
	if body.Judged {
		in, beside = nil, nil
	}
	s.Names = slices.Concat(in.Names(), beside.Names(), s.hooks.out.Names(), s.hooks.outBeside.Names())
	if t.Req.Route.BodyMode == routes.Socket { // they judge the content of the session, not its upgrade
		s.hooks = found{}
	}
	if h := in.Blocks(s.exempts); h != nil && body.Unreadable {
		return nil, unread(h, "all of this request")
	}
	if f := unreadBody(in, s.exempts, s.call.Kind, body.JSON, false, "all of this request"); f != nil {
		return nil, f
	}
	if h := s.hooks.out.Blocks(s.exempts); h != nil && t.Req.Route.Operation == provider.BatchesOutput {
		return nil, unread(h, "the rows of a batch that a provider runs")
	}
	if t.Req.DryRun {
		in = in.LocalOnly() // nothing is sent
	} else if len(beside) > 0 {
		runAside(s, beside, guard.Before)
	}
	// The verdict on the request is not needed once the client has disconnected.
	o := in.Run(admission.ClientContext(t.Body.Req), guard.Before, &s.call)
	if !body.Judged {
		s.Judged.complete(in)
	}
	changed, own := o.Body, body.IsBody
	if changed != nil && len(body.Query) > 0 {
		if now, ok := withoutQuery(changed, body.JSON, body.Query); ok {
			changed = now
		} else {
			own = false
		}
	}
	s.headers = o.Headers
	s.input(&o, changed)
	s.Verdict = Verdict{failed: o.Failed, failedIn: o.Failed}
	if o.Denied {
		return nil, s.Verdict.deny(o.Soft && answers(t.Req.Route), o.Results)
	}
	if changed != nil && !own {
		return nil, fault.New(fault.GuardrailUnread, "", "A guardrail redacted a text of this request, but a form, a path or a query string cannot be changed; remove the text")
	}
	if made := t.Req.Route.EarlierResponse; made != nil {
		// The request of this response is no longer known.
		s.call = s.call.ForResponses(made.Endpoint, nil)
	} else {
		s.call = s.call.ForResponses(s.call.Kind, s.call.Request)
	}
	return changed, nil
}

// input records the outcome of the input hooks; changed is the body as they changed it, or nil.
func (s *State) input(o *chain.Outcome, changed []byte) {
	s.Results = chain.Results{Before: o.Results}
	if changed != nil {
		s.Request, s.call = changed, s.call.WithRequest(changed)
	}
	s.Entries.add(o.Results, guard.Before, s.target)
	s.Masked.add(o.Restore)
}

// output records the outcome of output hooks.
func (s *State) output(o *chain.Outcome) {
	s.Results = s.Results.WithAfter(o.Results)
	s.Entries.add(o.Results, guard.After, s.target)
}

func runAside(s *State, hooks chain.Hooks, phase guard.Phase) {
	s.Entries.beside().run(s.means, s.ctx, hooks, phase, s.call, s.target, s.request)
}

// Headers returns the headers that checks add to the request to the target; one without values
// is removed from it.
func (s *State) Headers() http.Header { return s.headers }

// ResetOutput clears the results of the output hooks: the target is called once more.
func (s *State) ResetOutput() {
	s.Results, s.Response, s.Changed = chain.Results{Before: s.Results.Before}, nil, false
	s.Verdict.again()
}

// Output runs the output guardrails that apply on a complete response in the client's format.
func (s *State) Output(answer []byte) *fault.Fault {
	s.Response = answer
	return s.judge(s.hooks.out, answer)
}

// Outputs reports whether guardrails judge the response.
func (s *State) Outputs() bool { return s.Enabled && len(s.hooks.out)+len(s.hooks.outBeside) > 0 }

func (s *State) judge(hooks chain.Hooks, answer []byte) *fault.Fault {
	s.call = s.call.WithResponse(answer)
	if f := unreadBody(hooks, s.exempts, s.call.Kind, answer, true, "all of the response"); f != nil {
		s.Response = nil
		return f
	}
	if len(s.hooks.outBeside) > 0 {
		runAside(s, s.hooks.outBeside, guard.After)
	}
	o := hooks.Run(s.ctx, guard.After, &s.call)
	s.output(&o)
	s.Changed = o.Body != nil
	if s.Verdict.add(&o); o.Denied {
		s.Response = nil
		return s.Verdict.deny(o.Soft, o.Results)
	}
	if s.Changed {
		s.Response = o.Body
	}
	return nil
}

// Print returns a fingerprint of the output guardrails; empty if there are none. Asynchronous
// ones are not included, because they decide nothing.
func (s *State) Print() string { return s.hooks.out.Print() }

// WithResults returns a response with the hook results. after: those of output hooks are included.
func (s *State) WithResults(answer []byte, after bool) []byte {
	if !s.Enabled || s.Results.Empty() {
		return answer
	}
	return s.ClientResults().AppendTo(make([]byte, 0, len(answer)+1024), answer, after)
}

// ClientResults returns the results as the client gets them: those of a denial quote nothing.
func (s *State) ClientResults() *chain.Results {
	if s.Verdict.denied {
		return s.Results.Unquoted()
	}
	return &s.Results
}

// FirstEvent returns the first event of a stream, with the results of the input hooks, for
// clients that accept extensions of the schema.
func (s *State) FirstEvent(endpoint string, strict bool) []byte {
	if !s.Enabled || strict || len(s.Results.Before) == 0 {
		return nil
	}
	return event(endpoint, (&chain.Results{Before: s.Results.Before}).Append(nil, false))
}

// LastEvent returns the event that follows the terminal event of a stream, with the results of
// the output hooks.
func (s *State) LastEvent(endpoint string, strict bool) []byte {
	if !s.Enabled || strict || len(s.Results.After) == 0 {
		return nil
	}
	return event(endpoint, append(s.ClientResults().AppendAfter([]byte{'{'}), '}'))
}

// event returns one event of hook results. Where clients dispatch events by name, it has a name
// that other clients ignore.
func event(endpoint string, results []byte) []byte {
	switch endpoint {
	case "messages", "createModelResponse", "getModelResponse":
		return wire.AppendSSE(nil, "hook_results", append(append([]byte(`{"type":"hook_results","hook_results":`), results...), '}'))
	}
	return wire.AppendSSE(nil, "", append(append([]byte(`{"hook_results":`), results...), '}'))
}

// queryField is the field with the texts of a query string in a guardrail's input. It is added
// to the fields of a body, and is not sent.
const queryField = "query_parameters"

// withQuery returns a body with the texts of a query string, for guardrails.
func withQuery(body, query []byte) []byte {
	if len(query) == 0 {
		return body
	}
	out := append([]byte(`{"`+queryField+`":`), query...)
	switch rest := bytes.TrimLeft(body, " \t\r\n"); {
	case len(rest) == 0:
	case rest[0] != '{': // an array or a text
		out = append(append(out, `,"body":`...), rest...)
	default:
		if rest = bytes.TrimLeft(rest[1:], " \t\r\n"); len(rest) > 0 && rest[0] != '}' {
			out = append(out, ',')
		}
		return append(out, rest...)
	}
	return append(out, '}')
}

// withoutQuery returns a body with query texts after guardrails have changed it. ok is false if
// it cannot be sent in place of the body: they changed the query string, or the body is not an
// object.
func withoutQuery(changed, body, query []byte) (now []byte, ok bool) {
	var members map[string]json.RawMessage
	if wire.KindOf(bytes.TrimLeft(body, " \t\r\n")) != wire.KindObject || json.Unmarshal(changed, &members) != nil || !sameJSON(members[queryField], query) {
		return nil, false
	}
	prefix := withQuery(nil, query)
	if rest, ok := bytes.CutPrefix(changed, prefix[:len(prefix)-1]); ok { // all other bytes stay the same
		return append([]byte{'{'}, bytes.TrimPrefix(rest, []byte{','})...), true
	}
	delete(members, queryField)
	now, err := json.Marshal(members)
	return now, err == nil
}

// sameJSON reports whether two JSON values differ at most in white space.
func sameJSON(a, b []byte) bool {
	var x, y bytes.Buffer
	return json.Compact(&x, a) == nil && json.Compact(&y, b) == nil && bytes.Equal(x.Bytes(), y.Bytes())
}
