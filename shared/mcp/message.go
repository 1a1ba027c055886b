package mcp

import (
	"encoding/json"
	"fmt"
)

// Versions of the protocol with sessions that are spoken, the newest first.
var Versions = []string{"2025-11-25", "2025-06-18", "2025-03-26"}

// Codes of JSON-RPC and of the protocol.
const (
	CodeParse            = -32700
	CodeInvalidRequest   = -32600
	CodeMethodNotFound   = -32601
	CodeInvalidParams    = -32602
	CodeInternal         = -32603
	CodeResourceNotFound = -32002
)

// Message is one JSON-RPC message: a request has a method and an id, a notification
// a method only, an answer an id and a result or an error.
type Message struct {
	Version string          `json:"jsonrpc"`
	ID      json.RawMessage `json:"id,omitempty"`
	Method  string          `json:"method,omitempty"`
	Params  json.RawMessage `json:"params,omitempty"`
	Result  json.RawMessage `json:"result,omitempty"`
	Error   *Error          `json:"error,omitempty"`
}

// Error is the error of an answer.
type Error struct {
	Code    int             `json:"code"`
	Message string          `json:"message"`
	Data    json.RawMessage `json:"data,omitempty"`
}

// Error implements error.
func (e *Error) Error() string { return fmt.Sprintf("mcp: %d: %s", e.Code, e.Message) }

// IsRequest, IsNotification and IsAnswer tell what a message is.
func (m *Message) IsRequest() bool      { return m.Method != "" && len(m.ID) > 0 }
func (m *Message) IsNotification() bool { return m.Method != "" && len(m.ID) == 0 }
func (m *Message) IsAnswer() bool {
	return m.Method == "" && len(m.ID) > 0 && (len(m.Result) > 0) != (m.Error != nil)
}

// Declined is the answer to a request that a server makes though nothing was declared that
// would allow it; a ping is answered as it wants.
func Declined(m *Message) []byte {
	begin := append(append([]byte(`{"jsonrpc":"2.0","id":`), m.ID...), ',')
	if m.Method == "ping" {
		return append(begin, `"result":{}}`...)
	}
	return append(begin, `"error":{"code":-32601,"message":"the client has not declared this"}}`...)
}

// ReadMessage reads one message. Its JSON has been checked by the caller.
func ReadMessage(raw []byte) (*Message, *Error) {
	m := new(Message)
	if err := json.Unmarshal(raw, m); err != nil {
		return nil, &Error{Code: CodeInvalidRequest, Message: "the message is not a JSON-RPC object"}
	}
	switch {
	case m.Version != "2.0":
		return nil, &Error{Code: CodeInvalidRequest, Message: `jsonrpc must be "2.0"`}
	case len(m.ID) > 0 && !GoodID(m.ID):
		return nil, &Error{Code: CodeInvalidRequest, Message: "id must be a string or a whole number"}
	case m.Method == "" && !m.IsAnswer():
		return nil, &Error{Code: CodeInvalidRequest, Message: "the message is neither a request nor an answer"}
	case len(m.Params) > 0 && m.Params[0] != '{':
		return nil, &Error{Code: CodeInvalidRequest, Message: "params must be an object"}
	}
	return m, nil
}
