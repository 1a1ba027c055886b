package plan

import (
	"crypto/sha256"
	"math/rand/v2"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/guard"
	"gateway/shared/provider"
	"gateway/shared/route"
	"gateway/shared/route/saved"
)

// maxInlineConfig limits a config in a header, in bytes.
const maxInlineConfig = 16 << 10

// Resolve finds the tree of targets, and renders the body if a saved prompt does so. The tree
// comes first, since its targets may name the prompts.
func (p *Plan) Resolve(from *Sources) error {
	if !p.Body.RendersPrompt() {
		return p.resolve(from)
	}
	if !p.Req.Route.Prompt().Render {
		if err := p.resolve(from); err != nil {
			return err
		}
	}
	return p.fill()
}

// fill renders the body. If each target has its own prompt, the one of the path does not count,
// and the first of them determines the type of the request.
func (p *Plan) fill() error {
	name := p.Body.ID
	if p.Traversal != nil {
		if own := p.Traversal.Prompts(); len(own) > 0 {
			name = own[0]
		}
	}
	by, err := p.Body.RenderPrompt(name)
	if err != nil {
		return err
	}
	return p.Body.SetPrompt(by)
}

// resolve finds the tree of targets: that of the request's config, else the one named by headers
// and model.
func (p *Plan) resolve(from *Sources) error {
	if p.BuiltIn = p.Req.Route.BuiltIn && p.Req.Headers.Provider == OwnProvider; p.BuiltIn {
		return nil
	}
	if err := p.checkInline(); err != nil {
		return err
	}
	if err := p.Requested.Read(p.Req.Req.Header); err != nil {
		return err
	}
	name := p.configName()
	switch {
	case p.Req.Settles() && strings.HasPrefix(p.Req.Headers.Provider, "@"):
		p.startWalk(headerTree, nil, nil, nil) // the target of the earlier work is known
		return nil
	case strings.TrimSpace(p.Req.Headers.Config) != "" && p.Req.Principal.Defaults.RefusesConfig():
		return fault.New(fault.ConfigOverrideRefused, "x-gateway-config", "Requests with this API key must not contain a config")
	case strings.HasPrefix(name, "{"):
		return p.inlineConfig(from, name)
	case name != "":
		return p.useConfig(from, name)
	case p.Req.Route.BuiltIn && p.Req.Headers.Provider == "" && p.Req.Headers.VirtualKey == "" && p.Body.Slug == "":
		p.BuiltIn = true
		return nil
	}
	p.startWalk(headerTree, nil, nil, nil)
	return nil
}

// configName returns the config of the request, its text or its id or slug: the request's own, else
// the key's default, else the workspace's for user keys, else its default config; empty if there
// is none. A user key that was created without a config has stored the workspace's config for user
// keys of that time as its default.
func (p *Plan) configName() string {
	ws := p.Req.WS
	switch sent := strings.TrimSpace(p.Req.Headers.Config); {
	case sent != "":
		return sent
	case p.Req.Principal.Defaults.ConfigID != "":
		return p.Req.Principal.Defaults.ConfigID
	case ws.Defaults.UserAPIKeyConfig != "" && p.Req.Principal.UserID != "":
		return ws.Defaults.UserAPIKeyConfig
	}
	return ws.DefaultConfig
}

// Leaves returns the targets of the request's config, nil if it has none, also for a request that
// was rejected before Resolve. known is false if the config cannot be read.
func (p *Plan) Leaves(from *Sources) (leaves []*route.Leaf, known bool) {
	if p.Traversal != nil {
		return p.Traversal.Leaves(), true
	}
	name := p.configName()
	switch {
	case name == "":
		return nil, true
	case strings.HasPrefix(name, "{"):
		tree, err := compileInline(name)
		if err != nil {
			return nil, false
		}
		return tree.Leaves(), true
	}
	cfg, ok, err := saved.LoadConfig(p.Req.Base, p.Req.View, p.Req.Principal.Scope, name)
	if err != nil || !ok {
		return nil, false
	}
	tree, err := cfg.Compile(p.Req.Base, from.Sealer)
	if err != nil {
		return nil, false
	}
	return tree.Leaves(), true
}

// Follow starts the traversal of a tree that no request named.
func (p *Plan) Follow(t *route.Tree) { p.startWalk(t, nil, nil, nil) }

// FollowAs follows a tree as the plan with the given config and limits did.
func (p *Plan) FollowAs(t *route.Tree, config UsedConfig, requested RequestedLimits) {
	p.Config, p.Requested = config, requested
	p.Follow(t)
}

// startWalk starts the traversal of a tree, which a dry run does not change.
func (p *Plan) startWalk(t *route.Tree, breakers route.Breakers, sticky route.Sticky, measures *route.Measures) {
	ctx := route.Context{
		Metadata: p.Body.Metadata, Params: p.Body.AsParams(), Path: p.Req.Req.URL.Path, Random: rand.Uint32,
		Breakers: breakers, Sticky: sticky, Measures: measures,
	}
	if p.Req.DryRun {
		ctx = onlyLooking(ctx)
	}
	p.Traversal = &p.way
	t.StartIn(p.Traversal, ctx)
}

