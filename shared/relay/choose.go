package relay

import (
	"net/http"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/route"
)

// choice is one target made ready: where, with which credential, in which shape.
type choice struct {
	leaf    *route.Leaf
	wall    wall   // around what saved keeps at its provider
	saved   *saved // nil with a credential of the request or of the config
	target  provider.Target
	traits  chat.Traits
	model   string
	dialect chat.Dialect // that the provider speaks for this route; nil on Raw routes
	// carrier translates an operation that is no conversation; nil when the
	// provider takes the client's own shape.
	carrier  chat.Translator
	jobs     chat.Jobs // carries files, batches and fine-tuning jobs; likewise
	local    bool      // the gateway answers itself, see Route.Local
	upstream string    // the model as the provider takes it
	// contentType is that of the body that carrier made; "" is JSON.
	contentType string
	op          provider.Operation
	lenient     bool
	timeout     time.Duration
	body        []byte // what the leaf's config makes of the client's; nil: nothing
	forward     []string
	subjects    []*ledger.Subject // limits of the provider and of its integration
}

// choose makes a leaf of the route into a target.
func (c *call) choose(leaf *route.Leaf) error {
	c.to = choice{leaf: leaf, model: c.model, lenient: leaf.Lenient, timeout: leaf.Timeout, forward: leaf.Forward}
	c.rec.OptionIndex = leaf.Path
	// What the target before was must not stand for this one.
	c.rec.Provider, c.rec.ProviderSlug, c.rec.IntegrationID, c.rec.Model = "", "", "", ""
	if len(leaf.Input)+len(leaf.Output) > 0 {
		return fault.New(fault.UnsupportedOperation, "guardrails", "This installation has no guardrails: a config that asks for checks is not served without them")
	}
	if c.ask.Timeout > 0 {
		c.to.timeout = c.ask.Timeout
	}
	if len(c.ask.Forward) > 0 {
		c.to.forward = c.ask.Forward
	}
	slug, model := leaf.Slug, leaf.Model
	if model != "" {
		c.to.model = model
	}
	if slug == "" && leaf.Provider == "" {
		slug = c.slugAsked(leaf)
	}
	var err error
	if slug != "" {
		err = c.chooseSaved(slug)
	} else {
		err = c.chooseDirect(leaf)
	}
	if err != nil {
		return err
	}
	if !c.rehearsing { // a rehearsal asks no token service and no catalogue
		c.to.target.Signer, c.to.target.Trusting = c.tokens, c.Trusting
	}
	c.rec.Provider = c.to.target.Provider.ID
	c.rec.Model = c.to.model
	return c.speak()
}

// slugAsked is the saved provider that the request itself names: header before
// virtual key before the body's @slug/model.
func (c *call) slugAsked(leaf *route.Leaf) string {
	if s, ok := strings.CutPrefix(c.ask.Provider, "@"); ok {
		return s
	}
	if c.ask.VirtualKey != "" {
		return strings.TrimPrefix(c.ask.VirtualKey, "@")
	}
	if c.ask.Provider == "" || leaf.Passthrough {
		return c.slug
	}
	return ""
}

