// Package target resolves one leaf of a plan to a target: its address, credential and dialect,
// and the body that it gets. It rejects models that may not be used, addresses that the caller
// names for stored credentials, and ids of objects of other workspaces. Nothing is sent here.
//
// A SecretMask redacts a target's credentials from responses, errors and logs: providers repeat
// them in errors, and the log shows requests. They are found by value and overwritten by
// asterisks of the same length.
package target

import (
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/dialect/reference"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/ledger"
	"gateway/shared/prompt"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/form"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/plan"
	"gateway/shared/relay/routes"
	"gateway/shared/route"
	"gateway/shared/route/rotation"
	"gateway/shared/route/saved"
	"gateway/shared/seal"
	"gateway/shared/wire"
)

// Target is one resolved target of the plan: its address, its dialect, and the part of the
// request that it gets.
type Target struct {
	Req          *admission.Request
	Body         *body.Body
	Plan         *plan.Plan
	Deps         *Deps
	body.Demands // of the body for the target
	Choice       Choice
	Decoded      *chat.Request // canonical form, created once
	decodedOwn   bool          // decoded is of the client's own body, not of an edited one
	Loss         chat.Loss
	Edited       wire.Walk     // of a body that a config has changed
	options      chat.Options  // reused by Options
	native       *routes.Route // of a target that gets the request unchanged; nil: others
}

// Connect sets the values of the earlier stages.
func Connect(tg *Target, q *admission.Request, b *body.Body, p *plan.Plan) {
	tg.Req, tg.Body, tg.Plan = q, b, p
}

// SetDeps sets the dependencies of a request.
func SetDeps(tg *Target, m *Deps) { tg.Deps = m }

// Reuse gives a target the memory of a finished request: that of Edited.
func Reuse(tg *Target, edited wire.Walk) { tg.Edited = edited }

// ResetDemands sets the demands to those of the client's own body.
func (tg *Target) ResetDemands() { tg.Demands = tg.Body.ClientDemands }

// Serve makes a server of the gateway the target of a request that needs no provider.
func Serve(tg *Target, slug, protocol string) {
	tg.Choice.Names = Names{Slug: slug, Provider: protocol}
}

// Deps are the dependencies for resolving targets, besides the plan.
type Deps struct {
	Sealer           seal.Sealer
	Secrets          *provider.Secrets // of external managers
	Owners           *ownership.Owners
	Hosts            *egress.Hosts // hosts that requests name
	Tokens           *provider.Tokens
	TrustedTransport http.RoundTripper // to token services at custom hosts
	Dialects         map[string]chat.Provider
	Translators      map[string]chat.Translator
	Jobs             map[string]chat.Jobs
	Memory           *ownership.Memory
	Rotation         *rotation.Board
	Poll             func(b ChargeClaims, id string) // polls a background response until it is charged
	plainer          plainer                         // added fields that hosts have rejected
}

// Names are the names of a target in records and responses.
type Names struct{ Option, Provider, Slug, Integration, Model, Credential string }

// Choice is one resolved target: its address, credential and dialect.
type Choice struct {
	Leaf      *route.Leaf
	Prompt    *prompt.Rendered          // the saved prompt of the body; nil: the client wrote it
	Isolation ownership.TenantIsolation // isolates the objects of workspaces at the saved provider
	Saved     *saved.Provider           // nil with a credential of the request or of the config
	limited   *saved.Provider           // set before Saved, if its integration allows some models only
	rotates   rotating                  // of a saved provider with several credentials
	Target    provider.Target
	Traits    chat.Traits
	Model     string
	Dialect   chat.Provider // the provider's dialect for this route; nil on Raw routes
	// carrier translates an operation that is not a conversation; nil if the provider accepts
	// the client's own format.
	Translator chat.Translator
	Jobs       chat.Jobs // for files, batches and fine-tuning jobs; nil if the provider accepts the client's format
	Local      bool      // the gateway serves it without a provider, see Route.Local
	Upstream   string    // the model by the provider's name
	// contentType is that of the body that carrier made; "" is JSON.
	ContentType    string
	Op             provider.Operation
	leaves         added // added fields that its host is known to reject
	Names          Names
	lenient        bool
	omitsReasoning bool // the client does not return the reasoning that the host requires, see chat.Restorer
	Timeout        time.Duration
	Body           []byte   // the client's body after the config; nil: it is sent unchanged
	inlined        []byte   // the client's body with the items that it refers to; nil: it has no such references
	continues      []string // the responses of the conversation that the body continues, oldest first
	previous       string   // the id of the response that a translated request continues
	input          []byte   // the items that a translated request adds to the conversation
	Forward        []string
	Subjects       []*ledger.Subject  // limits of the provider and of its integration
	form           *form.Form         // of a passed-through request, if it was read
	order          *routes.Units      // of a video that is ordered by that form; nil: none
	candidate      *provider.Provider // of the saved provider, before its use is authorized
}

