package hostpin

import (
	"testing"

	"gateway/shared/fault"
)

// TestCheckDecidesEveryCombination enumerates the origin of the secret, what happens to the
// address, and what the caller may do.
func TestCheckDecidesEveryCombination(t *testing.T) {
	t.Parallel()
	const own, other = "https://own.example.com", "https://other.example.com"
	for _, address := range []struct {
		name     string
		was, now string
		open     bool
	}{
		{"default", "", "", true},
		{"own host unchanged", own, own + "/", true},
		{"host set", "", other, true},
		{"host moved", own, other, true},
		{"host removed", own, "", true},
		{"region unchanged", "eu", "eu", false},
		{"region moved", "eu", "us", false},
	} {
		moved := address.was != address.now && address.was+"/" != address.now
		for _, secret := range []string{"sent", "kept", "mapping changed", "mapping unchanged", "mapping of another member"} {
			for _, by := range []Caller{{}, {Uses: true}, {Uses: true, Reads: true}} {
				ch := Change{Addresses: []Address{{Field: "host", Was: address.was, Now: address.now, Open: address.open}}, By: by}
				want := 0
				switch secret {
				case "kept":
					ch.Retained = []string{"key"}
					if moved {
						want = 400
					}
				case "mapping unchanged":
					ch.Mappings = []Mapping{{Field: "secret_mappings[0]", Target: "key"}}
					if moved && !by.Reads {
						want = 400
					}
				case "mapping changed", "mapping of another member":
					m := Mapping{Field: "secret_mappings[0]", Target: "key", Changed: true, ReferenceKey: "api_key"}
					if secret != "mapping changed" {
						m.Key = "db_password"
					}
					ch.Mappings = []Mapping{m}
					switch {
					case !by.Uses:
						want = 403
					case !by.Reads && (address.open && address.now != "" || m.Key != ""):
						want = 400
					}
				}
				got := 0
				if err := ch.Check(); err != nil {
					got = fault.From(err).Status()
				}
				if got != want {
					t.Errorf("%s, secret %s, %+v: %d, want %d", address.name, secret, by, got, want)
				}
			}
		}
	}
}

func TestAddressesReceiveOnlyTheirSecrets(t *testing.T) {
	t.Parallel()
	ch := Change{Addresses: []Address{{Field: "token_endpoint", Was: "a", Now: "b", Open: true, Secrets: []string{"client_secret"}}}, Retained: []string{"headers"}}
	if err := ch.Check(); err != nil {
		t.Errorf("headers are not sent to the token endpoint: %v", err)
	}
	ch.Retained = append(ch.Retained, "client_secret")
	f := fault.From(ch.Check())
	if f == nil || len(f.Details) != 1 || f.Details[0].Field != "token_endpoint" {
		t.Errorf("the client secret moves with the token endpoint: %v", f)
	}
}

func TestMappingsChooseWithinTheReference(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		key, reference string
		want           bool
	}{{"", "", false}, {"", "a", false}, {"a", "a", false}, {"a", "", false}, {"b", "a", true}} {
		if Chooses(c.key, c.reference) != c.want {
			t.Errorf("%q of a reference to %q", c.key, c.reference)
		}
	}
}
