package provider

import (
	"net/http"
	"reflect"
	"strings"
	"testing"
)

// A field that nobody has classified counts as a credential and as an address. Here each
// field must have been looked at, and must fit what the rows say of it.
func TestEveryFieldIsSortedIntoCredentialsAndAddresses(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, p := range All() {
		places := p.Base
		for _, r := range p.Routes {
			host, _, _ := strings.Cut(strings.TrimPrefix(r.Base, "https://"), "/")
			places += " " + host
		}
		host, _, _ := strings.Cut(strings.TrimPrefix(p.Base, "https://"), "/")
		for i := range p.Fields {
			f := &p.Fields[i]
			part, sorted := parts[f.Name]
			seen[f.Name] = true
			switch {
			case !sorted:
				t.Errorf("%s of %s is not sorted", f.Name, p.ID)
			case part&PlainField != 0 && part != PlainField:
				t.Errorf("%s is plain and something else", f.Name)
			case f.Secret && part&Opens == 0:
				t.Errorf("%s is secret and opens nothing", f.Name)
			case strings.Contains(host+" "+places, "{"+f.Name) && !strings.Contains(f.Name, "_account_id") && part&HostField == 0:
				t.Errorf("%s is part of the host of %s and no address", f.Name, p.ID)
			case f.Form == BaseURL && part&HostField == 0:
				t.Errorf("%s is a URL and no address", f.Name)
			}
		}
	}
	for name := range parts {
		if !seen[name] {
			t.Errorf("%s is sorted and no field", name)
		}
	}
	if f := (&Field{Name: "tomorrow"}); f.Part() != Opens|HostField {
		t.Error("an unsorted field must count as both")
	}
}

// The fields that hold parts of credentials: a new one must be added to the rule, and to
// what is masked.
func TestCredentialsAndTargetsHaveNoUnknownMembers(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		of    any
		known string
	}{
		{Credential{}, "Key Fields Deployments CustomHost CustomHeaders"},
		{Target{}, "Provider Credential CustomHost CustomHeaders CallerKey Saved Signer TrustedTransport"},
		{Deployment{}, "Name Alias APIVersion Model Default"},
		{ModelHost{}, "CustomHost CustomHeaders"},
	} {
		typ := reflect.TypeOf(c.of)
		for i := range typ.NumField() {
			if name := typ.Field(i).Name; !strings.Contains(" "+c.known+" ", " "+name+" ") {
				t.Errorf("%s.%s: say in Holds, MovedBy and Secrets what it does, then here", typ.Name(), name)
			}
		}
	}
}

func TestHeadersThatMoveASavedCredential(t *testing.T) {
	t.Parallel()
	for _, p := range All() {
		for i := range p.Fields {
			f := &p.Fields[i]
			if f.HeaderName() == "" {
				continue
			}
			saved := Credential{Key: "k", Fields: map[string]string{f.Name: "Own"}}
			for value, moves := range map[string]bool{"other": true, "": false, "Own": false} {
				h := http.Header{}
				h.Set(strings.ToUpper(f.HeaderName()), value)
				got := saved.HostHeader(p, h)
				if want := moves && f.Part()&HostField != 0; (got != "") != want || want && got != f.HeaderName() {
					t.Errorf("%s %s=%q: %q", p.ID, f.Name, value, got)
				}
			}
			h := http.Header{}
			h.Add(f.HeaderName(), "Own")
			h.Add(f.HeaderName(), "other")
			if got := saved.HostHeader(p, h); (got != "") != (f.Part()&HostField != 0) {
				t.Errorf("%s %s twice: %q", p.ID, f.Name, got)
			}
			for _, name := range append([]string{f.Name}, f.Aliases...) {
				if got := saved.HostConfigField(p, map[string]any{name: "other"}); (got != "") != (f.Part()&HostField != 0) {
					t.Errorf("%s %s in a config: %q", p.ID, name, got)
				}
			}
		}
	}
}
