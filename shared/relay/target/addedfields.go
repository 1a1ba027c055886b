package target

import (
	"bytes"
	"errors"
	"hash/maphash"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"time"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/admission"
	"gateway/shared/relay/body"
	"gateway/shared/relay/form"
	"gateway/shared/relay/ownership"
	"gateway/shared/relay/routes"
)

// A request to an OpenAI-compatible host may contain fields that its client did not write: usage
// in a stream, a key for the prompt cache, strict adherence to a schema. If a host rejects one
// of them, the request is retried without it, and the host is remembered with the model, so that
// the next request omits it. The same is done with a path that a host is assumed to have, see
// byNative.

// added are fields that the gateway adds to bodies.
type added uint8

const (
	addedStreamOptions added = 1 << iota
	addedCacheKey
	addedStrict
	addedBreakpoints // ends of prefixes, where the client marked them in another format
	addedSystemTurns // system prompts between the turns
	addedNative      // the client's own dialect, at a host with another
	ofThisRequest    // with addedNative: the rejection is of the request, not of the host
)

// addedWords are the names by which a rejection refers to them.
var addedWords = [...]struct {
	what added
	word string
}{{addedStreamOptions, "stream_options"}, {addedStreamOptions, "include_usage"}, {addedCacheKey, "prompt_cache_key"}, {addedStrict, "strict"},
	{addedBreakpoints, "prompt_cache_breakpoint"}, {addedSystemTurns, "role 'system'"}, {addedSystemTurns, `role "system"`}}

// adds returns the fields of the target's body that the client did not write.
func (tg *Target) adds() (a added) {
	if tg.Req.Route.Client == nil || tg.Choice.Dialect == nil {
		return 0
	}
	if tg.Stream && !tg.WantUsage && tg.Choice.RequestsUsage() {
		a |= addedStreamOptions
	}
	if tg.SameDialect() || tg.Decoded == nil {
		return a
	}
	switch tg.Choice.Dialect.Name() {
	case provider.Converse:
		if tg.Choice.Traits.SystemTurns {
			a |= addedSystemTurns
		}
	case provider.OpenAIChat, provider.OpenAIResponses:
		if tg.Choice.Traits.PromptCacheKey && chat.Fields(tg.Decoded.Extra).Find("prompt_cache_key") == nil {
			a |= addedCacheKey
		}
		if tg.Choice.Traits.Breakpoints && !tg.Decoded.Breakpoints {
			a |= addedBreakpoints
		}
		if tg.Decoded.Format.AssumedStrict && !tg.Choice.Traits.NoAssumedStrict {
			a |= addedStrict
		}
	}
	return a
}

// plain returns the traits of a target without the fields that a adds.
func plain(t chat.Traits, a added) chat.Traits {
	t.NoStreamUsage = t.NoStreamUsage || a&addedStreamOptions != 0
	t.PromptCacheKey = t.PromptCacheKey && a&addedCacheKey == 0
	t.Breakpoints = t.Breakpoints && a&addedBreakpoints == 0
	t.SystemTurns = t.SystemTurns && a&addedSystemTurns == 0
	t.NoAssumedStrict = t.NoAssumedStrict || a&addedStrict != 0
	return t
}

// RejectedFields returns the added fields that a host's rejection names.
func (tg *Target) RejectedFields(f *fault.Fault) (refused added) {
	if f == nil {
		return 0
	}
	if route := tg.Choice.rejectedRoute(f); route != 0 {
		return route
	}
	told := chat.ProviderErrorOf(f)
	if tg.Req.Route.Client == nil || told == nil || told.Status != http.StatusBadRequest && told.Status != http.StatusUnprocessableEntity {
		return 0
	}
	ours := tg.adds() &^ tg.Choice.leaves
	for _, w := range addedWords {
		if ours&w.what != 0 && (strings.Contains(told.Param, w.word) || strings.Contains(told.Message, w.word)) {
			refused |= w.what
		}
	}
	return refused
}

