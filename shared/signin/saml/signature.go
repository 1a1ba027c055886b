package saml

import (
	"crypto/x509"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/beevik/etree"
	dsig "github.com/russellhaering/goxmldsig"
	"github.com/russellhaering/goxmldsig/etreeutils"
)

// Allowed signature algorithms. SHA-1 is not among them.
var (
	signatureMethods = []string{
		"http://www.w3.org/2001/04/xmldsig-more#rsa-sha256", "http://www.w3.org/2001/04/xmldsig-more#rsa-sha384", "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512",
	}
	digestMethods = []string{
		"http://www.w3.org/2001/04/xmlenc#sha256", "http://www.w3.org/2001/04/xmldsig-more#sha384", "http://www.w3.org/2001/04/xmlenc#sha512",
	}
)

const (
	exclusive = "http://www.w3.org/2001/10/xml-exc-c14n#"
	enveloped = "http://www.w3.org/2000/09/xmldsig#enveloped-signature"
)

// errSignature is the only error of well-formed signatures that no key of the identity provider
// has created for this content.
var errSignature = errors.New("the signature is not the identity provider's, or what it covers was changed")

// verify returns an element exactly as its signature covers it: parsed from the canonical bytes
// with a signed digest, independent of the surrounding document. KeyInfo is ignored: keys come
// only from the metadata.
func verify(el *etree.Element, keys []*x509.Certificate, now time.Time) (*etree.Element, error) {
	if err := shape(el); err != nil {
		return nil, err
	}
	around, err := etreeutils.NSBuildParentContext(el)
	if err != nil {
		return nil, errSignature
	}
	alone, err := etreeutils.NSDetatch(around, el)
	if err != nil {
		return nil, errSignature
	}
	signature := only(alone, nsSignature, "Signature")
	if signature == nil {
		return nil, errSignature
	}
	for _, info := range children(signature, nsSignature, "KeyInfo") {
		signature.RemoveChild(info)
	}
	for _, key := range keys {
		v := dsig.NewDefaultValidationContext(&dsig.MemoryX509CertificateStore{Roots: []*x509.Certificate{key}})
		v.Clock = dsig.NewFakeClockAt(now)
		covered, err := v.Validate(alone)
		if err == nil && covered != nil && covered.Tag == el.Tag && covered.NamespaceURI() == el.NamespaceURI() && attribute(covered, "ID") == attribute(el, "ID") {
			return covered, nil
		}
	}
	return nil, errSignature
}

// shape rejects every signature except the plain kind: a direct child of the element that it
// covers, by its id, complete, with the two transforms of SAML and without other content.
func shape(el *etree.Element) error {
	bad := errors.New("the signature has an unsupported form; use enveloped, exclusive canonicalization, RSA with SHA-256 or better")
	signature := only(el, nsSignature, "Signature")
	if signature == nil {
		return bad
	}
	for _, c := range signature.ChildElements() {
		if c.NamespaceURI() != nsSignature || !slices.Contains([]string{"SignedInfo", "SignatureValue", "KeyInfo"}, c.Tag) {
			return bad
		}
	}
	info := only(signature, nsSignature, "SignedInfo")
	if info == nil || only(signature, nsSignature, "SignatureValue") == nil || len(children(signature, nsSignature, "KeyInfo")) > 1 || len(info.ChildElements()) != 3 {
		return bad
	}
	way, method, ref := only(info, nsSignature, "CanonicalizationMethod"), only(info, nsSignature, "SignatureMethod"), only(info, nsSignature, "Reference")
	if way == nil || method == nil || ref == nil || attribute(way, "Algorithm") != exclusive {
		return bad
	}
	if !slices.Contains(signatureMethods, attribute(method, "Algorithm")) || len(method.ChildElements()) > 0 {
		return errors.New("the signature's algorithm is not allowed: RSA with SHA-256, SHA-384 or SHA-512")
	}
	id := attribute(el, "ID")
	if id == "" || attribute(ref, "URI") != "#"+id || len(ref.ChildElements()) != 3 {
		return bad
	}
	digest, transforms := only(ref, nsSignature, "DigestMethod"), only(ref, nsSignature, "Transforms")
	if digest == nil || transforms == nil || only(ref, nsSignature, "DigestValue") == nil {
		return bad
	}
	if !slices.Contains(digestMethods, attribute(digest, "Algorithm")) {
		return errors.New("the signature's digest is not allowed: SHA-256, SHA-384 or SHA-512")
	}
	steps := transforms.ChildElements()
	if len(steps) != 2 || !hasName(steps[0], nsSignature, "Transform") || !hasName(steps[1], nsSignature, "Transform") ||
		attribute(steps[0], "Algorithm") != enveloped || len(steps[0].ChildElements()) > 0 || attribute(steps[1], "Algorithm") != exclusive {
		return bad
	}
	for _, c := range steps[1].ChildElements() {
		if !hasName(c, exclusive, "InclusiveNamespaces") || len(c.ChildElements()) > 0 {
			return bad
		}
	}
	return nil
}

// arranged rejects ambiguous documents: a second assertion or response anywhere, duplicate ids,
// and signatures that are not direct children of the element that they cover.
func arranged(root *etree.Element) error {
	var err error
	assertions := 0
	ids := map[string]bool{}
	walk(root, func(e *etree.Element) bool {
		switch e.Tag {
		case "Response":
			if e != root {
				err = errors.New("must be one response")
			}
		case "Assertion", "EncryptedAssertion":
			if assertions++; assertions > 1 || e != root && (e.Parent() != root || !hasName(root, nsProtocol, "Response")) {
				err = errors.New("must have one assertion, right below the response")
			}
		case "Signature":
			p := e.Parent()
			if e == root || p != root && !hasName(p, nsAssertion, "Assertion") || len(children(p, nsSignature, "Signature")) != 1 {
				err = errors.New("must have its signatures right below the response and the assertion")
			}
		}
		for _, a := range e.Attr {
			if !strings.EqualFold(a.Key, "ID") || a.Space == "xmlns" {
				continue
			}
			if ids[a.Value] {
				err = errors.New("has an id twice")
			}
			ids[a.Value] = true
		}
		return err == nil
	})
	if err == nil && assertions != 1 {
		err = errors.New("must have one assertion, right below the response")
	}
	return err
}
