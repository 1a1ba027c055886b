package guardrail

import (
	"context"
	"net/http"
	"strconv"
	"sync"
	"time"

	"gateway/shared/guard"
	"gateway/shared/guard/chain"
	"gateway/shared/guard/judge"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/seal"
	"gateway/shared/store"
)

// Deps are the dependencies of guardrails.
type Deps struct {
	kit    *chain.CheckRegistry
	sealer seal.Sealer
	client *http.Client // to hosts that checks name
	public *http.Client // to hosts that content names
	secret *provider.Secrets
	now    func() time.Time
	beside sync.WaitGroup // asynchronous hooks
}

// NewDeps returns the dependencies with a register of checks. trusting is the guarded transport
// to hosts that customers name, public that to all others; secrets are those of external
// managers.
func NewDeps(makers map[string]judge.Maker, sealer seal.Sealer, trusting, public http.RoundTripper, secrets *provider.Secrets, now func() time.Time) *Deps {
	client := func(way http.RoundTripper) *http.Client {
		return &http.Client{Transport: way, CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse }}
	}
	return &Deps{kit: chain.NewCheckRegistry(makers), sealer: sealer, client: client(trusting), public: client(public), secret: secrets, now: now}
}

// Close waits for asynchronous hooks.
func (m *Deps) Close() { m.beside.Wait() }

// HasGuardrails reports whether a target has any guardrails: of its config, of the workspace or of the
// organization. It does no work if there are none.
func HasGuardrails(leaf *route.Leaf, q *admission.Request) bool {
	if q.Child || q.Settles() || q.CarriesRows() {
		return false
	}
	if len(leaf.Input)+len(leaf.Output) > 0 {
		return true
	}
	if q.WS == nil || q.Org == nil {
		return false
	}
	d := &q.WS.Defaults
	return len(d.InputGuardrails)+len(d.OutputGuardrails)+len(q.Org.InputGuardrails)+len(q.Org.OutputGuardrails) > 0
}

// named is an entry of a config: an inline guardrail, compiled, or the name of a saved one.
type named struct {
	hook *chain.Hook
	ref  string
}

// leafHooks are those of a config's target.
type leafHooks struct{ input, output []named }

// ofLeaf compiles the guardrails of a config's target, once.
func (m *Deps) ofLeaf(leaf *route.Leaf) *leafHooks {
	if made, ok := leaf.Compiled.Load().(*leafHooks); ok {
		return made
	}
	made := &leafHooks{m.read(leaf.Input, true), m.read(leaf.Output, false)}
	leaf.Compiled.Store(made)
	return made
}

func (m *Deps) read(list []route.Guardrail, before bool) []named {
	out := make([]named, len(list))
	side := "output"
	if before {
		side = "input"
	}
	for i := range list {
		g := &list[i]
		if g.Slug != "" {
			out[i] = named{ref: g.Slug}
			continue
		}
		h := guard.ReadHook(g.Raw, before, g.Form == route.FormMutator)
		if len(h.Checks) == 0 && h.Saved() {
			out[i] = named{ref: h.ID}
			continue
		}
		out[i] = named{hook: m.kit.Prepare(h.Labeled(side + "_guardrails[" + strconv.Itoa(i) + "]"))}
	}
	return out
}

// hooks returns those of a target, the config's before the defaults. A duplicate runs once.
func (m *Deps) hooks(ctx context.Context, q *admission.Caller, of []named, defaults []string) (chain.Hooks, error) {
	out := make(chain.Hooks, 0, len(of)+len(defaults))
	add := func(h *chain.Hook) {
		for _, have := range out {
			if have == h {
				return
			}
		}
		out = append(out, h)
	}
	for _, n := range of {
		if n.hook != nil {
			out = append(out, n.hook)
			continue
		}
		h, err := m.kit.Load(ctx, q.View, q.Principal.Scope, n.ref, m.sealer)
		if err != nil {
			return nil, err
		}
		add(h)
	}
	for _, ref := range defaults {
		h, err := m.kit.Load(ctx, q.View, q.Principal.Scope, ref, m.sealer)
		if err != nil {
			return nil, err
		}
		add(h)
	}
	return out, nil
}

// secrets fetches the secrets of a caller's guardrails from external managers.
func (m *Deps) secrets(q *admission.Caller) judge.Secrets {
	if m.secret == nil {
		return nil
	}
	view, scope := q.View, q.Principal.Scope
	return func(ctx context.Context, of []provider.SecretMapping) (map[string]string, error) {
		values, _, err := m.secret.Values(ctx, view, scope, of)
		return values, err
	}
}

// SavedInput is a saved guardrail's input outside of a request.
type SavedInput struct {
	View              *resource.View
	Scope             store.Scope
	Endpoint          string // type of the request
	Request, Response []byte // without a response it judges the request
}

// RunSaved reports whether a saved guardrail passes. It passes if none of its checks applies to the
// input.
func (m *Deps) RunSaved(ctx context.Context, name string, of *SavedInput) (passes bool, err error) {
	h, err := m.kit.Load(ctx, of.View, of.Scope, name, m.sealer)
	if err != nil {
		return false, err
	}
	call, phase := chain.Call{Kind: of.Endpoint, Request: of.Request, Client: m.client, Now: m.now}, guard.Before
	if of.Response != nil {
		call, phase = call.WithResponse(of.Response), guard.After
	}
	for _, r := range (chain.Hooks{h}).Run(ctx, phase, &call).Results {
		if !r.Verdict {
			return false, nil
		}
	}
	return true, nil
}

// found are the hooks of a target that apply to a caller's requests of a kind.
type found struct {
	in, out   chain.Hooks
	outBeside chain.Hooks // asynchronous output hooks
}

// gather finds the hooks of a target.
func (m *Deps) gather(ctx context.Context, who *admission.Caller, leaf *route.Leaf, kind string) (of found, err error) {
	made := m.ofLeaf(leaf)
	input, output := who.WS.Guardrails(who.Org)
	in, err := m.hooks(ctx, who, made.input, input)
	if err != nil {
		return found{}, err
	}
	out, err := m.hooks(ctx, who, made.output, output)
	if err != nil {
		return found{}, err
	}
	outBeside, out := out.SplitAsync(kind)
	return found{in: in, out: out, outBeside: outBeside}, nil
}

// by returns the hooks that judge streams in a given mode.
func (of *found) by(when guard.When) (out chain.Hooks) {
	for _, h := range of.out {
		if h.Streams() == when {
			out = append(out, h)
		}
	}
	return out
}

// onTheWay reports whether a hook judges a stream before it has ended.
func (of *found) onTheWay() bool {
	for _, h := range of.out {
		if h.Streams() != guard.StreamAfter {
			return true
		}
	}
	return false
}

// atTheEnd reports whether a hook judges a stream once it has ended.
func (of *found) atTheEnd() bool { return len(of.by(guard.StreamAfter)) > 0 || len(of.outBeside) > 0 }
