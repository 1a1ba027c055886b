package saml

import (
	"encoding/base64"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"
)

// Message is a received response that was not validated.
type Message struct{ root *etree.Element }

// Open parses a posted response: base64 within its limits, in the only accepted structure. The
// error can be shown to users.
func Open(posted string) (*Message, error) {
	if base64.StdEncoding.DecodedLen(len(posted)) > MaxResponse+4 {
		return nil, errors.New("the response is too large")
	}
	raw, err := base64.StdEncoding.DecodeString(strings.Map(func(r rune) rune {
		if r == '\r' || r == '\n' || r == ' ' {
			return -1
		}
		return r
	}, posted))
	if err != nil {
		return nil, errors.New("the response must be base64")
	}
	root, err := parse(raw, ofResponse)
	if err != nil {
		return nil, errors.New("the response " + err.Error())
	}
	if !hasName(root, nsProtocol, "Response") {
		return nil, errors.New("the response must be a SAML 2.0 Response")
	}
	for _, c := range root.ChildElements() {
		if !hasName(c, nsAssertion, "Issuer") && !hasName(c, nsSignature, "Signature") && !hasName(c, nsProtocol, "Extensions") && !hasName(c, nsProtocol, "Status") && !hasName(c, nsAssertion, "Assertion") && !hasName(c, nsAssertion, "EncryptedAssertion") {
			return nil, errors.New("the response has an unknown element")
		}
	}
	if failed := status(root); failed != nil {
		return nil, failed
	}
	if err := arranged(root); err != nil {
		return nil, errors.New("the response " + err.Error())
	}
	return &Message{root}, nil
}

// Claimed returns the unverified issuer of a response.
func (m *Message) Claimed() string {
	if i := textOrEmpty(only(m.root, nsAssertion, "Issuer")); i != "" {
		return i
	}
	return textOrEmpty(only(only(m.root, nsAssertion, "Assertion"), nsAssertion, "Issuer"))
}

// InResponseTo returns the request id that a response refers to, or "".
func (m *Message) InResponseTo() string { return attribute(m.root, "InResponseTo") }

const success = "urn:oasis:names:tc:SAML:2.0:status:Success"

// status rejects a response that is not a success.
func status(root *etree.Element) error {
	code := only(only(root, nsProtocol, "Status"), nsProtocol, "StatusCode")
	if code == nil {
		return errors.New("the response must have a status")
	}
	if attribute(code, "Value") == success && len(code.ChildElements()) == 0 {
		return nil
	}
	value := attribute(code, "Value")
	if below := only(code, nsProtocol, "StatusCode"); below != nil {
		value = attribute(below, "Value")
	}
	return errors.New("the identity provider rejected the sign-in: " + plainLine(value[strings.LastIndexByte(value, ':')+1:]))
}

// plainLine converts a provider's text to one short line of plain characters.
func plainLine(s string) string {
	s = strings.Map(func(r rune) rune {
		if r < ' ' || r > '~' {
			return '?'
		}
		return r
	}, s)
	return s[:min(len(s), 100)]
}

// Expectation contains what a response is checked against.
type Expectation struct {
	Request string // id of the request; empty if the response is unsolicited
	// Fresh requires that the user has authenticated since this time.
	Fresh bool
	Since time.Time
	Now   time.Time
}

// User is the signed-in user according to the identity provider.
type User struct {
	Subject, Email      string
	FirstName, LastName string
	SessionIndex        string
	Authenticated       time.Time
	Until               time.Time // end of the session there; zero if the provider does not state it

	Issuer    string    // the identity provider
	Assertion string    // the assertion's id, which is accepted once
	NotAfter  time.Time // the assertion is rejected after this time
}

// IsUnknownKey reports whether a response was rejected because no known key has signed it: the
// identity provider may have rotated its keys.
func IsUnknownKey(err error) bool {
	return errors.Is(err, errSignature) || errors.Is(err, errSealed) || errors.Is(err, errExpired)
}

