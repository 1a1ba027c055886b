package target

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/wire"
)

// Hosts with their own dialect may accept the conversations of some models in the client's
// dialect too: Bedrock's runtime. There the bytes are forwarded unchanged, including fields that
// a translation would drop. This file decides when they are.

// byNative sends a conversation in its client's own dialect if the target's host is known to
// accept it, unless the body has content that only the host's own dialect supports. body is the
// request for the target.
func byNative(tg *Target, body []byte) error {
	if tg.Req.Route.Client == nil || tg.Choice.Dialect == nil || tg.Choice.Op != provider.Chat || tg.Choice.leaves&addedNative != 0 {
		return nil
	}
	shape := tg.Req.Route.Client.Name()
	op := tg.Choice.Target.Native(shape, tg.Choice.Model)
	d := tg.Deps.Dialects[shape]
	if op == "" || d == nil || staysWithOwn(body, shape, tg.Choice.Model) {
		return nil
	}
	tg.Choice.Dialect, tg.Choice.Op = d, op
	return mayRefer(tg)
}

// byOwn switches the conversation back to the host's own dialect.
func (tg *Target) byOwn() {
	if d := tg.Deps.Dialects[tg.Choice.Target.Provider.Dialect]; d != nil {
		tg.Choice.Dialect, tg.Choice.Op = d, provider.Chat
	}
}

// Fields of a body with which a conversation goes to Converse: those that only Converse
// supports, those of the gateway that only a translation supports, and those that the native
// route of a dialect is known to reject and Converse to accept.
var (
	ownMembers = []string{
		"guardrailConfig", "guardrail_config", "performanceConfig", "performance_config", "requestMetadata",
		"additionalModelRequestFields", "additional_model_request_fields",
		"additionalModelResponseFieldPaths", "additional_model_response_field_paths",
		"anthropic_version", "anthropic_beta", // both are headers for Messages
	}
	ownKeys = map[string]*wire.KeySet{
		provider.OpenAIChat:        keysWith("metadata", "thinking", "top_k"), // metadata is the request's in AWS logs
		provider.OpenAIResponses:   keysWith("metadata", "thinking", "top_k"),
		provider.AnthropicMessages: keysWith("service_tier", "output_format"),
	}
	// ownWords appear in a body that names an S3 object, which the host of Converse reads, or
	// has blocks of Converse.
	ownWords = [][]byte{[]byte(`s3://`), []byte(`s3:\/\/`), []byte(`"s3Location"`), []byte(`"cachePoint"`), []byte(`"guardContent"`)}

	markerWord = []byte(`"cache_control"`)
	strictWord = []byte(`"strict"`)
	formatKey  = wire.NewKeySet("output_config")
	toolsKey   = wire.NewKeySet("tools")
	typeIn     = wire.NewKeySet("type")
	formatIn   = wire.NewKeySet("format")
	strictIn   = wire.NewKeySet("strict")

	functionType, customType = []byte(`"function"`), []byte(`"custom"`)
)

func keysWith(more ...string) *wire.KeySet {
	return wire.NewKeySet(append(more, ownMembers...)...)
}

// staysWithOwn reports whether a body in a client's dialect needs Converse although the native
// route of its dialect exists.
func staysWithOwn(body []byte, shape, model string) bool {
	keys, known := ownKeys[shape]
	var w wire.Walk
	if !known || keys.Walk(body, &w) != nil {
		return true
	}
	for i := range keys.Keys() {
		if v := w.Spans[i]; v.Present(body) {
			return true
		}
	}
	for _, word := range ownWords {
		if bytes.Contains(body, word) {
			return true
		}
	}
	switch shape {
	case provider.AnthropicMessages:
		return holdsToSchema(body)
	case provider.OpenAIResponses:
		if hosted(body) {
			return true
		}
	case provider.OpenAIChat:
		// "Function tools with reasoning_effort are not supported", as at OpenAI.
		if when := provider.ReasonsByResponses(model); when != provider.NeverByResponses && reasonsWithTools(body, when) {
			return true
		}
	}
	return bytes.Contains(body, markerWord) // a cache point there
}

// hosted reports whether a Responses body has a tool that only the vendor's own host runs.
func hosted(body []byte) bool {
	any := false
	eachTool(body, func(tool []byte) {
		var in wire.Walk
		any = any || typeIn.Walk(tool, &in) == nil && !in.Spans[0].Absent() && !bytes.Equal(in.Spans[0].Of(tool), functionType) && !bytes.Equal(in.Spans[0].Of(tool), customType)
	})
	return any
}

// eachTool calls f with the objects among a body's tools.
func eachTool(body []byte, f func(tool []byte)) {
	var w wire.Walk
	if toolsKey.Walk(body, &w) != nil || !w.Spans[0].Present(body) {
		return
	}
	d := wire.NewDecoder(w.Spans[0].Of(body))
	if d.Kind() != wire.KindArray {
		return
	}
	for range d.Array {
		if raw := d.Raw(); wire.KindOf(raw) == wire.KindObject {
			f(raw)
		}
	}
}

