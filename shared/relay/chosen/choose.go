package chosen

import (
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
	"gateway/shared/route/saved"
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
	if ch.Target.native != nil {
		ch.Target.Req.Route = ch.Target.native // the target before spoke its shape
	}
	ch.Target.To = Choice{Leaf: leaf, Model: ch.Target.Body.Model, lenient: leaf.Lenient, Timeout: leaf.Timeout, Forward: leaf.Forward}
	ch.Target.To.Names.Option = leaf.Path
	if ch.Target.Req.Ask.Timeout > 0 {
		ch.Target.To.Timeout = ch.Target.Req.Ask.Timeout
	}
	if len(ch.Target.Req.Ask.Forward) > 0 {
		ch.Target.To.Forward = ch.Target.Req.Ask.Forward
	}
	own, err := ch.fill(leaf)
	if err != nil {
		return err
	}
	slug, model := leaf.Slug, leaf.Model
	if model != "" {
		ch.Target.To.Model = model
	}
	if slug == "" && leaf.Provider == "" {
		slug = ch.Target.Plan.SlugAskedOr(leaf, own)
	}
	if slug != "" {
		err = ch.chooseSaved(slug)
	} else {
		err = ch.chooseDirect(leaf)
	}
	if err != nil {
		return err
	}
	if !ch.Target.Req.Rehearsing { // a rehearsal asks no token service and no catalogue
		ch.Target.To.Target.Signer, ch.Target.To.Target.Trusting = ch.Target.Means.Tokens, ch.Target.Means.Trusting
	}
	ch.Target.To.Names.Provider, ch.Target.To.Names.Model = ch.Target.To.Target.Provider.ID, ch.Target.To.Model
	return ch.speak()
}

// chooseSaved uses a saved provider. Its credential goes only to the provider's
// own address or to the host saved with it.
func (ch *Chooser) chooseSaved(slug string) error {
	s, err := saved.Load(ch.Target.Req.Ctx, ch.Target.Req.View, ch.Target.Req.Who.Scope, slug, ch.Target.Req.Start)
	if err != nil {
		return err
	}
	ch.Target.To.asked = s.Provider
	if host, field := ch.hostAsked(); host != "" && !sameHost(host, s.CustomHost) {
		return storedWithAddress(field)
	}
	if err := ch.named(s.Provider); err != nil {
		return err
	}
	if err := ch.mayCall(s.Provider); err != nil {
		return err
	}
	if ch.Target.To.Model != "" {
		if err := s.Allows(ch.Target.To.Model); err != nil {
			return err
		}
	} else if ch.hidden() && s.Integration.Restricts() {
		return fault.Newf(fault.ModelNotAllowed, "model", "The provider @%s serves some models only, and the model of this body cannot be read; send it as plain JSON", s.Slug)
	}
	if err := ch.Wall.mayPass(s.Provider, true); err != nil {
		return err
	}
	opened := s.Ready(ch.Target.Req.Start)
	if opened == nil {
		if opened, err = s.Open(ch.Target.Req.Ctx, ch.Target.opening()); err != nil {
			return err
		}
	}
	cred := opened.Credential
	ch.Wall.raise(s, opened)
	if err := ch.Wall.mayUse(); err != nil {
		return err
	}
	if err := ch.staysPut(s, cred); err != nil {
		return err
	}
	ch.Target.To.Saved, ch.Target.To.Subjects = s, s.Subjects
	ch.Target.To.Target = provider.Target{Provider: s.Provider, Saved: true, Credential: *cred, CustomHost: s.CustomHost, CustomHeaders: s.CustomHeaders}
	if m := s.Model(ch.Target.To.Model); m != nil && m.Configurations != nil {
		if m.Configurations.CustomHost != "" {
			ch.Target.To.Target.CustomHost = m.Configurations.CustomHost
		}
		if headers := opened.ModelHeaders[m.Slug]; headers != nil {
			ch.Target.To.Target.CustomHeaders = headers
		}
	}
	ch.Target.To.Names.Slug, ch.Target.To.Names.Integration = s.Slug, s.IntegrationID
	return nil
}