// Check validates a response. The error can be shown to users: it contains nothing secret.
func (s *Service) Check(m *Message, w Expectation) (*User, error) {
	root, whole := m.root, false
	keys, err := s.Provider.certificates(w.Now)
	if err != nil {
		return nil, err
	}
	if len(children(root, nsSignature, "Signature")) > 0 {
		covered, err := verify(root, keys, w.Now)
		if err != nil {
			return nil, err
		}
		root, whole = covered, true
	}
	if err := s.addressed(root, w, whole); err != nil {
		return nil, err
	}
	assertion := only(root, nsAssertion, "Assertion")
	sealed := only(root, nsAssertion, "EncryptedAssertion")
	if sealed != nil {
		if assertion, err = s.unseal(root, sealed); err != nil {
			return nil, errSealed
		}
	}
	if assertion == nil {
		return nil, errors.New("the response must have one assertion")
	}
	switch {
	case len(children(assertion, nsSignature, "Signature")) > 0:
		covered, err := verify(assertion, keys, w.Now)
		if err != nil && sealed != nil {
			err = errSealed
		}
		if err != nil {
			return nil, err
		}
		assertion = covered
	case !whole && sealed != nil:
		return nil, errSealed
	case !whole:
		return nil, errors.New("the assertion is not signed, and neither is the response")
	}
	return s.person(assertion, w)
}

// addressed compares the response with the request. If the response is not signed, the
// assertion must contain the same values.
func (s *Service) addressed(root *etree.Element, w Expectation, signed bool) error {
	issuers := children(root, nsAssertion, "Issuer")
	to := attribute(root, "Destination")
	switch {
	case attribute(root, "Version") != "2.0" || attribute(root, "ID") == "":
		return errors.New("the response must be of SAML 2.0 and have an id")
	case len(issuers) > 1 || len(issuers) == 1 && textOrEmpty(issuers[0]) != s.Provider.EntityID:
		return errors.New("the response is from another issuer")
	case to != "" && to != s.Consumer || to == "" && signed:
		return errors.New("the response was sent to another destination")
	case attribute(root, "InResponseTo") != w.Request && (w.Request == "" || attribute(root, "InResponseTo") != ""):
		return errors.New("the response belongs to another request")
	}
	return issuedBefore(root, w.Now)
}

// Clock tolerance, and the longest validity of an assertion.
const (
	skew        = time.Minute
	maxLifetime = 24 * time.Hour
)

func issuedBefore(e *etree.Element, now time.Time) error {
	at, err := instant(attribute(e, "IssueInstant"))
	if err != nil || at.IsZero() || at.After(now.Add(skew)) {
		return errors.New("IssueInstant must be a time in the past")
	}
	return nil
}

// unseal replaces the encrypted assertion by the decrypted one, so that prefixes that are
// declared around it are known.
func (s *Service) unseal(root, sealed *etree.Element) (*etree.Element, error) {
	raw, err := decrypt(sealed, s.Key)
	if err != nil {
		return nil, err
	}
	inner, err := parse(raw, ofResponse)
	if err != nil || arranged(inner) != nil {
		return nil, errSealed
	}
	around := root.Copy()
	for _, c := range around.ChildElements() {
		around.RemoveChild(c)
	}
	around.AddChild(inner)
	if !hasName(inner, nsAssertion, "Assertion") {
		return nil, errSealed
	}
	return inner, nil
}

// person reads an assertion that is verified to come from the identity provider.
func (s *Service) person(a *etree.Element, w Expectation) (*User, error) {
	if attribute(a, "Version") != "2.0" || attribute(a, "ID") == "" || len(attribute(a, "ID")) > maxName {
		return nil, errors.New("the assertion must be of SAML 2.0 and have an id")
	}
	if textOrEmpty(only(a, nsAssertion, "Issuer")) != s.Provider.EntityID {
		return nil, errors.New("the assertion is from another issuer")
	}
	if err := issuedBefore(a, w.Now); err != nil {
		return nil, err
	}
	p := &User{Issuer: s.Provider.EntityID, Assertion: attribute(a, "ID")}
	if err := s.conditions(a, w); err != nil {
		return nil, err
	}
	subject := only(a, nsAssertion, "Subject")
	name, ok := text(only(subject, nsAssertion, "NameID"))
	if !ok || name == "" || len(name) > maxName {
		return nil, errors.New("the assertion must name its subject by one NameID")
	}
	p.Subject = name
	if err := s.confirmed(subject, w, p); err != nil {
		return nil, err
	}
	if err := authenticated(a, w, p); err != nil {
		return nil, err
	}
	return p, s.describe(a, only(subject, nsAssertion, "NameID"), p)
}

