package target

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/reference"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/record"
	"gateway/shared/relay/routes"
	"gateway/shared/wire/mask"
)

// SecretMask redacts the credentials of one request's target by their value.
type SecretMask struct {
	Target *Target
	Sent   http.Header // of the last request that was sent
}

// Secrets returns those of the last called target, and the tokens derived from them.
func (m *SecretMask) Secrets() []string {
	all := Keys(m.Target, m.Target.Choice.Target.Secrets(nil, true))
	for name, values := range m.Sent {
		if !record.IsSensitive(name, nil) && name != m.Target.Choice.Target.Provider.Auth.Name {
			continue
		}
		for _, v := range values {
			if len(v) >= 8 {
				all = provider.TokenOf(append(all, v), v)
			}
		}
	}
	return all
}

// Head is mask.Header for the head of a successful response.
func (m *SecretMask) Head(h http.Header) {
	if m.Target.Choice.Target.Provider == nil {
		return
	}
	var room [8]string
	mask.Header(h, m.Target.Choice.Target.Secrets(room[:0], false))
}

// Fault redacts secrets in the text of an error.
func (m *SecretMask) Fault(f *fault.Fault) {
	if f == nil || m.Target.Choice.Target.Provider == nil {
		return
	}
	secrets := m.Secrets()
	if len(secrets) == 0 {
		return
	}
	redactFault(f, secrets)
}

// Refusal redacts secrets in a provider's error response, head and body.
func (m *SecretMask) Refusal(h http.Header, body []byte) {
	secrets := m.Secrets()
	mask.Bytes(body, secrets)
	mask.Header(h, secrets)
}

// Raw redacts secrets in a passed-through error response. An unreadable one is not forwarded if
// the credential is a saved one.
func (m *SecretMask) Raw(resp *http.Response) error {
	secrets := m.Secrets()
	if len(secrets) == 0 {
		return nil
	}
	mask.Header(resp.Header, secrets)
	if m.Target.Req.Req.Method == http.MethodHead {
		return nil
	}
	if len(resp.Header["Content-Encoding"]) > 0 && !m.Target.Choice.Target.Saved {
		return nil // the credential is the caller's own
	}
	if egress.Inflate(resp, 0) != nil {
		return &fault.Fault{
			Code: fault.ProviderError, Source: fault.SourceProvider, StatusCode: max(resp.StatusCode, 300),
			Message: m.Target.Choice.Target.Provider.ID + " rejected the request with an unsupported content-encoding; request gzip or none",
		}
	}
	resp.Body = mask.NewBody(resp.Body, secrets)
	return nil
}

// Repeats reports whether a successful response repeats a credential, so that it must not be
// cached.
func (m *SecretMask) Repeats(out []byte) bool {
	for _, s := range m.Target.Choice.Target.Secrets(nil, false) {
		if bytes.Contains(out, []byte(s)) {
			return true
		}
	}
	return false
}

// CustomNames appends the names of headers that the target's credential adds. Their values may
// be credentials regardless of the name.
func (m *SecretMask) CustomNames(dst []string) []string {
	for _, custom := range [...]map[string]string{m.Target.Choice.Target.CustomHeaders, m.Target.Choice.Target.Credential.CustomHeaders} {
		for name := range custom {
			dst = append(dst, http.CanonicalHeaderKey(name))
		}
	}
	return dst
}

// redactFault removes secrets from the text of an error.
func redactFault(f *fault.Fault, secrets []string) {
	f.Message, f.Field = mask.Text(f.Message, secrets), mask.Text(f.Field, secrets)
	for i := range f.Details {
		f.Details[i].Field, f.Details[i].Message = mask.Text(f.Details[i].Field, secrets), mask.Text(f.Details[i].Message, secrets)
	}
	if said := chat.ProviderErrorOf(f); said != nil {
		said.Type, said.Param = mask.Text(said.Type, secrets), mask.Text(said.Param, secrets)
		said.Code, said.Message = mask.Text(said.Code, secrets), mask.Text(said.Message, secrets)
		mask.Bytes(said.Inner, secrets)
	}
}

// OpenAIRows is the field that names the file of rows at OpenAI-compatible hosts, where the
// gateway can read it.
const OpenAIRows = "input_file_id"

// RowsFile returns the field by which a new batch names the file of its rows, which are bodies
// of requests that are not in the request; "" if the request creates no such batch. Of several
// fields it is one other than OpenAIRows.
func RowsFile(escapedPath string, body []byte) (field string) {
	if len(body) == 0 || !routes.StartsBatch(http.MethodPost, escapedPath) {
		return ""
	}
	found, _ := reference.Find(body) // a body that cannot be read is rejected where it matters
	for i := range found {
		switch r := &found[i]; {
		case strings.Contains("."+r.Field, ".requests"): // in rows that are in the body
		case r.Kind == reference.File, r.Kind == reference.Storage, r.Kind == reference.Dataset:
			if field = r.Field; field != OpenAIRows {
				return field
			}
		}
	}
	return field
}

