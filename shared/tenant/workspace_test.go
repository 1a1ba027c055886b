package tenant

import (
	"encoding/json"
	"strings"
	"testing"

	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// Limits of a workspace's fields, as its type has them.
const (
	maxDescription = 1024
	maxIcon        = 32
	maxMetaValue   = 128
	maxLimits      = 10
)

func TestWorkspaceValidateNamesEveryField(t *testing.T) {
	w := Workspace{
		Description: strings.Repeat("d", maxDescription+1), Icon: strings.Repeat("i", maxIcon+1),
		Defaults:   WorkspaceDefaults{Metadata: map[string]string{"m": strings.Repeat("v", maxMetaValue+1)}},
		RateLimits: make([]ledger.RateLimit, maxLimits+1),
	}
	var fields []string
	for _, d := range w.Validate("") {
		fields = append(fields, d.Field)
	}
	if got, want := strings.Join(fields, " "), "name description icon defaults.metadata.m rate_limits"; got != want {
		t.Errorf("fields %q, want %q", got, want)
	}
	if d := (&Workspace{}).Validate("n"); len(d) != 0 {
		t.Errorf("an empty workspace with a name: %v", d)
	}
}

func TestDecodedWorkspaceCountsUnderItsOwnScope(t *testing.T) {
	body, err := json.Marshal(Workspace{RateLimits: []ledger.RateLimit{{Type: ledger.Requests, Unit: "rpm", Value: 3}}})
	if err != nil {
		t.Fatal(err)
	}
	rec := resource.Record{Scope: store.Scope{Org: "o"}, ID: "w", Slug: "ws-1", Name: "n", Status: StatusActive, Body: body, Rev: 4}
	e, err := DecodeWorkspace(rec)
	if err != nil {
		t.Fatal(err)
	}
	if e.Subject == nil || e.Subject.Scope != (store.Scope{Org: "o", Workspace: "w"}) || e.Subject.Revision != 4 || e.Slug != "ws-1" {
		t.Errorf("%+v", e)
	}
	rec.Body = []byte(`{}`)
	if e, err = DecodeWorkspace(rec); err != nil || e.Subject != nil {
		t.Errorf("a workspace without limits has the subject %+v, %v", e.Subject, err)
	}
	rec.Body = []byte(`[]`)
	if _, err = DecodeWorkspace(rec); err == nil {
		t.Error("a broken body is decoded")
	}
}

func TestLimitsCountCharacters(t *testing.T) {
	w := Workspace{Description: strings.Repeat("ü", maxDescription), Icon: strings.Repeat("ü", maxIcon)}
	if d := w.Validate(strings.Repeat("ü", MaxName)); len(d) != 0 {
		t.Errorf("the longest texts are refused: %v", d)
	}
	if d := w.Validate(strings.Repeat("ü", MaxName+1)); len(d) != 1 || d[0].Field != "name" {
		t.Errorf("a longer name: %v", d)
	}
}

func TestGuardrailsOfAWorkspace(t *testing.T) {
	of := &Organisation{InputGuardrails: []string{"a", "b"}, OutputGuardrails: []string{"c"}}
	for _, c := range []struct {
		w    Workspace
		want string
	}{
		{Workspace{}, "a b|c"},
		{Workspace{InputExcluded: true}, "|c"},
		{Workspace{InputExcluded: true, OutputExcluded: true, Defaults: WorkspaceDefaults{OutputGuardrails: []string{"c"}}}, "|c"},
		{Workspace{Defaults: WorkspaceDefaults{InputGuardrails: []string{"own", "a"}}}, "a b own|c"},
		{Workspace{OutputExcluded: true, Defaults: WorkspaceDefaults{InputGuardrails: []string{"own"}, OutputGuardrails: []string{"own"}}}, "a b own|own"},
	} {
		body, err := json.Marshal(c.w)
		if err != nil {
			t.Fatal(err)
		}
		e, err := DecodeWorkspace(resource.Record{Scope: store.Scope{Org: "o"}, ID: "w", Body: body})
		if err != nil {
			t.Fatal(err)
		}
		for range 2 { // the lists of the organization stay as they are
			in, out := e.Guardrails(of)
			if got := strings.Join(in, " ") + "|" + strings.Join(out, " "); got != c.want {
				t.Errorf("%+v: %s, want %s", c.w, got, c.want)
			}
		}
	}
}
