package chain

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"
	"slices"
	"strings"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/content"
	"gateway/shared/guard/judge"
)

// CheckRegistry prepares hooks. It is immutable and shared.
type CheckRegistry struct {
	factories map[string]judge.Maker
}

// NewCheckRegistry returns a kit for the registered checks.
func NewCheckRegistry(makers map[string]judge.Maker) *CheckRegistry { return &CheckRegistry{makers} }

// Hook is a guardrail that is ready to run. It is immutable and shared between requests.
type Hook struct {
	ID      string
	Label   string // name of the guardrail in messages
	Mutator bool
	guard.Actions
	feedback    struct{ success, fail *guard.Feedback }
	checks      []check
	print       [sha256.Size]byte
	local       bool // no check calls another service
	judgesTypes bool // a check judges request types, so the hook also runs for pass-through
}

// check is one check of a hook with its function.
type check struct {
	id               string
	run              judge.Func
	parameters       map[string]json.RawMessage
	phase            guard.Phase
	scope            content.Scope
	failOnError      bool
	failUnlessEmpty  bool // an error fails the check, unless there was nothing to judge
	failUnlessOutage bool // an error fails the check, unless it is an outage: see judge.Failure.FailsClosed
	soft             bool
	local            bool
	mutates          bool
	reach            guard.MatchWindow
	saved            bool
}

// Prepare prepares a hook.
func (k *CheckRegistry) Prepare(h *guard.Hook) *Hook {
	out := &Hook{ID: h.ID, Label: h.Label, Mutator: h.Mutator, Actions: h.Actions, local: true}
	if raw, err := json.Marshal(h); err == nil {
		out.print = sha256.Sum256(raw)
	}
	if h.OnSuccess {
		out.feedback.success = &out.Actions.OnSuccess.Feedback
	}
	if h.OnFail {
		out.feedback.fail = &out.Actions.OnFail.Feedback
	}
	for i := range h.Checks {
		if a := &h.Checks[i]; a.Enabled {
			c := k.check(a, h)
			out.local = out.local && c.local
			out.judgesTypes = out.judgesTypes || c.id == requestTypeCheck
			out.checks = append(out.checks, c)
		}
	}
	return out
}

func (k *CheckRegistry) check(a *guard.Applied, h *guard.Hook) check {
	params := a.Parameters
	if len(h.Credentials) > 0 || len(a.Forward) > 0 {
		params = maps.Clone(params)
		if len(h.Credentials) > 0 {
			params["credentials"] = h.Credentials
		}
		if len(a.Forward) > 0 {
			if names, err := json.Marshal(a.Forward); err == nil {
				params["forwardHeaders"] = names
			}
		}
	}
	c := check{
		id: a.ID, parameters: params, phase: guard.Both, scope: content.Scope(member[string](params, "scope")),
		failOnError: member[bool](params, "failOnError"), soft: member[bool](params, "soft_deny_200"), local: true, saved: h.Stored,
	}
	row, ok := guard.Find(a.ID)
	if ok {
		c.phase, c.local, c.mutates = row.Phase, row.Category == guard.Basic || row.Category == guard.Model, row.Mutates
	}
	_, set := params["failOnError"]
	c.failUnlessEmpty = h.Actions.Deny && c.local && !set
	c.failUnlessOutage = h.Actions.Deny && !set
	if c.runs(guard.After) {
		c.reach = reachOf(a.ID, params)
	}
	// The effect of an unknown parameter is unknown, so a hook that denies rejects the request;
	// other hooks run without it.
	if unknown := unknownOf(row, a.Parameters); unknown != nil && h.Actions.Deny {
		wrong := judge.Failed(judge.ParameterError, "The check "+a.ID+" has no parameter "+strings.Join(unknown, ", ")+"; save the guardrail without it")
		c.run, c.failOnError = func(context.Context, *judge.Subject) judge.Verdict { return wrong }, true
		return c
	}
	// A check in a request was not validated when it was saved: without its address or its keys
	// it would pass every request as if its service were down.
	if lacks := lacksOf(row, a.Parameters); lacks != nil && !c.local && !h.Stored {
		wrong := judge.Failed(judge.ParameterError, "The check "+a.ID+" cannot run: "+lacks[0].Field+" "+lacks[0].Message)
		c.run = func(context.Context, *judge.Subject) judge.Verdict { return wrong }
		return c
	}
	if make := k.factories[a.ID]; make != nil {
		c.run = make(params)
		return c
	}
	// The check is not available in this installation: the hook passes or, if it denies,
	// rejects the request.
	missing := judge.Failed("NotAvailable", "This installation does not run the check "+a.ID)
	c.run, c.failOnError = func(context.Context, *judge.Subject) judge.Verdict { return missing }, c.failOnError || h.Actions.Deny
	return c
}

