package chosen

import (
	"net/http"
	"slices"
	"strings"

	"gateway/shared/dialect/reference"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/kept"
	"gateway/shared/relay/reserved"
	"gateway/shared/relay/routes"
	"gateway/shared/route/saved"
)

// Wall keeps what workspaces made at a provider apart: see kept.Owners.
type Wall struct {
	Target *Target
}

// mayUse checks the ids that the request names against a saved provider, before
// its credential is opened.
func (o *Wall) mayUse() error {
	if !o.Target.To.Wall.On {
		return nil // nobody else uses the credential
	}
	if o.Target.Req.Route.Client != nil {
		return nil // see mayRefer
	}
	if err := o.mayReach(); err != nil {
		return err
	}
	if err := mayUseItems(o, o.Target.Body.In); err != nil {
		return err
	}
	ids, err := o.idsAsked()
	if err == nil {
		err = o.check(ids)
	}
	if err != nil {
		return err
	}
	return mayReadRows(o)
}

// mayPass refuses paths that are not passed on with what is stored, and connections that
// would go on where nothing of them is seen.
func (o *Wall) mayPass(p *provider.Provider, saved bool) error {
	if o.Target.Req.Route.Shape != routes.Raw {
		return nil
	}
	if saved {
		if why := reserved.Withholds(o.Target.Body.RawPath(), p.ID); why != "" {
			return withheld(" of "+p.ID, why)
		}
	}
	// Other upgrades, such as the h2c that some clients offer with each request, are not
	// passed on and end here.
	if slices.ContainsFunc(o.Target.Req.Req.Header["Upgrade"], func(v string) bool { return strings.Contains(strings.ToLower(v), "websocket") }) {
		return fault.New(fault.NotAllowed, "upgrade", "The gateway carries WebSockets at "+routes.BasePath+"/realtime, "+routes.BasePath+"/responses, "+routes.BasePath+"/live/sessions and that of Gemini's Live API alone; what is said over others could not be told, limited or paid. Send requests and read streams of events")
	}
	return nil
}

func withheld(of, why string) error {
	return fault.Newf(fault.NotAllowed, "path", "This path%s is not forwarded with a stored credential, because it %s", of, why)
}

// withheldAnyway returns the fault for a passed-through path that no provider is sent with a
// stored credential; nil for others. A request that names its provider where the gateway
// does not look, such as in the query of a WebSocket, is told this and not that the
// provider is missing.
func withheldAnyway(shape routes.Shape, path func() string) error {
	if shape != routes.Raw {
		return nil
	}
	if why := reserved.Withholds(path(), ""); why != "" {
		return withheld("", why)
	}
	return nil
}

// mayReach refuses paths that cannot be read in one way only, and bodies whose
// ids cannot be read.
func (o *Wall) mayReach() error {
	if o.Target.Body.KeptPath().Collection == "" || !o.Target.To.Wall.Shared {
		return nil
	}
	if o.Target.Body.KeptPath().Evasive {
		return kept.Missing("path", o.Target.Req.Req.URL.EscapedPath())
	}
	if o.Target.Body.Unread && o.Target.Body.Form == nil && !o.Target.Body.Multipart() {
		return fault.New(fault.InvalidContentType, "content-type", "The credential is shared by several workspaces: send the body as plain JSON, so that the things that it names can be checked")
	}
	return nil
}

// idsAsked are the ids of stored things in path, query and body.
func (o *Wall) idsAsked() ([]kept.Named, error) {
	ids := o.Target.Body.KeptPath().IDs(o.Target.Req.Req.Method, o.Target.Req.Req.URL)
	form, err := formOf(o)
	if err != nil {
		return nil, err
	}
	if form != nil {
		switch at := o.Target.Body.KeptPath(); {
		case form.Whole() || !o.Target.To.Wall.Shared || at.TakesUploads():
		case at.FormsNameObjects():
			return nil, formTooLong()
		default:
			fieldsFirst(o.Target, form)
		}
		more, err := kept.IDsInForm(form)
		return append(ids, more...), err
	}
	if len(o.Target.Body.In) == 0 || o.Target.Body.Unread || o.Target.Body.KeptPath().Collection == "" && !reference.MayNameObjects(o.Target.Body.In) {
		return ids, nil
	}
	more, err := kept.IDsIn(o.Target.Body.In)
	return append(ids, more...), err
}

