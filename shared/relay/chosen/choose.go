package chosen

import (
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/routes"
	"gateway/shared/relay/saved"
	"gateway/shared/route"
)

// Choose makes a leaf of the route into a target, and the body that its config makes
// of the client's.
func (ch *Chooser) Choose(leaf *route.Leaf) error {
	if err := ch.reach(leaf); err != nil {
		return err
	}
	return ch.effective()
}

// reach settles where the target is, with which credential, in which shape.
func (ch *Chooser) reach(leaf *route.Leaf) error {
	if ch.native != nil {
		ch.Route = ch.native // the target before spoke its shape
	}
	ch.To = Choice{Leaf: leaf, Model: ch.Model, lenient: leaf.Lenient, Timeout: leaf.Timeout, Forward: leaf.Forward}
	ch.To.Names.Option = leaf.Path
	if ch.Ask.Timeout > 0 {
		ch.To.Timeout = ch.Ask.Timeout
	}
	if len(ch.Ask.Forward) > 0 {
		ch.To.Forward = ch.Ask.Forward
	}
	own, err := ch.fill(leaf)
	if err != nil {
		return err
	}
	slug, model := leaf.Slug, leaf.Model
	if model != "" {
		ch.To.Model = model
	}
	if slug == "" && leaf.Provider == "" {
		slug = ch.SlugAskedOr(leaf, own)
	}
	if slug != "" {
		err = ch.chooseSaved(slug)
	} else {
		err = ch.chooseDirect(leaf)
	}
	if err != nil {
		return err
	}
	if !ch.Rehearsing { // a rehearsal asks no token service and no catalogue
		ch.To.Target.Signer, ch.To.Target.Trusting = ch.Means.Tokens, ch.Means.Trusting
	}
	ch.To.Names.Provider, ch.To.Names.Model = ch.To.Target.Provider.ID, ch.To.Model
	return ch.speak()
}

// chooseSaved uses a saved provider. Its credential goes only to the provider's
// own address or to the host saved with it.
func (ch *Chooser) chooseSaved(slug string) error {
	s, err := saved.Load(ch.Ctx, ch.View, ch.Who.Scope, slug, ch.Start)
	if err != nil {
		return err
	}
	ch.To.asked = s.Provider
	if host, field := ch.hostAsked(); host != "" && !sameHost(host, s.CustomHost) {
		return storedWithAddress(field)
	}
	if err := ch.named(s.Provider); err != nil {
		return err
	}
	if err := ch.mayCall(s.Provider); err != nil {
		return err
	}
	if ch.To.Model != "" {
		if err := s.Allows(ch.To.Model); err != nil {
			return err
		}
	} else if ch.hidden() && s.Integration.Restricts() {
		return fault.Newf(fault.ModelNotAllowed, "model", "The provider @%s serves some models only, and the model of this body cannot be read; send it as plain JSON", s.Slug)
	}
	if err := ch.mayPass(s.Provider, true); err != nil {
		return err
	}
	opened := s.Ready(ch.Start)
	if opened == nil {
		if opened, err = s.Open(ch.Ctx, ch.opening()); err != nil {
			return err
		}
	}
	cred := opened.Credential
	ch.raise(s, opened)
	if err := ch.mayUse(); err != nil {
		return err
	}
	if err := ch.staysPut(s, cred); err != nil {
		return err
	}
	ch.To.Saved, ch.To.Subjects = s, s.Subjects
	ch.To.Target = provider.Target{Provider: s.Provider, Saved: true, Credential: *cred, CustomHost: s.CustomHost, CustomHeaders: s.CustomHeaders}
	if m := s.Model(ch.To.Model); m != nil && m.Configurations != nil {
		if m.Configurations.CustomHost != "" {
			ch.To.Target.CustomHost = m.Configurations.CustomHost
		}
		if headers := opened.ModelHeaders[m.Slug]; headers != nil {
			ch.To.Target.CustomHeaders = headers
		}
	}
	ch.To.Names.Slug, ch.To.Names.Integration = s.Slug, s.IntegrationID
	return nil
}

// opening is what saved credentials are opened with.
func (tg *Target) opening() *saved.Means {
	return &saved.Means{Sealer: tg.Means.Sealer, Secrets: tg.Means.Secrets, View: tg.View, Scope: tg.Who.Scope, Now: tg.Start, Rehearsing: tg.Rehearsing}
}

// CredentialRefused says that the target's provider did not take its credential.
func (tg *Target) CredentialRefused() {
	if tg.To.Saved != nil && !tg.Rehearsing {
		tg.To.Saved.Refused(tg.Ctx, tg.opening())
	}
}

