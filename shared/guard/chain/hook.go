package chain

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"maps"

	"gateway/shared/guard"
	"gateway/shared/guard/judge"
	"gateway/shared/guard/said"
)

// Kit makes hooks ready. It is shared and never changed.
type Kit struct {
	makers map[string]judge.Maker
}

// NewKit makes a kit of the register of checks.
func NewKit(makers map[string]judge.Maker) *Kit { return &Kit{makers} }

// Hook is a guardrail made ready. It is shared between requests and never changed.
type Hook struct {
	ID      string
	Mutator bool
	guard.Actions
	feedback struct{ success, fail *guard.Feedback }
	checks   []check
	print    [sha256.Size]byte
	local    bool // no check leaves this process
	typesOf  bool // a check looks at types of requests: pass-through is shown to it
}

// check is one check of a hook, with the function that was made for it.
type check struct {
	id          string
	run         judge.Func
	parameters  map[string]json.RawMessage
	phase       guard.Phase
	scope       said.Scope
	failOnError bool
	soft        bool
	local       bool
	mutates     bool
	whole       bool // it judges a text as a whole: no part of one
	reach       guard.Reach
	saved       bool
}

// Ready makes a hook ready.
func (k *Kit) Ready(h *guard.Hook) *Hook {
	out := &Hook{ID: h.ID, Mutator: h.Mutator, Actions: h.Actions, local: true}
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
			out.typesOf = out.typesOf || c.id == "default.allowedRequestTypes"
			out.checks = append(out.checks, c)
		}
	}
	return out
}

func (k *Kit) check(a *guard.Applied, h *guard.Hook) check {
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
		id: a.ID, parameters: params, phase: guard.Both, scope: said.Scope(member[string](params, "scope")),
		failOnError: member[bool](params, "failOnError"), soft: member[bool](params, "soft_deny_200"), local: true, whole: judgesWhole(a.ID, params), saved: h.Stored,
	}
	c.reach = reachOf(a.ID, params)
	c.whole = c.whole || c.reach.Whole
	if row, ok := guard.Find(a.ID); ok {
		c.phase, c.local, c.mutates = row.Phase, row.Category == guard.Basic || row.Category == guard.Model, row.Mutates
	}
	if make := k.makers[a.ID]; make != nil {
		c.run = make(params)
		return c
	}
	// Nobody here runs it: the hook passes or, where it denies, is refused.
	missing := judge.Failed("NotAvailable", "This installation does not run the check "+a.ID)
	c.run, c.failOnError = func(context.Context, *judge.Subject) judge.Verdict { return missing }, c.failOnError || h.Actions.Deny
	return c
}

func member[T any](params map[string]json.RawMessage, name string) (v T) {
	_ = json.Unmarshal(params[name], &v)
	return v
}

// wholly are checks that ask something of a text as a whole, so that no part of it can
// be judged; those with not may forbid what they else ask for.
var wholly = map[string]bool{
	"default.sentenceCount": true, "default.wordCount": true, "default.characterCount": true, "default.jsonSchema": true, "default.jsonKeys": true,
	"default.containsCode": true, "default.endsWith": true, "default.notNull": true, "default.validUrls": true, "default.webhook": true, "default.log": true,
	"crowdstrike-aidr.guardChatCompletions": true,
	"patronus.isConcise":                    true, "patronus.isHelpful": true, "patronus.isPolite": true, "patronus.retrievalAnswerRelevance": true, "patronus.retrievalHallucination": true, "patronus.custom": true,
	"qualifire.hallucinations": true, "qualifire.grounding": true, "qualifire.toolUseQuality": true, "qualifire.policy": true,
}

func judgesWhole(id string, params map[string]json.RawMessage) bool {
	switch id {
	case "default.regexMatch":
		return !member[bool](params, "not") // what is asked for may stand anywhere
	case "default.contains":
		return member[string](params, "operator") != "none"
	case "default.alluppercase", "default.alllowercase":
		return member[bool](params, "not")
	}
	return wholly[id]
}

// reachOf is how much of a stream a check must see at once. What is not known is taken
// to be found within the standard window.
func reachOf(id string, params map[string]json.RawMessage) guard.Reach {
	switch id {
	case "default.regexMatch":
		return guard.ReachOf(member[string](params, "rule"), false)
	case "default.regexReplace":
		return guard.ReachOf(member[string](params, "rule"), true)
	case "default.contains":
		return guard.ReachOfWords(member[[]string](params, "words"))
	}
	return guard.Reach{}
}

// runs tells whether the check runs in a phase: some ask for what only a request has.
func (c *check) runs(phase guard.Phase) bool {
	return phase == guard.Before || c.phase&guard.After != 0
}

// Streams says when the hook judges a stream. One that was to judge it piece by piece,
// and has a check that needs the whole answer or looks at more than its text, holds it.
func (h *Hook) Streams() guard.When {
	switch h.Actions.Stream {
	case guard.StreamHold:
		return guard.StreamHold
	case guard.StreamWindow:
		for i := range h.checks {
			if c := &h.checks[i]; c.whole || c.scope != "" && c.scope != said.LastMessage && c.scope != said.AllMessages {
				return guard.StreamHold
			}
		}
		return guard.StreamWindow
	}
	return guard.StreamAfter
}

// WindowSize is that of its window, in characters: as set, or larger where one of its
// checks needs to see more at once. words: pieces must end with words.
func (h *Hook) WindowSize() (size int, words bool) {
	if size = h.Window; size == 0 {
		size = guard.StandardWindow
	}
	for i := range h.checks {
		size, words = max(size, h.checks[i].reach.Most), words || h.checks[i].reach.Words
	}
	return size, words
}
