// Package upstream contains what registered servers and agents share: forwarded headers, and
// configurations with sealed secrets.
package upstream

import (
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/egress"
	"gateway/shared/fault"
)

// Forward selects the client headers that are forwarded to the upstream.
type Forward struct {
	Mode    string          `json:"mode"` // allowlist or all-except
	Headers []HeaderMapping `json:"headers"`
}

// Modes of Forward.
const (
	AllowList = "allowlist"
	AllExcept = "all-except"
)

// HeaderMapping is a header and its name at the upstream.
type HeaderMapping struct {
	From string `json:"from"`
	To   string `json:"to"`
}

// UnmarshalJSON accepts a list of names, or a mode with names.
func (f *Forward) UnmarshalJSON(raw []byte) error {
	var names []HeaderMapping
	if json.Unmarshal(raw, &names) == nil {
		*f = Forward{AllowList, names}
		return nil
	}
	type plain Forward
	return json.Unmarshal(raw, (*plain)(f))
}

// UnmarshalJSON accepts a name, or a name and its new name.
func (r *HeaderMapping) UnmarshalJSON(raw []byte) error {
	var name string
	if json.Unmarshal(raw, &name) == nil {
		*r = HeaderMapping{name, name}
		return nil
	}
	type plain HeaderMapping
	return json.Unmarshal(raw, (*plain)(r))
}

const maxForwarded = 64

// maxHeaderName is the length limit of a header name in bytes.
const maxHeaderName = 128

// HeaderName reports whether a string is a valid header name: a token of RFC 9110.
func HeaderName(name string) bool {
	odd := func(r rune) bool {
		return (r < 'a' || r > 'z') && (r < 'A' || r > 'Z') && (r < '0' || r > '9') && !strings.ContainsRune("!#$%&'*+.^_`|~-", r)
	}
	return name != "" && len(name) <= maxHeaderName && strings.IndexFunc(name, odd) < 0
}

// neverForwarded are client headers that are not sent to any upstream.
var neverForwarded = []string{"cookie", "set-cookie", "x-api-key", "x-gateway-api-key", "api-key", "apikey", "x-auth-token", "x-access-token", "x-user-claims", "x-user-jwt"}

// Forwardable reports whether a client header may be forwarded to an upstream. The gateway sets
// the headers of the protocol itself.
func Forwardable(name string) bool {
	lower := egress.Dashed(strings.ToLower(name))
	return HeaderName(name) && egress.Forwardable(name) && !slices.Contains(neverForwarded, lower) && !IsGatewayHeader(lower)
}

// IsGatewayHeader reports whether the gateway sets a header, given in lower case, on every call.
func IsGatewayHeader(lower string) bool {
	switch lower {
	case "accept", "content-type", "content-length", "host", "last-event-id":
		return true
	}
	return strings.HasPrefix(lower, "mcp-")
}

// CheckForward returns the faults of forward_headers.
func CheckForward(raw json.RawMessage) (bad []fault.Detail) {
	var f Forward
	if json.Unmarshal(raw, &f) != nil {
		return []fault.Detail{{Message: "must be a list of header names, or an object with mode and headers, whose entries are names or objects with from and to"}}
	}
	if f.Mode != AllowList && f.Mode != AllExcept {
		bad = append(bad, fault.Detail{Field: "mode", Message: "must be one of allowlist, all-except"})
	}
	if len(f.Headers) > maxForwarded {
		bad = append(bad, fault.Detail{Message: fmt.Sprintf("must name at most %d headers", maxForwarded)})
	}
	for i, h := range f.Headers {
		for _, name := range []string{h.From, h.To} {
			if !HeaderName(name) {
				bad = append(bad, fault.Detail{Field: fmt.Sprintf("[%d]", i), Message: "must be the name of a header"})
				break
			}
			if f.Mode == AllowList && !Forwardable(name) {
				bad = append(bad, fault.Detail{Field: fmt.Sprintf("[%d]", i), Message: "must not name a header that is never forwarded"})
				break
			}
		}
	}
	return bad
}

// CheckHeaders returns the faults of headers that are sent with each call.
func CheckHeaders(field string, headers map[string]string) (bad []fault.Detail) {
	for _, name := range slices.Sorted(maps.Keys(headers)) {
		switch v := headers[name]; {
		case !HeaderName(name) || !egress.Forwardable(name):
			bad = append(bad, fault.Detail{Field: field + "." + name, Message: "is not a valid header name, or the header is reserved"})
		case IsGatewayHeader(strings.ToLower(name)):
			bad = append(bad, fault.Detail{Field: field + "." + name, Message: "is set by the gateway"})
		case !egress.ValidHeaderValue(v):
			bad = append(bad, fault.Detail{Field: field + "." + name, Message: "is not a value that a header can have"})
		}
	}
	return bad
}

// ForwardSchema describes forward_headers.
var ForwardSchema = map[string]any{"oneOf": []any{
	map[string]any{"type": "array", "items": renamedSchema},
	map[string]any{"type": "object", "required": []string{"mode", "headers"}, "properties": map[string]any{
		"mode": map[string]any{"type": "string", "enum": []string{AllowList, AllExcept}}, "headers": map[string]any{"type": "array", "items": renamedSchema},
	}},
}}

var renamedSchema = map[string]any{"oneOf": []any{
	map[string]any{"type": "string"},
	map[string]any{"type": "object", "required": []string{"from", "to"}, "properties": map[string]any{"from": map[string]any{"type": "string"}, "to": map[string]any{"type": "string"}}},
}}

// Copy copies the forwarded headers of a client into dst.
func (f *Forward) Copy(dst, client http.Header) {
	hop := ofConnection(client)
	if f.Mode == AllExcept {
		for name, values := range client {
			if Forwardable(name) && !slices.Contains(hop, strings.ToLower(name)) && !strings.HasPrefix(egress.Dashed(strings.ToLower(name)), "x-gateway-") && !slices.ContainsFunc(f.Headers, func(r HeaderMapping) bool { return strings.EqualFold(r.From, name) }) {
				dst[name] = values
			}
		}
		return
	}
	for _, r := range f.Headers {
		if values := client.Values(r.From); len(values) > 0 && Forwardable(r.From) && Forwardable(r.To) && !slices.Contains(hop, strings.ToLower(r.From)) {
			dst[http.CanonicalHeaderKey(r.To)] = values
		}
	}
}

// ofConnection returns the headers that apply only to the client's connection, according to its
// Connection header (RFC 9110, 7.6.1), in lower case.
func ofConnection(client http.Header) (names []string) {
	for _, v := range client["Connection"] {
		for name := range strings.SplitSeq(v, ",") {
			names = append(names, strings.ToLower(strings.TrimSpace(name)))
		}
	}
	return names
}