// InPath reports whether the path of the request names its model, and not the body.
func (tg *Target) InPath() bool {
	return tg.Req.Route.InPath || tg.native != nil && tg.native.InPath
}

// StrictOpenAI reports whether the response must keep to the OpenAI schema, without the gateway's
// extensions. It is true for native routes, whose formats have no extensions.
func (tg *Target) StrictOpenAI() bool {
	return tg.Req.Route.Passed() != nil || !tg.Req.Headers.Lenient && !tg.Choice.lenient
}

// SameDialect reports whether the bytes can be forwarded.
func (tg *Target) SameDialect() bool {
	if tg.Req.Route.Client == nil {
		return tg.Choice.Translator == nil
	}
	return tg.Choice.Dialect.Name() == tg.Req.Route.Client.Name()
}

// TranslatorRequest returns the facts of the request that a translator may use.
func (tg *Target) TranslatorRequest() *chat.TranslatorRequest {
	return &chat.TranslatorRequest{
		Body: tg.Body.In, Model: tg.Choice.Upstream, Operation: string(tg.Choice.Op), Traits: &tg.Choice.Traits, Loss: &tg.Loss, Field: tg.Choice.Target.Field,
		ID: tg.Req.ULID, Created: tg.Req.StartTime.Unix(), ProviderName: tg.Choice.Target.Provider.ID, Strict: tg.StrictOpenAI(),
	}
}

// Region returns the region of the target, for its price.
func (t *Choice) Region() string {
	for _, f := range [...]string{"aws_region", "vertex_region", "oracle_region"} {
		if v := t.Target.Field(f); v != "" {
			return v
		}
	}
	return ""
}

// DialectName is the dialect of a conversation; "" for other operations.
func (t *Choice) DialectName() string {
	if t.Dialect == nil {
		return ""
	}
	return t.Dialect.Name()
}

// RequestsUsage reports whether the target reports usage in streams only on request.
func (t *Choice) RequestsUsage() bool {
	switch t.Dialect.Name() {
	case provider.OpenAIChat, provider.OpenAICompletions:
		return !t.Traits.NoStreamUsage
	}
	return false
}

// Decode reads the conversation of a body, once for the client's own.
func (tg *Target) Decode(src []byte) (*chat.Request, error) {
	// What another target's config made of the body must not reach this one.
	if own := tg.Body.IsUnchanged(src); tg.Decoded == nil || !own || !tg.decodedOwn {
		r, err := tg.Req.Route.Client.DecodeRequest(src)
		if err != nil {
			return nil, err
		}
		tg.Decoded, tg.decodedOwn = r, own
	}
	return tg.Decoded, nil
}

// UsesRoutePath reports whether the operation goes to the route's own path although the provider's
// catalog row lacks it: at a custom host, with unknown operations. The catalog's own addresses
// are only called for operations they are known to have.
func (tg *Target) UsesRoutePath() bool {
	p := tg.Choice.Target.Provider
	if !tg.Req.Route.CustomHost || p.Serves(tg.Req.Route.Operation) || p.Dialect != provider.OpenAIChat {
		return false
	}
	own, _ := tg.Choice.Target.OwnHost()
	return own != ""
}

// SocketQuery returns the query parameters of a session that are forwarded: the target itself
// sets the model, and Azure's versions.
func (tg *Target) SocketQuery() url.Values {
	q := tg.Req.Req.URL.Query()
	for _, name := range [...]string{"model", "deployment"} {
		q.Del(name)
	}
	if tg.Choice.Target.Provider.ID == "azure-openai" && !tg.UsesRoutePath() {
		q.Del("api-version")
	}
	return q
}

// OperationURL returns the URL of an operation that is not bound to a model.
func (tg *Target) OperationURL(of Part) (*url.URL, error) {
	op, id, query := of.Op, of.ID, ""
	if tg.Req.Req.Method == http.MethodGet || tg.Req.Req.Method == http.MethodDelete {
		query = of.Query
	}
	var raw string
	var err error
	if tg.UsesRoutePath() {
		path := tg.Req.Route.Path
		if id != "" {
			path = path[:strings.IndexByte(path, '{')] + url.PathEscape(id)
		}
		raw, err = tg.Choice.Target.PassthroughURL(path, "")
	} else {
		raw, err = tg.Choice.Target.ResourceURL(op, id)
	}
	if err != nil {
		return nil, err
	}
	return provider.ExactURL(provider.AddQuery(raw, query))
}

// Part is a part of a response that is fetched by a separate request: a page of a list, a file.
type Part struct {
	Op        provider.Operation
	ID, Query string
	Further   bool   // not the first part
	Method    string // "": that of the client's request
}

