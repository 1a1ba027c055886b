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
	tg.Choice = Choice{Leaf: leaf, Model: tg.Body.Model, lenient: leaf.Lenient, Timeout: leaf.Timeout, Forward: leaf.Forward}
	tg.Choice.Names.Option = leaf.Path
	if tg.Req.Headers.Timeout > 0 {
		tg.Choice.Timeout = tg.Req.Headers.Timeout
	}
	if len(tg.Req.Headers.Forward) > 0 {
		tg.Choice.Forward = tg.Req.Headers.Forward
	}
	own, err := fill(tg, leaf)
	if err != nil {
		return err
	}
	slug, model := leaf.Slug, leaf.Model
	if model != "" {
		tg.Choice.Model = model
	}
	if slug == "" && leaf.Provider == "" {
		slug = tg.Plan.RequestedSlugOr(leaf, own)
	}
	if slug != "" {
		err = chooseSaved(tg, slug)
	} else {
		err = chooseDirect(tg, leaf)
	}
	if err != nil {
		return err
	}
	if !tg.Req.DryRun { // a dry run calls no token service and no catalog
		tg.Choice.Target.Signer, tg.Choice.Target.TrustedTransport = tg.Deps.Tokens, tg.Deps.TrustedTransport
	}
	tg.Choice.Names.Provider, tg.Choice.Names.Model = tg.Choice.Target.Provider.ID, tg.Choice.Model
	return speak(tg)
}

// chooseSaved uses a saved provider. Its credential goes only to the provider's own address or
// to the host saved with it.
func chooseSaved(tg *Target, slug string) error {
	s, err := saved.Load(tg.Req.Ctx, tg.Req.View, tg.Req.Principal.Scope, slug, tg.Req.StartTime)
	if err != nil {
		return err
	}
	tg.Choice.candidate = s.Provider
	if host, field := requestedHost(tg); host != "" && !sameHost(host, s.CustomHost) {
		return storedWithAddress(field)
	}
	if err := named(tg, s.Provider); err != nil {
		return err
	}
	if s.Integration.Restricts() {
		tg.Choice.limited = s
	}
	if err := mayCall(tg, s.Provider); err != nil {
		return err
	}
	if tg.Choice.Model != "" {
		if err := s.Allows(tg.Choice.Model); err != nil {
			return err
		}
	} else if hidden(tg) && s.Integration.Restricts() {
		return fault.Newf(fault.ModelNotAllowed, "model", "The provider @%s is limited to some models, and the model of this body cannot be read; send it as plain JSON", s.Slug)
	}
	if err := mayPass(tg, s.Provider, true); err != nil {
		return err
	}
	opened := s.Cached(tg.Req.StartTime)
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
	tg.Choice.Saved, tg.Choice.Subjects = s, s.Subjects
	tg.Choice.Target = provider.Target{Provider: s.Provider, Saved: true, Credential: *cred, CustomHost: s.CustomHost, CustomHeaders: s.CustomHeaders}
	if m := s.Model(tg.Choice.Model); m != nil && m.Configurations != nil {
		if m.Configurations.CustomHost != "" {
			tg.Choice.Target.CustomHost = m.Configurations.CustomHost
		}
		if headers := opened.ModelHeaders[m.Slug]; headers != nil {
			tg.Choice.Target.CustomHeaders = headers
		}
	}
	tg.Choice.Names.Slug, tg.Choice.Names.Integration = s.Slug, s.IntegrationID
	return nil
}

// opening returns the dependencies for opening saved credentials.
func (tg *Target) opening() *saved.Deps {
	return &saved.Deps{Sealer: tg.Deps.Sealer, Secrets: tg.Deps.Secrets, View: tg.Req.View, Scope: tg.Req.Principal.Scope, Now: tg.Req.StartTime, Rehearsing: tg.Req.DryRun}
}

// CredentialRefused records that the target's provider did not accept its credential.
func (tg *Target) CredentialRefused() {
	if tg.Choice.Saved != nil && !tg.Req.DryRun {
		tg.Choice.Saved.MarkRejected(tg.Req.Ctx, tg.opening())
	}
}

