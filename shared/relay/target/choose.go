package target

import (
	"net/url"

	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/body"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
	"gateway/shared/route/saved"
)

// Choose resolves a leaf of the route to a target, and computes its body from the client's and
// the config.
func Choose(tg *Target, leaf *route.Leaf) error {
	if err := reach(tg, leaf); err != nil {
		return err
	}
	return effective(tg)
}

// reach determines the target's address, credential and dialect.
func reach(tg *Target, leaf *route.Leaf) error {
	if tg.native != nil {
		tg.Req.ServeAs(tg.native) // the previous target had its own dialect
	}
	tg.To = Choice{Leaf: leaf, Model: tg.Body.Model, lenient: leaf.Lenient, Timeout: leaf.Timeout, Forward: leaf.Forward}
	tg.To.Names.Option = leaf.Path
	if tg.Req.Ask.Timeout > 0 {
		tg.To.Timeout = tg.Req.Ask.Timeout
	}
	if len(tg.Req.Ask.Forward) > 0 {
		tg.To.Forward = tg.Req.Ask.Forward
	}
	own, err := fill(tg, leaf)
	if err != nil {
		return err
	}
	slug, model := leaf.Slug, leaf.Model
	if model != "" {
		tg.To.Model = model
	}
	if slug == "" && leaf.Provider == "" {
		slug = tg.Plan.SlugAskedOr(leaf, own)
	}
	if slug != "" {
		err = chooseSaved(tg, slug)
	} else {
		err = chooseDirect(tg, leaf)
	}
	if err != nil {
		return err
	}
	if !tg.Req.Rehearsing { // a dry run calls no token service and no catalog
		tg.To.Target.Signer, tg.To.Target.Trusting = tg.Means.Tokens, tg.Means.Trusting
	}
	tg.To.Names.Provider, tg.To.Names.Model = tg.To.Target.Provider.ID, tg.To.Model
	return speak(tg)
}

// chooseSaved uses a saved provider. Its credential goes only to the provider's own address or
// to the host saved with it.
func chooseSaved(tg *Target, slug string) error {
	s, err := saved.Load(tg.Req.Ctx, tg.Req.View, tg.Req.Who.Scope, slug, tg.Req.Start)
	if err != nil {
		return err
	}
	tg.To.asked = s.Provider
	if host, field := hostAsked(tg); host != "" && !sameHost(host, s.CustomHost) {
		return storedWithAddress(field)
	}
	if err := named(tg, s.Provider); err != nil {
		return err
	}
	if err := mayCall(tg, s.Provider); err != nil {
		return err
	}
	if tg.To.Model != "" {
		if err := s.Allows(tg.To.Model); err != nil {
			return err
		}
	} else if hidden(tg) && s.Integration.Restricts() {
		return fault.Newf(fault.ModelNotAllowed, "model", "The provider @%s is limited to some models, and the model of this body cannot be read; send it as plain JSON", s.Slug)
	}
	if err := mayPass(tg, s.Provider, true); err != nil {
		return err
	}
	opened := s.Ready(tg.Req.Start)
	if opened == nil {
		if opened, err = s.Open(tg.Req.Ctx, tg.opening()); err != nil {
			return err
		}
	}
	cred, err := rotated(tg, s, opened)
	if err != nil {
		return err
	}
	raise(tg, s, opened)
	if err := mayUse(tg); err != nil {
		return err
	}
	if err := staysPut(tg, s, cred); err != nil {
		return err
	}
	tg.To.Saved, tg.To.Subjects = s, s.Subjects
	tg.To.Target = provider.Target{Provider: s.Provider, Saved: true, Credential: *cred, CustomHost: s.CustomHost, CustomHeaders: s.CustomHeaders}
	if m := s.Model(tg.To.Model); m != nil && m.Configurations != nil {
		if m.Configurations.CustomHost != "" {
			tg.To.Target.CustomHost = m.Configurations.CustomHost
		}
		if headers := opened.ModelHeaders[m.Slug]; headers != nil {
			tg.To.Target.CustomHeaders = headers
		}
	}
	tg.To.Names.Slug, tg.To.Names.Integration = s.Slug, s.IntegrationID
	return nil
}

// opening returns the dependencies for opening saved credentials.
func (tg *Target) opening() *saved.Means {
	return &saved.Means{Sealer: tg.Means.Sealer, Secrets: tg.Means.Secrets, View: tg.Req.View, Scope: tg.Req.Who.Scope, Now: tg.Req.Start, Rehearsing: tg.Req.Rehearsing}
}

// CredentialRefused records that the target's provider did not accept its credential.
func (tg *Target) CredentialRefused() {
	if tg.To.Saved != nil && !tg.Req.Rehearsing {
		tg.To.Saved.Refused(tg.Req.Ctx, tg.opening())
	}
}

