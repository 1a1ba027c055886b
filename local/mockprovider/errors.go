package mockprovider

import "net/http"

// apiError is a response that is not 2xx; the dialect gives it its shape.
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
		typ := firstOf(e.typ, anthropicType(e.status))
		b := anthropicErrorOf(typ, e.message)
		return append(b[:len(b)-1], fill(`,"request_id":$}`, requestID)...)
	}
	typ, code := openAIType(e.status)
	return openAIErrorOf(e.message, firstOf(e.typ, typ), e.param, firstOf(e.code, code))
}

func firstOf(a, b string) string {
	if a != "" {
		return a
	}
	return b
}

func anthropicErrorOf(typ, message string) []byte {
	return fill(`{"type":"error","error":{"type":$,"message":$}}`, typ, message)
}

func openAIErrorOf(message, typ, param, code string) []byte {
	return fill(`{"error":{"message":$,"type":$,"param":$,"code":$}}`, message, typ, orNull(param), orNull(code))
}

// sendError closes the row of the bill, which it opens if there is none, and sends the body of an
// error.
func (x *exchange) sendError(e *apiError, id string, body []byte) {
	if !x.hasRow {
		x.row = x.s.bill.begin(x.path, x.model, id, false)
	}
	x.row.close(e.status, Usage{}, x.gone(), "")
	h := x.w.Header()
	if h["Content-Type"] == nil {
		h["Content-Type"] = []string{"application/json"}
	}
	if e.retryAfter != "" {
		h["Retry-After"] = []string{e.retryAfter}
	}
	x.w.WriteHeader(e.status)
	_, _ = x.w.Write(body)
}

// reject responds with an error and closes the row of the bill, if there is one.
func (x *exchange) reject(e *apiError) {
	if x.shape != nil && x.shape.reject != nil {
		x.shape.reject(x, e)
		return
	}
	id := x.newID("req_", uint32(e.status))
	if h := x.w.Header(); x.anthropic {
		h["Request-Id"], h["X-Should-Retry"] = []string{id}, []string{shouldRetry(e.status)}
	} else {
		h["X-Request-Id"] = []string{id}
	}
	x.sendError(e, id, e.body(x.anthropic, id))
}

func shouldRetry(status int) string {
	if status == http.StatusTooManyRequests || status >= 500 {
		return "true"
	}
	return "false"
}

// gone reports whether the client has disconnected.
func (x *exchange) gone() bool { return x.r.Context().Err() != nil }