// holdsToSchema reports whether a Messages body requests structured output, or has a strict
// tool: "Extra inputs are not permitted".
func holdsToSchema(body []byte) bool {
	var w, in wire.Walk
	if formatKey.Walk(body, &w) != nil {
		return false
	}
	if c := w.Spans[0]; c.Present(body) && wire.KindOf(c.Of(body)) == wire.KindObject && formatIn.Walk(c.Of(body), &in) == nil && !in.Spans[0].Absent() {
		return true
	}
	if !bytes.Contains(body, strictWord) {
		return false
	}
	strict := false
	eachTool(body, func(tool []byte) {
		strict = strict || strictIn.Walk(tool, &in) == nil && !in.Spans[0].Absent()
	})
	return strict
}

// unknownOperation is AWS's name for a path that a host does not have, even in a response with
// status 200.
var (
	unknownOperation = []byte("#UnknownOperationException\"")
	typeWord         = []byte(`"__type"`)
	usageWord        = []byte(`"usage"`)
)

// maxUnknown limits a response that is searched for it, in bytes.
const maxUnknown = 1024

// unknownStatus is the status for such a response. No other response has it.
const unknownStatus = http.StatusMethodNotAllowed

// Unrouted sets the status of a native route's response to unknownStatus if it reports that the
// path does not exist.
func (t *Choice) Unrouted(resp *http.Response) *http.Response {
	if !t.Op.IsNative() || resp.StatusCode != http.StatusOK && resp.StatusCode != http.StatusNotFound || resp.ContentLength < 1 || resp.ContentLength > maxUnknown {
		return resp
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxUnknown))
	resp.Body = &reread{io.MultiReader(bytes.NewReader(body), resp.Body), resp.Body}
	if err == nil && bytes.Contains(body, unknownOperation) && bytes.Contains(body, typeWord) && !bytes.Contains(body, usageWord) {
		resp.StatusCode = unknownStatus
	}
	return resp
}

// reread is a body that was partly read before.
type reread struct {
	io.Reader
	io.Closer
}

var (
	// routeWords are the messages by which the host reports that a model is not served on a
	// native route.
	routeWords = []string{"supported on this route", "does not support the '/", "doesn't support this api"}
	// foreignWords are those by which it rejects an unknown field or switch, which Converse
	// omits and reports.
	foreignWords = []string{"invalid beta flag", "extra inputs are not permitted", "unsupported parameter", "unknown parameter"}
)

// rejectedRoute reports whether a native route was rejected, for the host or only for this
// request.
func (t *Choice) rejectedRoute(f *fault.Fault) added {
	if !t.Op.IsNative() || f.Source != fault.SourceProvider {
		return 0
	}
	told := chat.ProviderErrorOf(f)
	if f.Status() == unknownStatus {
		return addedNative
	}
	if told == nil || told.Status != http.StatusBadRequest && told.Status != http.StatusForbidden && told.Status != http.StatusNotFound {
		return 0
	}
	words := strings.ToLower(told.Message)
	has := func(w string) bool { return strings.Contains(words, w) }
	switch {
	case slices.ContainsFunc(routeWords, has):
		return addedNative
	case told.Status == http.StatusNotFound && (words == "" || has("model") || told.Code == "model_not_found"):
		return addedNative | ofThisRequest // of the account, perhaps
	case told.Status == http.StatusBadRequest && slices.ContainsFunc(foreignWords, has):
		return addedNative | ofThisRequest
	}
	return 0
}

// AtOwnHost reports whether the target is at a custom host. Only such a host may be a trusted
// one.
func (t *Choice) AtOwnHost() bool {
	host, _ := t.Target.OwnHost()
	return host != ""
}

// OwnHost reports whether an address is at the target's custom host, by the same scheme and
// port.
func (t *Choice) OwnHost(address string) bool {
	host, _ := t.Target.OwnHost()
	own, err := url.Parse(host)
	if host == "" || err != nil {
		return false
	}
	u, err := url.Parse(address)
	return err == nil && u.User == nil && strings.EqualFold(u.Scheme, own.Scheme) && strings.EqualFold(u.Host, own.Host)
}

// NoResponse is the cause of a call without a response. Its text is the message for the record,
// which states the cause and no address.
type NoResponse struct {
	text string
	err  error
}

func (n *NoResponse) Error() string { return n.text }

func (n *NoResponse) Unwrap() error { return n.err }

// seesProviders are the scopes of callers that may know the address of a provider.
var seesProviders = []string{"providers.read", "virtual_keys.read"}

// Unreachable returns the fault for a call of a host without a response. Callers that may read
// providers are told the address and the cause.
func Unreachable(tg *Target, host string, err error) *fault.Fault {
	if egress.IsBlocked(err) {
		return fault.From(err)
	}
	name := "The provider " + tg.Choice.Target.Provider.ID
	why := &NoResponse{name + " " + egress.NoResponse(err), err}
	f := fault.New(fault.ProviderUnreachable, "", name+" did not answer").WithCause(why)
	if slices.ContainsFunc(seesProviders, tg.Req.Principal.Has) {
		at := host
		if tg.Choice.Saved != nil {
			at = "@" + tg.Choice.Saved.Slug + " at " + host
		}
		f.Message = name + " (" + at + ") " + egress.NoResponse(err)
	}
	f.Source = fault.SourceProvider
	return f
}

// TruncatedFault returns the fault for a response that ended prematurely.
func (t *Choice) TruncatedFault(err error) *fault.Fault {
	var f *fault.Fault
	if errors.As(err, &f) {
		return f
	}
	return fault.Newf(fault.InvalidProviderResponse, "", "The stream of %s was truncated", t.Target.Provider.ID).WithCause(err)
}