// chooseDirect uses a provider by name with a credential that the request or the
// config carries.
func chooseDirect(tg *Target, leaf *route.Leaf) error {
	name := leaf.Provider
	inline := name == ""
	if inline {
		name = tg.Req.Ask.Provider
	}
	if name == "" {
		if f := withheldAnyway(tg.Req.Route.Shape, tg.Body.RawPath); f != nil {
			return f
		}
		if f := tg.Req.Route.Mistaken(tg.Req.Req.Method, tg.Req.Req.URL.EscapedPath()); f != nil {
			return f
		}
		return fault.New(fault.MissingProvider, "x-gateway-provider", "Either x-gateway-config or x-gateway-provider header is required; or name a saved provider in the model as @slug/model")
	}
	p, ok := provider.ByID(name)
	if !ok {
		return fault.Newf(fault.UnknownProvider, "x-gateway-provider", "Invalid provider passed: %q is no saved provider, whose name begins with @, and %s", fault.Clip(name, 300), provider.NotKnown(name))
	}
	if inline && tg.Req.BlocksInline() {
		return tg.Req.Blocked(fault.InlineProviderBlocked, "x-gateway-provider", "a provider name")
	}
	if err := named(tg, p); err != nil {
		return err
	}
	if err := mayCall(tg, p); err != nil {
		return err
	}
	var cred provider.Credential
	var err error
	if leaf.APIKey != "" || !inline {
		cred = provider.CredentialFromConfig(p, leaf.APIKey, leaf.Fields)
	}
	saved := tg.Plan.Config.ID != "" && (leaf.APIKey != "" || !inline) && p.Holds(leaf.APIKey, leaf.Fields)
	if err := mayPass(tg, p, saved); err != nil {
		return err
	}
	if saved {
		if err := staysWithConfig(tg, p, &cred, inline); err != nil {
			return err
		}
	}
	if cred.Key == "" {
		var sent provider.Credential
		if sent, err = provider.CredentialFromHeaders(p, tg.Req.HeadersForProvider()); err != nil {
			return err
		}
		cred = cred.Or(sent)
	}
	tg.To.Target = provider.Target{Provider: p, Credential: cred, CallerKey: true, Saved: saved}
	tg.To.Target.CustomHost, _ = hostAsked(tg)
	if host, field := tg.To.Target.OwnHost(); host != "" {
		checked, err := tg.Means.Hosts.Check(host, field)
		if err != nil {
			return err
		}
		if tg.To.Target.CustomHost != "" {
			tg.To.Target.CustomHost = trimSlash(checked)
		}
	}
	return nil
}

// speak determines the target's dialect on this route.
func speak(tg *Target) error {
	p := tg.To.Target.Provider
	switch {
	case tg.Req.Route.Shape == routes.Raw:
		return nil
	case tg.Req.Route.Shape == routes.Listing:
		tg.To.Op = tg.Req.Route.Operation
		return nil
	}
	if err := needsModel(tg); err != nil {
		return err
	}
	if tg.Req.Route.Client == nil {
		return speakOperation(tg)
	}
	name, op, ok := tg.To.Target.UpstreamDialect(tg.Req.Route.Operation, tg.Req.Route.Client.Name(), tg.To.Model)
	if tg.Req.Route.Passed() != nil && ok && name == tg.Req.Route.Client.Name() && !(tg.Req.Route.InPath && tg.To.Model != tg.Body.ID) {
		return pass(tg)
	}
	if tg.Req.Route.Streams && tg.Req.Route.Client.Name() == provider.Gemini && tg.Req.Req.URL.Query().Get("alt") != "sse" {
		return fault.Invalid("alt", "alt must be sse: the stream of %s is translated, which is only supported as events", p.ID)
	}
	if ok {
		tg.To.Dialect, ok = tg.Means.Dialects[name]
	}
	if !ok {
		return Unsupported(tg.Req.Route.Endpoint, p)
	}
	if tg.To.Model == "" && !tg.SameDialect() {
		return fault.Invalid("model", "is required: %s has no stored prompts that name one", p.ID)
	}
	tg.To.Op, tg.To.Traits = op, tg.To.Target.TraitsFor(tg.Req.Ctx, tg.To.Model)
	tg.Means.plainer.apply(tg, tg.Req.Now)
	tg.To.Upstream = tg.To.Target.UpstreamModel(tg.To.Model)
	tg.Loss.Strict, tg.Loss.StrictAnswer = tg.Req.Ask.NoLoss, tg.Strict()
	if err := inlineItems(tg); err != nil {
		return err
	}
	return mayRefer(tg)
}

// pass makes a target with the client's own dialect get the request unchanged.
func pass(tg *Target) error {
	tg.native = tg.Req.Route
	tg.Req.ServeAs(tg.native.Passed())
	if err := mayPass(tg, tg.To.Target.Provider, tg.To.Target.Saved); err != nil || tg.To.Saved == nil {
		return err
	}
	return mayUse(tg)
}

