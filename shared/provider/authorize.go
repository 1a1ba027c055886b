package provider

import (
	"context"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"gateway/shared/fault"
)

// Authorize sets the credential and the provider's own headers on req, and replaces what
// the caller sent under the same names. body is what will be sent; schemes that sign a
// request read it.
func (t *Target) Authorize(ctx context.Context, req *http.Request, body []byte) error {
	if err := ownHeaders((t), req.Header); err != nil {
		return err
	}
	messagesVersion(t, req)
	switch auth := t.Provider.Auth; auth.Scheme {
	case HeaderAuth:
		return keyHeader(t, req.Header, auth.Name, auth.Prefix)
	case QueryAuth:
		if t.Credential.Key == "" {
			return missingKey(t)
		}
		u := *req.URL // the URL may be shared between requests
		u.RawQuery = strings.TrimPrefix(u.RawQuery+"&"+auth.Name+"="+url.QueryEscape(t.Credential.Key), "&")
		req.URL = &u
		return nil
	case AzureAuth:
		return authorizeAzure(t, ctx, req)
	case SigV4Auth:
		return authorizeAWS(t, ctx, req, body)
	case GoogleOAuth:
		return authorizeGoogle(t, ctx, req)
	case OCIAuth:
		return authorizeOCI(t, ctx, req, body)
	}
	return nil
}

// messagesVersion names the version of the Messages API where a host of several dialects
// serves it, and the features that the credential switches on there.
func messagesVersion(t *Target, req *http.Request) {
	native := t.Provider.Serves(NativeMessages)
	if !native && t.Provider.DialectOf(Messages) != AnthropicMessages || req.URL == nil {
		return
	}
	path := req.URL.Opaque
	if path == "" {
		path = req.URL.Path
	}
	if !strings.HasSuffix(path, "/v1/messages") {
		return
	}
	if native {
		nativeBetas(t, req.Header)
	}
	if req.Header["Anthropic-Version"] != nil {
		return
	}
	version := t.Field("anthropic_version")
	if version == "" || strings.HasPrefix(version, "bedrock-") { // that version belongs to bodies of InvokeModel
		version = "2023-06-01"
	}
	req.Header["Anthropic-Version"] = []string{version}
}

// nativeBetas adds the betas of the credential to those of the request.
func nativeBetas(t *Target, h http.Header) {
	betas := strings.Join(h["Anthropic-Beta"], ",")
	all := strings.FieldsFunc(betas, func(r rune) bool { return r == ',' || r == ' ' })
	for beta := range strings.SplitSeq(t.Field("anthropic_beta"), ",") {
		if beta = strings.TrimSpace(beta); beta != "" && printable(beta) && !slices.Contains(all, beta) {
			all, betas = append(all, beta), strings.TrimPrefix(betas+","+beta, ",")
		}
	}
	if betas != "" {
		h["Anthropic-Beta"] = []string{betas}
	}
}

// ownHeaders sets the extra headers of the row and the custom headers. A
// row's standard value does not replace what the caller sent.
func ownHeaders(t *Target, h http.Header) error {
	for _, extra := range t.Provider.Headers {
		value, standard := headerValue(t, extra.Value)
		if value == "" || standard && sent(h, extra.Name) {
			continue
		}
		if err := setHeader(h, extra.Name, value); err != nil {
			return err
		}
	}
	for _, custom := range []map[string]string{t.Credential.CustomHeaders, t.CustomHeaders} {
		for name, value := range custom {
			if err := setHeader(h, name, value); err != nil {
				return err
			}
		}
	}
	return nil
}

// sent reports whether a header has a value.
func sent(h http.Header, name string) bool {
	v := h[canonical(name)]
	return len(v) > 0 && v[0] != ""
}

// headerValue fills in a header's template, which has at most one field. standard: the
// value comes from the row, not from the credential.
func headerValue(t *Target, template string) (value string, standard bool) {
	inner, ok := strings.CutPrefix(template, "{")
	if !ok {
		return template, true
	}
	name, fallback, _ := strings.Cut(strings.TrimSuffix(inner, "}"), "|")
	if v := t.Field(name); v != "" {
		return v, false
	}
	return fallback, true
}

// keyHeader sends the key in a header. A provider that needs no key may get none.
func keyHeader(t *Target, h http.Header, name, prefix string) error {
	key := t.Credential.Key
	if key == "" {
		if t.Provider.Key == "" || t.Provider.Dialect == OpenAIChat && t.ownHost() {
			return nil
		}
		return missingKey(t)
	}
	if !printable(key) {
		return fault.New(fault.InvalidRequest, "api_key", "api_key must not contain spaces or control characters")
	}
	h[canonical(name)] = []string{prefix + key}
	return nil
}

func missingKey(t *Target) *fault.Fault {
	return fault.Newf(fault.InvalidRequest, "api_key", "%s needs an API key: use a saved provider, or send Authorization: Bearer <key> with the provider's name", t.Provider.ID)
}

// setHeader rejects values that could end the header or begin another.
func setHeader(h http.Header, name, value string) error {
	for i := range len(value) {
		if c := value[i]; c < ' ' && c != '\t' || c == 0x7f {
			return fault.Invalid(name, "The value of %s must not contain control characters", name)
		}
	}
	if !headerName(name) {
		return fault.Invalid("custom_headers", "custom_headers has a name that is not a header name")
	}
	h[canonical(name)] = []string{value}
	return nil
}

func headerName(s string) bool {
	for i := range len(s) {
		if !alphanumeric(s[i]) && strings.IndexByte("!#$%&'*+-.^_`|~", s[i]) < 0 {
			return false
		}
	}
	return s != ""
}

// printable reports whether s has only visible ASCII characters.
func printable(s string) bool {
	for i := range len(s) {
		if s[i] <= ' ' || s[i] >= 0x7f {
			return false
		}
	}
	return true
}

// keyless reports whether configurations name the caller's own host in OpenAI's shape:
// many engines there have no key.
func (p *Provider) keyless(cfg map[string]any) bool {
	host, _ := cfg["custom_host"].(string)
	t := Target{Provider: p, CustomHost: host}
	return p.Dialect == OpenAIChat && t.ownHost()
}