// CostsNothing reports whether a passed-through request for objects stored at a provider is free
// or only counts tokens. Then no budget needs its price.
func (tg *Target) CostsNothing() bool {
	if tg.Req.Route.BodyMode != routes.Raw {
		return false
	}
	s, p := tg.Body.StoredPath(), tg.Choice.Target.Provider
	if p != nil && p.CountsTokens(tg.Body.RawPath()) {
		return true
	}
	if s.Collection == "" {
		return false
	}
	return s.Free(tg.Req.Req.Method, tg.Body.RawPath(), p != nil && p.Serves(provider.ResponsesCreate))
}

func Unsupported(endpoint string, p *provider.Provider) error {
	return fault.Newf(fault.UnsupportedOperation, "x-gateway-provider", "%s is not supported by %s", endpoint, p.ID)
}

// Passes reports whether a response is forwarded unchanged.
func (tg *Target) Passes(resp *http.Response) bool {
	if tg.Req.Route.Client != nil || tg.Choice.Translator != nil {
		return false
	}
	return tg.Req.Route.Binary || tg.Req.Route.Media && !strings.HasPrefix(resp.Header.Get("Content-Type"), "application/json")
}

// LimitUsage sets the maximum usage of a response of a session: input tokens in addition to the
// message, a field by which the provider adds input of any length, and output tokens, or seconds
// if it is priced by them.
func (tg *Target) LimitUsage(input int64, heldIn string, output, seconds int64) {
	tg.Demands = tg.Demands.ForSession(input, heldIn, output, seconds)
}

// WithModel returns the names with another model.
func (n Names) WithModel(model string) Names {
	n.Model = model
	return n
}

// Options returns what dialects write a response with. The result is valid until the next call.
func Options(tg *Target) *chat.Options {
	tg.options = chat.Options{
		Strict: tg.StrictOpenAI(), IncludeUsage: tg.WantUsage, Model: tg.Choice.Model, ID: tg.Req.ULID,
		Created: tg.Req.StartTime.Unix(), ProviderName: tg.Choice.Names.Provider, Request: tg.Decoded,
	}
	if tg.Choice.Dialect != nil {
		tg.options.OwnID = !tg.SameDialect()
		tg.options.Origin = tg.Choice.Dialect.Name()
		tg.options.Continues, tg.options.Stores = tg.Choice.previous, tg.stores()
	}
	return &tg.options
}

// needsRecording rejects a form without a file if the target does not accept a URL of a
// recording instead.
func needsRecording(tg *Target, op provider.Operation) error {
	if op != provider.AudioTranscription && op != provider.AudioTranslation || tg.Body.Form == nil || !tg.Body.Form.Complete() || tg.Body.Form.HasFile("file") || tg.Choice.Target.TakesRecordingURL() {
		return nil
	}
	return fault.Newf(fault.InvalidRequest, "file", "file is required: a file; %s does not accept a url instead", tg.Choice.Target.Provider.ID)
}

// prompted reports whether a Responses request names no model because it names a prompt stored
// at its provider, which has one.
func prompted(tg *Target) bool {
	return tg.Req.Route.Client != nil && tg.Req.Route.Client.Name() == provider.OpenAIResponses && tg.Choice.Model == "" && tg.Body.Has("prompt")
}

// needsModel rejects a request without a model, unless the model is determined elsewhere.
func needsModel(tg *Target) error {
	if tg.Choice.Model == "" && !tg.Body.Nameless() && !prompted(tg) {
		return fault.Invalid("model", "is required")
	}
	return nil
}

// ofSession are fields of a session's messages that name objects that the session itself
// creates. They have no ownership row; an id with another workspace's row is rejected.
var ofSession = []string{"response_id", "conversation", "conversation_id"}

// CheckMessage rejects a message of a session that names an object that another workspace has stored.
// The session outlives the request's own context.
func CheckMessage(tg *Target, message []byte) error {
	to := &tg.Choice
	if to.Saved == nil || !to.Isolation.Enabled || !reference.MayNameObjects(message) {
		return nil
	}
	ids, err := ownership.IDsIn(message)
	if err != nil {
		return err
	}
	for i := range ids {
		n := &ids[i]
		n.Published = n.Published || slices.Contains(ofSession, n.Field[strings.LastIndexByte(n.Field, '.')+1:])
	}
	err = tg.Deps.Owners.Check(tg.Req.Base, tg.Req.Principal.Scope, &to.Isolation, ids)
	if f := fault.From(err); err != nil && f.Code == fault.NotFound {
		return fault.New(fault.InvalidRequest, f.Field, f.Message) // the message is rejected, and the session continues
	}
	return err
}

// RecordHandle records the owner of the session that a handle resumes. It is called before the
// client has the handle.
func RecordHandle(tg *Target, handle string) error {
	if !keeps(tg) {
		return nil
	}
	if err := tg.Deps.Owners.Record(tg.Req.Base, tg.Req.Principal.Scope, tg.Choice.Isolation.Places, tg.Choice.Saved.Slug, reference.Hash(handle)); err != nil {
		return fault.Unavailable(err)
	}
	return nil
}
