package egress

import (
	"fmt"
	"testing"
)

func TestHostsRememberOnlyWhatPassed(t *testing.T) {
	h := NewHosts(Policy{})
	for range 2 {
		if s, err := h.Check("HTTPS://API.Example.com:443/v1", "custom_host"); err != nil || s != "https://api.example.com/v1" {
			t.Errorf("%q, %v", s, err)
		}
		if s, err := h.Check("https://10.0.0.1", "custom_host"); !IsBlocked(err) {
			t.Errorf("%q, %v; want refused", s, err)
		}
		if _, err := h.Check("not an address", "other_field"); err == nil {
			t.Error("an address without a scheme passed")
		}
	}
	for i := range maxHosts + 10 {
		if _, err := h.Check(fmt.Sprintf("https://h%d.example.com", i), "custom_host"); err != nil {
			t.Fatal(err)
		}
	}
	n := 0
	h.known.Range(func(any, any) bool { n++; return true })
	if n != maxHosts {
		t.Errorf("%d addresses are remembered, want %d", n, maxHosts)
	}
}
