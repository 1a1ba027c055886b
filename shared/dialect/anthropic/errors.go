package anthropic

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// statuses are the statuses of error types inside a stream.
var statuses = map[string]int{
	"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403,
	"not_found_error": 404, "conflict_error": 409, "request_too_large": 413, "rate_limit_error": 429,
	"api_error": 500, "timeout_error": 504, "overloaded_error": 529,
}

// errorType is the error type for a status.
func errorType(status int) string {
	switch status {
	case 401:
		return "authentication_error"
	case 402, 412:
		return "billing_error"
	case 403:
		return "permission_error"
	case 404:
		return "not_found_error"
	case 413:
		return "request_too_large"
	case 429:
		return "rate_limit_error"
	case 408, 504:
		return "timeout_error"
	case 503, 529:
		return "overloaded_error"
	}
	if status >= 500 {
		return "api_error"
	}
	return "invalid_request_error"
}

func decodeError(status int, h http.Header, body []byte) *fault.Fault {
	p := readError(body)
	if p == nil {
		return chat.NotJSON(status, h)
	}
	p.Status = status
	return chat.CompleteFault(providerFault(p), status, h)
}

// readError reads {type:error,error:{type,message}}, and {message} as hosts in
// front of the models write it; nil when body is neither.
func readError(body []byte) *chat.ProviderError {
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return nil
	}
	p := new(chat.ProviderError)
	inner := false
	for key := range d.Object {
		switch string(key) {
		case "error":
			switch d.Kind() {
			case wire.KindObject:
				inner = true
				readErrorObject(d, p)
			case wire.KindString:
				inner, p.Message = true, d.Str()
			}
		case "message", "Message":
			if !inner {
				p.Message = upstream.OptString(d)
			}
		}
	}
	if d.Err() != nil || p.Message == "" && p.Type == "" {
		return nil
	}
	return p
}

func readErrorObject(d *wire.Decoder, p *chat.ProviderError) {
	for key := range d.Object {
		switch string(key) {
		case "type":
			p.Type = upstream.OptString(d)
		case "message":
			p.Message = upstream.OptString(d)
		case "code":
			p.Code = upstream.OptString(d)
		case "details":
			if d.Kind() == wire.KindObject {
				for name := range d.Object {
					if string(name) == "error_code" {
						p.Code = upstream.OptString(d)
					}
				}
			}
		}
	}
}

// providerFault returns the fault for a provider's error.
func providerFault(p *chat.ProviderError) *fault.Fault {
	f := fault.New(fault.ProviderError, "", p.Message).WithCause(p)
	f.Source = fault.SourceProvider
	f.StatusCode = p.Status
	meaning := hosts.CodeOf(p)
	switch {
	case meaning == chat.InsufficientQuota:
		f.Code, f.StatusCode = meaning, http.StatusTooManyRequests
	case p.Type == "overloaded_error" || p.Status == 529:
		f.Code, f.StatusCode = chat.Overloaded, 529
	case p.Status == 503:
		f.Code = chat.Overloaded
	case p.Type == "rate_limit_error" || p.Status == 429:
		f.Code, f.StatusCode = fault.RateLimited, http.StatusTooManyRequests
	case p.Status == 413 || p.Type == "request_too_large":
		f.Code, f.StatusCode = chat.ContextLength, http.StatusRequestEntityTooLarge
	case meaning != "":
		f.Code = meaning
	}
	return f
}

// inBandError makes the fault for an error event.
func inBandError(data []byte) *fault.Fault {
	p := readError(data)
	if p == nil {
		return upstream.Invalid("The provider sent an error that could not be read", nil)
	}
	if p.Status = statuses[p.Type]; p.Status == 0 {
		p.Status = http.StatusInternalServerError
	}
	return providerFault(p)
}

// tooLong is how this shape reports that a conversation does not fit the context. Agents look for
// these words before they compact their history.
const tooLong = "prompt is too long"

// withThreadDetails adds to an error body the fields that Anthropic's clients need before they
// send the complete conversation again: the error code of a thread, and the unsupported fields.
func withThreadDetails(body []byte, code fault.Code) []byte {
	details := ""
	switch code {
	case fault.ThreadUnsupported:
		details = `"details":{"error_code":"thread_unsupported_request","unsupported":["thread"]},`
	case fault.ThreadNotFound:
		details = `"details":{"error_code":"thread_not_found"},`
	default:
		return body
	}
	at := bytes.Index(body, []byte(`"error":{`))
	return slices.Insert(body, at+len(`"error":{`), []byte(details)...)
}

// appendError writes {type:error,error:{type,message,...},message}. The SDK prints the
// complete body if message is missing at the top.
func appendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	p := chat.ProviderErrorOf(f)
	if p == nil && f.Source != fault.SourceProvider {
		return append(dst, withThreadDetails(f.DataBody(true), f.Code)...)
	}
	message, typ, code := f.Message, errorType(f.Status()), string(f.Code)
	if f.Code == chat.ContextLength && f.Status() != http.StatusRequestEntityTooLarge && !strings.Contains(message, tooLong) {
		message = tooLong + ": " + message
	}
	if f.Retried && f.Status() == http.StatusServiceUnavailable {
		typ = "api_error" // the SDK repeats overloaded_error whatever the headers say
	}
	if p != nil {
		if o.ProviderName != "" {
			message = o.ProviderName + " error: " + message
		}
		if statuses[p.Type] == f.Status() {
			typ = p.Type
		}
		if f.Code == fault.ProviderError {
			code = p.Code
		}
	}
	dst = append(dst, `{"type":"error","error":{"type":`...)
	dst = wire.AppendJSONString(dst, typ)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendJSONString(dst, message)
	dst = append(dst, `,"param":`...)
	dst = jsonfield.AppendOrNull(dst, f.Field)
	dst = append(dst, `,"code":`...)
	dst = jsonfield.AppendOrNull(dst, code)
	dst = append(dst, `,"source":"provider"},"message":`...)
	dst = wire.AppendJSONString(dst, message)
	if o.ProviderName != "" {
		dst = append(dst, `,"provider":`...)
		dst = wire.AppendJSONString(dst, o.ProviderName)
	}
	return append(dst, '}')
}

// appendStreamError writes the event that ends a broken stream.
func appendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	dst = append(dst, "event: error\ndata: "...)
	dst = appendError(dst, f, o)
	return append(dst, "\n\n"...)
}