func unknownOf(row *guard.Check, params map[string]json.RawMessage) []string {
	if row == nil {
		return nil // the maker of an unknown check validates its parameters
	}
	return row.Unknown(params)
}

func lacksOf(row *guard.Check, params map[string]json.RawMessage) []fault.Detail {
	if row == nil {
		return nil
	}
	return row.MissingParameters(params)
}

func member[T any](params map[string]json.RawMessage, name string) (v T) {
	_ = json.Unmarshal(params[name], &v)
	return v
}

// reachOf returns how much of a stream a check must see at once. Unknown checks, checks that
// call another service, checks that require something, and checks that weigh the entire text
// judge the complete text.
//
// The matches of local scanners have no length limit. But a match stays a match however the
// text continues, so they judge each piece together with everything before it.
func reachOf(id string, params map[string]json.RawMessage) guard.MatchWindow {
	whole, not := guard.MatchWindow{Complete: true}, member[bool](params, "not")
	switch id {
	case "default.regexReplace":
		return guard.PatternWindow(member[string](params, "rule"), true)
	case "default.regexMatch":
		if not {
			return guard.PatternWindow(member[string](params, "rule"), false)
		}
	case "default.contains":
		if member[string](params, "operator") == "none" {
			return guard.WordsWindow(member[[]string](params, "words"))
		}
	case "default.alluppercase", "default.alllowercase":
		if !not {
			return guard.MatchWindow{Most: 1}
		}
	case "gateway.pii", "gateway.secrets", "gateway.profanity", "gateway.promptInjection", "gateway.moderateContent", "gateway.invisibleUnicode", "gateway.systemPromptLeak":
		if !not {
			return guard.MatchWindow{Most: 1, WholeWords: true, Cumulative: true}
		}
	}
	return whole
}

// fails reports whether an error of the check makes its hook fail.
func (c *check) fails(v *judge.Verdict) bool {
	return c.failOnError || c.failUnlessEmpty && !v.Nothing || c.failUnlessOutage && v.Err != nil && v.Err.FailsClosed()
}

// Reads reports whether a check of the hook judges bodies and not only request types.
func (h *Hook) Reads() bool {
	for i := range h.checks {
		if h.checks[i].id != requestTypeCheck {
			return true
		}
	}
	return false
}

// requestTypeCheck is the check that judges only the request type.
const requestTypeCheck = "default.allowedRequestTypes"

// Blocks returns the first hook that rejects a body which it cannot read: one that denies,
// judges bodies and does not exempt the route. It returns nil if there is none. A nil exempts
// exempts nothing.
func (hs Hooks) Blocks(exempts func(names []string) bool) *Hook {
	for _, h := range hs {
		if h.Deny && !h.Async && h.Reads() && (exempts == nil || !exempts(h.Actions.Unread)) {
			return h
		}
	}
	return nil
}

// Decide reports whether a hook denies, or has a check that can change texts.
func (hs Hooks) Decide() bool {
	return slices.ContainsFunc(hs, func(h *Hook) bool {
		return h.Deny || slices.ContainsFunc(h.checks, func(c check) bool { return !c.local || c.mutates })
	})
}

// runs reports whether the check runs in a phase: some checks need a request.
func (c *check) runs(phase guard.Phase) bool {
	return phase == guard.Before || c.phase&guard.After != 0
}

