package alias_test

import (
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"gateway/shared/host"
	"gateway/shared/host/alias"
)

func TestAliasesAreChecked(t *testing.T) {
	t.Parallel()
	for list, want := range map[string]string{
		"":                           "",
		" , ":                        "",
		"x-acme":                     "",
		"x-acme, x-other":            "",
		"acme,x-acme2":               "",
		"X-Acme":                     `"X-Acme" must be 1 to 31`,
		"x-acme-":                    "not end with a hyphen",
		"1acme":                      "begin with a letter",
		"x_acme":                     "must be 1 to 31",
		"x acme":                     "must be 1 to 31",
		strings.Repeat("a", 32):      "must be 1 to 31",
		"x":                          "something else",
		"x-gateway":                  "something else",
		"x-gateway-more":             "something else",
		"anthropic":                  "something else",
		"x-amz":                      "something else",
		"content":                    "something else",
		"x-acme,x-acme":              "overlap",
		"x-acme,x-acme-more":         "overlap",
		"x-acme-more,x-other,x-acme": "overlap",
	} {
		_, err := alias.Parse(list)
		switch {
		case want == "" && err != nil:
			t.Errorf("%q: %v", list, err)
		case want != "" && (err == nil || !strings.Contains(err.Error(), want)):
			t.Errorf("%q: %v, want %q", list, err, want)
		}
	}
}

// aliasCase: what is sent, what the handler sees under the gateway's names, and the
// prefix of the response; or what is rejected.
var aliasCases = map[string]struct {
	sent    http.Header
	sees    http.Header
	answer  string
	refused string
}{
	"no alias":        {sent: http.Header{"X-Gateway-Config": {"c"}}, sees: http.Header{"X-Gateway-Config": {"c"}}, answer: "X-Gateway-"},
	"nothing":         {sent: http.Header{}, answer: "X-Gateway-"},
	"an alias":        {sent: http.Header{"X-Acme-Api-Key": {"k"}, "X-Acme-Config": {"c"}}, sees: http.Header{"X-Gateway-Api-Key": {"k"}, "X-Gateway-Config": {"c"}}, answer: "X-Acme-"},
	"several values":  {sent: http.Header{"X-Acme-Config": {"a", "b"}}, sees: http.Header{"X-Gateway-Config": {"a", "b"}}, answer: "X-Acme-"},
	"both the same":   {sent: http.Header{"X-Acme-Config": {"c"}, "X-Gateway-Config": {"c"}}, sees: http.Header{"X-Gateway-Config": {"c"}}, answer: "X-Acme-"},
	"both, different": {sent: http.Header{"X-Acme-Config": {"c"}, "X-Gateway-Config": {"d"}}, refused: "x-acme-config"},
	"two aliases":     {sent: http.Header{"X-Other-Config": {"c"}, "X-Acme-Provider": {"p"}}, sees: http.Header{"X-Gateway-Config": {"c"}, "X-Gateway-Provider": {"p"}}, answer: "X-Acme-"},
	"two that differ": {sent: http.Header{"X-Other-Config": {"c"}, "X-Acme-Config": {"p"}}, refused: "x-other-config"},
	"not configured":  {sent: http.Header{"X-Foreign-Config": {"c"}}, answer: "X-Gateway-"},
	"the prefix only": {sent: http.Header{"X-Acme": {"c"}, "X-Acme-": {"d"}}, answer: "X-Gateway-"},
	"an unknown name": {sent: http.Header{"X-Acme-Whatever": {"c"}}, sees: http.Header{"X-Gateway-Whatever": {"c"}}, answer: "X-Acme-"},
}

func TestAliasesMeanTheGatewaysOwnHeaders(t *testing.T) {
	t.Parallel()
	aliases, err := alias.Parse("x-acme, x-other")
	if err != nil {
		t.Fatal(err)
	}
	for name, c := range aliasCases {
		seen := http.Header(nil)
		h := aliases.Handler(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			seen = r.Header
			w.Header().Set("X-Gateway-Trace-Id", "t")
			w.Header().Set("X-Other-Header", "stays")
			_, _ = w.Write([]byte("answer"))
		}))
		req := httptest.NewRequest("POST", "/v1/chat/completions", nil)
		req.Header = c.sent.Clone()
		rec := httptest.NewRecorder()
		h.ServeHTTP(rec, req)
		if c.refused != "" {
			if rec.Code != 400 || seen != nil || !strings.Contains(rec.Body.String(), `"param":"`+c.refused+`"`) || !strings.Contains(rec.Body.String(), "x-gateway-config") {
				t.Errorf("%s: answered %d %s, handler called: %t", name, rec.Code, rec.Body, seen != nil)
			}
			continue
		}
		for key, values := range c.sees {
			if strings.Join(seen[key], ",") != strings.Join(values, ",") {
				t.Errorf("%s: the handler sees %s: %q, want %q", name, key, seen[key], values)
			}
		}
		for key := range seen {
			if strings.HasPrefix(key, "X-Acme-") && len(key) > len("X-Acme-") || strings.HasPrefix(key, "X-Other-") {
				t.Errorf("%s: the handler sees %s", name, key)
			}
		}
		got := rec.Result().Header
		if got.Get(c.answer+"Trace-Id") != "t" || got.Get("X-Other-Header") != "stays" {
			t.Errorf("%s: answered with %v, want them under %s", name, got, c.answer)
		}
		if c.answer != "X-Gateway-" && got.Get("X-Gateway-Trace-Id") != "" {
			t.Errorf("%s: answered under both names: %v", name, got)
		}
	}
}

// ended tells what reaches a host's own answer.
type ended struct {
	*httptest.ResponseRecorder
	bodies int
}

func (e *ended) EndBody() { e.bodies++ }

func TestAliasesPreserveStreamsAndTheirEnd(t *testing.T) {
	t.Parallel()
	aliases, err := alias.Parse("x-acme")
	if err != nil {
		t.Fatal(err)
	}
	h := aliases.Handler(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("X-Gateway-Trace-Id", "t")
		w.Header().Set("X-Gateway-Provider", "p")
		w.(http.Flusher).Flush()
		w.(host.BodyEnder).EndBody()
	}))
	w := &ended{ResponseRecorder: httptest.NewRecorder()}
	req := httptest.NewRequest("GET", "/", nil)
	req.Header.Set("X-Acme-Debug", "false")
	h.ServeHTTP(w, req)
	if w.bodies != 1 || !w.Flushed || w.Result().Header.Get("X-Acme-Provider") != "p" || w.Result().Header.Get("X-Acme-Trace-Id") != "t" {
		t.Errorf("ended %d times, flushed %t, headers %v", w.bodies, w.Flushed, w.Result().Header)
	}
}
