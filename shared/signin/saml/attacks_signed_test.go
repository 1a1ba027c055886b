package saml_test

import (
	"strings"
	"testing"
	"time"
)

// signed returns a change of the assertion before it is signed.
func signed(from, to string) func(*forge) {
	return func(f *forge) {
		f.plain = func(a string) string {
			if !strings.Contains(a, from) {
				f.t.Fatalf("no %s in %s", from, a)
			}
			return strings.Replace(a, from, to, 1)
		}
	}
}

const (
	named    = `<saml:NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress">ann@example.com</saml:NameID>`
	otherOne = `<saml:NameID Format="urn:oasis:names:tc:SAML:1.1:nameid-format:emailAddress">eve@example.com</saml:NameID>`
)

// twofold are assertions that the identity provider itself has signed and that two readers
// could take for different ones: what stands twice is none.
var twofold = []attack{
	{"two names in a subject", signed(named, named+otherOne), nothing, "one NameID"},
	{"two subjects", signed("<saml:Subject>", "<saml:Subject>"+otherOne+"</saml:Subject><saml:Subject>"), nothing, "one NameID"},
	{"two issuers", signed("</saml:Issuer>", "</saml:Issuer><saml:Issuer>urn:other</saml:Issuer>"), nothing, "another issuer"},
	{"two kinds of conditions", signed("<saml:AuthnStatement ", "<saml:Conditions></saml:Conditions><saml:AuthnStatement "), nothing, "conditions"},
	{"a name of another namespace beside it", signed(named, `<x:NameID xmlns:x="urn:x">ann@example.com</x:NameID>`), signed(named, named+`<x:NameID xmlns:x="urn:x">eve@example.com</x:NameID>`), "one NameID"},
	{"the name of another kind", signed(named, `<saml:BaseID>ann@example.com</saml:BaseID>`), nothing, "one NameID"},
	{"an encrypted name", signed(named, `<saml:EncryptedID></saml:EncryptedID>`), nothing, "one NameID"},
	{"an empty name", signed(named, `<saml:NameID> </saml:NameID>`), nothing, "one NameID"},
	{"nobody has signed in", func(f *forge) {
		f.plain = func(a string) string {
			return strings.Replace(a, truncate(a, "<saml:AuthnStatement ", "</saml:AuthnStatement>"), "", 1)
		}
	}, nothing, "statement of authentication"},
	{"two addresses in two statements", func(f *forge) {
		f.format, f.name = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent", "x9"
		f.attributes = mail("ann@example.com") + mail("eve@example.com")
	}, func(f *forge) {
		f.format, f.name = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent", "x9"
		f.attributes = mail("ann@example.com") + mail("ann@example.com")
	}, "several e-mail"},
}

