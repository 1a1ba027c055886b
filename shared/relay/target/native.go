package target

import (
	"bytes"
	"io"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/wire"
)

// Hosts that have a dialect of their own may take the conversations of some models in
// their client's shape too: Bedrock's runtime. There the bytes go on as they came, with
// all that a translation has no place for. This file holds when they do.

// byNative sends a conversation in its client's own shape where the target's host is
// known to take it so, unless the body has what only the host's own dialect carries.
// body is what the target is asked.
func byNative(tg *Target, body []byte) error {
	if tg.Req.Route.Client == nil || tg.To.Dialect == nil || tg.To.Op != provider.Chat || tg.To.leaves&addedNative != 0 {
		return nil
	}
	shape := tg.Req.Route.Client.Name()
	op := tg.To.Target.Native(shape, tg.To.Model)
	d := tg.Means.Dialects[shape]
	if op == "" || d == nil || staysWithOwn(body, shape, tg.To.Model) {
		return nil
	}
	tg.To.Dialect, tg.To.Op = d, op
	return mayRefer(tg)
}

// byOwn sends the conversation in the host's own dialect after all.
func (tg *Target) byOwn() {
	if d := tg.Means.Dialects[tg.To.Target.Provider.Dialect]; d != nil {
		tg.To.Dialect, tg.To.Op = d, provider.Chat
	}
}

// Members of a body with which a conversation stays with Converse: those that it alone
// has a place for, those of the gateway's that a translation gives one, and those that
// the native route of a shape is known to refuse and Converse to take.
var (
	ownMembers = []string{
		"guardrailConfig", "guardrail_config", "performanceConfig", "performance_config", "requestMetadata",
		"additionalModelRequestFields", "additional_model_request_fields",
		"additionalModelResponseFieldPaths", "additional_model_response_field_paths",
		"anthropic_version", "anthropic_beta", // Messages are told both in headers there
	}
	ownKeys = map[string]*wire.KeySet{
		provider.OpenAIChat:        keysWith("metadata", "thinking", "top_k"), // metadata are the request's in the logs of AWS
		provider.OpenAIResponses:   keysWith("metadata", "thinking", "top_k"),
		provider.AnthropicMessages: keysWith("service_tier", "output_format"),
	}
	// ownWords stand in a body that names an object of S3, which the host of Converse
	// reads, or has blocks of Converse.
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

// staysWithOwn tells whether a body in a client's shape is for Converse although the
// native route of its shape is there.
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

// hosted tells whether a Responses body has a tool that the maker's own host runs, and
// this one does not.
func hosted(body []byte) bool {
	any := false
	eachTool(body, func(tool []byte) {
		var in wire.Walk
		any = any || typeIn.Walk(tool, &in) == nil && !in.Spans[0].Absent() && !bytes.Equal(in.Spans[0].Of(tool), functionType) && !bytes.Equal(in.Spans[0].Of(tool), customType)
	})
	return any
}

// eachTool gives f the objects among a body's tools.
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

// holdsToSchema tells whether a Messages body wants an answer in a schema, or has a
// tool that is to be held to its own: "Extra inputs are not permitted".
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

// unknownOperation is how AWS names a path that a host does not have, even in an answer
// whose status is 200.
var (
	unknownOperation = []byte("#UnknownOperationException\"")
	typeWord         = []byte(`"__type"`)
	usageWord        = []byte(`"usage"`)
)

// maxUnknown bounds an answer that is looked at for it, in bytes.
const maxUnknown = 1024

// unknownStatus is the status of such an answer, which no other has.
const unknownStatus = http.StatusMethodNotAllowed

// Unrouted gives an answer of a native route that says there is no such path the
// status that it stands for.
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

// reread is a body of which the beginning was read before.
type reread struct {
	io.Reader
	io.Closer
}

var (
	// routeWords are how the host says that a model is not served on a native route.
	routeWords = []string{"supported on this route", "does not support the '/", "doesn't support this api"}
	// foreignWords are how it refuses a member or a switch that it does not know, which
	// Converse leaves out, and tells.
	foreignWords = []string{"invalid beta flag", "extra inputs are not permitted", "unsupported parameter", "unknown parameter"}
)

// refusedRoute tells whether a native route was refused, for the host or for what this
// request has.
func (t *Choice) refusedRoute(f *fault.Fault) added {
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
