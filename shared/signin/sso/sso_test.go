package sso_test

import (
	"net/url"
	"slices"
	"strings"
	"testing"

	"gateway/shared/signin/sso"
)

func TestNormalizeDomain(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"example.com": "example.com", " Example.COM. ": "example.com", "a.b.example.co.uk": "a.b.example.co.uk", "xn--bcher-kva.example": "xn--bcher-kva.example",
		"com": "", "co.uk": "", "": "", ".": "", "a..com": "", "-a.com": "", "a-.com": "", "a_b.com": "", "bücher.example": "", "1.2.3.4": "", "a.1": "",
		strings.Repeat("a", 64) + ".com": "", strings.Repeat("a.", 130) + "com": "",
	} {
		got, ok := sso.NormalizeDomain(in)
		if ok != (want != "") || ok && got != want {
			t.Errorf("%q: %q %v", in, got, ok)
		}
	}
	for domain, root := range map[string]bool{"example.com": true, "a.example.com": false, "example.co.uk": true, "a.example.co.uk": false} {
		if sso.Root(domain) != root {
			t.Errorf("%s is a root: %v", domain, !root)
		}
	}
	if got := sso.ParentDomains("a.b.example.co.uk"); !slices.Equal(got, []string{"a.b.example.co.uk", "b.example.co.uk", "example.co.uk"}) {
		t.Errorf("%q", got)
	}
}

// FuzzReturnTo: whatever is taken stays on the host that the browser is at.
func FuzzReturnTo(f *testing.F) {
	for _, s := range []string{"", "/", "/a?b=c#d", "//evil.example", `/\evil.example`, "/%2f%2fevil.example", "https://evil.example", "/a\r\nX: y", "/\t/evil.example"} {
		f.Add(s)
	}
	here, err := url.Parse("https://gateway.example.com/v1/auth/callback")
	if err != nil {
		f.Fatal(err)
	}
	f.Fuzz(func(t *testing.T, s string) {
		path, ok := sso.ReturnTo(s)
		if !ok {
			return
		}
		to, err := url.Parse(path)
		if err != nil {
			return // no browser gets there
		}
		if there := here.ResolveReference(to); there.Host != here.Host || there.Scheme != here.Scheme || strings.ContainsAny(path, "\r\n\\") {
			t.Errorf("%q leads to %s", s, there)
		}
	})
}

// FuzzSpelled: a domain is spelled the same way however often, and is below itself.
func FuzzSpelled(f *testing.F) {
	for _, s := range []string{"example.com", "EXAMPLE.com.", "a.b.c.example.co.uk", "..", "com"} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, s string) {
		domain, ok := sso.NormalizeDomain(s)
		if !ok {
			return
		}
		if again, ok := sso.NormalizeDomain(domain); !ok || again != domain {
			t.Errorf("%q is %q and then %q", s, domain, again)
		}
		if above := sso.ParentDomains(domain); above[0] != domain || !sso.Root(above[len(above)-1]) {
			t.Errorf("%q is below %q", domain, above)
		}
	})
}
