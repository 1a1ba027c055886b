package scim_test

import (
	"encoding/json"
	"errors"
	"strings"
	"testing"

	"gateway/shared/fault"
	"gateway/shared/signin/scim"
)

func ann() map[string]any {
	return map[string]any{
		"schemas": []any{scim.UserURN}, "id": "1", "userName": "ann@example.com", "active": true, "name": map[string]any{"givenName": "Ann"},
		"emails":           []any{map[string]any{"value": "ann@example.com", "type": "work", "primary": true}, map[string]any{"value": "a@home.example", "type": "home"}},
		scim.EnterpriseURN: map[string]any{"department": "Sales"},
	}
}

// FuzzFilter: a filter is read or rejected in the protocol's way, and is met or not.
func FuzzFilter(f *testing.F) {
	for _, s := range []string{
		`userName eq "ann@example.com"`, `emails[type eq "work" and value co "@"] or not (active eq true)`, `name.givenName pr`, `meta.lastModified gt "2011-05-13T04:42:34Z"`,
		scim.EnterpriseURN + `:department sw "S"`, strings.Repeat("(", 100), strings.Repeat(`a eq 1 and `, 60) + "a eq 1", `a eq "\u0000"`, `a[b[c eq 1]]`, `not not`, `a eq 1e999`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		filter, err := scim.ParseFilter(s)
		if err != nil {
			if of := scim.TypeOf(fault.From(err)); of != scim.InvalidFilter && of != scim.TooMany {
				t.Errorf("%q: %v", s, err)
			}
			return
		}
		again, err := scim.ParseFilter("not (" + s + ")")
		if err == nil && again.Matches(ann()) == filter.Matches(ann()) {
			t.Errorf("%q and its opposite are the same", s)
		}
	})
}

// FuzzPatch: what a PATCH makes is a resource that a PUT would take, and says of itself
// no more than the schema has.
func FuzzPatch(f *testing.F) {
	for _, s := range []string{
		`{"Operations":[{"op":"replace","path":"active","value":"False"}]}`, `{"Operations":[{"op":"add","value":{"name.familyName":"Lee","emails":[{"value":"x","primary":true}]}}]}`,
		`{"Operations":[{"op":"remove","path":"emails[type eq \"home\"].value"}]}`, `{"Operations":[{"op":"add","path":"roles[primary eq \"True\"].value","value":"admin"}]}`,
		`{"Operations":[{"op":"replace","path":"` + scim.EnterpriseURN + `:manager","value":"m"},{"op":"remove","path":"` + scim.EnterpriseURN + `"}]}`,
		`{"Operations":[{"op":"remove","path":"emails","value":[{"value":"a@home.example"}]}]}`, `{"Operations":[{"op":"add","path":"emails","value":{"value":"ann@example.com","type":"WORK","primary":true}}]}`,
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var body map[string]any
		if json.Unmarshal([]byte(s), &body) != nil || body == nil {
			return
		}
		doc := ann()
		if err := scim.Users.Patch(doc, body); err != nil {
			if known := (*fault.Fault)(nil); !errors.As(err, &known) || known.Status() != 400 || scim.TypeOf(known) == "" {
				t.Errorf("%s: %v", s, err)
			}
			return
		}
		if _, err := scim.Users.Read(doc); err != nil {
			t.Errorf("%s makes what is none: %v", s, err)
		}
		if doc["id"] != "1" {
			t.Errorf("%s changes the id", s)
		}
	})
}
