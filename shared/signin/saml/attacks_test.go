package saml_test

import (
	"crypto"
	"crypto/rsa"
	"encoding/base64"
	"strings"
	"testing"
	"time"
	"unicode/utf16"

	"gateway/shared/signin/saml"
)

// read is what a service makes of a response.
func read(f *forge) (*saml.User, error) {
	m, err := saml.Open(f.make())
	if err != nil {
		return nil, err
	}
	return f.service.Check(m, f.wanted)
}

// attack is something that must be rejected with a reason; twin is as similar as possible, and
// is accepted.
type attack struct {
	name         string
	attack, twin func(*forge)
	why          string
}

func nothing(*forge) {}

// bent returns a change of the whole response at its end.
func bent(f func(string) string) func(*forge) { return func(g *forge) { g.bend = f } }

// whole signs the response and not the assertion.
func whole(f *forge) { f.signResponse, f.signAssertion = true, false }

func both(f *forge) { f.signResponse = true }

func wholeBent(f func(string) string) func(*forge) {
	return func(g *forge) { whole(g); g.bend = f }
}

// before and after put text beside the assertion.
func before(r, more string) string { return strings.Replace(r, assertionOf(r), more+assertionOf(r), 1) }
func after(r, more string) string  { return strings.Replace(r, assertionOf(r), assertionOf(r)+more, 1) }

