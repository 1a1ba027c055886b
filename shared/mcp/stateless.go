package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strconv"

	"gateway/shared/tenant/upstream"
	"gateway/shared/wire"
)

// codeVersion is the error code of stateless servers for an unsupported version.
const codeVersion = "-32022"

// Modern is the stateless protocol version.
const Modern = "2026-07-28"

// Metadata fields and headers of stateless requests.
const (
	MetaPrefix       = "io.modelcontextprotocol/"
	MetaVersion      = MetaPrefix + "protocolVersion"
	MetaCapabilities = MetaPrefix + "clientCapabilities"
	MetaClient       = MetaPrefix + "clientInfo"
	MetaServer       = MetaPrefix + "serverInfo"
	MetaLogLevel     = MetaPrefix + "logLevel"
	HeaderMethod     = "Mcp-Method"
	HeaderName       = "Mcp-Name"
)

// ClientInfo is the gateway's Implementation object.
var ClientInfo = json.RawMessage(`{"name":"gateway","version":"1"}`)

// Discover requests an upstream's stateless self-description. hello is nil if the upstream
// does not support the stateless version. versions are the versions that it lists.
func (u *Upstream) Discover(ctx context.Context) (hello json.RawMessage, versions []string, err error) {
	hello, versions, again, err := u.discover(ctx)
	if again {
		hello, versions, _, err = u.discover(ctx)
	}
	return hello, versions, err
}

// discover makes one attempt. again is set if the upstream rejected the version although it
// lists the version as supported.
func (u *Upstream) discover(ctx context.Context) (hello json.RawMessage, versions []string, again bool, err error) {
	x, err := u.Send(ctx, http.MethodPost, http.Header{HeaderVersion: {Modern}, HeaderMethod: {"server/discover"}}, modernRequest(0, "server/discover", ""))
	if err != nil {
		return nil, nil, false, err
	}
	defer x.Close()
	if x.Status == http.StatusUnauthorized || x.Status == http.StatusForbidden || x.Status >= 500 {
		return nil, nil, false, upstream.Fail(x.Status, "the server responded with status %d", x.Status)
	}
	raw, err := x.Next()
	switch {
	case errors.Is(err, io.EOF), err != nil && x.Status != http.StatusOK:
		return nil, nil, false, nil // an empty or custom body
	case err != nil:
		return nil, nil, false, err
	}
	var response struct {
		Result json.RawMessage `json:"result"`
		Error  struct {
			Code json.RawMessage `json:"code"`
			Data struct {
				Supported []string `json:"supported"`
			} `json:"data"`
		} `json:"error"`
	}
	var found struct {
		Versions []string `json:"supportedVersions"`
	}
	if json.Unmarshal(raw, &response) != nil {
		return nil, nil, false, nil
	}
	if response.Result != nil && json.Unmarshal(response.Result, &found) == nil && slices.Contains(found.Versions, Modern) {
		return response.Result, found.Versions, false, nil
	}
	return nil, nil, string(response.Error.Code) == codeVersion && slices.Contains(response.Error.Data.Supported, Modern), nil
}

// modernRequest returns a stateless request that the gateway makes for itself.
func modernRequest(id int, method, cursor string) []byte {
	params := map[string]any{"_meta": map[string]any{MetaVersion: Modern, MetaCapabilities: struct{}{}, MetaClient: ClientInfo}}
	if cursor != "" {
		params["cursor"] = cursor
	}
	raw, _ := json.Marshal(map[string]any{"jsonrpc": "2.0", "id": id, "method": method, "params": params}) // only strings
	return raw
}

// pageLister fetches one page of a list.
type pageLister interface {
	page(ctx context.Context, method, cursor string) (json.RawMessage, error)
}

func (s *Session) page(ctx context.Context, method, cursor string) (json.RawMessage, error) {
	params := json.RawMessage("{}")
	if cursor != "" {
		params, _ = json.Marshal(map[string]string{"cursor": cursor}) // a string
	}
	return s.Call(ctx, method, params)
}

// statelessClient lists the capabilities of a stateless upstream.
type statelessClient struct {
	up    *Upstream
	calls int
}

func (w *statelessClient) page(ctx context.Context, method, cursor string) (json.RawMessage, error) {
	w.calls++
	x, err := w.up.Send(ctx, http.MethodPost, http.Header{HeaderVersion: {Modern}, HeaderMethod: {method}}, modernRequest(w.calls, method, cursor))
	if err != nil {
		return nil, err
	}
	defer x.Close()
	m := &Message{ID: json.RawMessage(strconv.Itoa(w.calls))}
	for {
		raw, err := x.Next()
		if errors.Is(err, io.EOF) {
			return nil, upstream.Fail(x.Status, "the server responded with status %d and no result for %s", x.Status, method)
		}
		if err != nil {
			return nil, err
		}
		answer, err := parseResponse(raw, m)
		switch {
		case err != nil:
			return nil, err
		case answer == nil:
		case answer.Error != nil:
			return nil, answer.Error
		default:
			return answer.Result, nil
		}
	}
}

