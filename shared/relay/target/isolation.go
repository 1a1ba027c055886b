package target

import (
	"net/http"
	"slices"
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
	"gateway/shared/route/saved"
)

// mayUse checks the ids in the request against a saved provider, before its credential is
// opened.
func mayUse(tg *Target) error {
	if !tg.Choice.Isolation.Enabled {
		return nil // no other workspace uses the credential
	}
	if tg.Req.Route.Client != nil {
		return nil // see mayRefer
	}
	if err := mayReach(tg); err != nil {
		return err
	}
	if err := mayUseItems(tg, tg.Body.In); err != nil {
		return err
	}
	ids, err := requestedIDs(tg)
	if err == nil {
		err = check(tg, ids)
	}
	if err != nil {
		return err
	}
	return mayReadRows(tg)
}

// mayPass rejects paths that are not forwarded with stored credentials, and upgrades to
// connections that the gateway could not inspect.
func mayPass(tg *Target, p *provider.Provider, saved bool) error {
	if tg.Req.Route.BodyMode != routes.Raw {
		return nil
	}
	if saved {
		if why := routes.WithheldReason(tg.Body.RawPath(), p.ID); why != "" {
			return withheld(" of "+p.ID, why)
		}
	}
	// Other upgrades, such as the h2c that some clients offer with each request, are not
	// forwarded and end here.
	if slices.ContainsFunc(tg.Req.Req.Header["Upgrade"], func(v string) bool { return strings.Contains(strings.ToLower(v), "websocket") }) {
		return fault.New(fault.NotAllowed, "upgrade", "The gateway carries WebSockets at "+routes.BasePath+"/realtime, "+routes.BasePath+"/responses, "+routes.BasePath+"/live/sessions and that of Gemini's Live API only; other WebSocket endpoints cannot be metered, rate limited or billed. Send requests and read streams of events")
	}
	return nil
}

func withheld(of, why string) error {
	return fault.Newf(fault.NotAllowed, "path", "This path%s is not forwarded with a stored credential, because it %s", of, why)
}

// withheldAnyway returns the fault for a passed-through path that is never forwarded with a
// stored credential; nil for others. A request that names its provider where the gateway does
// not read it, such as in the query of a WebSocket, gets this fault instead of one for a missing
// provider.
func withheldAnyway(shape routes.BodyMode, path func() string) error {
	if shape != routes.Raw {
		return nil
	}
	if why := routes.WithheldReason(path(), ""); why != "" {
		return withheld("", why)
	}
	return nil
}

// mayReach rejects ambiguous paths, and bodies with ids that cannot be read.
func mayReach(tg *Target) error {
	if tg.Body.StoredPath().Collection == "" || !tg.Choice.Isolation.Shared {
		return nil
	}
	if tg.Body.StoredPath().Ambiguous {
		return ownership.Missing("path", tg.Req.Req.URL.EscapedPath())
	}
	if tg.Body.UnknownModel && tg.Body.Form == nil && !tg.Body.Multipart() {
		return fault.New(fault.InvalidContentType, "content-type", "The credential is shared by several workspaces: send the body as plain JSON, so that the objects that it names can be checked")
	}
	return nil
}

// requestedIDs returns the ids of stored objects in path, query and body.
func requestedIDs(tg *Target) ([]ownership.Named, error) {
	ids := tg.Body.StoredPath().IDs(tg.Req.Req.Method, tg.Req.Req.URL)
	form, err := formOf(tg)
	if err != nil {
		return nil, err
	}
	if form != nil {
		switch at := tg.Body.StoredPath(); {
		case form.Complete() || !tg.Choice.Isolation.Shared || at.TakesUploads():
		case at.FormsNameObjects():
			return nil, formTooLong()
		default:
			fieldsFirst(tg, form)
		}
		more, err := ownership.IDsInForm(form)
		return append(ids, more...), err
	}
	if len(tg.Body.In) == 0 || tg.Body.UnknownModel || tg.Body.StoredPath().Collection == "" && !reference.MayNameObjects(tg.Body.In) {
		return ids, nil
	}
	more, err := ownership.IDsIn(tg.Body.In)
	return append(ids, more...), err
}

// mayRefer checks the ids in the body of a conversation: all of them if its bytes are forwarded
// unchanged, those of files if it is translated.
func mayRefer(tg *Target) error {
	if tg.Req.Route.Client == nil || tg.Choice.Saved == nil || !tg.Choice.Isolation.Enabled {
		return nil
	}
	src := tg.Body.In
	if tg.Choice.inlined != nil {
		src = tg.Choice.inlined
	}
	src, _ = tg.Unmark(src)
	if err := mayUseItems(tg, src); err != nil {
		return err
	}
	if !reference.MayNameObjects(src) {
		return check(tg, nil)
	}
	ids, err := ownership.IDsIn(src)
	if err != nil {
		return err
	}
	if !tg.SameDialect() {
		ids = ownership.Files(ids)
	}
	return check(tg, ids)
}

