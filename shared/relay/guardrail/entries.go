package guardrail

import (
	"context"
	"encoding/json"
	"log/slog"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/content"
	"gateway/shared/relay/admission"
	"gateway/shared/route"
	"gateway/shared/usage"
)

// HookEntry is the record's entry for one hook.
type HookEntry = usage.Guard

// HookEntries are the record's entries for the hooks of a request.
type HookEntries struct {
	list  []HookEntry
	aside *aside // asynchronous hooks; nil if there are none
}

// add records the results of hooks for a target.
func (n *HookEntries) add(results []chain.Result, phase guard.Phase, target string) {
	for i := range results {
		n.list = append(n.list, note(&results[i], phase, target))
	}
}

// beside returns the group of the request's asynchronous hooks.
func (n *HookEntries) beside() *aside {
	if n.aside == nil {
		n.aside = new(aside)
	}
	return n.aside
}

// All returns the entries. wait: it waits for asynchronous hooks first.
func (n *HookEntries) All(wait bool) []HookEntry {
	if n.aside == nil {
		return n.list
	}
	return append(n.list, n.aside.end(wait)...)
}

// AddVerdicts adds the verdicts of a session's guardrails since the last call.
func (n *HookEntries) AddVerdicts(l *Live) { n.list = append(n.list, l.take()...) }

// Ended adds the remaining verdicts of a session, including those of asynchronous hooks. l is
// nil if no session was opened.
func (n *HookEntries) Ended(l *Live) {
	if l != nil {
		n.list = append(append(n.list, l.take()...), l.aside.end(true)...)
	}
}

func note(r *chain.Result, phase guard.Phase, target string) HookEntry {
	n := HookEntry{Hook: r.ID, Phase: usage.GuardBefore, Path: target, Verdict: r.Verdict, Denied: r.Deny, Async: r.Async, Transformed: r.Transformed, LatencyMS: r.Time}
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

// besideTime limits asynchronous hooks.
const besideTime = 70 * time.Second

// aside are the asynchronous hooks of one request. They do not touch the request after it is
// over.
type aside struct {
	wait sync.WaitGroup
	mu   sync.Mutex
	done []HookEntry
	over bool // the record is written: later results go to the log
}

// run starts asynchronous hooks with their own copy of the input.
func (a *aside) run(m *Deps, ctx context.Context, hooks chain.Hooks, phase guard.Phase, c chain.Call, target, request string) {
	c = c.Clone()
	a.wait.Add(1)
	m.beside.Add(1)
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), besideTime)
	go func() {
		defer m.beside.Done()
		defer a.wait.Done()
		defer cancel()
		results := hooks.RunAsync(ctx, phase, &c)
		a.mu.Lock()
		defer a.mu.Unlock()
		for i := range results {
			n := note(&results[i], phase, target)
			if !a.over && len(a.done) < maxNotes {
				a.done = append(a.done, n)
				continue
			}
			slog.Info("guardrail parallel to a request", "request_id", request, "guardrail", n.Hook, "phase", n.Phase, "verdict", n.Verdict, "failed", n.Failed)
		}
	}()
}

// end returns the results so far; all of them if wait is true.
func (a *aside) end(wait bool) []HookEntry {
	if wait {
		a.wait.Wait()
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	a.over = true
	return a.done
}

// ToolResults judges results of tools that the gateway calls for a model, as output guardrails
// judge results of tools in a response. It is safe for concurrent use.
type ToolResults struct {
	hooks   chain.Hooks
	call    chain.Call
	exempts func(names []string) bool

	mu    sync.Mutex
	notes *HookEntries
}

// NewToolResults returns what judges results by the output guardrails of a config's targets;
// nil if there are none. Guardrails that run beside requests and mutators that would are not
// among them. Their verdicts are added to notes.
func NewToolResults(m *Deps, q *admission.Request, targets []*route.Leaf, notes *HookEntries) (*ToolResults, error) {
	var hooks chain.Hooks
	for _, leaf := range targets {
		of, err := m.hooks(q.Ctx, &q.Caller, m.ofLeaf(leaf).output, nil)
		if err != nil {
			return nil, err
		}
		hooks = append(hooks, of...)
	}
	_, hooks = hooks.Distinct().SplitAsync(content.ToolCall)
	if len(hooks) == 0 {
		return nil, nil
	}
	path, endpoint := q.Req.URL.EscapedPath(), q.Route.Endpoint
	return &ToolResults{
		hooks: hooks, notes: notes,
		exempts: func(names []string) bool { return exempt(names, endpoint, path) },
		call:    m.withoutModel(q, &q.Caller, content.ToolCall, "", guard.NewBudget()).Clone(), // a run outlives the request's headers
	}, nil
}

// Judge judges the result of a call of a tool, an object of MCP. A nil now leaves it unchanged.
func (r *ToolResults) Judge(ctx context.Context, tool string, result []byte) (now []byte, denied *fault.Fault) {
	if f := unreadBody(r.hooks, r.exempts, content.ToolCall, result, true, "all of the result of a tool"); f != nil {
		return nil, f
	}
	c := r.call.WithResponse(result).WithModel(tool)
	o := r.hooks.Run(ctx, guard.After, &c)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes.add(o.Results, guard.After, "")
	if o.Denied {
		return nil, fault.New(fault.GuardrailDenied, "", chain.Denial(o.Results))
	}
	return o.Body, nil
}
