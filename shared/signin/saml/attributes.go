package saml

import (
	"errors"
	"slices"
	"strings"

	"github.com/beevik/etree"
)

const (
	formatEmail = "urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress"
	formatNone  = "urn:oasis:names:tc:SAML:1.1:nameid-format:unspecified"
)

// Common names of the required attributes.
var (
	usualEmail = []string{"email", "mail", "emailAddress", "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/emailaddress", "urn:oid:0.9.2342.19200300.100.1.3", "urn:oid:1.2.840.113549.1.9.1"}
	usualFirst = []string{"firstName", "first_name", "givenName", "given_name", "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/givenname", "urn:oid:2.5.4.42"}
	usualLast  = []string{"lastName", "last_name", "surname", "sn", "family_name", "http://schemas.xmlsoap.org/ws/2005/05/identity/claims/surname", "urn:oid:2.5.4.4"}
)

// attributes returns the distinct values of an assertion's attributes by name.
func attributes(a *etree.Element) map[string][]string {
	out := map[string][]string{}
	for _, s := range children(a, nsAssertion, "AttributeStatement") {
		for _, at := range children(s, nsAssertion, "Attribute") {
			name := attribute(at, "Name")
			for _, v := range children(at, nsAssertion, "AttributeValue") {
				if t, ok := text(v); ok && t != "" && !slices.Contains(out[name], t) {
					out[name] = append(out[name], t)
				}
			}
		}
	}
	return out
}

// describe finds the address and the names of the user.
func (s *Service) describe(a, name *etree.Element, p *Person) error {
	all := attributes(a)
	pick := func(mapped string, usual []string) (string, bool) {
		if mapped != "" {
			usual = []string{mapped}
		}
		for _, n := range usual {
			if v := all[n]; len(v) > 0 {
				return v[0], len(v) == 1
			}
		}
		return "", true
	}
	format := attribute(name, "Format")
	email, one := pick(s.Mapping.Email, usualEmail)
	switch {
	case s.Mapping.Email != "":
	case format == formatEmail:
		email, one = p.Subject, true
	case email == "" && (format == "" || format == formatNone) && strings.Contains(p.Subject, "@"):
		email = p.Subject
	}
	if email == "" {
		return errors.New("the assertion tells no e-mail address")
	}
	if !one {
		return errors.New("the assertion tells several e-mail addresses")
	}
	p.Email = email
	first, _ := pick(s.Mapping.FirstName, usualFirst)
	last, _ := pick(s.Mapping.LastName, usualLast)
	p.FirstName, p.LastName = truncate(first), truncate(last)
	return nil
}

// truncate truncates a name to the stored length.
func truncate(s string) string {
	r := []rune(s)
	return string(r[:min(len(r), 255)])
}