// chooseSaved uses a saved provider. Its credential goes only to the provider's
// own address or to the host saved with it.
func (c *call) chooseSaved(slug string) error {
	s, err := c.loadSaved(slug)
	if err != nil {
		return err
	}
	if host, field := c.hostAsked(); host != "" && !sameHost(host, s.customHost) {
		return storedWithAddress(field)
	}
	if c.rt.Shape == Raw {
		if named := s.provider.PathModel(c.rawPath()); named != "" {
			c.to.model = named // whatever the body says
		}
	}
	if c.to.model != "" {
		if err := s.allows(c.to.model); err != nil {
			return err
		}
	} else if (c.unread || c.rt.AnyModel || c.prompted()) && s.integration.Restricts() {
		return fault.Newf(fault.ModelNotAllowed, "model", "The provider @%s serves some models only, and the model of this body cannot be read; send it as plain JSON", s.slug)
	}
	cred, err := s.open(c.ctx, c.Sealer)
	if err != nil {
		return err
	}
	c.raise(s, cred)
	if err := c.mayUse(s); err != nil {
		return err
	}
	if err := c.staysPut(s, cred); err != nil {
		return err
	}
	c.to.saved, c.to.subjects = s, s.subjects
	c.to.target = provider.Target{Provider: s.provider, Saved: true, Credential: *cred, CustomHost: s.customHost, CustomHeaders: s.customHeaders}
	if m := s.model(c.to.model); m != nil && m.Configurations != nil {
		if m.Configurations.CustomHost != "" {
			c.to.target.CustomHost = m.Configurations.CustomHost
		}
		if m.Configurations.CustomHeaders != nil {
			c.to.target.CustomHeaders = m.Configurations.CustomHeaders
		}
	}
	c.rec.ProviderSlug, c.rec.IntegrationID = s.slug, s.integrationID
	return nil
}

// chooseDirect uses a provider by name with a credential that the request or the
// config carries.
func (c *call) chooseDirect(leaf *route.Leaf) error {
	name := leaf.Provider
	inline := name == ""
	if inline {
		name = c.ask.Provider
	}
	if name == "" {
		return fault.New(fault.MissingProvider, "x-gateway-provider", "Either x-gateway-config or x-gateway-provider header is required; or name a saved provider in the model as @slug/model")
	}
	p, ok := provider.ByID(name)
	if !ok {
		return fault.Newf(fault.UnknownProvider, "x-gateway-provider", "Invalid provider passed: %q is not a provider of this gateway", clipText(name))
	}
	if inline && c.blocksInline() {
		return c.blocked(fault.InlineProviderBlocked, "x-gateway-provider", "a provider name")
	}
	var cred provider.Credential
	var err error
	if leaf.APIKey != "" || !inline {
		cred = provider.CredentialFromConfig(p, leaf.APIKey, leaf.Fields)
	}
	saved := c.config.ID != "" && (leaf.APIKey != "" || !inline) && p.Holds(leaf.APIKey, leaf.Fields)
	if saved {
		if err := c.staysWithConfig(p, &cred, inline); err != nil {
			return err
		}
	}
	if cred.Key == "" {
		var sent provider.Credential
		if sent, err = provider.CredentialFromHeaders(p, c.headersForProvider()); err != nil {
			return err
		}
		cred = cred.Or(sent)
	}
	c.to.target = provider.Target{Provider: p, Credential: cred, CallerKey: true, Saved: saved}
	c.to.target.CustomHost, _ = c.hostAsked()
	if host, field := c.to.target.OwnHost(); host != "" {
		checked, err := c.hosts.Check(host, field)
		if err != nil {
			return err
		}
		if c.to.target.CustomHost != "" {
			c.to.target.CustomHost = trimSlash(checked)
		}
	}
	return nil
}