// Versions lists the supported protocol versions with sessions, the newest first.
var Versions = []string{"2025-11-25", "2025-06-18", "2025-03-26"}

// Error codes of JSON-RPC and of the protocol.
const (
	CodeParse            = -32700
	CodeInvalidRequest   = -32600
	CodeMethodNotFound   = -32601
	CodeInvalidParams    = -32602
	CodeInternal         = -32603
	CodeResourceNotFound = -32002
)

// Message is a JSON-RPC message: a request has a method and an id, a notification only a
// method, a response an id and either a result or an error.
type Message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Error is the error of a response.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

func (e *Error) Error() string { return fmt.Sprintf("mcp: %d: %s", e.Code, e.Message) }

// IsRequest, IsNotification and IsResponse report the kind of a message.
func (m *Message) IsRequest() bool      { return m.Method != "" && len(m.ID) > 0 }
func (m *Message) IsNotification() bool { return m.Method != "" && len(m.ID) == 0 }
func (m *Message) IsResponse() bool {
	return m.Method == "" && len(m.ID) > 0 && (len(m.Result) > 0) != (m.Error != nil)
}

// DeclineRequest returns the response to a request from a server that no declared capability
// allows. It answers a ping with success.
func DeclineRequest(m *Message) []byte {
	begin := append(append([]byte(`{"jsonrpc":"2.0","id":`), m.ID...), ',')
	if m.Method == "ping" {
		return append(begin, `"result":{}}`...)
	}
	return append(begin, `"error":{"code":-32601,"message":"the client has not declared this"}}`...)
}

// ReadMessage decodes one message. The caller must have validated its JSON.
func ReadMessage(raw []byte) (*Message, *Error) {
	m := new(Message)
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, &Error{Code: CodeInvalidRequest, Message: "the message is not a JSON-RPC object"}
	}
	switch {
	case m.Version != "2.0":
		return nil, &Error{Code: CodeInvalidRequest, Message: `jsonrpc must be "2.0"`}
	case len(m.ID) > 0 && !ValidID(m.ID):
		return nil, &Error{Code: CodeInvalidRequest, Message: "id must be a string or an integer"}
	case m.Method == "" && !m.IsResponse():
		return nil, &Error{Code: CodeInvalidRequest, Message: "the message is not a request, a notification or a response"}
	case len(m.Params) > 0 && m.Params[0] != '{':
		return nil, &Error{Code: CodeInvalidRequest, Message: "params must be an object"}
	}
	return m, nil
}

// Fields returns the fields of a JSON object, or nil if raw is not an object. The values alias
// raw. Of duplicate fields the last one wins; wire.CheckStrict rejects duplicates.
func Fields(raw []byte) map[string]json.RawMessage {
	if raw = bytes.TrimLeft(raw, " \t\r\n"); wire.KindOf(raw) != wire.KindObject {
		return nil
	}
	d := wire.NewDecoder(raw)
	out := make(map[string]json.RawMessage, 8)
	for key := range d.Object {
		out[string(key)] = d.Raw()
	}
	if d.End() != nil {
		return nil
	}
	return out
}

// AppendFields appends a JSON object with the fields in the order of their names.
func AppendFields(dst []byte, members map[string]json.RawMessage) []byte {
	dst = append(dst, '{')
	var room [16]string // most objects have fewer fields
	names := room[:0]
	for name := range members {
		names = append(names, name)
	}
	slices.Sort(names)
	for i, name := range names {
		if i > 0 {
			dst = append(dst, ',')
		}
		dst = append(wire.AppendJSONString(dst, name), ':')
		if raw := members[name]; raw != nil {
			dst = append(dst, raw...)
		} else {
			dst = append(dst, "null"...)
		}
	}
	return append(dst, '}')
}

// ParseString decodes a valid JSON string into s like json.Unmarshal: null leaves s unchanged.
// ok is false for any other type.
func ParseString(raw json.RawMessage, s *string) (ok bool) {
	if len(raw) >= 2 && raw[0] == '"' && raw[len(raw)-1] == '"' && isPlain(raw[1:len(raw)-1]) {
		*s = string(raw[1 : len(raw)-1])
		return true
	}
	return len(raw) > 0 && json.Unmarshal(raw, s) == nil
}

// isPlain reports whether a quoted string has no escapes.
func isPlain(inner []byte) bool {
	for _, c := range inner {
		if c < ' ' || c >= 0x80 || c == '"' || c == '\\' {
			return false
		}
	}
	return true
}

// ValidID reports whether the id of a message, which is valid JSON, is a string or an integer.
func ValidID(id json.RawMessage) bool {
	if id[0] == '"' {
		return true
	}
	if len(id) < 18 && len(bytes.Trim(id, "0123456789")) == 0 {
		return true
	}
	var n int64
	return id[0] != 'n' && json.Unmarshal(id, &n) == nil
}
