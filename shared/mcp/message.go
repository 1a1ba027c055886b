package mcp

import (
	"encoding/json"
	"fmt"
)

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
