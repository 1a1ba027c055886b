//go:build amd64 || arm64

package sqlite

import (
	"os"
	"syscall"
)

// mapShared maps a file into memory. Stores outlive the process.
func mapShared(f *os.File, size int) ([]byte, error) {
	return syscall.Mmap(int(f.Fd()), 0, size, syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

func unmapShared(b []byte) error { return syscall.Munmap(b) }