// chooseDirect uses a provider by name with a credential that the request or the
// config carries.
func chooseDirect(tg *Target, leaf *route.Leaf) error {
	name := leaf.Provider
	inline := name == ""
	if inline {
		name = tg.Req.Headers.Provider
	}
	if name == "" {
		if f := withheldAnyway(tg.Req.Route.BodyMode, tg.Body.RawPath); f != nil {
			return f
		}
		if f := tg.Req.Route.MisdirectedFault(tg.Req.Req.Method, tg.Req.Req.URL.EscapedPath()); f != nil {
			return f
		}
		return fault.New(fault.MissingProvider, "x-gateway-provider", "Either x-gateway-config or x-gateway-provider header is required; or name a saved provider in the model as @slug/model")
	}
	p, ok := provider.ByID(name)
	if !ok {
		return fault.Newf(fault.UnknownProvider, "x-gateway-provider", "Invalid provider passed: %q is no saved provider, whose name begins with @, and %s", fault.Clip(name, 300), provider.UnknownProviderMessage(name))
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
	saved := tg.Plan.Config.ID != "" && (leaf.APIKey != "" || !inline) && p.HasSecret(leaf.APIKey, leaf.Fields)
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
	tg.Choice.Target = provider.Target{Provider: p, Credential: cred, CallerKey: true, Saved: saved}
	tg.Choice.Target.CustomHost, _ = requestedHost(tg)
	if host, field := tg.Choice.Target.OwnHost(); host != "" {
		checked, err := tg.Deps.Hosts.Check(host, field)
		if err != nil {
			return err
		}
		if tg.Choice.Target.CustomHost != "" {
			tg.Choice.Target.CustomHost = trimSlash(checked)
		}
	}
	return nil
}

// speak determines the target's dialect on this route.
func speak(tg *Target) error {
	p := tg.Choice.Target.Provider
	switch {
	case tg.Req.Route.BodyMode == routes.Raw:
		return nil
	case tg.Req.Route.BodyMode == routes.Listing:
		tg.Choice.Op = tg.Req.Route.Operation
		return nil
	}
	if err := needsModel(tg); err != nil {
		return err
	}
	if tg.Req.Route.Client == nil {
		return speakOperation(tg)
	}
	name, op, ok := tg.Choice.Target.UpstreamDialect(tg.Req.Route.Operation, tg.Req.Route.Client.Name(), tg.Choice.Model)
	if tg.Req.Route.Passed() != nil && ok && name == tg.Req.Route.Client.Name() && !(tg.Req.Route.InPath && tg.Choice.Model != tg.Body.ID) {
		return pass(tg)
	}
	if tg.Req.Route.Streams && tg.Req.Route.Client.Name() == provider.Gemini && tg.Req.Req.URL.Query().Get("alt") != "sse" {
		return fault.Invalid("alt", "alt must be sse: the stream of %s is translated, which is only supported as events", p.ID)
	}
	if ok {
		tg.Choice.Dialect, ok = tg.Deps.Dialects[name]
	}
	if !ok {
		return Unsupported(tg.Req.Route.Endpoint, p)
	}
	if tg.Choice.Model == "" && !tg.SameDialect() {
		return fault.Invalid("model", "is required: %s has no stored prompts that name one", p.ID)
	}
	tg.Choice.Op, tg.Choice.Traits = op, tg.Choice.Target.TraitsFor(tg.Req.Ctx, tg.Choice.Model)
	tg.Deps.plainer.apply(tg, tg.Req.Now)
	tg.Choice.Upstream = tg.Choice.Target.UpstreamModel(tg.Choice.Model)
	tg.Loss.Strict, tg.Loss.StrictResponse = tg.Req.Headers.StrictTranslation, tg.StrictOpenAI()
	if err := inlineItems(tg); err != nil {
		return err
	}
	return mayRefer(tg)
}

// pass makes a target with the client's own dialect get the request unchanged.
func pass(tg *Target) error {
	tg.native = tg.Req.Route
	tg.Req.ServeAs(tg.native.Passed())
	if err := mayPass(tg, tg.Choice.Target.Provider, tg.Choice.Target.Saved); err != nil || tg.Choice.Saved == nil {
		return err
	}
	return mayUse(tg)
}

// speakOperation determines how the target accepts an operation that is not a conversation: in
// the client's own format, or by a translator.
func speakOperation(tg *Target) error {
	tg.Loss.Strict, tg.Loss.StrictResponse = tg.Req.Headers.StrictTranslation, false
	if tg.Req.Route.Operation == provider.GeminiCountTokens && tg.Choice.Target.Provider.ID == "google" && tg.Choice.Model == tg.Body.ID {
		return pass(tg)
	}
	if tg.Req.Route.Local != nil && tg.Choice.Target.DialectOf(tg.Req.Route.Operation, tg.Choice.Model) == "" {
		tg.Choice.Op, tg.Choice.Local = tg.Req.Route.Operation, true
		return nil
	}
	p, op := tg.Choice.Target.Provider, tg.Req.Route.Operation
	if err := needsRecording(tg, op); err != nil {
		return err
	}
	if op == provider.BatchesOutput {
		op = provider.BatchesGet // the batch names the file with its output
	}
	name := tg.Choice.Target.DialectOf(op, tg.Choice.Model)
	tg.Choice.Jobs = tg.Deps.Jobs[name]
	if tg.Choice.Translator = tg.Deps.Translators[name]; tg.Choice.Translator == nil && tg.Choice.Jobs == nil && name != provider.OpenAI && name != provider.OpenAIResponses && !tg.UsesRoutePath() && (tg.Req.Route.Live() == nil || name == "") {
		return Unsupported(tg.Req.Route.Endpoint, p)
	}
	tg.Choice.Op, tg.Choice.Traits = op, tg.Choice.Target.TraitsFor(tg.Req.Ctx, tg.Choice.Model)
	if tg.Choice.Model != "" && !(tg.Req.Route.NoModel && tg.Body.Model == "") {
		tg.Choice.Upstream = tg.Choice.Target.UpstreamModel(tg.Choice.Model)
	}
	return nil
}

// fill renders the target's own prompt, if it has one, instead of the request's. It returns the
// saved provider that the body names.
func fill(tg *Target, leaf *route.Leaf) (slug string, err error) {
	tg.Choice.Prompt = tg.Body.Prompt
	if leaf.PromptID == "" || tg.Body.Prompt == nil || leaf.PromptID == tg.Body.Prompt.RequestedName {
		return tg.Body.Slug, nil
	}
	by, err := tg.Body.RenderPrompt(leaf.PromptID)
	if err != nil {
		return "", err
	}
	if by.Compiled.Type != tg.Body.Prompt.Compiled.Type {
		return "", fault.Newf(fault.InvalidConfig, "prompt_id", "The prompt of this target has the type %s, and the request has the type %s", by.Compiled.Type, tg.Body.Prompt.Compiled.Type)
	}
	tg.Choice.Prompt = by
	slug, tg.Choice.Model = body.ModelOf(by)
	return slug, nil
}

// This file enforces one rule: a stored credential, of an integration, a config or a default, is
// never sent to an address that a caller names. provider.Part states the purpose of each field.

// storedWithAddress returns the fault for an address from the caller.
func storedWithAddress(field string) error {
	return fault.Newf(fault.BlockedHost, field, "%s sets the destination of the request, and cannot be combined with a stored credential unless it equals the value saved with it; omit it, or send your own credential", field)
}

// requestedHost returns the custom host of the request or of the config, and the field that holds
// it.
func requestedHost(tg *Target) (host, field string) {
	if tg.Req.Headers.CustomHost != "" {
		return tg.Req.Headers.CustomHost, "x-gateway-custom-host"
	}
	return tg.Choice.Leaf.CustomHost, "custom_host"
}

// staysPut rejects values that would redirect a saved provider: headers, and fields of a config
// in the request.
func staysPut(tg *Target, s *saved.Provider, cred *provider.Credential) error {
	if field := cred.HostHeader(s.Provider, tg.Req.Req.Header); field != "" {
		return storedWithAddress(field)
	}
	if tg.Plan.Config.ID != "" || len(tg.Choice.Leaf.Fields) == 0 {
		return nil
	}
	if field := cred.HostConfigField(s.Provider, tg.Choice.Leaf.Fields); field != "" {
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
	if host := tg.Req.Headers.CustomHost; host != "" && !sameHost(host, tg.Choice.Leaf.CustomHost) {
		return storedWithAddress("x-gateway-custom-host")
	}
	if field := cred.HostHeader(p, tg.Req.Req.Header); field != "" {
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
