package guardrail

import (
	"context"
	"sync"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/content"
	"gateway/shared/relay/admission"
	"gateway/shared/route"
)

// ToolResults judges results of tools that the gateway calls for a model, as output guardrails
// judge results of tools in a response. It is safe for concurrent use.
type ToolResults struct {
	hooks   chain.Hooks
	call    chain.Call
	exempts func(names []string) bool

	mu    sync.Mutex
	notes *Notes
}

// NewToolResults returns what judges results by the output guardrails of a config's targets;
// nil if there are none. Guardrails that run beside requests and mutators that would are not
// among them. Their verdicts are added to notes.
func NewToolResults(m *Means, q *admission.Request, targets []*route.Leaf, notes *Notes) (*ToolResults, error) {
	var hooks chain.Hooks
	for _, leaf := range targets {
		of, err := m.hooks(q.Ctx, &q.Caller, m.ofLeaf(leaf).output, nil)
		if err != nil {
			return nil, err
		}
		hooks = append(hooks, of...)
	}
	_, hooks = hooks.Distinct().Apart(content.ToolCall)
	if len(hooks) == 0 {
		return nil, nil
	}
	path, endpoint := q.Req.URL.EscapedPath(), q.Route.Endpoint
	return &ToolResults{
		hooks: hooks, notes: notes,
		exempts: func(names []string) bool { return exempt(names, endpoint, path) },
		call: chain.Call{
			Kind: content.ToolCall, TraceID: q.Ask.TraceID, Status: 200, Headers: q.HeadersForProvider().Clone(),
			Client: m.client, Public: m.public, Secrets: m.secrets(&q.Caller), Now: m.now, Budget: guard.NewBudget(),
		},
	}, nil
}

// Judge judges the result of a call of a tool, an object of MCP. A nil now leaves it unchanged.
func (r *ToolResults) Judge(ctx context.Context, tool string, result []byte) (now []byte, denied *fault.Fault) {
	if f := unreadBody(r.hooks, r.exempts, content.ToolCall, result, true, "all of the result of a tool"); f != nil {
		return nil, f
	}
	c := r.call
	c.Model, c.Response = tool, result
	o := r.hooks.Run(ctx, guard.After, &c)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.notes.add(o.Results, guard.After, "")
	if o.Denied {
		return nil, fault.New(fault.GuardrailDenied, "", chain.Denial(o.Results))
	}
	return o.Body, nil
}
