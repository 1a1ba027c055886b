// Package message formats the messages stored in a log for the log itself and for
// exports.
package message

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"unicode/utf8"

	"gateway/shared/usage"
)

// Message is headers and body, if stored. JSON is embedded as such, other text is a
// string, and binary data is base64.
type Message struct {
	Headers  map[string]string `json:"headers,omitempty"`
	Body     any               `json:"body,omitempty" doc:"JSON or text; base64 according to body_encoding."`
	Encoding string            `json:"body_encoding,omitempty" enum:"base64"`
}

// Of formats headers, which are a JSON object, and a body.
func Of(headers, body []byte) (m Message) {
	if len(headers) > 0 {
		var named map[string]string
		if err := json.Unmarshal(headers, &named); err == nil {
			m.Headers = make(map[string]string, len(named))
			for k, v := range named {
				m.Headers[strings.ToLower(k)] = v
			}
		}
	}
	switch {
	case len(body) == 0:
	case !utf8.Valid(body):
		m.Body, m.Encoding = base64.StdEncoding.EncodeToString(body), "base64"
	case json.Valid(body):
		m.Body = json.RawMessage(body)
	default:
		m.Body = string(body)
	}
	return m
}

// ClientRequest is the request that a client sent.
type ClientRequest struct {
	Message
	URL            string            `json:"url"`
	Method         string            `json:"method"`
	GatewayHeaders map[string]string `json:"gatewayHeaders,omitempty"`
}

// Request formats the request that a client sent.
func Request(b *usage.Bodies, method, path string) ClientRequest {
	a := ClientRequest{Message: Of(b.RequestHeaders, b.Request), URL: path, Method: method}
	a.GatewayHeaders = split(a.Headers)
	return a
}

// own is the prefix of the gateway's headers.
const own = "x-gateway-"

// split separates the gateway's headers from a request's others.
func split(h map[string]string) map[string]string {
	out := make(map[string]string)
	for k, v := range h {
		if strings.HasPrefix(k, own) {
			out[k] = v
			delete(h, k)
		}
	}
	return out
}