var wrappings = []attack{
	{"XSW1: a signed response within the signature of another", wholeBent(func(r string) string {
		s := signatureOf(r)
		return strings.Replace(evil(r), "</saml:Issuer>", "</saml:Issuer>"+strings.Replace(s, "</ds:Signature>", "<ds:Object>"+strings.Replace(r, s, "", 1)+"</ds:Object></ds:Signature>", 1), 1)
	}), whole, "one response"},
	{"XSW2: a detached signature before the signed response", wholeBent(func(r string) string {
		s := signatureOf(r)
		return strings.Replace(evil(r), "</saml:Issuer>", "</saml:Issuer>"+strings.Replace(r, s, "", 1)+s, 1)
	}), whole, "unknown element"},
	{"XSW3: another assertion before the signed one", bent(func(r string) string { return before(r, evil(assertionOf(r))) }), nothing, "one assertion"},
	{"another assertion after the signed one", bent(func(r string) string { return after(r, evil(assertionOf(r))) }), nothing, "one assertion"},
	{"XSW4: the signed assertion within another", bent(func(r string) string {
		a := assertionOf(r)
		return strings.Replace(r, a, strings.Replace(evil(a), "</saml:Assertion>", a+"</saml:Assertion>", 1), 1)
	}), nothing, "one assertion"},
	{"XSW5: the signed one changed, its original at the end", bent(func(r string) string {
		a := assertionOf(r)
		original := strings.Replace(a, signatureOf(a), "", 1)
		changed := strings.NewReplacer("ann@", "eve@", `ID="_a1"`, `ID="_evil"`).Replace(a)
		return strings.Replace(r, a, changed+original, 1)
	}), nothing, "one assertion"},
	{"XSW6: the original within the signature of the changed one", bent(func(r string) string {
		a := assertionOf(r)
		s := signatureOf(a)
		return strings.Replace(r, a, strings.Replace(evil(a), "</saml:Issuer>", "</saml:Issuer>"+strings.Replace(s, "</ds:Signature>", strings.Replace(a, s, "", 1)+"</ds:Signature>", 1), 1), 1)
	}), nothing, "one assertion"},
	{"XSW7: the changed one in extensions", bent(func(r string) string {
		return before(r, "<samlp:Extensions>"+evil(assertionOf(r))+"</samlp:Extensions>")
	}), bent(func(r string) string { return before(r, `<samlp:Extensions><x xmlns="urn:x"></x></samlp:Extensions>`) }), "one assertion"},
	{"the signed one in extensions", bent(func(r string) string {
		a := assertionOf(r)
		return strings.Replace(r, a, "<samlp:Extensions>"+a+"</samlp:Extensions>"+evil(a), 1)
	}), nothing, "one assertion"},
	{"XSW8: the original in an object of the signature", bent(func(r string) string {
		a := assertionOf(r)
		s := signatureOf(a)
		return strings.Replace(r, a, strings.Replace(evil(a), "</saml:Issuer>", "</saml:Issuer>"+strings.Replace(s, "</ds:Signature>", "<ds:Object>"+strings.Replace(a, s, "", 1)+"</ds:Object></ds:Signature>", 1), 1), 1)
	}), nothing, "one assertion"},
	{"the signed one in the detail of the status", bent(func(r string) string {
		a := assertionOf(r)
		return strings.Replace(strings.Replace(r, a, evil(a), 1), "</samlp:Status>", "<samlp:StatusDetail>"+a+"</samlp:StatusDetail></samlp:Status>", 1)
	}), bent(func(r string) string {
		return strings.Replace(r, "</samlp:Status>", "<samlp:StatusDetail>fine</samlp:StatusDetail></samlp:Status>", 1)
	}), "one assertion"},
	{"the signed one in the advice of another", bent(func(r string) string {
		a := assertionOf(r)
		return strings.Replace(r, a, strings.Replace(evil(a), "</saml:Conditions>", "</saml:Conditions><saml:Advice>"+a+"</saml:Advice>", 1), 1)
	}), func(f *forge) {
		f.plain = func(a string) string {
			return strings.Replace(a, "</saml:Conditions>", "</saml:Conditions><saml:Advice></saml:Advice>", 1)
		}
	}, "one assertion"},
	{"the signed one as the value of an attribute", bent(func(r string) string {
		a := assertionOf(r)
		held := `<saml:AttributeStatement><saml:Attribute Name="x"><saml:AttributeValue>` + a + `</saml:AttributeValue></saml:Attribute></saml:AttributeStatement>`
		return strings.Replace(r, a, strings.Replace(evil(a), "</saml:Assertion>", held+"</saml:Assertion>", 1), 1)
	}), func(f *forge) {
		f.attributes = `<saml:AttributeStatement><saml:Attribute Name="x"><saml:AttributeValue><y xmlns="urn:y"></y></saml:AttributeValue></saml:Attribute></saml:AttributeStatement>`
	}, "one assertion"},
	{"an assertion of no namespace before the signed one", bent(func(r string) string {
		return before(r, `<Assertion xmlns="" ID="_evil"></Assertion>`)
	}), nothing, "unknown element"},
	{"a signature of the assertion at the response", bent(func(r string) string {
		s := signatureOf(r)
		return strings.Replace(strings.Replace(r, s, "", 1), "<samlp:Status>", s+"<samlp:Status>", 1)
	}), both, "unsupported form"},
	{"two signatures at the assertion", bent(func(r string) string { return strings.Replace(r, signatureOf(r), signatureOf(r)+signatureOf(r), 1) }), nothing, "signatures right below"},
	{"a signature in the subject", bent(func(r string) string {
		return strings.Replace(strings.Replace(r, signatureOf(r), "", 1), "<saml:Subject>", "<saml:Subject>"+signatureOf(r), 1)
	}), nothing, "signatures right below"},
	{"an id twice, one of another element", bent(func(r string) string { return strings.Replace(r, "<saml:Subject>", `<saml:Subject Id="_a1">`, 1) }), nothing, "an id twice"},
	{"an id twice, of the response and the assertion", bent(func(r string) string { return strings.Replace(r, `ID="_r1"`, `ID="_a1"`, 1) }), nothing, "an id twice"},
	{"a reference to the whole document", func(f *forge) { f.uri = " " }, nothing, "unsupported form"},
	{"a reference by XPointer", func(f *forge) { f.uri = "#xpointer(id('_a1'))" }, nothing, "unsupported form"},
	{"a reference to something else", func(f *forge) { f.uri = "#_r1" }, nothing, "unsupported form"},
	{"two references", bent(func(r string) string {
		ref := truncate(r, "<ds:Reference ", "</ds:Reference>")
		return strings.Replace(r, ref, ref+ref, 1)
	}), nothing, "unsupported form"},
	{"two kinds of signed information", bent(func(r string) string {
		i := truncate(r, "<ds:SignedInfo>", "</ds:SignedInfo>")
		return strings.Replace(r, i, i+i, 1)
	}), nothing, "unsupported form"},
}