func check(tg *Target, ids []ownership.Named) error {
	if ownership.IsTuned(tg.Choice.Model) {
		ids = append(ids, ownership.Named{Field: "model", ID: tg.Choice.Model, Published: true})
	}
	return tg.Deps.Owners.Check(tg.Req.Ctx, tg.Req.Principal.Scope, &tg.Choice.Isolation, ids)
}

// RecordOwnership records the ownership of the objects in a response. It is called before the client has
// the ids.
func RecordOwnership(tg *Target, answer []byte) error {
	if !keeps(tg) || tg.Body.StoredPath().Collection == "" {
		return nil
	}
	ids := ownership.CreatedIDs(answer, makes(tg))
	if tg.Body.StoredPath().Collection == "chat/completions" {
		ids = append(ids, ownership.AudioIDs(answer)...)
	}
	if err := keepItems(tg, answer); err != nil {
		return err
	}
	return keepIDs(tg, ids...)
}

// RecordCreated records the objects created by a response of a unified route: a response, and a
// stored chat, by its id, other objects by the response body. Of a stream it is only the id.
func RecordCreated(tg *Target, answer []byte, id string) error {
	if tg.Req.Route.Client == nil {
		return RecordOwnership(tg, answer)
	}
	if talksMessages(tg) && id != "" && ownership.Resumable(tg.Body.In) {
		if err := keepIDs(tg, id); err != nil {
			return err
		}
	}
	if err := keepItems(tg, answer); err != nil {
		return err
	}
	if talksMessages(tg) && answer != nil {
		return keepIDs(tg, ownership.Containers(answer)...)
	}
	if talksChat(tg) && answer != nil {
		if err := keepIDs(tg, ownership.AudioIDs(answer)...); err != nil {
			return err
		}
	}
	if id == "" || !tg.SameDialect() {
		return nil
	}
	if tg.Req.Route.Operation == provider.ResponsesCreate || tg.Req.Route.Operation == provider.Chat && storesChat(tg) {
		return keepIDs(tg, id)
	}
	return nil
}

// talksMessages reports whether the response is a provider's own Messages response.
func talksMessages(tg *Target) bool {
	return keeps(tg) && tg.Req.Route.Operation == provider.Messages && tg.SameDialect()
}

// WatchCreated returns a watcher for the stream of a conversation; nil if the stream creates
// nothing besides the object of its id.
func WatchCreated(tg *Target) *ownership.IDWatcher {
	switch {
	case tg.Req.Route.Client == nil:
	case talksMessages(tg):
		return ownership.WatchContainers(func(ids ...string) error { return keepIDs(tg, ids...) })
	case talksChat(tg):
		return ownership.WatchAudio(func(ids ...string) error { return keepIDs(tg, ids...) })
	case keepsItems(tg):
		return ownership.WatchItems(func(ids ...string) error { return keepIDs(tg, ids...) })
	}
	return nil
}

// talksChat reports whether the response is a provider's own chat completion, which may contain
// audio.
func talksChat(tg *Target) bool {
	body := tg.Body.In
	if tg.Choice.Body != nil {
		body = tg.Choice.Body
	}
	return keeps(tg) && tg.Req.Route.Operation == provider.Chat && tg.SameDialect() && ownership.MayReturnAudio(body)
}

