package relay

import (
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/saved"
	"gateway/shared/route"
)

// choice is one target made ready: where, with which credential, in which shape.
type choice struct {
	leaf    *route.Leaf
	wall    kept.Wall       // around what saved keeps at its provider
	saved   *saved.Provider // nil with a credential of the request or of the config
	target  provider.Target
	traits  chat.Traits
	model   string
	dialect chat.Provider // that the provider speaks for this route; nil on Raw routes
	// carrier translates an operation that is no conversation; nil when the
	// provider takes the client's own shape.
	carrier  chat.Translator
	jobs     chat.Jobs // carries files, batches and fine-tuning jobs; likewise
	local    bool      // the gateway answers itself, see Route.Local
	upstream string    // the model as the provider takes it
	// contentType is that of the body that carrier made; "" is JSON.
	contentType string
	op          provider.Operation
	names       names
	lenient     bool
	timeout     time.Duration
	body        []byte // what the leaf's config makes of the client's; nil: nothing
	forward     []string
	subjects    []*ledger.Subject // limits of the provider and of its integration
}

// names are what records and answers call a target.
type names struct{ option, provider, slug, integration, model string }

// choose makes a leaf of the route into a target.
func (ch *chooser) choose(leaf *route.Leaf) error {
	ch.to = choice{leaf: leaf, model: ch.Model, lenient: leaf.Lenient, timeout: leaf.Timeout, forward: leaf.Forward}
	ch.to.names.option = leaf.Path
	if ch.Ask.Timeout > 0 {
		ch.to.timeout = ch.Ask.Timeout
	}
	if len(ch.Ask.Forward) > 0 {
		ch.to.forward = ch.Ask.Forward
	}
	slug, model := leaf.Slug, leaf.Model
	if model != "" {
		ch.to.model = model
	}
	if slug == "" && leaf.Provider == "" {
		slug = ch.SlugAsked(leaf)
	}
	var err error
	if slug != "" {
		err = ch.chooseSaved(slug)
	} else {
		err = ch.chooseDirect(leaf)
	}
	if err != nil {
		return err
	}
	if !ch.Rehearsing { // a rehearsal asks no token service and no catalogue
		ch.to.target.Signer, ch.to.target.Trusting = ch.tokens, ch.Trusting
	}
	ch.to.names.provider, ch.to.names.model = ch.to.target.Provider.ID, ch.to.model
	return ch.speak()
}

// chooseSaved uses a saved provider. Its credential goes only to the provider's
// own address or to the host saved with it.
func (ch *chooser) chooseSaved(slug string) error {
	s, err := saved.Load(ch.Ctx, ch.View, ch.Who.Scope, slug, ch.Start)
	if err != nil {
		return err
	}
	if host, field := ch.hostAsked(); host != "" && !sameHost(host, s.CustomHost) {
		return storedWithAddress(field)
	}
	if ch.Route.Shape == routes.Raw {
		if named := s.Provider.PathModel(ch.RawPath()); named != "" {
			ch.to.model = named // whatever the body says
		}
	}
	if ch.to.model != "" {
		if err := s.Allows(ch.to.model); err != nil {
			return err
		}
	} else if (ch.Unread || ch.Route.AnyModel || ch.prompted()) && s.Integration.Restricts() {
		return fault.Newf(fault.ModelNotAllowed, "model", "The provider @%s serves some models only, and the model of this body cannot be read; send it as plain JSON", s.Slug)
	}
	cred, err := s.Open(ch.Ctx, ch.Sealer)
	if err != nil {
		return err
	}
	ch.raise(s, cred)
	if err := ch.mayUse(); err != nil {
		return err
	}
	if err := ch.staysPut(s, cred); err != nil {
		return err
	}
	ch.to.saved, ch.to.subjects = s, s.Subjects
	ch.to.target = provider.Target{Provider: s.Provider, Saved: true, Credential: *cred, CustomHost: s.CustomHost, CustomHeaders: s.CustomHeaders}
	if m := s.Model(ch.to.model); m != nil && m.Configurations != nil {
		if m.Configurations.CustomHost != "" {
			ch.to.target.CustomHost = m.Configurations.CustomHost
		}
		if m.Configurations.CustomHeaders != nil {
			ch.to.target.CustomHeaders = m.Configurations.CustomHeaders
		}
	}
	ch.to.names.slug, ch.to.names.integration = s.Slug, s.IntegrationID
	return nil
}