// OmitAdded removes fields from those added for the target.
func (tg *Target) OmitAdded(refused added) {
	if refused&addedNative != 0 {
		tg.byOwn()
	}
	tg.Choice.leaveOut(refused)
}

func (t *Choice) leaveOut(a added) {
	t.leaves |= a
	t.Traits = plain(t.Traits, a)
}

// CacheRejected remembers the fields that the target's host has rejected.
func (tg *Target) CacheRejected(refused added) {
	if refused = refused.lasting(); refused != 0 {
		tg.Deps.plainer.learn(tg.Choice.hostModel(), refused, tg.Req.Now())
	}
}

// lasting returns the parts of a rejection that apply to other requests too.
func (a added) lasting() added {
	if a&ofThisRequest != 0 {
		a &^= addedNative | ofThisRequest
	}
	return a
}

// learned is how long a rejection is remembered. It expires, because hosts add support later,
// and because one account may have access to a feature that another lacks.
const learned = 10 * time.Minute

// hostModel returns the key under which rejections of added fields are remembered.
func (t *Choice) hostModel() hostModel {
	host, _ := t.Target.OwnHost()
	if host == "" {
		host = t.Region() // each region has its own host and models
	}
	return hostModel{t.Target.Provider.ID, host, t.Model}
}

type hostModel struct{ provider, host, model string }

// plainer remembers which fields hosts reject, by host and model. Its memory is limited: a new
// entry overwrites the one in its slot.
type plainer struct {
	used  atomic.Bool
	known [512]atomic.Pointer[plainerHost]
}

type plainerHost struct {
	of     hostModel
	leaves added
	until  time.Time
}

var plainerSeed = maphash.MakeSeed()

func (p *plainer) place(of hostModel) *atomic.Pointer[plainerHost] {
	return &p.known[maphash.Comparable(plainerSeed, of)%uint64(len(p.known))]
}

func (p *plainer) learn(of hostModel, refused added, now time.Time) {
	at := p.place(of)
	of = hostModel{strings.Clone(of.provider), strings.Clone(of.host), strings.Clone(of.model)}
	for {
		before := at.Load()
		leaves := refused
		if before != nil && before.of == of && now.Before(before.until) {
			leaves |= before.leaves
		}
		if at.CompareAndSwap(before, &plainerHost{of, leaves, now.Add(learned)}) {
			p.used.Store(true)
			return
		}
	}
}

// apply omits the fields that the host is known to reject.
func (p *plainer) apply(to *Target, now func() time.Time) {
	if !p.used.Load() {
		return
	}
	of := to.Choice.hostModel()
	if known := p.place(of).Load(); known != nil && known.of == of && now().Before(known.until) {
		to.Choice.leaveOut(known.leaves)
	}
}

// StoreReasoning stores the signed reasoning of a response for a client that cannot return it.
func (tg *Target) StoreReasoning(signed []chat.Signed) {
	if !tg.StrictOpenAI() || tg.SameDialect() && !tg.Choice.omitsReasoning {
		return
	}
	for _, s := range signed {
		if err := tg.Deps.Memory.Put(tg.Req.Ctx, tg.Req.Principal.Scope, s); err != nil {
			tg.Req.Fail("remember reasoning", err)
		}
	}
}

// LoadReasoning returns stored reasoning to the dialect that encodes the next turn.
func (tg *Target) LoadReasoning(toolCallID string) []chat.Part {
	parts, err := tg.Deps.Memory.Get(tg.Req.Ctx, tg.Req.Principal.Scope, toolCallID)
	if err != nil {
		tg.Req.Fail("recall reasoning", err)
	}
	return parts
}

// Restore returns a body in the provider's own dialect with the reasoning that its host requires
// and the client has not returned.
func Restore(tg *Target, body []byte) []byte {
	client, ok := tg.Req.Route.Client.(chat.Restorer)
	if !ok || !tg.StrictOpenAI() {
		return body
	}
	body, tg.Choice.omitsReasoning = client.Restore(body, &tg.Choice.Traits, tg.LoadReasoning)
	return body
}

