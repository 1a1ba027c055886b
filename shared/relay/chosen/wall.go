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
	"gateway/shared/relay/saved"
)

// Wall keeps what workspaces made at a provider apart: see kept.Owners.
type Wall struct {
	*Target
}

// mayUse checks the ids that the request names against a saved provider, before
// its credential is opened.
func (o *Wall) mayUse() error {
	if !o.To.Wall.On {
		return nil // nobody else uses the credential
	}
	if o.Route.Client != nil {
		return nil // see mayRefer
	}
	if err := o.mayReach(); err != nil {
		return err
	}
	if err := mayUseItems(o, o.In); err != nil {
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
	if o.Route.Shape != routes.Raw {
		return nil
	}
	if saved {
		if why := reserved.Withholds(o.RawPath(), p.ID); why != "" {
			return withheld(" of "+p.ID, why)
		}
	}
	// Other upgrades, such as the h2c that some clients offer with each request, are not
	// passed on and end here.
	if slices.ContainsFunc(o.Req.Header["Upgrade"], func(v string) bool { return strings.Contains(strings.ToLower(v), "websocket") }) {
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
	if o.KeptPath().Collection == "" || !o.To.Wall.Shared {
		return nil
	}
	if o.KeptPath().Evasive {
		return kept.Missing("path", o.Req.URL.EscapedPath())
	}
	if o.Unread && o.Form == nil && !o.Multipart() {
		return fault.New(fault.InvalidContentType, "content-type", "The credential is shared by several workspaces: send the body as plain JSON, so that the things that it names can be checked")
	}
	return nil
}

// idsAsked are the ids of stored things in path, query and body.
func (o *Wall) idsAsked() ([]kept.Named, error) {
	ids := o.KeptPath().IDs(o.Req.Method, o.Req.URL)
	form, err := formOf(o)
	if err != nil {
		return nil, err
	}
	if form != nil {
		switch at := o.KeptPath(); {
		case form.Whole() || !o.To.Wall.Shared || at.TakesUploads():
		case at.FormsNameObjects():
			return nil, formTooLong()
		default:
			fieldsFirst(o.Target, form)
		}
		more, err := kept.IDsInForm(form)
		return append(ids, more...), err
	}
	if len(o.In) == 0 || o.Unread || o.KeptPath().Collection == "" && !reference.MayNameObjects(o.In) {
		return ids, nil
	}
	more, err := kept.IDsIn(o.In)
	return append(ids, more...), err
}

// mayRefer checks the ids in the body of a conversation: all where its bytes go to the
// provider as they came, those of files where it is translated.
func (o *Wall) mayRefer() error {
	if o.Route.Client == nil || o.To.Saved == nil || !o.To.Wall.On {
		return nil
	}
	if err := mayUseItems(o, o.In); err != nil {
		return err
	}
	if !reference.MayNameObjects(o.In) {
		return o.check(nil)
	}
	ids, err := kept.IDsIn(o.In)
	if err != nil {
		return err
	}
	if !o.SameDialect() {
		ids = kept.Files(ids)
	}
	return o.check(ids)
}

func (o *Wall) check(ids []kept.Named) error {
	if kept.Tuned(o.To.Model) {
		ids = append(ids, kept.Named{Field: "model", ID: o.To.Model, Published: true})
	}
	return o.Means.Owners.Check(o.Ctx, o.Who.Scope, &o.To.Wall, ids)
}

// Keep notes whose the things are that an answer tells of. It is called before
// the client can know the ids.
func (o *Wall) Keep(answer []byte) error {
	if !o.keeps() || o.KeptPath().Collection == "" {
		return nil
	}
	ids := kept.Made(answer, o.makes())
	if o.KeptPath().Collection == "chat/completions" {
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
	if o.Route.Client == nil {
		return o.Keep(answer)
	}
	if o.talksMessages() && id != "" && kept.Resumable(o.In) {
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
	if id == "" || !o.SameDialect() {
		return nil
	}
	if o.Route.Operation == provider.ResponsesCreate || o.Route.Operation == provider.Chat && o.storesChat() {
		return o.keepIDs(id)
	}
	return nil
}

// talksMessages tells whether the answer is one of Messages as the provider gives it.
func (o *Wall) talksMessages() bool {
	return o.keeps() && o.Route.Operation == provider.Messages && o.SameDialect()
}

// WatchMade makes a watcher for the stream of a conversation; nil where it makes nothing
// but what its id names.
func (o *Wall) WatchMade() *kept.IDWatcher {
	switch {
	case o.Route.Client == nil:
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
	body := o.In
	if o.To.Body != nil {
		body = o.To.Body
	}
	return o.keeps() && o.Route.Operation == provider.Chat && o.SameDialect() && kept.AsksSound(body)
}

// keepIDs notes that the workspace of the request made things.
func (o *Wall) keepIDs(ids ...string) error {
	if !o.keeps() || len(ids) == 0 {
		return nil
	}
	if err := o.Means.Owners.Own(o.Ctx, o.Who.Scope, o.To.Wall.Places, o.To.Saved.Slug, ids...); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// Filtered tells whether the answer is a list that holds things of several
// workspaces.
func (o *Wall) Filtered() bool {
	return o.To.Saved != nil && o.To.Wall.Shared && o.Req.Method == http.MethodGet && o.KeptPath().Lists()
}

// raise learns which wall stands around the saved provider's things.
func (o *Wall) raise(s *saved.Provider, cred *saved.Opened) {
	age := kept.UsesAsked
	if o.Route.Client != nil && o.Route.Operation != provider.ResponsesCreate {
		age = kept.UsesTalked
	}
	a := kept.Account{Integration: s.IntegrationID, Provider: s.Provider, Credential: cred.Credential, CustomHost: s.CustomHost, CustomHeaders: s.CustomHeaders}
	w, err := o.Means.Owners.Around(o.Ctx, o.Who.Scope, cred.Users, &a, o.Start, age)
	if err != nil {
		o.Fail("who else uses a credential", err)
	}
	w.On, w.Shared = w.On || s.OrgWide, w.Shared || s.Shared
	o.To.Wall = w
}

// keeps tells whether what the request makes is noted: always where workspaces
// share the credential.
func (o *Wall) keeps() bool {
	return o.To.Saved != nil && (o.To.Wall.On || o.KeptPath().AlwaysNoted())
}

// storesChat tells whether the body has the provider keep a chat completion.
func (o *Wall) storesChat() bool {
	if o.To.Saved == nil || !o.To.Wall.On {
		return false // whose it is need not be known
	}
	if o.To.Body != nil {
		return kept.StoresChat(o.To.Body)
	}
	return kept.StoresChat(o.In)
}

// makes tells whether the request has the provider make something that it keeps.
func (o *Wall) makes() bool {
	if o.Req.Method != http.MethodPost {
		return false
	}
	s := o.KeptPath()
	return s.Creates() || s.Collection == "chat/completions" && s.ID == "" && o.storesChat()
}

// Holds tells whether a raw answer is read whole before it is sent, because it
// makes things known or is a list that must be divided.
func (o *Wall) Holds(resp *http.Response) bool {
	if resp.StatusCode < 200 || resp.StatusCode > 299 || !o.keeps() {
		return false
	}
	s := o.KeptPath()
	if s.Collection == "" {
		return false
	}
	if o.Filtered() {
		return true
	}
	return strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json") && (o.Req.Method == http.MethodPost || !s.Below || keepsItems(o))
}

// Watch makes a watcher for answers that need one.
func (o *Wall) Watch(resp *http.Response) *kept.Watcher {
	if !o.keeps() || !strings.HasPrefix(resp.Header.Get("Content-Type"), "text/event-stream") {
		return nil
	}
	sound := o.Req.Method == http.MethodPost && o.KeptPath().Collection == "chat/completions" && kept.AsksSound(o.In)
	items := keepsItems(o)
	if !o.makes() && !sound && !items {
		return nil
	}
	return kept.Watch(kept.Sought{Made: o.makes(), Sounds: sound, Items: items}, o.keepIDs)
}
