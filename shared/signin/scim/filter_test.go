package scim

import (
	"strings"
	"testing"
)

// TestFilterComparesFieldsOfSelectedValues: Microsoft Entra ID compares a member behind the condition on
// the values, which the grammar of RFC 7644 does not have.
func TestFilterComparesFieldsOfSelectedValues(t *testing.T) {
	t.Parallel()
	user := map[string]any{"active": true, "emails": []any{
		map[string]any{"type": "work", "value": "a@corp.test"}, map[string]any{"type": "home", "value": "b@home.test"},
	}}
	for text, want := range map[string]bool{
		`emails[type eq "work"].value eq "A@corp.test"`:                        true,
		`emails[type eq "work"].value eq "b@home.test"`:                        false,
		`emails[type eq "other"].value eq "a@corp.test"`:                       false,
		`emails[type eq "work"].value co "corp" and active eq true`:            true,
		`not (emails[type eq "work"].value eq "a@corp.test")`:                  false,
		`emails[type eq "work" or type eq "home"].value sw "b"`:                true,
		`emails[type eq "work"].value pr`:                                      true,
		`emails[type eq "work"].display pr`:                                    false,
		`emails[not (type eq "work")].value eq "b@home.test" or active eq "x"`: true,
	} {
		f, err := ParseFilter(text)
		if err != nil || f.Matches(user) != want {
			t.Errorf("%s: %v, want %t", text, err, want)
		}
	}
	for _, text := range []string{
		`emails[type eq "work"].`, `emails[type eq "work"].value`, `emails[type eq "work"] .value eq "x"`, `emails[type eq "work"].value eq`, `emails[type eq "work"].value[x eq 1]`,
		`emails[type eq "work"].1 eq "x"`, strings.Repeat(`emails[type eq "work"].value eq "x" or `, 26) + `active eq true`,
	} {
		if f, err := ParseFilter(text); err == nil {
			t.Errorf("%s: %+v", text, f)
		}
	}
}
