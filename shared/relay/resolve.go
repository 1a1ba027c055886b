package relay

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync/atomic"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/seal"
	"gateway/shared/wire"
)

// maxInlineConfig bounds a config in a header, in bytes.
const maxInlineConfig = 16 << 10

// savedConfig is a config made ready for requests. It is shared between requests
// under one View and never changed.
type savedConfig struct {
	rec  resource.Record
	tree atomic.Pointer[route.Tree] // compiled once
}

// compile gives the config's tree. A config that holds credentials is sealed as
// a whole; what fails to open it is not remembered.
func (s *savedConfig) compile(ctx context.Context, sealer seal.Sealer) (*route.Tree, error) {
	if t := s.tree.Load(); t != nil {
		return t, nil
	}
	body := s.rec.Body
	if s.rec.HasSecret(route.SealedConfig) {
		secrets, err := s.rec.OpenSecrets(ctx, sealer)
		if err != nil {
			return nil, fault.Unavailable(fmt.Errorf("relay: config %s: %w", s.rec.ID, err))
		}
		body = secrets[route.SealedConfig]
	}
	cfg, details := route.ParseSaved(body)
	if len(details) > 0 {
		return nil, fmt.Errorf("relay: config %s: %s: %s", s.rec.ID, details[0].Field, details[0].Message)
	}
	t, details := cfg.Compile()
	if len(details) > 0 {
		return nil, fmt.Errorf("relay: config %s: %s: %s", s.rec.ID, details[0].Field, details[0].Message)
	}
	s.tree.Store(t)
	return t, nil
}

// resolve finds the tree of targets: the request's config, else the key's
// default, else the workspace's for user keys, else its default config, else what
// the headers and the model name.
func (c *call) resolve() error {
	if c.mine = c.rt.Own && c.ask.Provider == ownProvider; c.mine {
		return nil
	}
	if err := c.checkInline(); err != nil {
		return err
	}
	if err := c.routing.asked.Read(c.req.Header); err != nil {
		return err
	}
	sent := strings.TrimSpace(c.ask.Config)
	switch {
	case sent != "" && c.who.Defaults.RefusesConfig():
		return fault.New(fault.ConfigOverrideRefused, "x-gateway-config", "Requests with this API key may not bring a config of their own")
	case strings.HasPrefix(sent, "{"):
		return c.inlineConfig(sent)
	case sent != "":
		return c.useConfig(sent)
	case c.who.Defaults.ConfigID != "":
		return c.useConfig(c.who.Defaults.ConfigID)
	case c.ws.Defaults.UserAPIKeyConfig != "" && c.who.UserID != "":
		return c.useConfig(c.ws.Defaults.UserAPIKeyConfig)
	case c.ws.DefaultConfig != "":
		return c.useConfig(c.ws.DefaultConfig)
	case c.rt.Own && c.ask.Provider == "" && c.ask.VirtualKey == "" && c.slug == "":
		c.mine = true
		return nil
	}
	c.startWalk(headerTree, c.routeContext())
	return nil
}

// startWalk begins the walk of a tree.
func (c *call) startWalk(t *route.Tree, ctx route.Context) {
	c.walker = &c.way
	t.StartIn(c.walker, ctx)
}

// headerTree is the route of a request without a config: one target that takes
// everything from the request.
var headerTree = route.Single()

// checkInline refuses what a request brings along where only saved
// configuration is taken; the first violation is named.
func (c *call) checkInline() error {
	if !c.blocksInline() {
		return nil
	}
	switch {
	case strings.HasPrefix(strings.TrimSpace(c.ask.Config), "{") && !c.routing.trial:
		return c.blocked(fault.InlineConfigBlocked, "x-gateway-config", "a config in JSON")
	case c.ask.Provider != "" && !strings.HasPrefix(c.ask.Provider, "@"):
		return c.blocked(fault.InlineProviderBlocked, "x-gateway-provider", "a provider name")
	case c.ask.CustomHost != "":
		return c.blocked(fault.InlineHostBlocked, "x-gateway-custom-host", "a custom host")
	case len(c.ask.Forward) > 0:
		return c.blocked(fault.InlineForwardBlocked, "x-gateway-forward-headers", "a list of headers to forward")
	}
	if name := provider.URLHeader(c.req.Header); name != "" {
		return c.blocked(fault.InlineURLBlocked, strings.ToLower(name), "a provider address")
	}
	return nil
}

// inlineConfig compiles the config of the header.
func (c *call) inlineConfig(text string) error {
	if len(text) > maxInlineConfig {
		return fault.Newf(fault.InvalidConfig, "x-gateway-config", "must have at most %d bytes; save larger configs", maxInlineConfig)
	}
	cfg, details := route.Parse([]byte(text), route.Lenient)
	if len(details) > 0 {
		return invalidConfig(details)
	}
	tree, details := cfg.Compile()
	if len(details) > 0 {
		return invalidConfig(details)
	}
	c.rec.Mode = tree.Mode()
	c.startWalk(tree, c.routeContext())
	return nil
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
func (c *call) useConfig(ref string) error {
	cfg, ok, err := resource.Load(c.ctx, c.view, c.who.Scope, route.KindConfig, ref, func(rec resource.Record) (*savedConfig, error) {
		return &savedConfig{rec: rec}, nil
	})
	if err != nil {
		return err
	}
	if !ok || cfg.rec.Archived() {
		if ref != strings.TrimSpace(c.ask.Config) { // the request named none
			return fault.Newf(fault.InvalidConfig, "x-gateway-config", "The default config %q of this API key or its workspace is archived: send another one, or have the default changed", clipText(ref))
		}
		return fault.Newf(fault.InvalidConfig, "x-gateway-config", "Invalid config passed: there is no config %q in this workspace, and it is not a JSON object", clipText(ref))
	}
	tree, err := cfg.compile(c.ctx, c.Sealer)
	if err != nil {
		return err
	}
	c.rec.ConfigID, c.rec.ConfigSlug, c.rec.ConfigVersion = cfg.rec.ID, cfg.rec.Slug, cfg.rec.Version
	c.rec.Mode = tree.Mode()
	c.useTree(tree, cfg.rec.ID, cfg.rec.Version)
	return nil
}

// routeContext is what conditions and draws look at.
func (c *call) routeContext() route.Context {
	if c.params == nil {
		c.params = c.param
	}
	return route.Context{Metadata: c.metadata, Params: c.params, Path: c.req.URL.Path, Random: rand.Uint32}
}

// param gives a top-level field of the client's body to a condition.
func (c *call) param(name string) (json.RawMessage, bool) {
	if len(c.in) == 0 {
		return nil, false
	}
	var w wire.Walk
	if wire.NewKeySet(name).Walk(c.in, &w) != nil || w.Spans[0].Absent() {
		return nil, false
	}
	return json.RawMessage(w.Spans[0].Of(c.in)), true
}