// chooseDirect uses a provider by name with a credential that the request or the
// config carries.
func (ch *chooser) chooseDirect(leaf *route.Leaf) error {
	name := leaf.Provider
	inline := name == ""
	if inline {
		name = ch.Ask.Provider
	}
	if name == "" {
		return fault.New(fault.MissingProvider, "x-gateway-provider", "Either x-gateway-config or x-gateway-provider header is required; or name a saved provider in the model as @slug/model")
	}
	p, ok := provider.ByID(name)
	if !ok {
		return fault.Newf(fault.UnknownProvider, "x-gateway-provider", "Invalid provider passed: %q is not a provider of this gateway", clipText(name))
	}
	if inline && ch.BlocksInline() {
		return ch.Blocked(fault.InlineProviderBlocked, "x-gateway-provider", "a provider name")
	}
	var cred provider.Credential
	var err error
	if leaf.APIKey != "" || !inline {
		cred = provider.CredentialFromConfig(p, leaf.APIKey, leaf.Fields)
	}
	saved := ch.Config.ID != "" && (leaf.APIKey != "" || !inline) && p.Holds(leaf.APIKey, leaf.Fields)
	if saved {
		if err := ch.staysWithConfig(p, &cred, inline); err != nil {
			return err
		}
	}
	if cred.Key == "" {
		var sent provider.Credential
		if sent, err = provider.CredentialFromHeaders(p, ch.HeadersForProvider()); err != nil {
			return err
		}
		cred = cred.Or(sent)
	}
	ch.to.target = provider.Target{Provider: p, Credential: cred, CallerKey: true, Saved: saved}
	ch.to.target.CustomHost, _ = ch.hostAsked()
	if host, field := ch.to.target.OwnHost(); host != "" {
		checked, err := ch.hosts.Check(host, field)
		if err != nil {
			return err
		}
		if ch.to.target.CustomHost != "" {
			ch.to.target.CustomHost = trimSlash(checked)
		}
	}
	return nil
}

// speak settles which dialect the target speaks on this route.
func (ch *chooser) speak() error {
	p := ch.to.target.Provider
	switch {
	case ch.Route.Shape == routes.Raw:
		return nil
	case ch.Route.Shape == routes.Listing:
		ch.to.op = ch.Route.Operation
		return nil
	}
	if err := ch.needsModel(); err != nil {
		return err
	}
	if ch.Route.Client == nil {
		return ch.speakOperation()
	}
	name, op, ok := ch.to.target.Speaks(ch.Route.Operation, ch.Route.Client.Name(), ch.to.model)
	if ok {
		ch.to.dialect, ok = ch.dialects[name]
	}
	if !ok {
		return unsupported(ch.Route.Endpoint, p)
	}
	if ch.to.model == "" && !ch.sameDialect() {
		return fault.Invalid("model", "is required: %s keeps no prompts that name one", p.ID)
	}
	ch.to.op, ch.to.traits = op, ch.to.target.TraitsFor(ch.Ctx, ch.to.model)
	ch.plainer.apply(ch.target)
	ch.to.upstream = ch.to.target.UpstreamModel(ch.to.model)
	ch.loss.Strict, ch.loss.StrictAnswer = ch.Ask.NoLoss, ch.strict()
	return ch.mayRefer()
}

// speakOperation settles how the target takes an operation that is no
// conversation: in the client's own shape, or by a translator.
func (ch *chooser) speakOperation() error {
	ch.loss.Strict, ch.loss.StrictAnswer = ch.Ask.NoLoss, false
	if ch.Route.Local != nil && ch.to.target.DialectOf(ch.Route.Operation, ch.to.model) == "" {
		ch.to.op, ch.to.local = ch.Route.Operation, true
		return nil
	}
	p, op := ch.to.target.Provider, ch.Route.Operation
	if err := ch.needsRecording(op); err != nil {
		return err
	}
	if op == provider.BatchesOutput {
		op = provider.BatchesGet // the batch says which file holds its output
	}
	name := ch.to.target.DialectOf(op, ch.to.model)
	ch.to.jobs = ch.jobs[name]
	if ch.to.carrier = ch.carriers[name]; ch.to.carrier == nil && ch.to.jobs == nil && name != provider.OpenAI && name != provider.OpenAIResponses && !ch.through() {
		return unsupported(ch.Route.Endpoint, p)
	}
	ch.to.op, ch.to.traits = op, ch.to.target.TraitsFor(ch.Ctx, ch.to.model)
	if ch.to.model != "" && !(ch.Route.NoModel && ch.Model == "") {
		ch.to.upstream = ch.to.target.UpstreamModel(ch.to.model)
	}
	return nil
}

// carried is what a translator may know of the request.
func (tg *target) carried() *chat.Asked {
	return &chat.Asked{
		Body: tg.In, Model: tg.to.upstream, Operation: string(tg.to.op), Traits: &tg.to.traits, Loss: &tg.loss, Field: tg.to.target.Field,
		ID: tg.ULID, Created: tg.Start.Unix(), ProviderName: tg.to.target.Provider.ID, Strict: tg.strict(),
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
func (tg *target) sameDialect() bool {
	if tg.Route.Client == nil {
		return tg.to.carrier == nil
	}
	return tg.to.dialect.Name() == tg.Route.Client.Name()
}
