package saml

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/beevik/etree"
)

// Namespaces.
const (
	nsProtocol  = "urn:oasis:names:tc:SAML:2.0:protocol"
	nsAssertion = "urn:oasis:names:tc:SAML:2.0:assertion"
	nsMetadata  = "urn:oasis:names:tc:SAML:2.0:metadata"
	nsSignature = "http://www.w3.org/2000/09/xmldsig#"
	nsCipher    = "http://www.w3.org/2001/04/xmlenc#"
)

// limits are the limits of a document.
type limits struct {
	bytes, depth, elements, attributes int
	comments                           bool // allows comments in metadata
}

// MaxResponse is the size limit of a response in bytes.
const MaxResponse = 256 << 10

// MaxMetadata is the size limit of an identity provider's metadata in bytes.
const MaxMetadata = 1 << 20

var (
	ofResponse = limits{bytes: MaxResponse, depth: 32, elements: 900, attributes: 32}
	ofMetadata = limits{bytes: MaxMetadata, depth: 32, elements: 20_000, attributes: 64, comments: true}
)

// parse parses a document within its limits. The error can be shown to users and reveals
// nothing of the content.
func parse(raw []byte, l limits) (*etree.Element, error) {
	if err := scan(raw, l); err != nil {
		return nil, err
	}
	doc := etree.NewDocument()
	doc.ReadSettings.ValidateInput = false // scan has validated it
	if err := doc.ReadFromBytes(raw); err != nil || doc.Root() == nil {
		return nil, errors.New("is not well-formed XML")
	}
	return doc.Root(), nil
}

// scan rejects constructs that parsers handle differently, and documents that exceed the
// limits.
func scan(raw []byte, l limits) error {
	switch {
	case len(raw) > l.bytes:
		return errors.New("is too large")
	case !utf8.Valid(raw) || bytes.IndexByte(raw, 0) >= 0:
		return errors.New("must be UTF-8")
	}
	rest := raw
	for {
		at := bytes.Index(rest, []byte("<!"))
		if at < 0 {
			break
		}
		if rest = rest[at:]; !l.comments || !bytes.HasPrefix(rest, []byte("<!--")) {
			return errors.New("must have no document type, entities, CDATA or comments")
		}
		rest = rest[2:]
	}
	if at := bytes.Index(raw[min(1, len(raw)):], []byte("<?")); at >= 0 {
		return errors.New("must have no processing instructions")
	}
	return count(raw, l)
}

// count traverses the tokens of a document.
func count(raw []byte, l limits) error {
	d := xml.NewDecoder(bytes.NewReader(raw))
	d.Strict = true
	d.CharsetReader = func(string, io.Reader) (io.Reader, error) { return nil, errors.New("not UTF-8") }
	depth, elements, ended := 0, 0, false
	for first := true; ; first = false {
		token, err := d.Token()
		if err == io.EOF {
			break
		}
		if err != nil {
			return errors.New("is not well-formed XML in UTF-8")
		}
		switch t := token.(type) {
		case xml.ProcInst:
			if !first || t.Target != "xml" {
				return errors.New("must have no processing instructions")
			}
		case xml.StartElement:
			depth, elements = depth+1, elements+1
			if ended {
				return errors.New("must have one root element")
			}
			if depth > l.depth || elements > l.elements || len(t.Attr) > l.attributes {
				return errors.New("is nested too deeply or has too many elements")
			}
			if repeated(t.Attr) {
				return errors.New("has an attribute twice")
			}
		case xml.EndElement:
			if depth--; depth == 0 {
				ended = true
			}
		case xml.CharData:
			if depth == 0 && len(bytes.TrimSpace(t)) > 0 {
				return errors.New("has text outside of its root element")
			}
		}
	}
	if !ended {
		return errors.New("is not well-formed XML")
	}
	return nil
}

func repeated(attrs []xml.Attr) bool {
	for i := range attrs {
		for j := range i {
			if attrs[i].Name == attrs[j].Name {
				return true
			}
		}
	}
	return false
}

// hasName reports whether an element has a name in a namespace.
func hasName(e *etree.Element, space, tag string) bool {
	return e != nil && e.Tag == tag && e.NamespaceURI() == space
}

// children returns the direct children with a name.
func children(e *etree.Element, space, tag string) (out []*etree.Element) {
	if e == nil {
		return nil
	}
	for _, c := range e.ChildElements() {
		if hasName(c, space, tag) {
			out = append(out, c)
		}
	}
	return out
}

// only returns the one direct child with a name, or nil if there is not exactly one.
func only(e *etree.Element, space, tag string) *etree.Element {
	if all := children(e, space, tag); len(all) == 1 {
		return all[0]
	}
	return nil
}

// text returns an element's trimmed text. ok is false if it has child elements.
func text(e *etree.Element) (s string, ok bool) {
	if e == nil {
		return "", false
	}
	var b strings.Builder
	for _, c := range e.Child {
		switch t := c.(type) {
		case *etree.CharData:
			b.WriteString(t.Data)
		case *etree.Element:
			return "", false
		}
	}
	return strings.TrimSpace(b.String()), true
}

// textOrEmpty returns text, or "".
func textOrEmpty(e *etree.Element) string {
	s, _ := text(e)
	return s
}

// attribute returns the value of an attribute without a prefix, or "".
func attribute(e *etree.Element, name string) string {
	for _, a := range e.Attr {
		if a.Space == "" && a.Key == name {
			return a.Value
		}
	}
	return ""
}

// walk visits an element and its descendants until visit returns false.
func walk(e *etree.Element, visit func(*etree.Element) bool) bool {
	if !visit(e) {
		return false
	}
	for _, c := range e.ChildElements() {
		if !walk(c, visit) {
			return false
		}
	}
	return true
}

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
func (s *Service) describe(a, name *etree.Element, p *User) error {
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
		return errors.New("the assertion has no e-mail address")
	}
	if !one {
		return errors.New("the assertion has several e-mail addresses")
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