// mayRefer checks the ids in the body of a conversation: all where its bytes go to the
// provider as they came, those of files where it is translated.
func (o *Wall) mayRefer() error {
	if o.Target.Req.Route.Client == nil || o.Target.To.Saved == nil || !o.Target.To.Wall.On {
		return nil
	}
	if err := mayUseItems(o, o.Target.Body.In); err != nil {
		return err
	}
	if !reference.MayNameObjects(o.Target.Body.In) {
		return o.check(nil)
	}
	ids, err := kept.IDsIn(o.Target.Body.In)
	if err != nil {
		return err
	}
	if !o.Target.SameDialect() {
		ids = kept.Files(ids)
	}
	return o.check(ids)
}

func (o *Wall) check(ids []kept.Named) error {
	if kept.Tuned(o.Target.To.Model) {
		ids = append(ids, kept.Named{Field: "model", ID: o.Target.To.Model, Published: true})
	}
	return o.Target.Means.Owners.Check(o.Target.Req.Ctx, o.Target.Req.Who.Scope, &o.Target.To.Wall, ids)
}

// Keep notes whose the things are that an answer tells of. It is called before
// the client can know the ids.
func (o *Wall) Keep(answer []byte) error {
	if !o.keeps() || o.Target.Body.KeptPath().Collection == "" {
		return nil
	}
	ids := kept.Made(answer, o.makes())
	if o.Target.Body.KeptPath().Collection == "chat/completions" {
		ids = append(ids, kept.Sounds(answer)...)
	}
	if err := keepItems(o, answer); err != nil {
		return err
	}
	return o.keepIDs(ids...)
}

// KeepMade notes what a unified answer made: a response, and a chat that is to be
// kept, by its id, other things by what the answer says. Of a stream it is only the id.
func (o *Wall) KeepMade(answer []byte, id string) error {
	if o.Target.Req.Route.Client == nil {
		return o.Keep(answer)
	}
	if o.talksMessages() && id != "" && kept.Resumable(o.Target.Body.In) {
		if err := o.keepIDs(id); err != nil {
			return err
		}
	}
	if err := keepItems(o, answer); err != nil {
		return err
	}
	if o.talksMessages() && answer != nil {
		return o.keepIDs(kept.Containers(answer)...)
	}
	if talksChat(o) && answer != nil {
		if err := o.keepIDs(kept.Sounds(answer)...); err != nil {
			return err
		}
	}
	if id == "" || !o.Target.SameDialect() {
		return nil
	}
	if o.Target.Req.Route.Operation == provider.ResponsesCreate || o.Target.Req.Route.Operation == provider.Chat && o.storesChat() {
		return o.keepIDs(id)
	}
	return nil
}

// talksMessages tells whether the answer is one of Messages as the provider gives it.
func (o *Wall) talksMessages() bool {
	return o.keeps() && o.Target.Req.Route.Operation == provider.Messages && o.Target.SameDialect()
}

// WatchMade makes a watcher for the stream of a conversation; nil where it makes nothing
// but what its id names.
func (o *Wall) WatchMade() *kept.IDWatcher {
	switch {
	case o.Target.Req.Route.Client == nil:
	case o.talksMessages():
		return kept.WatchContainers(o.keepIDs)
	case talksChat(o):
		return kept.WatchSounds(o.keepIDs)
	case keepsItems(o):
		return kept.WatchItems(o.keepIDs)
	}
	return nil
}