// StoresForwarded reports whether StoreReasoning stores the reasoning of a response that is forwarded.
func StoresForwarded(tg *Target) bool { return tg.Choice.omitsReasoning }

// StoreForwardedReasoning is StoreReasoning for a complete response that is forwarded.
func StoreForwardedReasoning(tg *Target, response []byte) {
	if !tg.Choice.omitsReasoning || !bytes.Contains(response, []byte(`"tool_calls"`)) {
		return
	}
	if r, err := tg.Choice.Dialect.DecodeResponse(response, &tg.Choice.Traits); err == nil {
		tg.StoreReasoning(r.Signed())
	}
}

// StoresItems reports whether the gateway stores the items of the response for later references:
// the client has not set store to false, and the provider is reached by translation.
func StoresItems(tg *Target) bool {
	_, ok := tg.Req.Route.Client.(chat.ReferenceReader)
	return ok && tg.Req.Route.Operation == provider.ResponsesCreate && tg.Choice.Dialect != nil && !tg.SameDialect() && ownership.StoresItems(tg.Body.In)
}

// StoreItems stores the items of a response before the client gets it. If it fails, a later
// reference to them gets a fault that requests the items.
func StoreItems(tg *Target, response []byte) {
	id, items := tg.Req.Route.Client.(chat.ReferenceReader).Output(response)
	if id == "" {
		return
	}
	if err := tg.Deps.Memory.PutOutput(tg.Req.Ctx, tg.Req.Principal.Scope, id, items); err != nil {
		tg.Req.Fail("store items", err)
		return
	}
	if err := tg.Deps.Memory.PutInput(tg.Req.Ctx, tg.Req.Principal.Scope, id, tg.Choice.continues, tg.Choice.input); err != nil {
		tg.Req.Fail("store input", err)
	}
}

// Echoed returns the request with the fields that a cached response repeats; nil if there are none.
func Echoed(tg *Target) *chat.Request {
	if !StoresItems(tg) {
		return tg.Body.LegacyOnly()
	}
	src := tg.Body.In
	if tg.Choice.inlined != nil {
		src = tg.Choice.inlined
	}
	r, err := tg.Req.Route.Client.DecodeRequest(src)
	if err != nil {
		return nil
	}
	return r
}

// inlineItems replaces references by the items of earlier responses of the workspace that the gateway
// stores, because they were translated, and previous_response_id by the conversation. Other
// references remain.
func inlineItems(tg *Target) (err error) {
	client, ok := tg.Req.Route.Client.(chat.ReferenceReader)
	if !ok || tg.Req.Route.Operation != provider.ResponsesCreate {
		return nil
	}
	tg.Choice.inlined, err = client.Inline(tg.Body.In, chat.Stored{
		Output: func(id string) ([]byte, error) {
			items, err := tg.Deps.Memory.Output(tg.Req.Ctx, tg.Req.Principal.Scope, id)
			if err != nil {
				return nil, fault.Unavailable(err)
			}
			return items, nil
		},
		Conversation: func(id string, most int) (items []byte, err error) {
			if items, tg.Choice.continues, err = tg.Deps.Memory.Conversation(tg.Req.Ctx, tg.Req.Principal.Scope, id, most); err != nil {
				return nil, fault.Unavailable(err)
			}
			return items, nil
		},
	})
	if err == nil && !tg.SameDialect() {
		if tg.Choice.previous, tg.Choice.input = client.Input(tg.Body.In); tg.Choice.input == nil && tg.Choice.continues != nil {
			tg.Choice.input = []byte("[]")
		}
	}
	return err
}

// stores returns the size of output up to which the response is stored; zero if it is not. A
// response without its input cannot be continued, and does not count as stored.
func (tg *Target) stores() int {
	if !StoresItems(tg) || !ownership.StoresInput(tg.Choice.continues, tg.Choice.input) {
		return 0
	}
	return ownership.MaxOutput
}