var changes = []attack{
	{"a name changed", bent(func(r string) string { return strings.Replace(r, "ann@", "eve@", 1) }), nothing, "what it covers was changed"},
	{"a name changed in a signed response", wholeBent(func(r string) string { return strings.Replace(r, "ann@", "eve@", 1) }), whole, "what it covers was changed"},
	{"the response changed around a signed assertion", func(f *forge) {
		both(f)
		f.bend = func(r string) string { return strings.Replace(r, "<samlp:Status>", "<samlp:Status xml:lang=\"x\">", 1) }
	}, both, "what it covers was changed"},
	{"the signature of a signed assertion in a signed response is bad", func(f *forge) {
		both(f)
		f.plain = func(a string) string { return a }
		f.encrypt = func(_ *forge, a string) string { return strings.Replace(a, "ann@", "eve@", 1) }
	}, both, "what it covers was changed"},
	{"a comment in a name", bent(func(r string) string {
		return strings.Replace(r, "ann@example.com", "ann@example.com<!-- -->.evil.example", 1)
	}), nothing, "comments"},
	{"a comment in a signed name", func(f *forge) { f.name = "ann@example.com<!-- -->.evil.example" }, func(f *forge) { f.name = "ann@example.com.evil.example" }, "comments"},
	{"CDATA in a name", bent(func(r string) string { return strings.Replace(r, "ann@example.com", "<![CDATA[ann@example.com]]>", 1) }), nothing, "CDATA"},
	{"a processing instruction in a name", bent(func(r string) string { return strings.Replace(r, "ann@example.com", "ann@<?x y?>example.com", 1) }), bent(func(r string) string { return `<?xml version="1.0" encoding="UTF-8"?>` + r }), "processing instructions"},
	{"a style sheet before the response", bent(func(r string) string { return `<?xml-stylesheet href="x"?>` + r }), bent(func(r string) string { return `<?xml version="1.0"?>` + "\n" + r }), "processing instructions"},
	{"an element in a name", bent(func(r string) string { return strings.Replace(r, "ann@example.com", "<b/>ann@example.com", 1) }), nothing, "what it covers was changed"},
	{"an element in a signed name", func(f *forge) { f.name = "ann@example.com<b></b>" }, nothing, "one NameID"},
	{"no signature", func(f *forge) { f.signAssertion = false }, nothing, "not signed"},
	{"a signature without a value", bent(func(r string) string {
		return strings.Replace(r, truncate(r, "<ds:SignatureValue>", "</ds:SignatureValue>"), "", 1)
	}), nothing, "unsupported form"},
	{"an empty signature", bent(func(r string) string {
		return strings.Replace(r, truncate(r, "<ds:SignatureValue>", "</ds:SignatureValue>"), "<ds:SignatureValue></ds:SignatureValue>", 1)
	}), nothing, "not the identity provider's"},
	{"a signature of another namespace", bent(func(r string) string { return strings.ReplaceAll(r, dsNS, "urn:not-a-signature") }), nothing, "right below"},
	{"a namespace of an unsigned ancestor rebound", bent(func(r string) string {
		return strings.Replace(r, `<saml:Assertion xmlns:saml="urn:oasis:names:tc:SAML:2.0:assertion"`, `<saml:Assertion xmlns:saml="urn:other"`, 1)
	}), nothing, "unknown element"},
}

