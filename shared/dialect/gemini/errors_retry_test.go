package gemini

import (
	"strings"
	"testing"
	"time"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// Gemini CLI reads how long it must wait from RetryInfo alone.
func TestWaitsAreInRetryInfo(t *testing.T) {
	t.Parallel()
	const info = `"details":[{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"`
	for name, c := range map[string]struct {
		f    fault.Fault
		want string // the delay; "": no details
	}{
		"rate limit":                  {fault.Fault{Code: fault.RateLimited, RetryAfter: 6500 * time.Millisecond}, "7s"},
		"rate limit of a day":         {fault.Fault{Code: fault.RateLimited, RetryAfter: 24 * time.Hour}, "86400s"},
		"no time":                     {fault.Fault{Code: fault.RateLimited}, ""},
		"503 with the provider's":     {fault.Fault{Code: fault.ProviderError, Source: fault.SourceProvider, StatusCode: 503, RetryAfter: 2 * time.Second}, "2s"},
		"503 with the gateway's time": {fault.Fault{Code: fault.ServiceUnavailable, RetryAfter: time.Second}, ""},
	} {
		got := string(appendError(nil, &c.f, &chat.Options{}))
		if strings.Contains(got, info) != (c.want != "") || c.want != "" && !strings.Contains(got, info+c.want+`"}]}}`) {
			t.Errorf("%s: %s", name, got)
		}
	}
}
