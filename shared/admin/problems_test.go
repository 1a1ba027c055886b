package admin_test

import (
	"strings"
	"testing"

	"gateway/shared/testkit/admintest"
)

func TestErrorsOfTheWorkspaceAndOfFieldsAreCombined(t *testing.T) {
	h := newInstallation(t)
	for _, c := range []struct{ method, path, body, fields string }{
		{"POST", "/gadgets", `{"size":"x"}`, "workspace_id name size"},
		{"POST", "/gadgets", `{"size":99,"name":"a","workspace_id":5}`, "workspace_id size"},
		{"POST", "/gadgets?workspace_id=" + h.One, `{"size":99,"name":"a","workspace_id":"` + h.Two + `"}`, "workspace_id size"},
		{"GET", "/gadgets?page_size=x&workspace_id=" + h.One + "&workspace_id=" + h.Two, "", "workspace_id page_size"},
		{"POST", "/gadgets", `{"name":"a","organisation_id":5}`, "workspace_id organisation_id"},
	} {
		var body any
		if c.body != "" {
			body = c.body
		}
		a := h.Do(c.method, c.path, admintest.AdminKey, body)
		for _, field := range strings.Fields(c.fields) {
			a.RequireFault(400, "AB01", field)
		}
	}
}

func TestNamesOfResourcesAreReadable(t *testing.T) {
	h := newInstallation(t)
	for body, field := range map[string]string{
		`{"name":"   "}`:      "name",
		`{"name":"a\u0000b"}`: "name",
		`{"name":"a\nb"}`:     "name",
		`{"name":"` + strings.Repeat("ü", 21) + `"}`:                     "name",
		`{"name":"a","labels":{"` + strings.Repeat("k", 256) + `":"v"}}`: "labels." + strings.Repeat("k", 64) + "...",
	} {
		h.Do("POST", "/gadgets", admintest.WorkspaceA, body).RequireFault(400, "AB01", field)
	}
	h.Do("POST", "/gadgets", admintest.WorkspaceA, `{"name":"`+strings.Repeat("ü", 20)+`"}`).OK()
}

// Half of a surrogate pair is no character: it would be read as another one than
// was sent, or break the reader of the response.
func TestHalfASurrogatePairIsRefused(t *testing.T) {
	h := newInstallation(t)
	for body, field := range map[string]string{
		`{"name":"\ud800"}`:                     "name",
		`{"name":"a\uDFFFb"}`:                   "name",
		`{"name":"\ud83d\ud83d\ude00"}`:         "name",
		`{"name":"\ude00\ud83d"}`:               "name",
		`{"name":"\\\ud800"}`:                   "name",
		`{"name":"a","labels":{"x":"\udc00"}}`:  "labels.x",
		`{"name":"a","labels":{"\ud83d":"x"}}`:  "labels",
		`{"name":"a","unknown":["","\ud83dx"]}`: "unknown[1]",
	} {
		a := h.Do("POST", "/gadgets", admintest.WorkspaceA, body)
		if got := a.At("error", "param"); a.Status != 400 || a.At("error", "code") != "AB01" || got != field {
			t.Errorf("%s: %d %v, want %s: %s", body, a.Status, got, field, a.Body)
		}
	}
	for sent, want := range map[string]string{`\ud83d\ude00`: "\U0001f600", `\\ud800`: `\ud800`, `\u00e9`: "é", `\ufffd`: "\ufffd"} {
		made, _ := makeGadget(t, h, `{"name":"`+sent+`"}`)
		if got := h.Do("GET", "/gadgets/"+made, admintest.WorkspaceA, nil).OK().Text("name"); got != want {
			t.Errorf("%s is read as %q", sent, got)
		}
	}
}