// keyHeaders are where clients put keys. A client that is set up for one
// provider may send the gateway's key in any of them.
var keyHeaders = [...]string{"X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// headersForProvider are the client's headers without the gateway key, wherever
// it came.
func (q *request) headersForProvider() http.Header {
	h, mine := q.req.Header, false
	drop := func(name string) {
		if !mine {
			h, mine = h.Clone(), true
		}
		h.Del(name)
	}
	if q.keyInAuth {
		drop("Authorization")
	}
	for _, name := range keyHeaders {
		if q.holdsKey(name) {
			drop(name)
		}
	}
	return h
}

// holdsKey tells whether a header of the client carries the gateway key.
func (q *request) holdsKey(name string) bool {
	for _, v := range q.req.Header[name] {
		if strings.TrimSpace(v) == q.token {
			return true
		}
	}
	return false
}

// speak settles which dialect the target speaks on this route.
func (c *call) speak() error {
	p := c.to.target.Provider
	switch {
	case c.rt.Shape == Raw:
		return nil
	case c.rt.Shape == Listing:
		c.to.op = c.rt.Operation
		return nil
	}
	if err := c.needsModel(); err != nil {
		return err
	}
	if c.rt.Client == nil {
		return c.speakOperation()
	}
	name, op, ok := c.to.target.Speaks(c.rt.Operation, c.rt.Client.Name(), c.to.model)
	if ok {
		c.to.dialect, ok = c.dialects[name]
	}
	if !ok {
		return unsupported(c.rt.Endpoint, p)
	}
	if c.to.model == "" && !c.sameDialect() {
		return fault.Invalid("model", "is required: %s keeps no prompts that name one", p.ID)
	}
	c.to.op, c.to.traits = op, c.to.target.TraitsFor(c.ctx, c.to.model)
	c.plainer.apply(c)
	c.to.upstream = c.to.target.UpstreamModel(c.to.model)
	c.loss.Strict, c.loss.StrictAnswer = c.ask.NoLoss, c.strict()
	return c.mayRefer()
}

// speakOperation settles how the target takes an operation that is no
// conversation: in the client's own shape, or by a translator.
func (c *call) speakOperation() error {
	c.loss.Strict, c.loss.StrictAnswer = c.ask.NoLoss, false
	if c.rt.Local != nil && c.to.target.DialectOf(c.rt.Operation, c.to.model) == "" {
		c.to.op, c.to.local = c.rt.Operation, true
		return nil
	}
	p, op := c.to.target.Provider, c.rt.Operation
	if op == provider.BatchesOutput {
		op = provider.BatchesGet // the batch says which file holds its output
	}
	name := c.to.target.DialectOf(op, c.to.model)
	c.to.jobs = c.jobs[name]
	if c.to.carrier = c.carriers[name]; c.to.carrier == nil && c.to.jobs == nil && name != provider.OpenAI && name != provider.OpenAIResponses && !c.through() {
		return unsupported(c.rt.Endpoint, p)
	}
	c.to.op, c.to.traits = op, c.to.target.TraitsFor(c.ctx, c.to.model)
	if c.to.model != "" && !(c.rt.NoModel && c.model == "") {
		c.to.upstream = c.to.target.UpstreamModel(c.to.model)
	}
	return nil
}

// carried is what a translator may know of the request.
func (c *call) carried() *chat.Asked {
	return &chat.Asked{
		Body: c.in, Model: c.to.upstream, Operation: string(c.to.op), Traits: &c.to.traits, Loss: &c.loss, Field: c.to.target.Field,
		ID: c.ulid, Created: c.start.Unix(), ProviderName: c.to.target.Provider.ID, Strict: c.strict(),
	}
}

// region is where the target runs, for its price.
func (t *choice) region() string {
	for _, f := range [...]string{"aws_region", "vertex_region", "oracle_region"} {
		if v := t.target.Field(f); v != "" {
			return v
		}
	}
	return ""
}

func unsupported(endpoint string, p *provider.Provider) error {
	return fault.Newf(fault.UnsupportedOperation, "x-gateway-provider", "%s is not supported by %s", endpoint, p.ID)
}

// sameDialect tells whether the bytes can be forwarded.
func (c *call) sameDialect() bool {
	if c.rt.Client == nil {
		return c.to.carrier == nil
	}
	return c.to.dialect.Name() == c.rt.Client.Name()
}

// blocksInline tells whether the organisation or the installation refuses what a
// request brings along.
func (q *request) blocksInline() bool { return q.BlockInline || q.org.Settings.BlockInlineConfig }

func (q *request) blocked(code fault.Code, field, what string) error {
	return fault.Newf(code, field, "This organisation takes saved configuration only: %s cannot be sent with a request", what)
}
