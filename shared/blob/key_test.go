package blob

import (
	"strings"
	"testing"
)

func TestCheckKey(t *testing.T) {
	for _, key := range []string{"a", "a/b/c.parquet", "org-1/2026/11/20/x_y=z", "ä/ß", strings.Repeat("a", 255), strings.Repeat("a/", 511) + "a", "a..b/c.", "a b"} {
		if err := CheckKey(key); err != nil {
			t.Errorf("%q: %v", key, err)
		}
	}
	for _, key := range []string{"", "/", "/a", "a/", "a//b", ".", "..", "../a", "a/../b", "a/./b", "a/..", ".hidden", "a/.b", "a\\b", "a\x00", "a\nb", "\xff", strings.Repeat("a", 256), strings.Repeat("a/", 512) + "a"} {
		if CheckKey(key) == nil {
			t.Errorf("%q passed", key)
		}
	}
}
