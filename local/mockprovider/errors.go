package mockprovider

import "net/http"

// apiError is an answer that is not 2xx; the dialect gives it its shape.
type apiError struct {
	status     int
	typ        string // "": the type of the status
	code       string // OpenAI only
	param      string // OpenAI only
	message    string
	retryAfter string
}

func badRequest(param, code, message string) *apiError {
	return &apiError{status: http.StatusBadRequest, param: param, code: code, message: message}
}

// anthropicType gives the error type that belongs to a status.
func anthropicType(status int) string {
	switch status {
	case http.StatusUnauthorized:
		return "authentication_error"
	case http.StatusPaymentRequired:
		return "billing_error"
	case http.StatusForbidden:
		return "permission_error"
	case http.StatusNotFound:
		return "not_found_error"
	case http.StatusRequestEntityTooLarge:
		return "request_too_large"
	case http.StatusTooManyRequests:
		return "rate_limit_error"
	case http.StatusGatewayTimeout:
		return "timeout_error"
	case 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

func openAIType(status int) (typ, code string) {
	switch {
	case status == http.StatusTooManyRequests:
		return "requests", "rate_limit_exceeded"
	case status >= 500:
		return "server_error", ""
	}
	return "invalid_request_error", ""
}

// body writes the error as its provider does.
func (e *apiError) body(anthropic bool, requestID string) []byte {
	if anthropic {
		typ := e.typ
		if typ == "" {
			typ = anthropicType(e.status)
		}
		b := appendAnthropicError(nil, typ, e.message)
		b = append(b[:len(b)-1], `,"request_id":`...)
		return append(appendString(b, requestID), '}')
	}
	typ, code := openAIType(e.status)
	if e.typ != "" {
		typ = e.typ
	}
	if e.code != "" {
		code = e.code
	}
	return appendOpenAIError(nil, e.message, typ, e.param, code)
}

func appendAnthropicError(b []byte, typ, message string) []byte {
	b = appendString(append(b, `{"type":"error","error":{"type":`...), typ)
	b = appendString(append(b, `,"message":`...), message)
	return append(b, `}}`...)
}

func appendOpenAIError(b []byte, message, typ, param, code string) []byte {
	b = appendString(append(b, `{"error":{"message":`...), message)
	b = appendString(append(b, `,"type":`...), typ)
	b = appendNullable(append(b, `,"param":`...), param)
	b = appendNullable(append(b, `,"code":`...), code)
	return append(b, `}}`...)
}

// appendNullable writes "" as null.
func appendNullable(b []byte, s string) []byte {
	if s == "" {
		return append(b, `null`...)
	}
	return appendString(b, s)
}

// refuse answers with an error and closes the row of the bill, if there is one.
func (x *exchange) refuse(e *apiError) {
	if x.shape != nil && x.shape.refuse != nil {
		x.shape.refuse(x, e)
		return
	}
	h := x.w.Header()
	id := x.newID("req_", uint32(e.status))
	h["Content-Type"] = []string{"application/json"}
	if x.anthropic {
		h["Request-Id"] = []string{id}
		h["X-Should-Retry"] = []string{shouldRetry(e.status)}
	} else {
		h["X-Request-Id"] = []string{id}
	}
	if e.retryAfter != "" {
		h["Retry-After"] = []string{e.retryAfter}
	}
	if !x.hasRow {
		x.row = x.s.bill.begin(x.path, x.model, id, false)
	}
	x.row.close(e.status, Usage{}, x.gone(), "")
	x.w.WriteHeader(e.status)
	_, _ = x.w.Write(e.body(x.anthropic, id))
}

func shouldRetry(status int) string {
	if status == http.StatusTooManyRequests || status >= 500 {
		return "true"
	}
	return "false"
}

// gone reports whether the client has disconnected.
func (x *exchange) gone() bool { return x.r.Context().Err() != nil }