var keysAndMethods = []attack{
	{"a stranger's key", func(f *forge) { f.key = keys()[2] }, func(f *forge) { f.key = keys()[1] }, "not the identity provider's"},
	{"a stranger's key with its certificate along", func(f *forge) { f.key = keys()[2]; f.keyInfo = info(keys()[2]) }, func(f *forge) { f.keyInfo = info(keys()[0]) }, "not the identity provider's"},
	{"a stranger's key with the right certificate along", func(f *forge) { f.key = keys()[2]; f.keyInfo = info(keys()[0]) }, func(f *forge) { f.keyInfo = info(keys()[0]) }, "not the identity provider's"},
	{"the gateway's own key", func(f *forge) { f.key = keys()[3] }, nothing, "not the identity provider's"},
	{"a bare key along", func(f *forge) {
		f.key = keys()[2]
		f.keyInfo = "<ds:KeyInfo><ds:KeyValue><ds:RSAKeyValue><ds:Modulus>AQAB</ds:Modulus><ds:Exponent>AQAB</ds:Exponent></ds:RSAKeyValue></ds:KeyValue></ds:KeyInfo>"
	}, func(f *forge) { f.keyInfo = "<ds:KeyInfo><ds:KeyName>k</ds:KeyName></ds:KeyInfo>" }, "not the identity provider's"},
	{"certificates that have expired", func(f *forge) { f.wanted.Now = now.AddDate(30, 0, 0); f.at(f.wanted.Now) }, func(f *forge) { f.wanted.Now = now.AddDate(19, 0, 0); f.at(f.wanted.Now) }, "expired"},
	{"SHA-1 in the signature", func(f *forge) { f.sigMethod = dsNS + "rsa-sha1" }, func(f *forge) { f.sigMethod = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha384" }, "algorithm is not allowed"},
	{"SHA-1 in the digest", func(f *forge) { f.digest = dsNS + "sha1" }, func(f *forge) { f.digest = xenc + "sha512" }, "digest is not allowed"},
	{"MD5 in the digest", func(f *forge) { f.digest = "http://www.w3.org/2001/04/xmldsig-more#md5" }, func(f *forge) { f.digest = "http://www.w3.org/2001/04/xmldsig-more#sha384" }, "digest is not allowed"},
	{"HMAC with the certificate as its secret", func(f *forge) { f.sigMethod = "http://www.w3.org/2001/04/xmldsig-more#hmac-sha256" }, func(f *forge) { f.sigMethod = "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512" }, "algorithm is not allowed"},
	{"no algorithm", func(f *forge) { f.sigMethod = "none" }, nothing, "algorithm is not allowed"},
	{"the name of an algorithm exchanged", bent(func(r string) string {
		return strings.Replace(r, rsa256, "http://www.w3.org/2001/04/xmldsig-more#rsa-sha512", 1)
	}), nothing, "not the identity provider's"},
	{"canonicalization with comments", func(f *forge) { f.canonical = excC14N + "WithComments" }, nothing, "unsupported form"},
	{"inclusive canonicalization", func(f *forge) { f.canonical = "http://www.w3.org/TR/2001/REC-xml-c14n-20010315" }, nothing, "unsupported form"},
	{"a transform by XSLT", func(f *forge) {
		f.transforms += `<ds:Transform Algorithm="http://www.w3.org/TR/1999/REC-xslt-19991116"></ds:Transform>`
	}, nothing, "unsupported form"},
	{"a transform by XPath", func(f *forge) {
		f.transforms = strings.Replace(f.transforms, excC14N, "http://www.w3.org/TR/1999/REC-xpath-19991116", 1)
	}, func(f *forge) {
		f.transforms = strings.Replace(f.transforms, `"`+excC14N+`">`, `"`+excC14N+`"><ec:InclusiveNamespaces xmlns:ec="`+excC14N+`" PrefixList="xs"></ec:InclusiveNamespaces>`, 1)
	}, "unsupported form"},
	{"no transforms", func(f *forge) { f.transforms = "" }, nothing, "unsupported form"},
	{"base64 as a transform", func(f *forge) { f.transforms = strings.Replace(f.transforms, envelope, dsNS+"base64", 1) }, nothing, "unsupported form"},
}

// at moves all times of a response.
func (f *forge) at(to time.Time) {
	f.issued, f.shown, f.notBefore, f.until, f.confirmUntil = to, to, to.Add(-time.Minute), to.Add(time.Minute), to.Add(time.Minute)
}

var addresses = []attack{
	{"another audience", func(f *forge) { f.audience = "https://gateway.example.com/v1/auth/saml/other" }, nothing, "another audience"},
	{"an audience that begins like the right one", func(f *forge) { f.audience = entityID + "x" }, nothing, "another audience"},
	{"a second restriction to another audience", func(f *forge) {
		f.conditions = `<saml:AudienceRestriction><saml:Audience>` + entityID + `</saml:Audience></saml:AudienceRestriction><saml:AudienceRestriction><saml:Audience>urn:other</saml:Audience></saml:AudienceRestriction>`
	}, func(f *forge) {
		f.conditions = `<saml:AudienceRestriction><saml:Audience>urn:other</saml:Audience><saml:Audience>` + entityID + `</saml:Audience></saml:AudienceRestriction><saml:OneTimeUse></saml:OneTimeUse>`
	}, "another audience"},
	{"no audience", func(f *forge) { f.conditions = `<saml:OneTimeUse></saml:OneTimeUse>` }, nothing, "must name its audience"},
	{"a condition that nobody knows", func(f *forge) { f.conditions = `<x:Weather xmlns:x="urn:x"></x:Weather>` }, nothing, "not known"},
	{"another recipient", func(f *forge) { f.recipient = "https://other.example.com/acs" }, nothing, "another recipient"},
	{"no recipient", func(f *forge) { f.recipient = "" }, nothing, "another recipient"},
	{"another destination", func(f *forge) { f.destination = "https://other.example.com/acs" }, nothing, "another destination"},
	{"a signed response without a destination", func(f *forge) { whole(f); f.destination = "" }, func(f *forge) { f.destination = "" }, "another destination"},
	{"another issuer of the assertion", func(f *forge) { f.issuer = "https://idp.example.com/of-another-organisation" }, nothing, "another issuer"},
	{"another issuer of the response", func(f *forge) { f.responseIssuer = "https://idp.example.com/of-another-organisation" }, nothing, "another issuer"},
	{"the answer to another request", func(f *forge) { f.answers = "_request-2" }, func(f *forge) { f.answers = "" }, "another request"},
	{"confirmed for another request", func(f *forge) { f.confirms = "_request-2" }, nothing, "another request"},
	{"unsolicited where a request was made", func(f *forge) { f.answers, f.confirms = "", "" }, func(f *forge) { f.answers, f.confirms, f.wanted.Request = "", "", "" }, "another request"},
	{"an answer where no request was made", func(f *forge) { f.wanted.Request = "" }, func(f *forge) { f.answers, f.confirms, f.wanted.Request = "", "", "" }, "another request"},
	{"an answer with its InResponseTo taken away", func(f *forge) { f.answers, f.wanted.Request = "", "" }, func(f *forge) { f.answers, f.confirms, f.wanted.Request = "", "", "" }, "another request"},
	{"confirmed by a key that nobody shows", func(f *forge) { f.method = "urn:oasis:names:tc:SAML:2.0:cm:holder-of-key" }, nothing, "bearer"},
	{"confirmed by who sends it", func(f *forge) { f.method = "urn:oasis:names:tc:SAML:2.0:cm:sender-vouches" }, nothing, "bearer"},
	{"no success", func(f *forge) { f.status = "urn:oasis:names:tc:SAML:2.0:status:Responder" }, nothing, "rejected the sign-in: Responder"},
	{"SAML 1.1", bent(func(r string) string { return strings.Replace(r, `Version="2.0"`, `Version="1.1"`, 1) }), nothing, "SAML 2.0"},
}

var times = []attack{
	{"expired", func(f *forge) { f.until = now.Add(-time.Minute) }, func(f *forge) { f.until = now.Add(-time.Minute + time.Second) }, "expired"},
	{"not yet valid", func(f *forge) { f.notBefore = now.Add(time.Minute + time.Second) }, func(f *forge) { f.notBefore = now.Add(time.Minute) }, "not valid yet"},
	{"the confirmation has expired", func(f *forge) { f.confirmUntil = now.Add(-time.Minute) }, func(f *forge) { f.confirmUntil = now.Add(-59 * time.Second) }, "expired"},
	{"good for ever", func(f *forge) { f.confirmUntil = now.Add(25 * time.Hour) }, func(f *forge) { f.confirmUntil = now.Add(24 * time.Hour) }, "within a day"},
	{"from the future", func(f *forge) { f.issued = now.Add(2 * time.Minute) }, func(f *forge) { f.issued = now.Add(time.Minute) }, "IssueInstant"},
	{"signed in in the future", func(f *forge) { f.shown = now.Add(2 * time.Minute) }, func(f *forge) { f.shown = now.Add(time.Minute) }, "AuthnInstant"},
	{"a session that has ended there", func(f *forge) { f.sessionUntil = at(now) }, func(f *forge) { f.sessionUntil = at(now.Add(time.Hour)) }, "has ended"},
	{"not asked again", func(f *forge) { f.wanted.Fresh, f.wanted.Since, f.shown = true, now, now.Add(-time.Hour) }, func(f *forge) { f.wanted.Fresh, f.wanted.Since = true, now }, "authenticate the user again"},
	{"a time that is none", func(f *forge) { f.sessionUntil = "tomorrow" }, nothing, "AuthnInstant"},
}

var documents = []attack{
	{"entity expansion", bent(func(r string) string {
		return `<!DOCTYPE x [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;">]>` + strings.Replace(r, "ann@", "&b;@", 1)
	}), bent(func(r string) string { return strings.Replace(r, "ann@example.com", "&#97;nn@example&#x2e;com", 1) }), "document type"},
	{"an external entity", bent(func(r string) string {
		return `<!DOCTYPE x [<!ENTITY a SYSTEM "file:///etc/passwd">]>` + strings.Replace(r, "ann@", "&a;@", 1)
	}), nothing, "document type"},
	{"an external document type", bent(func(r string) string { return `<!DOCTYPE x SYSTEM "http://127.0.0.1/x">` + r }), nothing, "document type"},
	{"a parameter entity after a declaration", bent(func(r string) string {
		return `<?xml version="1.0"?><!DOCTYPE x [<!ENTITY % a SYSTEM "http://127.0.0.1/x"> %a;]>` + r
	}), nothing, "document type"},
	{"an entity that nobody declared", bent(func(r string) string { return strings.Replace(r, "ann@", "&who;@", 1) }), nothing, "not well-formed"},
	{"1 MB", bent(func(r string) string { return r + strings.Repeat(" ", 1<<20) }), bent(func(r string) string { return r + strings.Repeat(" ", 200<<10) }), "too large"},
	{"deep XML", bent(func(r string) string {
		return before(r, "<samlp:Extensions>"+strings.Repeat("<x>", 1000)+strings.Repeat("</x>", 1000)+"</samlp:Extensions>")
	}), bent(func(r string) string {
		return before(r, "<samlp:Extensions>"+strings.Repeat("<x>", 28)+strings.Repeat("</x>", 28)+"</samlp:Extensions>")
	}), "too deep"},
	{"many elements", bent(func(r string) string {
		return before(r, "<samlp:Extensions>"+strings.Repeat("<x/>", 2000)+"</samlp:Extensions>")
	}), bent(func(r string) string {
		return before(r, "<samlp:Extensions>"+strings.Repeat("<x/>", 800)+"</samlp:Extensions>")
	}), "too many"},
	{"many attributes", bent(func(r string) string {
		many := ""
		for i := range 100 {
			many += " a" + string(rune('a'+i%26)) + strings.Repeat("b", i/26) + `="1"`
		}
		return before(r, "<samlp:Extensions><x"+many+"/></samlp:Extensions>")
	}), bent(func(r string) string { return before(r, `<samlp:Extensions><x a="1" b="2"/></samlp:Extensions>`) }), "too many"},
	{"an attribute twice", bent(func(r string) string {
		return strings.Replace(r, `<samlp:Response `, `<samlp:Response Version="2.0" `, 1)
	}), nothing, "twice"},
	{"UTF-16", func(f *forge) {
		f.encode = func(b []byte) string {
			out := []byte{0xff, 0xfe}
			for _, u := range utf16.Encode([]rune(string(b))) {
				out = append(out, byte(u), byte(u>>8))
			}
			return base64.StdEncoding.EncodeToString(out)
		}
	}, nothing, "UTF-8"},
	{"bytes that are no UTF-8", bent(func(r string) string { return strings.Replace(r, "ann@", "ann\xff@", 1) }), func(f *forge) { f.attributes = names("Änn", "李") }, "UTF-8"},
	{"a NUL", bent(func(r string) string { return strings.Replace(r, "ann@", "ann\x00@", 1) }), nothing, "UTF-8"},
	{"another encoding by name", bent(func(r string) string { return `<?xml version="1.0" encoding="UTF-7"?>` + r }), bent(func(r string) string { return `<?xml version="1.0" encoding="utf-8"?>` + r }), "UTF-8"},
	{"two documents", bent(func(r string) string { return r + r }), bent(func(r string) string { return r + "\n" }), "one root"},
	{"cut off", bent(func(r string) string { return r[:len(r)-10] }), nothing, "not well-formed"},
	{"no response", bent(assertionOf), nothing, "SAML 2.0 Response"},
	{"nothing", bent(func(string) string { return "" }), nothing, "not well-formed"},
	{"not base64", func(f *forge) { f.encode = func(b []byte) string { return string(b) } }, func(f *forge) {
		f.encode = func(b []byte) string {
			s := base64.StdEncoding.EncodeToString(b)
			return s[:76] + "\r\n" + s[76:]
		}
	}, "base64"},
	{"several e-mail addresses", func(f *forge) {
		f.format = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent"
		f.attributes = mail("ann@example.com", "eve@example.com")
	}, func(f *forge) {
		f.format, f.name = "urn:oasis:names:tc:SAML:2.0:nameid-format:persistent", "x9"
		f.attributes = mail("ann@example.com")
	}, "several e-mail"},
	{"no e-mail address", func(f *forge) { f.format, f.name = "urn:oasis:names:tc:SAML:2.0:nameid-format:transient", "x9" }, func(f *forge) { f.format = "" }, "no e-mail"},
}

var encrypted = []attack{
	{"an encrypted assertion that is not signed", func(f *forge) { f.signAssertion = false; f.encrypt = gcm() }, func(f *forge) { f.encrypt = gcm() }, "cannot be opened"},
	{"an encrypted assertion exchanged for one's own", func(f *forge) { f.key = keys()[2]; f.encrypt = gcm() }, func(f *forge) { f.encrypt = cbc() }, "cannot be opened"},
	{"an encrypted assertion exchanged in a signed response", func(f *forge) {
		whole(f)
		f.encrypt = gcm()
		f.bend = func(r string) string {
			g := newForge(f.t)
			g.name, g.signAssertion, g.encrypt = "eve@example.com", false, gcm()
			raw, _ := base64.StdEncoding.DecodeString(g.make())
			return strings.Replace(r, truncate(r, "<saml:EncryptedAssertion ", "</saml:EncryptedAssertion>"), truncate(string(raw), "<saml:EncryptedAssertion ", "</saml:EncryptedAssertion>"), 1)
		}
	}, func(f *forge) { whole(f); f.encrypt = gcm() }, "what it covers was changed"},
	{"encrypted for somebody else", func(f *forge) {
		f.encrypt = sealed(xenc11+"aes256-gcm", oaep, "", crypto.SHA1, crypto.SHA1, func() *rsa.PublicKey { return &keys()[0].key.PublicKey })
	}, func(f *forge) {
		f.encrypt = sealed(xenc11+"aes128-gcm", xenc11+"rsa-oaep", `<ds:DigestMethod Algorithm="`+sha256+`"></ds:DigestMethod><m:MGF xmlns:m="`+xenc11+`" Algorithm="`+xenc11+`mgf1sha256"></m:MGF>`, crypto.SHA256, crypto.SHA256, ours)
	}, "cannot be opened"},
	{"a key wrapped by RSA 1.5", func(f *forge) { f.encrypt = sealed(xenc+"aes128-cbc", xenc+"rsa-1_5", "", 0, 0, ours) }, func(f *forge) {
		f.encrypt = sealed(xenc+"aes128-cbc", oaep, `<ds:DigestMethod Algorithm="`+sha256+`"></ds:DigestMethod>`, crypto.SHA256, crypto.SHA1, ours)
	}, "cannot be opened"},
	{"a cipher that is not known", func(f *forge) {
		f.encrypt = gcm()
		f.bend = func(r string) string { return strings.Replace(r, xenc11+"aes256-gcm", xenc+"tripledes-cbc", 1) }
	}, func(f *forge) { f.encrypt = gcm() }, "cannot be opened"},
	{"ciphertext changed", func(f *forge) {
		f.encrypt = cbc()
		f.bend = func(r string) string {
			at := strings.LastIndex(r, "</xenc:CipherValue>")
			return r[:at-40] + "AAAA" + r[at-36:]
		}
	}, func(f *forge) { f.encrypt = cbc() }, "cannot be opened"},
	{"ciphertext that is to be fetched", func(f *forge) {
		f.encrypt = gcm()
		f.bend = func(r string) string {
			at := strings.LastIndex(r, "<xenc:CipherValue>")
			return r[:at] + `<xenc:CipherReference URI="http://127.0.0.1/x"></xenc:CipherReference></xenc:CipherData></xenc:EncryptedData></saml:EncryptedAssertion></samlp:Response>`
		}
	}, func(f *forge) { f.encrypt = gcm() }, "cannot be opened"},
	{"a document type within the ciphertext", func(f *forge) {
		f.encrypt = func(f *forge, a string) string { return gcm()(f, `<!DOCTYPE x [<!ENTITY a "b">]>`+a) }
	}, func(f *forge) {
		f.encrypt = func(f *forge, a string) string { return gcm()(f, `<?xml version="1.0" encoding="UTF-8"?>`+a) }
	}, "cannot be opened"},
	{"two assertions within the ciphertext", func(f *forge) {
		f.encrypt = func(f *forge, a string) string {
			return gcm()(f, strings.Replace(evil(a), "</saml:Assertion>", a+"</saml:Assertion>", 1))
		}
	}, func(f *forge) { f.encrypt = gcm() }, "cannot be opened"},
	{"a response within the ciphertext", func(f *forge) {
		f.encrypt = func(f *forge, a string) string { return gcm()(f, "<x>"+a+"</x>") }
	}, func(f *forge) { f.encrypt = gcm() }, "cannot be opened"},
	{"an assertion beside an encrypted one", func(f *forge) {
		f.encrypt = gcm()
		f.extra = evil(assertionOf(mustRead(newForge(f.t))))
	}, func(f *forge) { f.encrypt = gcm() }, "one assertion"},
}

func mustRead(f *forge) string {
	raw, err := base64.StdEncoding.DecodeString(f.make())
	if err != nil {
		f.t.Fatal(err)
	}
	return string(raw)
}

func names(first, last string) string {
	return `<saml:AttributeStatement><saml:Attribute Name="givenName"><saml:AttributeValue>` + first + `</saml:AttributeValue></saml:Attribute><saml:Attribute Name="sn"><saml:AttributeValue>` + last + `</saml:AttributeValue></saml:Attribute></saml:AttributeStatement>`
}

func mail(all ...string) string {
	out := `<saml:AttributeStatement><saml:Attribute Name="email">`
	for _, a := range all {
		out += `<saml:AttributeValue>` + a + `</saml:AttributeValue>`
	}
	return out + `</saml:Attribute></saml:AttributeStatement>`
}

// TestAttacksAreRejected: each for its own reason, and what is as like it as it can be
// is taken.
func TestAttacksAreRejected(t *testing.T) {
	t.Parallel()
	n := 0
	for _, table := range [][]attack{wrappings, changes, keysAndMethods, addresses, times, documents, encrypted, twofold, roundTrips} {
		for _, a := range table {
			n++
			t.Run(a.name, func(t *testing.T) {
				t.Parallel()
				f := newForge(t)
				a.attack(f)
				if p, err := read(f); err == nil || !strings.Contains(err.Error(), a.why) {
					t.Errorf("%+v, %v; want %q", p, err, a.why)
				}
				f = newForge(t)
				a.twin(f)
				p, err := read(f)
				if err != nil {
					t.Fatalf("its twin is refused: %v", err)
				}
				if !strings.HasPrefix(p.Email, "ann@example.com") || p.Assertion != "_a1" || !p.NotAfter.After(f.wanted.Now) {
					t.Errorf("its twin is %+v", p)
				}
			})
		}
	}
	if n < 100 {
		t.Errorf("%d attacks", n)
	}
}
