package cohere

import (
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// decodeError reads {message}, with an id that names the request.
func decodeError(status int, h http.Header, body []byte) *fault.Fault {
	return upstream.DecodeError(status, h, body)
}

// Failure is the fault for a finish reason that means failure: the answer is incomplete.
func Failure(native, message string) *fault.Fault {
	status := http.StatusBadGateway
	if native == "TIMEOUT" {
		status = http.StatusGatewayTimeout
	}
	if message == "" {
		message = "The model ended its answer with " + native
	}
	return upstream.Failed(status, "", message)
}

// Failed reports whether a finish reason says that the answer failed.
func Failed(native string) bool {
	return native == "ERROR" || native == "TIMEOUT" || native == "USER_CANCEL"
}

// appendError writes {"id":...,"message":...}.
func appendError(dst []byte, f *fault.Fault, o *chat.Options) []byte {
	dst = append(dst, `{"id":`...)
	dst = wire.AppendJSONString(dst, o.ID)
	dst = append(dst, `,"message":`...)
	dst = wire.AppendJSONString(dst, f.Sentence())
	return append(dst, '}')
}

// appendStreamError writes the end of an answer that failed.
func appendStreamError(dst []byte, f *fault.Fault, _ *chat.Options) []byte {
	data := append([]byte(nil), `{"type":"message-end","delta":{"error":`...)
	data = wire.AppendJSONString(data, f.Sentence())
	data = append(data, `,"finish_reason":"ERROR"}}`...)
	return wire.AppendSSE(dst, "message-end", data)
}
