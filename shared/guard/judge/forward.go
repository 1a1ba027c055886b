package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// Forward puts headers of the client into a request to a host of a check, those that h
// has already excepted. A traceparent that is asked for, and that the client did not
// send, is made of the trace's id.
func (s *Subject) Forward(h http.Header, names []string) {
	for _, name := range names {
		v := s.Headers.Get(name)
		if v == "" && strings.EqualFold(name, "traceparent") && s.TraceID != "" {
			v = traceparent(s.TraceID)
		}
		if v != "" && h.Get(name) == "" {
			h.Set(name, v)
		}
	}
}

// traceparent is that of a trace: its id, if it has the form, else a hash of it.
func traceparent(trace string) string {
	sum := sha256.Sum256([]byte(trace))
	id := hex.EncodeToString(sum[:16])
	if len(trace) == 32 && strings.Trim(trace, "0123456789abcdef") == "" && strings.Trim(trace, "0") != "" {
		id = trace
	}
	return "00-" + id + "-" + hex.EncodeToString(sum[16:24]) + "-01"
}
