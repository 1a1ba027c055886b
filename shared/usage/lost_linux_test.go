package usage

import (
	"syscall"
	"testing"
)

// lose makes entire pages of a mapping inaccessible, as those of a broken disk are.
func lose(t *testing.T, pages []byte) {
	t.Helper()
	if err := syscall.Mprotect(pages, syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
}
