package jwk

import "testing"

const good = `{"kty":"EC","kid":"good","crv":"P-256","x":"MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4","y":"4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"}`

// Unusable are entries of a key set that consumers skip.
var unusable = []string{
	`{"kty":"AKP","kid":"a","alg":"ML-DSA-65","pub":"AAAA"}`, `{"kty":"EC","kid":"a","crv":"P-999","x":"AA","y":"AA"}`, `{"kty":"EC","kid":"a","crv":"P-256","x":"!","y":"AA"}`,
	`{"kty":"OKP","kid":"a","crv":"Ed448","x":"AA"}`, `{"kty":"RSA","kid":"a","n":"!","e":"AQAB"}`, `{"kty":"RSA","kid":"a","n":5,"e":"AQAB"}`, `{"kty":"RSA","kid":"a","use":"enc","n":"AQAB","e":"AQAB"}`,
	`{"kty":7}`, `{}`, `null`, `"text"`, `[]`, `{"kty":"oct","kid":"a","k":"c2VjcmV0"}`, `{"kty":"RSA","kid":"a","alg":"RSA-OAEP","n":"AQAB","e":"AQAB"}`,
}

func TestReadSetSkipsKeysThatCannotBeUsed(t *testing.T) {
	t.Parallel()
	for _, bad := range unusable {
		for _, set := range []string{bad + "," + good, good + "," + bad} {
			keys, err := ReadSet([]byte(`{"keys":[` + set + `]}`))
			if err != nil {
				t.Errorf("%s: %v", bad, err)
				continue
			}
			if got := string(Usable([]byte(`{"keys":[` + set + `]}`))); got != `{"keys":[`+good+`]}` {
				t.Errorf("of %s these are usable: %s", set, got)
			}
			found := 0
			for i := range keys {
				if _, ok := keys[i].Public(); ok && keys[i].Kid == "good" {
					found++
				}
			}
			if found != 1 {
				t.Errorf("beside %s the good key is found %d times", bad, found)
			}
		}
	}
	for _, none := range []string{``, `{}`, `{"keys":[]}`, `{"keys":{}}`, `[]`} {
		_ = Usable([]byte(none)) // must not panic
		if _, err := ReadSet([]byte(none)); err == nil {
			t.Errorf("%q is a key set", none)
		}
	}
}

func TestBadTimeReturnsTheFirstNonNumericTime(t *testing.T) {
	t.Parallel()
	for _, name := range times {
		for _, bad := range []string{`"4102444800"`, `"x"`, `null`, `true`, `[1]`, `{}`} {
			if got := BadTime([]byte(`{"` + name + `": ` + bad + `}`)); got != name {
				t.Errorf("%s %s: %q", name, bad, got)
			}
		}
		if got := BadTime([]byte(`{"` + name + `":4102444800.5,"sub":"x"}`)); got != "" {
			t.Errorf("a number: %q", got)
		}
	}
}
