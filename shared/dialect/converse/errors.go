package converse

import (
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// statuses are the statuses of the service's exceptions inside a stream, which has none.
// Outside of a stream some exceptions have another status, which is preserved: 429 for a
// model that is not ready, 408 for one that took too long.
var statuses = map[string]int{
	"throttlingexception": 429, "toomanyrequestsexception": 429, "servicequotaexceededexception": 429, "limitexceededexception": 429,
	"validationexception": 400, "serializationexception": 400,
	"accessdeniedexception": 403, "unrecognizedclientexception": 403, "invalidsignatureexception": 403, "expiredtokenexception": 403,
	"missingauthenticationtokenexception": 403, "incompletesignatureexception": 403, "signaturedoesnotmatch": 403,
	"resourcenotfoundexception": 404, "conflictexception": 409,
	"modeltimeoutexception": 504, "modelnotreadyexception": 503, "serviceunavailableexception": 503, "serviceunavailable": 503,
	"modelerrorexception": 502, "modelstreamerrorexception": 502,
	"internalserverexception": 500, "internalfailure": 500,
}

func decodeError(status int, h http.Header, body []byte) *fault.Fault {
	p := readError(body)
	if p == nil {
		p = &chat.ProviderError{}
	}
	if typ := errorType(h.Get("X-Amzn-Errortype")); typ != "" {
		p.Type = typ
	}
	if p.Type == "" && p.Message == "" {
		return upstream.DecodeError(status, h, body)
	}
	if p.Message == "" {
		p.Message = p.Type
	}
	p.Status = status
	return chat.CompleteFault(providerFault(p), status, h)
}

// errorType is the plain name of an exception: without the namespace before it and the
// address after it.
func errorType(s string) string {
	s, _, _ = strings.Cut(s, ":")
	return s[strings.LastIndexByte(s, '#')+1:]
}

// readError reads {message, __type}, in the spellings that the services use; nil
// when body is no object.
func readError(body []byte) *chat.ProviderError {
	d := wire.NewDecoder(body)
	if d.Kind() != wire.KindObject {
		return nil
	}
	p := new(chat.ProviderError)
	for key := range d.Object {
		switch string(key) {
		case "message", "Message", "OriginalMessage":
			if s := upstream.OptString(d); p.Message == "" {
				p.Message = s
			}
		case "__type":
			p.Type = errorType(upstream.OptString(d))
		}
	}
	if d.End() != nil {
		return nil
	}
	return p
}

// providerFault returns the fault for a provider's error.
func providerFault(p *chat.ProviderError) *fault.Fault {
	f := fault.New(fault.ProviderError, "", p.Message).WithCause(p)
	f.Source = fault.SourceProvider
	f.StatusCode = p.Status
	if status := statuses[strings.ToLower(p.Type)]; status != 0 {
		f.StatusCode = status
	}
	switch f.StatusCode {
	case http.StatusTooManyRequests:
		f.Code = fault.RateLimited
	case http.StatusServiceUnavailable:
		f.Code = chat.Overloaded
	case http.StatusBadRequest:
		if at := (chat.ProviderError{Status: f.StatusCode, Message: p.Message}); hosts.MeaningOf(&at) == chat.ContextLength {
			f.Code = chat.ContextLength
		}
	}
	return f
}

// Exception makes the fault for an exception in a stream.
func Exception(kind string, data []byte) *fault.Fault {
	p := readError(data)
	if p == nil {
		p = &chat.ProviderError{}
	}
	p.Type = errorType(kind)
	if p.Message == "" {
		p.Message = "The provider ended its stream with " + p.Type
	}
	if p.Status = statuses[strings.ToLower(p.Type)]; p.Status == 0 {
		p.Status = http.StatusBadGateway
	}
	return providerFault(p)
}

func invalidAnswer(cause error) *fault.Fault {
	return upstream.Invalid("The provider's answer is not a message", cause)
}