// checkInline rejects inline settings where only saved configuration is allowed; the first
// violation is named.
func (p *Plan) checkInline() error {
	if !p.Req.BlocksInline() {
		return nil
	}
	switch {
	case strings.HasPrefix(strings.TrimSpace(p.Req.Headers.Config), "{") && !p.DryRun:
		return p.Req.Blocked(fault.InlineConfigBlocked, "x-gateway-config", "a config in JSON")
	case p.Req.Headers.Provider != "" && !strings.HasPrefix(p.Req.Headers.Provider, "@"):
		return p.Req.Blocked(fault.InlineProviderBlocked, "x-gateway-provider", "a provider name")
	case p.Req.Headers.CustomHost != "":
		return p.Req.Blocked(fault.InlineHostBlocked, "x-gateway-custom-host", "a custom host")
	case len(p.Req.Headers.Forward) > 0:
		return p.Req.Blocked(fault.InlineForwardBlocked, "x-gateway-forward-headers", "a list of headers to forward")
	}
	if name := provider.URLHeader(p.Req.Req.Header); name != "" {
		return p.Req.Blocked(fault.InlineURLBlocked, strings.ToLower(name), "a provider address")
	}
	return nil
}

// inlineConfig compiles the config of the header.
func (p *Plan) inlineConfig(from *Sources, text string) error {
	tree, err := compileInline(text)
	if err != nil {
		return err
	}
	p.Config = UsedConfig{Mode: tree.Mode(), RefusalEvents: tree.RefusalEvents()}
	var sticky route.Sticky
	if tree.Sticky() && tree.Measured() {
		sum := sha256.Sum256([]byte(text))
		sticky = from.Picks.Of(p.Req.Principal.Scope.Org, p.Req.Principal.Scope.Workspace, string(sum[:]))
	}
	p.startWalk(tree, nil, sticky, p.measures(from, tree))
	return nil
}

// compileInline compiles a config in a header.
func compileInline(text string) (*route.Tree, error) {
	if len(text) > maxInlineConfig {
		return nil, fault.Newf(fault.InvalidConfig, "x-gateway-config", "must have at most %d bytes; save larger configs", maxInlineConfig)
	}
	cfg, details := route.Parse([]byte(text), route.Lenient)
	if len(details) > 0 {
		return nil, invalidConfig(details)
	}
	for _, g := range cfg.Guardrails() {
		for _, d := range guard.UnknownParameters(g.Raw) {
			details = append(details, fault.Detail{Field: g.Field + "." + d.Field, Message: d.Message})
		}
	}
	if len(details) > 0 {
		return nil, invalidConfig(details)
	}
	tree, details := cfg.Compile()
	if len(details) > 0 {
		return nil, invalidConfig(details)
	}
	return tree, nil
}

func invalidConfig(details []fault.Detail) error {
	f := fault.Invalids(details)
	f.Code = fault.InvalidConfig
	if d := details[0]; len(details) == 1 && d.Field != "" {
		f.Message = d.Field + ": " + f.Message
	}
	if f.Field == "" {
		f.Field = "x-gateway-config"
	}
	f.Message = "Invalid config passed: " + strings.Replace(f.Message, "The body is", "it is", 1)
	return f
}

// useConfig loads a config by id or slug.
func (p *Plan) useConfig(from *Sources, ref string) error {
	cfg, ok, err := saved.LoadConfig(p.Req.Ctx, p.Req.View, p.Req.Principal.Scope, ref)
	if err != nil {
		return err
	}
	if !ok || cfg.Record.Archived() {
		if ref != strings.TrimSpace(p.Req.Headers.Config) { // the request named none
			return fault.Newf(fault.InvalidConfig, "x-gateway-config", "The default config %q of this API key or its workspace is archived: send another one, or have the default changed", fault.Clip(ref, 300))
		}
		return fault.Newf(fault.InvalidConfig, "x-gateway-config", "Invalid config passed: there is no config %q in this workspace, and it is not a JSON object", fault.Clip(ref, 300))
	}
	tree, err := cfg.Compile(p.Req.Ctx, from.Sealer)
	if err != nil {
		return err
	}
	p.Config = UsedConfig{cfg.Record.ID, cfg.Record.Slug, cfg.Record.Version, tree.Mode(), tree.RefusalEvents()}
	p.useTree(from, tree, cfg.Record.ID, cfg.Record.Version)
	return nil
}

// useTree starts the traversal of a saved config.
func (p *Plan) useTree(from *Sources, tree *route.Tree, config string, version int64) {
	var breakers route.Breakers
	var sticky route.Sticky
	scope := p.Req.Principal.Scope
	if tree.Guarded() {
		key := route.ConfigKey{Org: scope.Org, Workspace: scope.Workspace, Config: config, Version: version}
		p.BreakersOf = from.Breakers.Of(p.Req.Ctx, key)
		breakers = p.BreakersOf
	}
	if tree.Sticky() {
		sticky = from.Picks.Of(scope.Org, scope.Workspace, config)
	}
	p.startWalk(tree, breakers, sticky, p.measures(from, tree))
}

// onlyLooking returns a traversal that changes nothing.
func onlyLooking(ctx route.Context) route.Context {
	if ctx.Breakers != nil {
		ctx.Breakers = watching{ctx.Breakers}
	}
	if ctx.Sticky != nil {
		ctx.Sticky = looking{ctx.Sticky}
	}
	if ctx.Measures != nil {
		ctx.Measures.DryRun = true
	}
	return ctx
}

// watching reads breakers and does not change them.
type watching struct{ route.Breakers }

func (watching) Claim(string, *route.Breaker) bool { return true }

func (watching) Release(string) {}

func (watching) Record(string, *route.Breaker, int, bool) {}

// looking reads sticky picks and does not change them.
type looking struct{ route.Sticky }

func (looking) Store(route.StickyKey, int, time.Duration) {}
