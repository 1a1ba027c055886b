package fault

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"
)

func TestEveryCodeHasARow(t *testing.T) {
	for code, r := range catalog {
		if r.status < 400 || r.status > 599 || r.typ == "" || !strings.HasPrefix(r.admin, "AB0") {
			t.Errorf("%s: %+v", code, r)
		}
	}
	if got := New("no such code", "", "").Status(); got != 500 {
		t.Errorf("an unknown code answers %d", got)
	}
}

func TestFromPreservesTheFaultAndHidesTheRest(t *testing.T) {
	own := Invalid("a.b", "must be %d", 3)
	if got := From(fmt.Errorf("wrapped: %w", own)); got != own {
		t.Errorf("got %v", got)
	}
	secret := errors.New("password=hunter2")
	f := From(secret)
	if f.Code != InternalError || strings.Contains(string(f.DataBody(false)), "hunter2") || strings.Contains(string(f.AdminBody("r")), "hunter2") {
		t.Errorf("an unexpected error shows: %s", f.DataBody(false))
	}
	if !errors.Is(f, secret) || !strings.Contains(f.Error(), "hunter2") {
		t.Error("the log does not get the cause")
	}
	if From(nil) != nil {
		t.Error("From(nil) is a fault")
	}
}

func TestBodies(t *testing.T) {
	f := Invalids([]Detail{{"name", "is required"}, {"scopes[1]", "is unknown"}})
	var data struct {
		Type, Status, Message string
		Error                 struct{ Message, Type, Param, Code string }
		Errors                []string
	}
	if err := json.Unmarshal(f.DataBody(true), &data); err != nil {
		t.Fatal(err)
	}
	if data.Type != "error" || data.Status != "failure" || data.Error.Param != "name" || data.Error.Type != "invalid_request_error" || len(data.Errors) != 2 {
		t.Errorf("data body: %s", f.DataBody(true))
	}
	var admin struct {
		Success bool
		Data    struct {
			Message, ErrorCode string
			Errors             []struct{ Field, Message string }
		}
		Error     struct{ Code, Param string }
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(f.AdminBody("r1"), &admin); err != nil {
		t.Fatal(err)
	}
	if admin.Success || admin.Data.ErrorCode != "AB01" || admin.Error.Code != "AB01" || admin.Error.Param != "name" || len(admin.Data.Errors) != 2 || admin.RequestID != "r1" {
		t.Errorf("admin body: %s", f.AdminBody("r1"))
	}
	if Invalids(nil) != nil {
		t.Error("no field errors give a fault")
	}
}

func TestRetryAfterIsWholeSecondsRoundedUp(t *testing.T) {
	f := New(RateLimited, "", "slow down")
	f.RetryAfter = 1500 * time.Millisecond
	h := http.Header{}
	f.SetHeaders(h)
	if got := h.Get("Retry-After"); got != "2" {
		t.Errorf("Retry-After %q", got)
	}
}

func TestDataMessagesNameTheField(t *testing.T) {
	for _, c := range []struct {
		fault *Fault
		want  string
	}{
		{Invalid("model", "is required"), "model: is required"},
		{Invalid("x-gateway-trace-id", "must have at most 256 characters"), "x-gateway-trace-id: must have at most 256 characters"},
		{Invalid("body", "ended before its closing boundary"), "body: ended before its closing boundary"},
		{Invalid("n", "n must be between 1 and 128"), "n must be between 1 and 128"},
		{Invalid("model", "There is no such model"), "There is no such model"},
		{Invalid("", "must be JSON"), "must be JSON"},
		{Invalids([]Detail{{"limit", "must be a whole number"}}), "limit: must be a whole number"},
	} {
		var body struct {
			Message string
			Error   struct{ Message string }
		}
		if err := json.Unmarshal(c.fault.DataBody(false), &body); err != nil {
			t.Fatal(err)
		}
		if body.Message != c.want || body.Error.Message != c.want {
			t.Errorf("got %s, want %q", c.fault.DataBody(false), c.want)
		}
	}
}

func TestErrorsOfAConfigAreListedByPath(t *testing.T) {
	for field, want := range map[string]string{
		"targets[0].weight":                 "path: targets,0,weight, message: must be at least 0",
		"strategy.mode":                     "path: strategy,mode, message: must be at least 0",
		"targets[1].targets[2].cache[0][1]": "path: targets,1,targets,2,cache,0,1, message: must be at least 0",
	} {
		f := Invalids([]Detail{{field, "must be at least 0"}})
		f.Code = InvalidConfig
		var body struct{ Errors []string }
		if err := json.Unmarshal(f.DataBody(false), &body); err != nil {
			t.Fatal(err)
		}
		if len(body.Errors) != 1 || body.Errors[0] != want {
			t.Errorf("%s: got %q, want %q", field, body.Errors, want)
		}
	}
}

// TestFinalRejectionsAreMarked: SDKs that read the header do not repeat what cannot succeed.
func TestFinalRejectionsAreMarked(t *testing.T) {
	for code, r := range catalog {
		final := r.status < 500 && r.status != 408 && r.status != 409 && r.status != 429
		h := http.Header{}
		New(code, "", "").SetHeaders(h)
		if (h.Get(ShouldRetry) == "false") != final {
			t.Errorf("%s (%d): %v", code, r.status, h)
		}
	}
	for name, c := range map[string]struct {
		f     Fault
		final bool
	}{
		"a short wait":                   {Fault{Code: RateLimited, RetryAfter: time.Minute}, false},
		"a long wait":                    {Fault{Code: RateLimited, RetryAfter: time.Hour}, true},
		"a provider's 400":               {Fault{Code: ProviderError, Source: SourceProvider, StatusCode: 400}, false},
		"a provider's 503":               {Fault{Code: ProviderError, Source: SourceProvider, StatusCode: 503}, false},
		"a provider's 503, repeated":     {Fault{Code: ProviderError, Source: SourceProvider, StatusCode: 503, Retried: true}, true},
		"no answer, after a fallback":    {Fault{Code: ProviderUnreachable, Retried: true}, true},
		"a provider's 429 with an hour":  {Fault{Code: ProviderError, Source: SourceProvider, StatusCode: 429, RetryAfter: time.Hour}, false},
		"a provider's 429, repeated too": {Fault{Code: ProviderError, Source: SourceProvider, StatusCode: 429, Retried: true}, false},
	} {
		h := http.Header{}
		c.f.SetHeaders(h)
		if c.f.Final() != c.final || (h.Get(ShouldRetry) == "false") != c.final {
			t.Errorf("%s: %v", name, h)
		}
	}
}