// conditions checks the conditions under which the assertion is valid.
func (s *Service) conditions(a *etree.Element, w Expectation) error {
	c := only(a, nsAssertion, "Conditions")
	if c == nil {
		return errors.New("the assertion must have conditions")
	}
	if err := within(c, w.Now); err != nil {
		return err
	}
	restricted := false
	for _, e := range c.ChildElements() {
		switch {
		case hasName(e, nsAssertion, "AudienceRestriction"):
			restricted = true
			if !slices.ContainsFunc(children(e, nsAssertion, "Audience"), func(e *etree.Element) bool { return textOrEmpty(e) == s.EntityID }) {
				return errors.New("the assertion is for another audience")
			}
		case hasName(e, nsAssertion, "OneTimeUse"), hasName(e, nsAssertion, "ProxyRestriction"):
		default:
			return errors.New("the assertion has a condition that is not known")
		}
	}
	if !restricted {
		return errors.New("the assertion must name its audience")
	}
	return nil
}

// within compares NotBefore and NotOnOrAfter with the clock.
func within(e *etree.Element, now time.Time) error {
	from, err := instant(attribute(e, "NotBefore"))
	until, bad := instant(attribute(e, "NotOnOrAfter"))
	switch {
	case err != nil || bad != nil:
		return errors.New("NotBefore and NotOnOrAfter must be times")
	case !from.IsZero() && now.Add(skew).Before(from):
		return errors.New("the assertion is not valid yet")
	case !until.IsZero() && !now.Add(-skew).Before(until):
		return errors.New("the assertion has expired")
	}
	return nil
}

// confirmed finds a bearer confirmation of the subject. Other confirmations may be valid for
// longer, so the assertion is remembered as long as any of them.
func (s *Service) confirmed(subject *etree.Element, w Expectation, p *User) error {
	why := errors.New("the assertion must have a bearer confirmation")
	good := false
	for _, c := range children(subject, nsAssertion, "SubjectConfirmation") {
		data := only(c, nsAssertion, "SubjectConfirmationData")
		if attribute(c, "Method") != "urn:oasis:names:tc:SAML:2.0:cm:bearer" || data == nil {
			continue
		}
		until, err := instant(attribute(data, "NotOnOrAfter"))
		if late := until.Add(2 * skew); err == nil && late.After(p.NotAfter) {
			p.NotAfter = late
		}
		switch {
		case good:
		case attribute(data, "Recipient") != s.Consumer:
			why = errors.New("the assertion is for another recipient")
		case err != nil || until.IsZero() || until.After(w.Now.Add(maxLifetime)):
			why = errors.New("the assertion must have a NotOnOrAfter within a day")
		case attribute(data, "InResponseTo") != w.Request:
			why = errors.New("the assertion belongs to another request")
		default:
			why = within(data, w.Now)
			good = why == nil
		}
	}
	return why
}

// authenticated reads how and when the user has authenticated.
func authenticated(a *etree.Element, w Expectation, p *User) error {
	all := children(a, nsAssertion, "AuthnStatement")
	if len(all) == 0 {
		return errors.New("the assertion has no statement of authentication")
	}
	for _, e := range all {
		at, err := instant(attribute(e, "AuthnInstant"))
		until, bad := instant(attribute(e, "SessionNotOnOrAfter"))
		switch {
		case err != nil || bad != nil || at.IsZero() || at.After(w.Now.Add(skew)):
			return errors.New("AuthnInstant must be a time in the past")
		case !until.IsZero() && !w.Now.Before(until):
			return errors.New("the session at the identity provider has ended")
		}
		p.Until, p.Authenticated = earlier(p.Until, until), earlier(p.Authenticated, at)
		if index := attribute(e, "SessionIndex"); len(index) <= maxName {
			p.SessionIndex = index
		}
	}
	if w.Fresh && p.Authenticated.Before(w.Since.Add(-skew)) {
		return errors.New("the identity provider did not authenticate the user again")
	}
	return nil
}
