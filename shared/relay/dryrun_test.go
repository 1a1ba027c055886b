package relay

import (
	"context"
	"errors"
	"strings"
	"testing"

	"gateway/shared/fault"
)

func TestDryRunsThatAreRefused(t *testing.T) {
	t.Parallel()
	for body, field := range map[string]string{
		`[]`:                            "body",
		`{"path":"/x","more":1}`:        "body",
		`{"path":7}`:                    "body",
		`{}`:                            "path",
		`{"path":"x"}`:                  "path",
		`{"path":"/x?y"}`:               "path",
		`{"path":"/x","method":"HEAD"}`: "method",
		`{"path":"/x","assume":[99]}`:   "assume",
		`{"path":"/x","assume":[600]}`:  "assume",
		`{"path":"/x","assume":[` + strings.Repeat("200,", MaxDryRunTargets) + `200]}`: "assume",
		`{"path":"/x","headers":{"a b":"c"}}`:                                          "headers",
		`{"path":"/x","headers":{"a":"c\r\nd: e"}}`:                                    "headers",
	} {
		_, err := ReadDryRun([]byte(body))
		if f := fault.From(err); f == nil || f.Status() != 400 || f.Field != field {
			t.Errorf("%.60s: %v", body, f)
		}
	}
}

// The request that is walked through is the dry run's own, with its config.
func TestTheRequestOfADryRun(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]struct {
		config string
		brings bool
		length int64
	}{
		`{"path":"/chat/completions","body":{"a":1},"config":{"provider":"x"}}`: {`{"provider":"x"}`, true, 7},
		`{"path":"/chat/completions","config":"my-config"}`:                     {"my-config", true, 0},
		`{"path":"/chat/completions","config":null,"body":{}}`:                  {"", false, 2},
	} {
		q, err := ReadDryRun([]byte(body))
		if err != nil {
			t.Fatal(err)
		}
		req, err := q.Imagined(context.Background())
		if err != nil || req.Method != "POST" || req.URL.Path != "/v1/chat/completions" || req.ContentLength != want.length {
			t.Errorf("%s: %v %v", body, req, err)
			continue
		}
		if req.Header.Get("X-Gateway-Config") != want.config || q.HasInlineConfig() != want.brings {
			t.Errorf("%s: config %q, brought %t", body, req.Header.Get("X-Gateway-Config"), q.HasInlineConfig())
		}
	}
}

func TestErrorsAreToldAsFaults(t *testing.T) {
	t.Parallel()
	got := DryRunResult(fault.Invalids([]fault.Detail{{Field: "a", Message: "is wrong"}, {Field: "b", Message: "too"}}))
	if got.Status != 400 || len(got.Errors) != 2 || got.Errors[1].Field != "b" {
		t.Errorf("%+v", got)
	}
	if got := DryRunResult(errors.New("a secret of the house")); got.Status != 500 || strings.Contains(got.Message, "secret") {
		t.Errorf("%+v", got)
	}
}