// opening is what saved credentials are opened with.
func (tg *Target) opening() *saved.Means {
	return &saved.Means{Sealer: tg.Means.Sealer, Secrets: tg.Means.Secrets, View: tg.Req.View, Scope: tg.Req.Who.Scope, Now: tg.Req.Start, Rehearsing: tg.Req.Rehearsing}
}

// CredentialRefused says that the target's provider did not take its credential.
func (tg *Target) CredentialRefused() {
	if tg.To.Saved != nil && !tg.Req.Rehearsing {
		tg.To.Saved.Refused(tg.Req.Ctx, tg.opening())
	}
}

// chooseDirect uses a provider by name with a credential that the request or the
// config carries.
func (ch *Chooser) chooseDirect(leaf *route.Leaf) error {
	name := leaf.Provider
	inline := name == ""
	if inline {
		name = ch.Target.Req.Ask.Provider
	}
	if name == "" {
		if f := withheldAnyway(ch.Target.Req.Route.Shape, ch.Target.Body.RawPath); f != nil {
			return f
		}
		return fault.New(fault.MissingProvider, "x-gateway-provider", "Either x-gateway-config or x-gateway-provider header is required; or name a saved provider in the model as @slug/model")
	}
	p, ok := provider.ByID(name)
	if !ok {
		return fault.Newf(fault.UnknownProvider, "x-gateway-provider", "Invalid provider passed: %q is not a provider of this gateway", fault.Clip(name, 300))
	}
	if inline && ch.Target.Req.BlocksInline() {
		return ch.Target.Req.Blocked(fault.InlineProviderBlocked, "x-gateway-provider", "a provider name")
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
	saved := ch.Target.Plan.Config.ID != "" && (leaf.APIKey != "" || !inline) && p.Holds(leaf.APIKey, leaf.Fields)
	if err := ch.Wall.mayPass(p, saved); err != nil {
		return err
	}
	if saved {
		if err := ch.staysWithConfig(p, &cred, inline); err != nil {
			return err
		}
	}
	if cred.Key == "" {
		var sent provider.Credential
		if sent, err = provider.CredentialFromHeaders(p, ch.Target.Req.HeadersForProvider()); err != nil {
			return err
		}
		cred = cred.Or(sent)
	}
	ch.Target.To.Target = provider.Target{Provider: p, Credential: cred, CallerKey: true, Saved: saved}
	ch.Target.To.Target.CustomHost, _ = ch.hostAsked()
	if host, field := ch.Target.To.Target.OwnHost(); host != "" {
		checked, err := ch.Target.Means.Hosts.Check(host, field)
		if err != nil {
			return err
		}
		if ch.Target.To.Target.CustomHost != "" {
			ch.Target.To.Target.CustomHost = trimSlash(checked)
		}
	}
	return nil
}

// speak settles which dialect the target speaks on this route.
func (ch *Chooser) speak() error {
	p := ch.Target.To.Target.Provider
	switch {
	case ch.Target.Req.Route.Shape == routes.Raw:
		return nil
	case ch.Target.Req.Route.Shape == routes.Listing:
		ch.Target.To.Op = ch.Target.Req.Route.Operation
		return nil
	}
	if err := ch.needsModel(); err != nil {
		return err
	}
	if ch.Target.Req.Route.Client == nil {
		return ch.speakOperation()
	}
	name, op, ok := ch.Target.To.Target.Speaks(ch.Target.Req.Route.Operation, ch.Target.Req.Route.Client.Name(), ch.Target.To.Model)
	if ch.Target.Req.Route.Passed() != nil && ok && name == ch.Target.Req.Route.Client.Name() && !(ch.Target.Req.Route.InPath && ch.Target.To.Model != ch.Target.Body.ID) {
		return ch.pass()
	}
	if ch.Target.Req.Route.Streams && ch.Target.Req.Route.Client.Name() == provider.Gemini && ch.Target.Req.Req.URL.Query().Get("alt") != "sse" {
		return fault.Invalid("alt", "alt must be sse: %s does not speak this shape, and its stream is translated to events alone", p.ID)
	}
	if ok {
		ch.Target.To.Dialect, ok = ch.Target.Means.Dialects[name]
	}
	if !ok {
		return Unsupported(ch.Target.Req.Route.Endpoint, p)
	}
	if ch.Target.To.Model == "" && !ch.Target.SameDialect() {
		return fault.Invalid("model", "is required: %s keeps no prompts that name one", p.ID)
	}
	ch.Target.To.Op, ch.Target.To.Traits = op, ch.Target.To.Target.TraitsFor(ch.Target.Req.Ctx, ch.Target.To.Model)
	ch.Target.Means.plainer.apply(ch.Target, ch.Target.Req.Now)
	ch.Target.To.Upstream = ch.Target.To.Target.UpstreamModel(ch.Target.To.Model)
	ch.Target.Loss.Strict, ch.Target.Loss.StrictAnswer = ch.Target.Req.Ask.NoLoss, ch.Target.Strict()
	return ch.Wall.mayRefer()
}

// pass has a target of the client's own shape get the request as it came.
func (ch *Chooser) pass() error {
	ch.Target.native = ch.Target.Req.Route
	ch.Target.Req.Route = ch.Target.native.Passed()
	if err := ch.Wall.mayPass(ch.Target.To.Target.Provider, ch.Target.To.Target.Saved); err != nil || ch.Target.To.Saved == nil {
		return err
	}
	return ch.Wall.mayUse()
}

// speakOperation settles how the target takes an operation that is no
// conversation: in the client's own shape, or by a translator.
func (ch *Chooser) speakOperation() error {
	ch.Target.Loss.Strict, ch.Target.Loss.StrictAnswer = ch.Target.Req.Ask.NoLoss, false
	if ch.Target.Req.Route.Operation == provider.GeminiCountTokens && ch.Target.To.Target.Provider.ID == "google" && ch.Target.To.Model == ch.Target.Body.ID {
		return ch.pass()
	}
	if ch.Target.Req.Route.Local != nil && ch.Target.To.Target.DialectOf(ch.Target.Req.Route.Operation, ch.Target.To.Model) == "" {
		ch.Target.To.Op, ch.Target.To.Local = ch.Target.Req.Route.Operation, true
		return nil
	}
	p, op := ch.Target.To.Target.Provider, ch.Target.Req.Route.Operation
	if err := ch.needsRecording(op); err != nil {
		return err
	}
	if op == provider.BatchesOutput {
		op = provider.BatchesGet // the batch says which file holds its output
	}
	name := ch.Target.To.Target.DialectOf(op, ch.Target.To.Model)
	ch.Target.To.Jobs = ch.Target.Means.Jobs[name]
	if ch.Target.To.Carrier = ch.Target.Means.Carriers[name]; ch.Target.To.Carrier == nil && ch.Target.To.Jobs == nil && name != provider.OpenAI && name != provider.OpenAIResponses && !ch.Target.Through() && (ch.Target.Req.Route.Live == nil || name == "") {
		return Unsupported(ch.Target.Req.Route.Endpoint, p)
	}
	ch.Target.To.Op, ch.Target.To.Traits = op, ch.Target.To.Target.TraitsFor(ch.Target.Req.Ctx, ch.Target.To.Model)
	if ch.Target.To.Model != "" && !(ch.Target.Req.Route.NoModel && ch.Target.Body.Model == "") {
		ch.Target.To.Upstream = ch.Target.To.Target.UpstreamModel(ch.Target.To.Model)
	}
	return nil
}
