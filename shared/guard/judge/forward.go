package judge

import (
	"crypto/sha256"
	"encoding/hex"
	"net/http"
	"strings"
)

// Forward copies headers of the client into a check's request to a host, except those that h
// already has. If a traceparent is requested and the client sent none, it is created from the
// trace id.
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

// traceparent returns the header for a trace: its id if it is valid, otherwise a hash of it.
func traceparent(trace string) string {
	sum := sha256.Sum256([]byte(trace))
	id := hex.EncodeToString(sum[:16])
	if len(trace) == 32 && strings.Trim(trace, "0123456789abcdef") == "" && strings.Trim(trace, "0") != "" {
		id = trace
	}
	return "00-" + id + "-" + hex.EncodeToString(sum[16:24]) + "-01"
}