// Streams returns when the hook judges a stream: as its actions configure; by default in a
// window if the hook denies and after the stream otherwise. A hook with a window holds the
// stream instead if one of its checks needs the entire response or more than its text, or if it
// denies softly: then nothing may be sent before the denial.
func (h *Hook) Streams() guard.When {
	when, soft := h.Actions.Stream, h.Soft
	if when == "" && h.Deny {
		when = guard.StreamWindow
	}
	if when != guard.StreamWindow {
		return cmp.Or(when, guard.StreamAfter)
	}
	for i := range h.checks {
		c := &h.checks[i]
		soft = soft || c.soft
		if c.reach.Complete || c.scope != "" && c.scope != content.LastMessage && c.scope != content.AllMessages {
			return guard.StreamHold
		}
	}
	if soft && h.Actions.Stream == "" {
		return guard.StreamHold
	}
	return guard.StreamWindow
}

// MatchWindow returns how the hook's window sees a stream: how many characters at once (as configured,
// or more if a check needs more), whether pieces end with words, and whether they are judged
// with everything before them.
func (h *Hook) MatchWindow() guard.MatchWindow {
	w := guard.MatchWindow{Most: h.Actions.Window}
	if w.Most == 0 {
		w.Most = guard.StandardWindow
	}
	for i := range h.checks {
		w = w.And(h.checks[i].reach)
		w.Overlap = max(w.Overlap, h.checks[i].reach.Most, 1)
	}
	return w
}

// Clean reports whether all checks of local hooks pass a text of a response unchanged. It
// produces no results and is therefore much cheaper than Run for the pieces of a stream. If it
// returns false, Run must decide.
func (hs Hooks) Clean(ctx context.Context, c *Call, text string) (clean bool) {
	if c.Budget == nil || !hs.Local() {
		return false
	}
	defer func() {
		if recover() != nil {
			clean = false
		}
	}()
	_ = c.Budget.Spend(ctx, func(ctx context.Context) {
		s := judge.Subject{
			Phase: guard.After, Kind: c.Kind, Provider: c.Provider, Model: c.Model, Stream: c.Stream, Status: c.Status, TraceID: c.TraceID,
			Texts: []string{text}, Request: c.Request, Metadata: c.Metadata, Headers: c.Headers,
		}
		for _, h := range hs {
			for i := range h.checks {
				k := &h.checks[i]
				if s.Parameters, s.Saved = k.parameters, k.saved; !k.runs(guard.After) || k.reach.Complete {
					return
				}
				if v := k.run(ctx, &s); !v.Pass || v.Err != nil || v.Texts != nil || v.Body != nil {
					return
				}
			}
		}
		clean = true
	})
	return clean
}

// each runs a local check separately on every choice of a response: a text that is missing in
// one choice is not compensated by another, and counts are not added. The result is that of the
// worst choice, with the changes of all. Without choices, it runs the check once.
func (c *check) each(ctx context.Context, s *judge.Subject, choices []content.Choice) judge.Verdict {
	if len(choices) == 0 {
		return c.run(ctx, s)
	}
	var worst judge.Verdict
	var texts []*string
	for i, choice := range choices {
		one := *s
		one.Texts, one.ToolCalls = s.Texts[choice.From:choice.To], choice.ToolCalls
		v := c.run(ctx, &one)
		if v.Texts != nil {
			if texts == nil {
				texts = make([]*string, len(s.Texts))
			}
			copy(texts[choice.From:choice.To], v.Texts)
		}
		if i == 0 || c.severity(&v) > c.severity(&worst) {
			worst = v
		}
	}
	worst.Texts = texts
	return worst
}

// severity orders verdicts: nothing to judge, pass, passing error, failure.
func (c *check) severity(v *judge.Verdict) int {
	switch {
	case v.Err == nil && !v.Pass, v.Err != nil && c.fails(v):
		return 3
	case v.Err != nil && !v.Nothing:
		return 2
	case v.Err == nil:
		return 1
	}
	return 0
}