// speakOperation determines how the target accepts an operation that is not a conversation: in
// the client's own format, or by a translator.
func speakOperation(tg *Target) error {
	tg.Loss.Strict, tg.Loss.StrictAnswer = tg.Req.Ask.NoLoss, false
	if tg.Req.Route.Operation == provider.GeminiCountTokens && tg.To.Target.Provider.ID == "google" && tg.To.Model == tg.Body.ID {
		return pass(tg)
	}
	if tg.Req.Route.Local != nil && tg.To.Target.DialectOf(tg.Req.Route.Operation, tg.To.Model) == "" {
		tg.To.Op, tg.To.Local = tg.Req.Route.Operation, true
		return nil
	}
	p, op := tg.To.Target.Provider, tg.Req.Route.Operation
	if err := needsRecording(tg, op); err != nil {
		return err
	}
	if op == provider.BatchesOutput {
		op = provider.BatchesGet // the batch names the file with its output
	}
	name := tg.To.Target.DialectOf(op, tg.To.Model)
	tg.To.Jobs = tg.Means.Jobs[name]
	if tg.To.Carrier = tg.Means.Carriers[name]; tg.To.Carrier == nil && tg.To.Jobs == nil && name != provider.OpenAI && name != provider.OpenAIResponses && !tg.Through() && (tg.Req.Route.Live() == nil || name == "") {
		return Unsupported(tg.Req.Route.Endpoint, p)
	}
	tg.To.Op, tg.To.Traits = op, tg.To.Target.TraitsFor(tg.Req.Ctx, tg.To.Model)
	if tg.To.Model != "" && !(tg.Req.Route.NoModel && tg.Body.Model == "") {
		tg.To.Upstream = tg.To.Target.UpstreamModel(tg.To.Model)
	}
	return nil
}

// fill renders the target's own prompt, if it has one, instead of the request's. It returns the
// saved provider that the body names.
func fill(tg *Target, leaf *route.Leaf) (slug string, err error) {
	tg.To.Prompt = tg.Body.Filled
	if leaf.PromptID == "" || tg.Body.Filled == nil || leaf.PromptID == tg.Body.Filled.RequestedName {
		return tg.Body.Slug, nil
	}
	by, err := tg.Body.FilledBy(leaf.PromptID)
	if err != nil {
		return "", err
	}
	if by.Compiled.Type != tg.Body.Filled.Compiled.Type {
		return "", fault.Newf(fault.InvalidConfig, "prompt_id", "The prompt of this target has the type %s, and the request has the type %s", by.Compiled.Type, tg.Body.Filled.Compiled.Type)
	}
	tg.To.Prompt = by
	slug, tg.To.Model = body.ModelOf(by)
	return slug, nil
}

// This file enforces one rule: a stored credential, of an integration, a config or a default, is
// never sent to an address that a caller names. provider.Part states the purpose of each field.

// storedWithAddress returns the fault for an address from the caller.
func storedWithAddress(field string) error {
	return fault.Newf(fault.BlockedHost, field, "%s sets the destination of the request, and cannot be combined with a stored credential unless it equals the value saved with it; omit it, or send your own credential", field)
}

// hostAsked returns the custom host of the request or of the config, and the field that holds
// it.
func hostAsked(tg *Target) (host, field string) {
	if tg.Req.Ask.CustomHost != "" {
		return tg.Req.Ask.CustomHost, "x-gateway-custom-host"
	}
	return tg.To.Leaf.CustomHost, "custom_host"
}

// staysPut rejects values that would redirect a saved provider: headers, and fields of a config
// in the request.
func staysPut(tg *Target, s *saved.Provider, cred *provider.Credential) error {
	if field := cred.MovedBy(s.Provider, tg.Req.Req.Header); field != "" {
		return storedWithAddress(field)
	}
	if tg.Plan.Config.ID != "" || len(tg.To.Leaf.Fields) == 0 {
		return nil
	}
	if field := cred.MovedByFields(s.Provider, tg.To.Leaf.Fields); field != "" {
		return storedWithAddress(field)
	}
	return nil
}

// staysWithConfig rejects a request that would send the credential of a saved config's target to
// another address. inline: the request chooses the provider, so it would choose who gets the
// key.
func staysWithConfig(tg *Target, p *provider.Provider, cred *provider.Credential, inline bool) error {
	if inline {
		return storedWithAddress("x-gateway-provider")
	}
	if host := tg.Req.Ask.CustomHost; host != "" && !sameHost(host, tg.To.Leaf.CustomHost) {
		return storedWithAddress("x-gateway-custom-host")
	}
	if field := cred.MovedBy(p, tg.Req.Req.Header); field != "" {
		return storedWithAddress(field)
	}
	return nil
}

// sameHost reports whether a custom host from a request equals the saved one: scheme, host, port
// and path.
func sameHost(asked, own string) bool {
	a, errA := url.Parse(asked)
	b, errB := url.Parse(own)
	if errA != nil || errB != nil || own == "" {
		return false
	}
	return a.Scheme == b.Scheme && a.Host == b.Host && trimSlash(a.EscapedPath()) == trimSlash(b.EscapedPath()) && a.RawQuery == b.RawQuery && a.User == nil
}

func trimSlash(p string) string {
	for len(p) > 0 && p[len(p)-1] == '/' {
		p = p[:len(p)-1]
	}
	return p
}
