//go:build unix

package wire

import (
	"bytes"
	"syscall"
	"testing"
)

// Nothing is read behind the end of a body, also where it ends with its page.
func TestSkipStringStaysInside(t *testing.T) {
	page := syscall.Getpagesize()
	room, err := syscall.Mmap(-1, 0, 2*page, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_ANON|syscall.MAP_PRIVATE)
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = syscall.Munmap(room) }()
	if err := syscall.Mprotect(room[page:], syscall.PROT_NONE); err != nil {
		t.Fatal(err)
	}
	copy(room, bytes.Repeat([]byte{'a'}, page))
	for length := range 400 {
		checkSkipString(t, room[page-length:page:page], 0)
	}
	for length := 1; length < 400; length++ {
		b := room[page-length : page : page]
		b[length-1] = '\\'
		checkSkipString(t, b, 0)
		b[length-1] = 'a'
	}
}