// keepIDs records that the workspace of the request created objects.
func keepIDs(tg *Target, ids ...string) error {
	if !keeps(tg) || len(ids) == 0 {
		return nil
	}
	if err := tg.Deps.Owners.Record(tg.Req.Ctx, tg.Req.Principal.Scope, tg.Choice.Isolation.Places, tg.Choice.Saved.Slug, ids...); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// Filtered reports whether the response is a list with objects of several workspaces.
func Filtered(tg *Target) bool {
	return tg.Choice.Saved != nil && tg.Choice.Isolation.Shared && tg.Req.Req.Method == http.MethodGet && tg.Body.StoredPath().Lists()
}

// raise determines the tenant isolation for the saved provider's objects.
func raise(tg *Target, s *saved.Provider, cred *saved.OpenCredential) {
	age := ownership.MaxUsesAge
	if tg.Req.Route.Client != nil && tg.Req.Route.Operation != provider.ResponsesCreate {
		age = ownership.MaxUsesAgeChat
	}
	a := ownership.Account{Integration: s.IntegrationID, Provider: s.Provider, Credential: cred.Credential, More: cred.Credentials, CustomHost: s.CustomHost, CustomHeaders: s.CustomHeaders}
	w, err := tg.Deps.Owners.Isolate(tg.Req.Ctx, tg.Req.Principal.Scope, cred.Users, &a, tg.Req.StartTime, age)
	if err != nil {
		tg.Req.Fail("read the users of a credential", err)
	}
	w.Enabled, w.Shared = w.Enabled || s.OrgWide, w.Shared || s.Shared
	tg.Choice.Isolation = w
}

// keeps reports whether objects that the request creates are recorded: always if workspaces
// share the credential.
func keeps(tg *Target) bool {
	return tg.Choice.Saved != nil && (tg.Choice.Isolation.Enabled || tg.Body.StoredPath().AlwaysNoted())
}

// storesChat reports whether the body makes the provider store a chat completion.
func storesChat(tg *Target) bool {
	if tg.Choice.Saved == nil || !tg.Choice.Isolation.Enabled {
		return false // its owner does not matter
	}
	if tg.Choice.Body != nil {
		return ownership.StoresChat(tg.Choice.Body)
	}
	return ownership.StoresChat(tg.Body.In)
}

// makes reports whether the request makes the provider create a stored object.
func makes(tg *Target) bool {
	if tg.Req.Req.Method != http.MethodPost {
		return false
	}
	s := tg.Body.StoredPath()
	return s.Creates() || s.Collection == "chat/completions" && s.ID == "" && storesChat(tg)
}

// BuffersRaw reports whether a raw response is buffered before it is sent, because it reveals ids or
// is a list that must be filtered.
func BuffersRaw(tg *Target, resp *http.Response) bool {
	if resp.StatusCode < 200 || resp.StatusCode > 299 || !keeps(tg) {
		return false
	}
	s := tg.Body.StoredPath()
	if s.Collection == "" {
		return false
	}
	if Filtered(tg) {
		return true
	}
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && (tg.Req.Req.Method == http.MethodPost || !s.Below || keepsItems(tg))
}

// Watch returns a watcher for responses that need one.
func Watch(tg *Target, resp *http.Response) *ownership.Watcher {
	if !keeps(tg) || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	sound := tg.Req.Req.Method == http.MethodPost && tg.Body.StoredPath().Collection == "chat/completions" && ownership.MayReturnAudio(tg.Body.In)
	items := keepsItems(tg)
	if !makes(tg) && !sound && !items {
		return nil
	}
	return ownership.Watch(ownership.IDKinds{Created: makes(tg), Audio: sound, Items: items}, func(ids ...string) error { return keepIDs(tg, ids...) })
}

// talksItems reports whether the request is one of Responses to a provider that supports that
// dialect, so that later requests may name the items of the response by id.
func talksItems(tg *Target) bool {
	return tg.Req.Route.Client != nil && tg.Req.Route.Operation == provider.ResponsesCreate && tg.SameDialect()
}

// hasItems reports whether bodies on a passed-through path have conversation items.
func hasItems(tg *Target) bool {
	if tg.Req.Route.Client != nil {
		return talksItems(tg)
	}
	at := tg.Body.StoredPath().Collection
	return at == "responses" || at == "conversations"
}

// mayUseItems rejects a body with a reference to an item that is not the workspace's, and
// records the ids of complete items with a foreign id: they are replaced in the request to the
// provider.
func mayUseItems(tg *Target, body []byte) error {
	if !tg.Choice.Isolation.Enabled || tg.Body.Form != nil || tg.Body.UnknownModel || len(body) == 0 || !hasItems(tg) {
		return nil
	}
	foreign, err := tg.Deps.Owners.FindForeign(tg.Req.Ctx, tg.Req.Principal.Scope, &tg.Choice.Isolation, reference.Items(body))
	tg.Choice.Isolation.ForeignItems = foreign
	return err
}

// keepsItems reports whether the items of the response are recorded as the workspace's.
func keepsItems(tg *Target) bool {
	body := tg.Body.In
	if tg.Choice.Body != nil {
		body = tg.Choice.Body
	}
	return keeps(tg) && tg.Choice.Isolation.Enabled && hasItems(tg) && ownership.StoresItems(body)
}

// keepItems records the items of a response as the workspace's, before the client has their ids.
func keepItems(tg *Target, answer []byte) error {
	if answer == nil || !keepsItems(tg) {
		return nil
	}
	ids := reference.CreatedItems(answer)
	if len(ids) == 0 {
		return nil
	}
	if err := tg.Deps.Owners.OwnItems(tg.Req.Ctx, tg.Req.Principal.Scope, tg.Choice.Isolation.Places, tg.Choice.Saved.Slug, ids); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}
