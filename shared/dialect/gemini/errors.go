package gemini

import (
	"net/http"
	"strconv"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/dialect/hosts"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// optString reads a string; anything else counts as absent.
func optString(d *wire.Decoder) string {
	if d.Kind() != wire.KindString {
		d.Skip()
		return ""
	}
	return d.Str()
}

// errorBody is an error body: {error:{code,message,status,details}}, or a list that contains
// one, as in Vertex and the array form of streams.
type errorBody struct {
	p      chat.ProviderError
	reason string // of an ErrorInfo
	retry  time.Duration
}

// readError reads an error body; nil when body is none.
func readError(body []byte) *errorBody {
	d := wire.NewDecoder(body)
	if d.Kind() == wire.KindArray {
		var first []byte
		for i := range d.Array {
			if i == 0 {
				first = d.Raw()
			}
		}
		if first == nil || d.Err() != nil {
			return nil
		}
		d = wire.NewDecoder(first)
	}
	if d.Kind() != wire.KindObject {
		return nil
	}
	s := new(errorBody)
	for key := range d.Object {
		if string(key) != "error" {
			continue
		}
		switch d.Kind() {
		case wire.KindObject:
			s.readObject(d)
		case wire.KindString: // from the front door: {error, error_description}
			s.p.Message = d.Str()
		}
	}
	if d.Err() != nil || s.p.Message == "" && s.p.Type == "" {
		return nil
	}
	return s
}

func (s *errorBody) readObject(d *wire.Decoder) {
	for key := range d.Object {
		switch string(key) {
		case "code":
			switch d.Kind() {
			case wire.KindNumber:
				s.p.Status = int(min(max(d.Int(), 0), 999))
				s.p.Code = strconv.Itoa(s.p.Status)
			case wire.KindString:
				s.p.Code = d.Str()
			}
		case "message":
			s.p.Message = optString(d)
		case "status":
			s.p.Type = optString(d)
		case "details":
			if d.Kind() == wire.KindArray {
				for range d.Array {
					s.readDetail(d)
				}
			}
		}
	}
}

// readDetail reads a RetryInfo or an ErrorInfo.
func (s *errorBody) readDetail(d *wire.Decoder) {
	if d.Kind() != wire.KindObject {
		return
	}
	for key := range d.Object {
		switch string(key) {
		case "retryDelay":
			if v, err := strconv.ParseFloat(strings.TrimSuffix(optString(d), "s"), 64); err == nil && v > 0 {
				s.retry = time.Duration(min(v, 86400) * float64(time.Second))
			}
		case "reason":
			s.reason = optString(d)
		}
	}
}

// statuses are the HTTP statuses for the status words of an error inside a success.
var statuses = map[string]int{
	"INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "OUT_OF_RANGE": 400, "UNAUTHENTICATED": 401, "PERMISSION_DENIED": 403,
	"NOT_FOUND": 404, "ALREADY_EXISTS": 409, "ABORTED": 409, "RESOURCE_EXHAUSTED": 429, "CANCELLED": 499, "INTERNAL": 500,
	"UNKNOWN": 500, "DATA_LOSS": 500, "UNIMPLEMENTED": 501, "UNAVAILABLE": 503, "DEADLINE_EXCEEDED": 504,
}

func decodeError(status int, h http.Header, body []byte) *fault.Fault {
	s := readError(body)
	if s == nil {
		return chat.NotJSON(status, h)
	}
	s.p.Status = status
	return chat.CompleteFault(s.fault(), status, h)
}

// inBandError makes the fault for an error inside a success.
func inBandError(body []byte) *fault.Fault {
	s := readError(body)
	if s == nil {
		f := fault.New(fault.InvalidProviderResponse, "", "The provider sent an error that could not be read")
		f.Source = fault.SourceProvider
		return f
	}
	if s.p.Status < 400 || s.p.Status > 599 {
		if s.p.Status = statuses[s.p.Type]; s.p.Status == 0 {
			s.p.Status = http.StatusInternalServerError
		}
	}
	return s.fault()
}

// fault returns the fault for the provider's error.
func (s *errorBody) fault() *fault.Fault {
	p := &s.p
	f := fault.New(fault.ProviderError, "", p.Message).WithCause(p)
	f.Source, f.StatusCode, f.RetryAfter = fault.SourceProvider, p.Status, s.retry
	switch {
	case s.reason == "API_KEY_INVALID": // Google reports it as a bad request
		f.StatusCode = http.StatusUnauthorized
	case p.Status == 429 || p.Type == "RESOURCE_EXHAUSTED":
		f.Code, f.StatusCode = fault.RateLimited, http.StatusTooManyRequests
	case p.Status == 503 || p.Type == "UNAVAILABLE":
		f.Code, f.StatusCode = chat.Overloaded, http.StatusServiceUnavailable
	case p.Status == 413:
		f.Code = chat.ContextLength
	case hosts.CodeOf(p) == chat.ContextLength:
		f.Code = chat.ContextLength
	}
	return f
}

// invalidResponse is the fault for a response that is not one.
func invalidResponse(cause error) *fault.Fault {
	f := fault.New(fault.InvalidProviderResponse, "", "The provider's response is not a generateContent response")
	f.Source = fault.SourceProvider
	if cause != nil {
		return f.WithCause(cause)
	}
	return f
}

// failedResponse is the fault for a finish reason that reports that nothing useful was made. It
// is worth a retry.
func failedResponse(native, message string) *fault.Fault {
	text := "The model did not finish: " + native
	if message != "" {
		text += ": " + message
	}
	p := &chat.ProviderError{Status: http.StatusBadGateway, Type: native, Code: native, Message: text}
	f := fault.New(fault.ProviderError, "", text).WithCause(p)
	f.Source, f.StatusCode = fault.SourceProvider, http.StatusBadGateway
	return f
}

// statusWord returns the status word for a status.
func statusWord(status int) string {
	switch status {
	case 401:
		return "UNAUTHENTICATED"
	case 403:
		return "PERMISSION_DENIED"
	case 404:
		return "NOT_FOUND"
	case 409:
		return "ABORTED"
	case 429, 412:
		return "RESOURCE_EXHAUSTED"
	case 408, 504:
		return "DEADLINE_EXCEEDED"
	case 503, 529:
		return "UNAVAILABLE"
	}
	if status >= 500 {
		return "INTERNAL"
	}
	return "INVALID_ARGUMENT"
}

// appendError writes {error:{code,message,status}}.
func appendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	message, word := f.Sentence(), statusWord(f.Status())
	if p := chat.ProviderErrorOf(f); p != nil {
		if o.ProviderName != "" {
			message = o.ProviderName + " error: " + message
		}
		if statuses[p.Type] == f.Status() {
			word = p.Type
		}
	}
	dst = append(dst, `{"error":{"code":`...)
	dst = strconv.AppendInt(dst, int64(f.Status()), 10)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendJSONString(dst, message)
	dst = append(dst, `,"status":`...)
	dst = wire.AppendJSONString(dst, word)
	if wait := f.RetryAfter; wait > 0 && (f.Status() == 429 || f.Source == fault.SourceProvider) {
		dst = append(dst, `,"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"`...)
		dst = strconv.AppendInt(dst, int64((wait+time.Second-1)/time.Second), 10)
		dst = append(dst, `s"}]`...)
	}
	return append(dst, `}}`...)
}