// EvalRowsElsewhere reports whether a request starts a run of an evaluation with rows outside
// its body: they are in a file, or are stored responses that the provider chooses.
func EvalRowsElsewhere(escapedPath string, body []byte) bool {
	segments := routes.Segments(escapedPath)
	n := len(segments)
	if n < 3 || !strings.EqualFold(segments[n-1], "runs") || !strings.EqualFold(segments[n-3], "evals") {
		return false
	}
	at := body
	for _, name := range [...]string{"data_source", "source", "type"} {
		var fields map[string]json.RawMessage
		if json.Unmarshal(at, &fields) != nil {
			return true
		}
		at = fields[name]
	}
	return string(at) != `"file_content"`
}

// mayReadRows rejects a new batch with rows in a file that is not read here, if several
// workspaces use the credential: the rows may name objects of others.
func mayReadRows(tg *Target) error {
	if tg.Req.Route.BodyMode != routes.Raw || tg.Req.Req.Method != http.MethodPost {
		return nil
	}
	field, at := RowsFile(tg.Body.RawPath(), tg.Body.In), tg.Body.StoredPath()
	if field == "" || field == OpenAIRows && at.Collection == "batches" && at.ID == "" {
		return nil
	}
	return fault.Newf(fault.NotAllowed, field, "The credential is shared by several workspaces, and the objects that the rows in this file name cannot be checked; create the batch at %s/batches, or send its rows in the body", routes.BasePath)
}

// ErrorDialect returns the dialect in which the client of a route without a dialect of its
// own reads errors: that of the SDK that requests the path. It is "" where that is OpenAI's.
func ErrorDialect(tg *Target) string {
	switch tg.Req.Route.BodyMode {
	case routes.Listing:
		switch {
		case tg.Req.Req.Header["Anthropic-Version"] != nil:
			return provider.AnthropicMessages
		case routes.GoogleClient(tg.Req.Req.Header):
			return provider.Gemini
		}
	case routes.Raw:
		return sdkDialect(tg.Choice.asked, tg.Req.Req.Header, tg.Body.RawPath())
	}
	return ""
}

// ListsAsGoogle reports whether the response of a Listing route goes unchanged from Google to its
// client.
func (tg *Target) ListsAsGoogle() bool {
	return tg.Req.Route.BodyMode == routes.Listing && tg.Choice.Target.Provider.ID == "google" && routes.GoogleClient(tg.Req.Req.Header)
}

// GoogleListURL returns the address of a list, or of a model, that is read as Google's client asks.
func (tg *Target) GoogleListURL() (*url.URL, error) {
	from := tg.Req.Req.URL.Query()
	page := url.Values{}
	for _, name := range [...]string{"pageSize", "pageToken"} {
		if from.Has(name) {
			page.Set(name, from.Get(name))
		}
	}
	raw, err := tg.Choice.Target.PassthroughURL("/v1beta"+tg.Body.RawPath(), page.Encode())
	if err != nil {
		return nil, err
	}
	return provider.ExactURL(raw)
}

// googleVersions are the versions with which only paths of Google's APIs begin.
var googleVersions = []string{"v1beta", "v1alpha", "v1beta1"}

// cohereObjects are those of Cohere's second version.
var cohereObjects = []string{"chat", "embed", "rerank", "embed-jobs", "datasets"}

// sdkDialect returns the dialect of the SDK that requests a path, that of p if it is known.
// Google, Cohere and Anthropic also serve paths of OpenAI's API.
func sdkDialect(p *provider.Provider, h http.Header, escapedPath string) string {
	segments := routes.Segments(escapedPath)
	anthropic := h["Anthropic-Version"] != nil
	switch {
	case slices.ContainsFunc(segments, func(s string) bool { return s == "openai" || s == "openapi" || s == "compatibility" }):
		return ""
	case anthropic:
		return provider.AnthropicMessages
	}
	rest := segments
	if len(rest) > 0 && rest[0] == "upload" {
		rest = rest[1:]
	}
	if len(rest) > 1 {
		switch {
		case slices.Contains(googleVersions, rest[0]):
			return provider.Gemini
		case rest[0] == "model":
			return provider.Converse
		case rest[0] == "v2" && slices.Contains(cohereObjects, rest[1]):
			return provider.Cohere
		}
	}
	if p == nil {
		return ""
	}
	switch p.Dialect {
	case provider.Gemini, provider.Cohere, provider.Converse:
		return p.Dialect
	case provider.AnthropicMessages:
		if !strings.Contains(escapedPath, "completions") {
			return p.Dialect
		}
	}
	return ""
}
