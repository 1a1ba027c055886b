package field

import (
	"strings"
	"testing"
)

// TestValuesOfAnyLength: each byte counts wherever it stands.
func TestValuesOfAnyLength(t *testing.T) {
	for c := range 256 {
		want := c >= ' ' && c != 0x7f || c == '\t'
		for length := 1; length <= 26; length++ {
			for at := range length {
				for _, around := range []string{"a", "\xff", " ", "~", "\x80", "\t"} {
					v := strings.Repeat(around, at) + string([]byte{byte(c)}) + strings.Repeat(around, length-at-1)
					if Value(v) != want {
						t.Fatalf("Value(%q) is not %v", v, want)
					}
				}
			}
		}
	}
}

func BenchmarkValue(b *testing.B) {
	for b.Loop() {
		for _, v := range [...]string{"Bearer gw_0123456789abcdef0123456789abcdef0123456789abcdef", "application/json", "gzip, deflate", "OpenAI/Python 1.99.1", "1024"} {
			if !Value(v) {
				b.Fatal(v)
			}
		}
	}
}