// talksChat tells whether the answer is a chat as the provider gives it, which may be sound.
func talksChat(o *Wall) bool {
	body := o.Target.Body.In
	if o.Target.To.Body != nil {
		body = o.Target.To.Body
	}
	return o.keeps() && o.Target.Req.Route.Operation == provider.Chat && o.Target.SameDialect() && kept.AsksSound(body)
}

// keepIDs notes that the workspace of the request made things.
func (o *Wall) keepIDs(ids ...string) error {
	if !o.keeps() || len(ids) == 0 {
		return nil
	}
	if err := o.Target.Means.Owners.Own(o.Target.Req.Ctx, o.Target.Req.Who.Scope, o.Target.To.Wall.Places, o.Target.To.Saved.Slug, ids...); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// Filtered tells whether the answer is a list that holds things of several
// workspaces.
func (o *Wall) Filtered() bool {
	return o.Target.To.Saved != nil && o.Target.To.Wall.Shared && o.Target.Req.Req.Method == http.MethodGet && o.Target.Body.KeptPath().Lists()
}

// raise learns which wall stands around the saved provider's things.
func (o *Wall) raise(s *saved.Provider, cred *saved.Opened) {
	age := kept.UsesAsked
	if o.Target.Req.Route.Client != nil && o.Target.Req.Route.Operation != provider.ResponsesCreate {
		age = kept.UsesTalked
	}
	a := kept.Account{Integration: s.IntegrationID, Provider: s.Provider, Credential: cred.Credential, CustomHost: s.CustomHost, CustomHeaders: s.CustomHeaders}
	w, err := o.Target.Means.Owners.Around(o.Target.Req.Ctx, o.Target.Req.Who.Scope, cred.Users, &a, o.Target.Req.Start, age)
	if err != nil {
		o.Target.Req.Fail("who else uses a credential", err)
	}
	w.On, w.Shared = w.On || s.OrgWide, w.Shared || s.Shared
	o.Target.To.Wall = w
}

// keeps tells whether what the request makes is noted: always where workspaces
// share the credential.
func (o *Wall) keeps() bool {
	return o.Target.To.Saved != nil && (o.Target.To.Wall.On || o.Target.Body.KeptPath().AlwaysNoted())
}

// storesChat tells whether the body has the provider keep a chat completion.
func (o *Wall) storesChat() bool {
	if o.Target.To.Saved == nil || !o.Target.To.Wall.On {
		return false // whose it is need not be known
	}
	if o.Target.To.Body != nil {
		return kept.StoresChat(o.Target.To.Body)
	}
	return kept.StoresChat(o.Target.Body.In)
}

// makes tells whether the request has the provider make something that it keeps.
func (o *Wall) makes() bool {
	if o.Target.Req.Req.Method != http.MethodPost {
		return false
	}
	s := o.Target.Body.KeptPath()
	return s.Creates() || s.Collection == "chat/completions" && s.ID == "" && o.storesChat()
}

// Holds tells whether a raw answer is read whole before it is sent, because it
// makes things known or is a list that must be divided.
func (o *Wall) Holds(resp *http.Response) bool {
	if resp.StatusCode < 200 || resp.StatusCode > 299 || !o.keeps() {
		return false
	}
	s := o.Target.Body.KeptPath()
	if s.Collection == "" {
		return false
	}
	if o.Filtered() {
		return true
	}
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && (o.Target.Req.Req.Method == http.MethodPost || !s.Below || keepsItems(o))
}

// Watch makes a watcher for answers that need one.
func (o *Wall) Watch(resp *http.Response) *kept.Watcher {
	if !o.keeps() || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	sound := o.Target.Req.Req.Method == http.MethodPost && o.Target.Body.KeptPath().Collection == "chat/completions" && kept.AsksSound(o.Target.Body.In)
	items := keepsItems(o)
	if !o.makes() && !sound && !items {
		return nil
	}
	return kept.Watch(kept.Sought{Made: o.makes(), Sounds: sound, Items: items}, o.keepIDs)
}
