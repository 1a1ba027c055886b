package target

import (
	"bytes"
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/egress"
	"gateway/shared/fault"
	"gateway/shared/provider"
	"gateway/shared/relay/record"
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