// Unmark returns a body that is forwarded unchanged without reasoning of other providers, which
// its provider rejects, and what it removed.
func (tg *Target) Unmark(body []byte) ([]byte, []chat.LostField) {
	route := tg.Req.Route
	if tg.native != nil {
		route = tg.native
	}
	client, ok := route.Client.(chat.Unmarker)
	if !ok || tg.native == nil && (tg.Choice.Dialect == nil || !tg.SameDialect()) {
		return body, nil
	}
	return client.Unmark(body)
}

// formOf returns the form in the request, nil if it has none. A passed-through form is read only
// with a credential that several workspaces use.
func formOf(tg *Target) (*form.Form, error) {
	if tg.Body.Form != nil || !tg.Choice.Isolation.Shared {
		return tg.Body.Form, nil
	}
	return passedForm(tg)
}

// fieldsFirst ends the request at a field after the first file of a form that is not buffered
// completely.
func fieldsFirst(tg *Target, f *form.Form) {
	if f.Complete() {
		return
	}
	rest := &tg.Req.Req.Body
	if body, ok := tg.Req.Req.Body.(*resumed); ok {
		rest = &body.rest
	}
	if _, done := (*rest).(*form.FieldsFirst); !done {
		*rest = f.FieldsFirst(*rest)
	}
}

// BodyFault returns the fault of the rest of a form; nil if there is none.
func (tg *Target) BodyFault() *fault.Fault {
	body := tg.Req.Req.Body
	if r, ok := body.(*resumed); ok {
		body = r.rest
	}
	if r, ok := body.(*form.FieldsFirst); ok {
		return r.Fault()
	}
	return nil
}

// passedForm reads the form of a passed-through request, nil if it has none. The bytes read
// precede the rest of the body again.
func passedForm(tg *Target) (*form.Form, error) {
	if tg.Choice.form != nil || tg.Req.Route.BodyMode != routes.Raw || tg.Body.In != nil || !tg.Body.Multipart() ||
		tg.Req.Req.Body == nil || tg.Req.Req.Body == http.NoBody || tg.Req.Req.ContentLength == 0 {
		return tg.Choice.form, nil
	}
	boundary, err := form.BoundaryOf(admission.SingleHeader(tg.Req.Req.Header, "Content-Type"))
	if err != nil {
		return nil, err
	}
	if room := form.FormMemory(tg.Req.Req.ContentLength); room > egress.Uncounted {
		if err := tg.Req.Lease.Reserve(tg.Req.Ctx, room); err != nil {
			return nil, err
		}
	}
	f, err := form.ReadForm(tg.Req.Req.Body, boundary, tg.Req.Req.ContentLength, nil)
	var long form.TooLong
	var broken form.ReadError
	switch {
	case errors.As(err, &long):
		return nil, formTooLong()
	case errors.As(err, &broken):
		return nil, body.Unreadable(broken.Err)
	case err != nil:
		return nil, err
	}
	tg.Choice.form = f
	tg.Req.Req.Body = &resumed{bytes.NewReader(f.Head()), tg.Req.Req.Body}
	return f, nil
}

// resumed is a body that was partly read. It implements io.ReadCloser.
type resumed struct {
	head *bytes.Reader
	rest io.ReadCloser
}

// Read implements io.Reader.
func (r *resumed) Read(p []byte) (int, error) {
	if r.head.Len() > 0 {
		return r.head.Read(p)
	}
	return r.rest.Read(p)
}

// Close implements io.Closer.
func (r *resumed) Close() error { return r.rest.Close() }

func formTooLong() error {
	return fault.Newf(fault.BodyTooLarge, "body", "must have at most %d bytes: the credential is shared by several workspaces, and the objects that a longer form names cannot be checked; send ids as JSON, or upload the file at /files", form.MaxReplay)
}
