package openai

import (
	"net/http"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/dialect/jsonfield"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// decodeError reads an error response of an OpenAI-like host: {error:{...}},
// {error:"text"}, {message,...} and {detail:...} are all in use.
func decodeError(status int, h http.Header, body []byte) *fault.Fault {
	p := readError(body)
	if p == nil {
		return chat.NotJSON(status, h)
	}
	p.Status = status
	return chat.CompleteFault(providerFault(p), status, h)
}

// readError finds the provider's error; nil when body is not a JSON object with one.
func readError(body []byte) *chat.ProviderError {
	var d wire.Decoder
	d.Reset(body)
	if d.Kind() == wire.KindArray { // some hosts wrap the object in a list
		var first []byte
		for i := range d.Array {
			if i == 0 {
				first = d.Raw()
			}
		}
		if d.Err() != nil || first == nil {
			return nil
		}
		d.Reset(first)
	}
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
				readErrorObject(&d, p)
			case wire.KindString:
				inner, p.Message = true, d.Str()
			}
		case "message":
			if !inner {
				p.Message = upstream.OptString(&d)
			}
		case "detail":
			if !inner {
				readDetail(&d, p)
			}
		case "type":
			if t := upstream.OptString(&d); !inner && t != "error" {
				p.Type = t
			}
		case "code":
			if !inner {
				p.Code = scalar(&d)
			}
		case "param":
			if !inner {
				p.Param = upstream.OptString(&d)
			}
		}
	}
	if d.Err() != nil {
		return nil
	}
	if p.Message == "" && p.Type == "" && p.Code == "" {
		return upstream.ReadError(body) // one of the rarer shapes, as {errors:[{code,message}]}
	}
	return p
}

func readErrorObject(d *wire.Decoder, p *chat.ProviderError) {
	for key := range d.Object {
		switch string(key) {
		case "message":
			p.Message = upstream.OptString(d)
		case "type":
			p.Type = upstream.OptString(d)
		case "param":
			p.Param = upstream.OptString(d)
		case "code":
			p.Code = scalar(d)
		case "innererror":
			p.Inner = append([]byte(nil), d.Raw()...)
		}
	}
}

// readDetail reads {detail:"text"} and {detail:[{loc,msg}]}.
func readDetail(d *wire.Decoder, p *chat.ProviderError) {
	switch d.Kind() {
	case wire.KindString:
		p.Message = d.Str()
	case wire.KindArray:
		for range d.Array {
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				if string(key) == "msg" && p.Message == "" {
					p.Message = upstream.OptString(d)
				}
			}
		}
	}
}

// scalar reads a string or a number as text.
func scalar(d *wire.Decoder) string {
	switch d.Kind() {
	case wire.KindString:
		return d.Str()
	case wire.KindNumber:
		return string(d.Num())
	}
	d.Skip()
	return ""
}

// providerFault returns the fault for an OpenAI-like host's error.
func providerFault(p *chat.ProviderError) *fault.Fault {
	f := fault.New(fault.ProviderError, p.Param, p.Message).WithCause(p)
	f.Source = fault.SourceProvider
	f.StatusCode = p.Status
	switch meaning := hosts.CodeOf(p); {
	case meaning == chat.InsufficientQuota:
		f.Code, f.StatusCode = meaning, http.StatusTooManyRequests
	case meaning != "":
		f.Code = meaning
	case p.Code == "content_filter":
		f.Code = chat.ContentFilter
	case p.Status == 429:
		f.Code = fault.RateLimited
	case p.Status == 529 || p.Status == 503:
		f.Code = chat.Overloaded
	}
	return f
}

// inBandError makes the fault for an error object inside a success. raw is the
// value of its error field.
func inBandError(raw []byte) *fault.Fault {
	p := readError(append(append([]byte(`{"error":`), raw...), '}'))
	if p == nil {
		return upstream.Invalid("The provider sent an error that could not be read", nil)
	}
	p.Status = inBandStatus(p)
	return providerFault(p)
}

// inBandStatus returns the status for an error inside a success.
func inBandStatus(p *chat.ProviderError) int {
	if n, err := strconv.Atoi(p.Code); err == nil && n >= 400 && n <= 599 {
		return n
	}
	for _, word := range [...]string{p.Code, p.Type} {
		switch word {
		case "invalid_request_error", "context_length_exceeded", "content_filter":
			return 400
		case "authentication_error", "invalid_api_key":
			return 401
		case "permission_error":
			return 403
		case "not_found_error", "model_not_found":
			return 404
		case "rate_limit_error", "rate_limit_exceeded", "tokens", "requests", "insufficient_quota":
			return 429
		case "server_error", "api_error", "internal_server_error":
			return 500
		case "overloaded_error", "overloaded":
			return 529
		case "service_unavailable", "engine_overloaded":
			return 503
		case "timeout", "timeout_error":
			return 504
		}
	}
	return http.StatusBadGateway
}

// errorType is the error type that OpenAI clients know for a status.
func errorType(status int) string {
	switch {
	case status == 401:
		return "authentication_error"
	case status == 403:
		return "permission_error"
	case status == 404:
		return "not_found_error"
	case status == 429:
		return "rate_limit_error"
	case status == 408 || status == 504:
		return "timeout_error"
	case status >= 500:
		return "api_error"
	}
	return "invalid_request_error"
}

// appendError writes the body of a plain error.
func appendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	p := chat.ProviderErrorOf(f)
	if p == nil && f.Source != fault.SourceProvider {
		return append(dst, f.DataBody(false)...)
	}
	return appendProviderError(dst, f, p, o)
}

// appendProviderError writes {"error":{message,type,param,code,source}, "provider"}.
// Without p, the gateway itself describes the provider's failure.
func appendProviderError(dst []byte, f *fault.Fault, p *chat.ProviderError, o *chat.Options) []byte {
	message, typ, param, code := f.Message, errorType(f.Status()), f.Field, string(f.Code)
	if p != nil {
		if o.ProviderName != "" {
			message = o.ProviderName + " error: " + message
		}
		if p.Type != "" {
			typ = p.Type
		}
		if f.Code == fault.ProviderError {
			code = p.Code
		}
	}
	if f.Code == chat.InsufficientQuota {
		typ = "insufficient_quota"
	}
	dst = append(dst, `{"error":{"message":`...)
	dst = wire.AppendJSONString(dst, message)
	dst = append(dst, `,"type":`...)
	dst = wire.AppendJSONString(dst, typ)
	dst = append(dst, `,"param":`...)
	dst = jsonfield.AppendOrNull(dst, param)
	dst = append(dst, `,"code":`...)
	dst = jsonfield.AppendOrNull(dst, code)
	if p != nil && len(p.Inner) > 0 {
		dst = append(dst, `,"innererror":`...)
		dst = append(dst, p.Inner...)
	}
	dst = append(dst, `,"source":"provider"}`...)
	if o.ProviderName != "" {
		dst = append(dst, `,"provider":`...)
		dst = wire.AppendJSONString(dst, o.ProviderName)
	}
	return append(dst, '}')
}

// appendStreamError writes the event that ends a broken stream. No [DONE] may
// follow it.
func appendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	dst = append(dst, "data: "...)
	dst = appendError(dst, f, o)
	return append(dst, "\n\n"...)
}
