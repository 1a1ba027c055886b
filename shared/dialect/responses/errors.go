package responses

import (
	"net/http"
	"strconv"
	"time"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// overloaded is the code of a 503 in this shape. Clients wait longer for it than for other
// server errors.
const overloaded = "server_is_overloaded"

// longestSleep is the longest Retry-After that clients of this shape may get: Codex and
// the SDKs sleep through any.
const longestSleep = time.Minute

// AppendError implements chat.ErrorWriter.
func (Responses) AppendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	if f.Status() == http.StatusServiceUnavailable {
		again := *f
		again.Code, again.StatusCode = overloaded, http.StatusServiceUnavailable
		f = &again
	}
	return openai.Chat{}.AppendError(dst, f, o)
}

// Challenge implements routes.Challenger. A 429 with a long wait has no Retry-After; its
// message and error.limit.resets_at name the time.
func (Responses) Challenge(h http.Header, _ *http.Request, f *fault.Fault) {
	if f.Status() == http.StatusTooManyRequests && f.RetryAfter > longestSleep {
		h.Del("Retry-After")
		h.Del("Retry-After-Ms")
	}
}

// AppendStreamError implements chat.ErrorWriter: the error event, then the failed response,
// which is the only one of the two that Codex reads.
func (Responses) AppendStreamError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	dst = appendErrorEvent(dst, f, o, int(o.NextEvent))
	return appendFailed(dst, f, o, int(o.NextEvent)+1)
}

// AppendRefusal implements chat.Refuser: one response.failed, at which Codex stops.
func (Responses) AppendRefusal(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	return appendFailed(dst, f, o, 0)
}

// appendFailed writes the failed response of a stream of which no more is known than o.
func appendFailed(dst []byte, f *fault.Fault, o *chat.Options, seq int) []byte {
	own := *o
	own.Strict = true
	s := streamEncoder{o: own, seq: seq}
	return s.failed(dst, f)
}

// failed writes the response.failed event.
func (s *streamEncoder) failed(dst []byte, f *fault.Fault) []byte {
	if s.e == nil {
		s.e = newEnvelope(s.head.id, s.head.model, s.head.created, &s.o)
	}
	o := outcome{status: "failed", fault: f, usage: &s.usage}
	dst = s.event(dst, "response.failed")
	dst = append(dst, `,"response":`...)
	dst = s.e.append(dst, s.output(), &o)
	return append(dst, "}\n\n"...)
}

// failedCode is the code of a failed response. Clients repeat a request after every code
// but invalid_prompt.
func failedCode(f *fault.Fault) string {
	status := f.Status()
	p := chat.ProviderErrorOf(f)
	switch {
	case status < http.StatusInternalServerError && f.Final():
		return "invalid_prompt"
	case p != nil && p.Code != "" && f.Code == fault.ProviderError:
		return p.Code
	case f.Code == chat.InsufficientQuota:
		return string(f.Code)
	case status == http.StatusTooManyRequests:
		return "rate_limit_exceeded"
	case status == http.StatusServiceUnavailable:
		return overloaded
	case status < http.StatusInternalServerError:
		return "invalid_prompt"
	}
	return "server_error"
}

// failure returns the code and the message of an error event.
func failure(f *fault.Fault, o *chat.Options) (code, message string) {
	message = f.Message
	p := chat.ProviderErrorOf(f)
	if p != nil && o.ProviderName != "" {
		message = o.ProviderName + " error: " + message
	}
	code = string(f.Code)
	if f.Code == fault.ProviderError {
		code = failedCode(f)
	}
	return code, message
}

// appendErrorEvent writes the error event. Clients look for the details in the event itself
// or in its error field, and those of the WebSocket for the status.
func appendErrorEvent(dst []byte, f *fault.Fault, o *chat.Options, seq int) []byte {
	code, message := failure(f, o)
	typ := f.Type()
	if p := chat.ProviderErrorOf(f); p != nil && p.Type != "" {
		typ = p.Type
	}
	details := func(dst []byte) []byte {
		dst = append(dst, `"code":`...)
		dst = wire.AppendJSONString(dst, code)
		dst = append(dst, `,"message":`...)
		dst = wire.AppendJSONString(dst, message)
		dst = append(dst, `,"param":`...)
		if f.Field == "" {
			return append(dst, "null"...)
		}
		return wire.AppendJSONString(dst, f.Field)
	}
	dst = append(dst, "event: error\ndata: {\"type\":\"error\",\"sequence_number\":"...)
	dst = append(strconv.AppendInt(dst, int64(seq), 10), `,"status":`...)
	dst = append(strconv.AppendInt(dst, int64(f.Status()), 10), ',')
	dst = details(dst)
	dst = append(dst, `,"error":{"type":`...)
	dst = append(wire.AppendJSONString(dst, typ), ',')
	return append(details(dst), "}}\n\n"...)
}