// chooseDirect uses a provider by name with a credential that the request or the
// config carries.
func (ch *Chooser) chooseDirect(leaf *route.Leaf) error {
	name := leaf.Provider
	inline := name == ""
	if inline {
		name = ch.Ask.Provider
	}
	if name == "" {
		if f := withheldAnyway(ch.Route.Shape, ch.RawPath); f != nil {
			return f
		}
		return fault.New(fault.MissingProvider, "x-gateway-provider", "Either x-gateway-config or x-gateway-provider header is required; or name a saved provider in the model as @slug/model")
	}
	p, ok := provider.ByID(name)
	if !ok {
		return fault.Newf(fault.UnknownProvider, "x-gateway-provider", "Invalid provider passed: %q is not a provider of this gateway", fault.Clip(name, 300))
	}
	if inline && ch.BlocksInline() {
		return ch.Blocked(fault.InlineProviderBlocked, "x-gateway-provider", "a provider name")
	}
	if err := ch.named(p); err != nil {
		return err
	}
	if err := ch.mayCall(p); err != nil {
		return err
	}
	var cred provider.Credential
	var err error
	if leaf.APIKey != "" || !inline {
		cred = provider.CredentialFromConfig(p, leaf.APIKey, leaf.Fields)
	}
	saved := ch.Config.ID != "" && (leaf.APIKey != "" || !inline) && p.Holds(leaf.APIKey, leaf.Fields)
	if err := ch.mayPass(p, saved); err != nil {
		return err
	}
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
	ch.To.Target = provider.Target{Provider: p, Credential: cred, CallerKey: true, Saved: saved}
	ch.To.Target.CustomHost, _ = ch.hostAsked()
	if host, field := ch.To.Target.OwnHost(); host != "" {
		checked, err := ch.Means.Hosts.Check(host, field)
		if err != nil {
			return err
		}
		if ch.To.Target.CustomHost != "" {
			ch.To.Target.CustomHost = trimSlash(checked)
		}
	}
	return nil
}

// speak settles which dialect the target speaks on this route.
func (ch *Chooser) speak() error {
	p := ch.To.Target.Provider
	switch {
	case ch.Route.Shape == routes.Raw:
		return nil
	case ch.Route.Shape == routes.Listing:
		ch.To.Op = ch.Route.Operation
		return nil
	}
	if err := ch.needsModel(); err != nil {
		return err
	}
	if ch.Route.Client == nil {
		return ch.speakOperation()
	}
	name, op, ok := ch.To.Target.Speaks(ch.Route.Operation, ch.Route.Client.Name(), ch.To.Model)
	if ch.Route.Passed() != nil && ok && name == ch.Route.Client.Name() && !(ch.Route.InPath && ch.To.Model != ch.ID) {
		return ch.pass()
	}
	if ch.Route.Streams && ch.Route.Client.Name() == provider.Gemini && ch.Req.URL.Query().Get("alt") != "sse" {
		return fault.Invalid("alt", "alt must be sse: %s does not speak this shape, and its stream is translated to events alone", p.ID)
	}
	if ok {
		ch.To.Dialect, ok = ch.Means.Dialects[name]
	}
	if !ok {
		return Unsupported(ch.Route.Endpoint, p)
	}
	if ch.To.Model == "" && !ch.SameDialect() {
		return fault.Invalid("model", "is required: %s keeps no prompts that name one", p.ID)
	}
	ch.To.Op, ch.To.Traits = op, ch.To.Target.TraitsFor(ch.Ctx, ch.To.Model)
	ch.Means.plainer.apply(ch.Target, ch.Now)
	ch.To.Upstream = ch.To.Target.UpstreamModel(ch.To.Model)
	ch.Loss.Strict, ch.Loss.StrictAnswer = ch.Ask.NoLoss, ch.Strict()
	return ch.mayRefer()
}

// pass has a target of the client's own shape get the request as it came.
func (ch *Chooser) pass() error {
	ch.native = ch.Route
	ch.Route = ch.native.Passed()
	if err := ch.mayPass(ch.To.Target.Provider, ch.To.Target.Saved); err != nil || ch.To.Saved == nil {
		return err
	}
	return ch.mayUse()
}

// speakOperation settles how the target takes an operation that is no
// conversation: in the client's own shape, or by a translator.
func (ch *Chooser) speakOperation() error {
	ch.Loss.Strict, ch.Loss.StrictAnswer = ch.Ask.NoLoss, false
	if ch.Route.Operation == provider.GeminiCountTokens && ch.To.Target.Provider.ID == "google" && ch.To.Model == ch.ID {
		return ch.pass()
	}
	if ch.Route.Local != nil && ch.To.Target.DialectOf(ch.Route.Operation, ch.To.Model) == "" {
		ch.To.Op, ch.To.Local = ch.Route.Operation, true
		return nil
	}
	p, op := ch.To.Target.Provider, ch.Route.Operation
	if err := ch.needsRecording(op); err != nil {
		return err
	}
	if op == provider.BatchesOutput {
		op = provider.BatchesGet // the batch says which file holds its output
	}
	name := ch.To.Target.DialectOf(op, ch.To.Model)
	ch.To.Jobs = ch.Means.Jobs[name]
	if ch.To.Carrier = ch.Means.Carriers[name]; ch.To.Carrier == nil && ch.To.Jobs == nil && name != provider.OpenAI && name != provider.OpenAIResponses && !ch.Through() && (ch.Route.Live == nil || name == "") {
		return Unsupported(ch.Route.Endpoint, p)
	}
	ch.To.Op, ch.To.Traits = op, ch.To.Target.TraitsFor(ch.Ctx, ch.To.Model)
	if ch.To.Model != "" && !(ch.Route.NoModel && ch.Model == "") {
		ch.To.Upstream = ch.To.Target.UpstreamModel(ch.To.Model)
	}
	return nil
}
