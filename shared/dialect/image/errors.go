package image

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// errors reads the error bodies of these hosts: those of upstream.DecodeError, a
// bare string, {fault: {faultstring, detail: {errorcode}}} of Fireworks AI and
// {id, name, message or errors} of Stability AI.
type errors struct{}

// DecodeError implements chat.Translator.
func (errors) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	p := readError(body)
	if p == nil {
		return upstream.DecodeError(status, h, body)
	}
	p.Status = status
	f := upstream.Fault(p)
	if p.Type == "content_moderation" {
		f.Code = chat.ContentFilter
	}
	return chat.CompleteFault(f, status, h)
}

// readError reads errors that upstream.ReadError does not know; nil for the rest.
func readError(body []byte) *chat.ProviderError {
	d := wire.NewDecoder(body)
	if d.Kind() == wire.KindString {
		p := &chat.ProviderError{Message: d.Str()}
		if d.End() != nil || p.Message == "" {
			return nil
		}
		return p
	}
	if d.Kind() != wire.KindObject {
		return nil
	}
	p := &chat.ProviderError{}
	var id, name string
	for key := range d.Object {
		switch string(key) {
		case "id":
			id = upstream.OptString(d)
		case "name":
			name = upstream.OptString(d)
		case "fault":
			if d.Kind() == wire.KindObject {
				readFault(d, p)
			}
		}
	}
	if d.End() != nil {
		return nil
	}
	if p.Message != "" {
		return p
	}
	if p = upstream.ReadError(body); p == nil || name == "" {
		return nil
	}
	p.Type, p.Param = name, id
	return p
}

func readFault(d *wire.Decoder, p *chat.ProviderError) {
	for key := range d.Object {
		switch string(key) {
		case "faultstring":
			p.Message = upstream.OptString(d)
		case "detail":
			if d.Kind() != wire.KindObject {
				continue
			}
			for key := range d.Object {
				if string(key) == "errorcode" {
					p.Code = upstream.OptString(d)
				}
			}
		}
	}
}
