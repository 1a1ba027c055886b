package upstream

import (
	"net/http"
	"strconv"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Errors reads the error responses of a wire in any of the shapes that DecodeError
// knows.
type Errors struct{}

// DecodeError implements chat.ErrorReader.
func (Errors) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return DecodeError(status, h, body)
}

// DecodeError reads an error response in any of the shapes that hosts use:
// {message}, {error: text or {message,type,code,status}}, {detail: text or
// [{loc,msg,type}]}, {errors: [text or {code,message}]}, {code,message}, or a
// list that holds one of them. The status is the
// answer's own.
func DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	p := ReadError(body)
	if p == nil {
		return chat.NotJSON(status, h)
	}
	p.Status = status
	return chat.CompleteFault(Fault(p), status, h)
}

// Invalid is the fault for a response that cannot be read.
func Invalid(message string, cause error) *fault.Fault {
	f := fault.New(fault.InvalidProviderResponse, "", message)
	f.Source = fault.SourceProvider
	if cause != nil {
		return f.WithCause(cause)
	}
	return f
}

// UnreadableFault returns the fault for an unreadable event of a stream: the response before
// it is incomplete.
func UnreadableFault(cause error) *fault.Fault {
	return Invalid("The provider sent a stream event that cannot be read", cause)
}

// Failed is the fault for an error that the provider reports inside a success.
func Failed(status int, typ, message string) *fault.Fault {
	return Fault(&chat.ProviderError{Status: status, Type: typ, Message: message})
}

// InBand reads an error body inside a success. If its own code is a status, that is the
// fault's status.
func InBand(body []byte) *fault.Fault {
	p := ReadError(body)
	if p == nil {
		return Invalid("The provider sent an error that could not be read", nil)
	}
	p.Status = http.StatusBadGateway
	if n, err := strconv.Atoi(p.Code); err == nil && n >= 400 && n <= 599 {
		p.Status = n
	}
	return Fault(p)
}

// Fault returns the fault for a provider's error.
func Fault(p *chat.ProviderError) *fault.Fault {
	f := fault.New(fault.ProviderError, p.Param, p.Message).WithCause(p)
	f.Source = fault.SourceProvider
	f.StatusCode = p.Status
	switch meaning := hosts.CodeOf(p); {
	case meaning != "":
		f.Code = meaning
	case p.Status == http.StatusTooManyRequests:
		f.Code = fault.RateLimited
	case p.Status == http.StatusServiceUnavailable || p.Status == 529:
		f.Code = chat.Overloaded
	}
	return f
}

// ReadError finds the provider's error; nil when body holds none.
func ReadError(body []byte) *chat.ProviderError {
	d := wire.NewDecoder(body)
	if d.Kind() == wire.KindArray {
		var first []byte
		for i := range d.Array {
			if i == 0 {
				first = d.Raw()
			}
		}
		if d.Err() != nil || wire.KindOf(first) != wire.KindObject {
			return nil
		}
		d.Reset(first)
	}
	if d.Kind() != wire.KindObject {
		return nil
	}
	p := new(chat.ProviderError)
	readMembers(d, p, true)
	if d.Err() != nil || p.Message == "" && p.Type == "" && p.Code == "" {
		return nil
	}
	return p
}

func readMembers(d *wire.Decoder, p *chat.ProviderError, outer bool) {
	inner := false
	set := func(to *string, v string) {
		if !inner && v != "" {
			*to = v
		}
	}
	for key := range d.Object {
		switch string(key) {
		case "message", "Message":
			if d.Kind() == wire.KindObject && outer {
				readMembers(d, p, false)
				continue
			}
			set(&p.Message, OptString(d))
		case "type", "status":
			if v := OptString(d); v != "error" {
				set(&p.Type, v)
			}
		case "code":
			set(&p.Code, scalar(d))
		case "error":
			switch {
			case d.Kind() == wire.KindString:
				p.Message = d.Str()
			case d.Kind() == wire.KindObject && outer:
				readMembers(d, p, false)
				inner = true
			}
		case "detail":
			if v := detail(d, p); v != "" {
				set(&p.Message, v)
			}
		case "errors":
			if v := listed(d, p); v != "" {
				set(&p.Message, v)
			}
		}
	}
}

// detail reads {detail:"text"} and {detail:[{loc,msg,type}]}.
func detail(d *wire.Decoder, p *chat.ProviderError) string {
	if d.Kind() == wire.KindString {
		return d.Str()
	}
	if d.Kind() != wire.KindArray {
		return ""
	}
	message := ""
	for i := range d.Array {
		if i > 0 || d.Kind() != wire.KindObject {
			d.Skip()
			continue
		}
		var loc []string
		for key := range d.Object {
			switch string(key) {
			case "loc":
				for range d.Array {
					loc = append(loc, scalar(d))
				}
			case "msg":
				message = OptString(d)
			case "type":
				p.Type = OptString(d)
			}
		}
		if len(loc) > 0 {
			message = strings.Join(loc, ".") + ": " + message
		}
	}
	return message
}

// listed joins the messages of a list of errors.
func listed(d *wire.Decoder, p *chat.ProviderError) string {
	if d.Kind() != wire.KindArray {
		return ""
	}
	var all []string
	for range d.Array {
		if d.Kind() == wire.KindString {
			all = append(all, d.Str())
			continue
		}
		if d.Kind() != wire.KindObject {
			continue
		}
		for key := range d.Object {
			switch string(key) {
			case "message":
				all = append(all, OptString(d))
			case "code":
				p.Code = scalar(d)
			}
		}
	}
	return strings.Join(all, ", ")
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