// roundTrips are documents that two parsers read differently, or that one parser reads
// differently after writing them.
var roundTrips = []attack{
	{"the prefix of the assertion bound to another namespace", bent(func(r string) string {
		return strings.Replace(r, `<saml:Subject>`, `<saml:Subject xmlns:saml="urn:other">`, 1)
	}), bent(func(r string) string {
		return strings.Replace(r, `<samlp:Response `, `<samlp:Response xmlns:saml="urn:other" `, 1)
	}), "was changed"},
	{"a default namespace around what has none", bent(func(r string) string {
		return strings.Replace(r, `<saml:Subject>`, `<saml:Subject xmlns="urn:oasis:names:tc:SAML:2.0:assertion"><NameID>eve@example.com</NameID>`, 1)
	}), bent(func(r string) string {
		return strings.Replace(r, `<samlp:Response `, `<samlp:Response xmlns="urn:oasis:names:tc:SAML:2.0:assertion" `, 1)
	}), "was changed"},
	{"an id of another namespace before the right one", bent(func(r string) string {
		return strings.Replace(r, `<saml:Assertion `, `<saml:Assertion xmlns:x="urn:x" x:ID="_other" `, 1)
	}), nothing, "not the identity provider's"},
	{"an xml:id that is the assertion's", bent(func(r string) string {
		return strings.Replace(r, `<samlp:Status>`, `<samlp:Status xml:id="_a1">`, 1)
	}), bent(func(r string) string { return strings.Replace(r, `<samlp:Status>`, `<samlp:Status xml:id="_b1">`, 1) }), "an id twice"},
	{"an attribute with a colon too many", bent(func(r string) string {
		return strings.Replace(r, `<saml:Subject>`, `<saml:Subject a:b:c="x">`, 1)
	}), nothing, "not well-formed"},
	{"an attribute without a name after its prefix", bent(func(r string) string { return strings.Replace(r, `<saml:Subject>`, `<saml:Subject saml:="x">`, 1) }), nothing, "was changed"},
	{"an element with a colon too many", bent(func(r string) string {
		return strings.Replace(r, `<saml:Subject>`, `<saml:x:y></saml:x:y><saml:Subject>`, 1)
	}), nothing, "not well-formed"},
	{"a prefix that nobody declared", bent(func(r string) string { return strings.Replace(r, `<saml:Subject>`, `<saml:Subject><q:x></q:x>`, 1) }), nothing, "was changed"},
	{"the xmlns prefix itself bound", bent(func(r string) string {
		return strings.Replace(r, `<saml:Subject>`, `<saml:Subject xmlns:xmlns="urn:oasis:names:tc:SAML:2.0:assertion">`, 1)
	}), nothing, "was changed"},
	{"a carriage return in a name", bent(func(r string) string { return strings.Replace(r, "ann@example.com", "ann@example.com\r", 1) }), bent(func(r string) string { return strings.Replace(r, "<samlp:Status>", "\r\n<samlp:Status>", 1) }), "was changed"},
	{"a space within the end of a tag", bent(func(r string) string { return strings.Replace(r, "</saml:NameID>", "</saml:NameID >", 1) + "<" }), bent(func(r string) string { return strings.Replace(r, "</saml:NameID>", "</saml:NameID >", 1) }), "not well-formed"},
	{"a tag that ends as another", bent(func(r string) string { return strings.Replace(r, "</saml:NameID>", "</saml:NameId>", 1) }), nothing, "not well-formed"},
	{"text that looks like markup", bent(func(r string) string {
		return strings.Replace(r, "ann@example.com", "ann@example.com&lt;!--&gt;", 1)
	}), nothing, "was changed"},
	{"an assertion in the key information of the signature", bent(func(r string) string {
		a := assertionOf(r)
		return strings.Replace(r, "</ds:SignatureValue>", "</ds:SignatureValue><ds:KeyInfo>"+evil(a)+"</ds:KeyInfo>", 1)
	}), bent(func(r string) string {
		return strings.Replace(r, "</ds:SignatureValue>", "</ds:SignatureValue><ds:KeyInfo><x xmlns=\"urn:x\"></x></ds:KeyInfo>", 1)
	}), "one assertion"},
	{"signed information that repeats its digest", bent(func(r string) string {
		d := truncate(r, "<ds:DigestValue>", "</ds:DigestValue>")
		return strings.Replace(r, d, d+d, 1)
	}), nothing, "unsupported form"},
	{"text beside the parts of the signed information", bent(func(r string) string {
		return strings.Replace(r, "<ds:DigestValue>", "x<ds:DigestValue>", 1)
	}), nothing, "not the identity provider's"},
}

// There are several ways to confirm: the assertion is remembered until none of them is
// valid any more; otherwise it could be used again by the second one.
func TestUsedAssertionIsStoredWhileValid(t *testing.T) {
	t.Parallel()
	first, last := now.Add(2*time.Minute), now.Add(time.Hour)
	for name, order := range map[string][2]time.Time{"the earlier first": {first, last}, "the later first": {last, first}} {
		f := newForge(t)
		f.until, f.confirmUntil = last, order[0]
		f.plain = func(a string) string {
			one := truncate(a, "<saml:SubjectConfirmation ", "</saml:SubjectConfirmation>")
			return strings.Replace(a, one, one+strings.Replace(one, at(order[0]), at(order[1]), 1), 1)
		}
		posted := f.make()
		f.encode = func([]byte) string { return posted }
		p, err := read(f)
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		f.wanted.Now = now.Add(30 * time.Minute)
		if _, err := read(f); err != nil {
			t.Fatalf("%s: half an hour later: %v", name, err)
		}
		if f.wanted.Now = last.Add(time.Minute - time.Second); !p.NotAfter.After(f.wanted.Now) {
			t.Errorf("%s: forgotten at %s, good until %s", name, p.NotAfter, last)
		}
	}
}
