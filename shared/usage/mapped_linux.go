//go:build amd64 || arm64

package usage

import (
	"errors"
	"os"
	"syscall"
)

// mapShared maps a file into memory, where stores outlive the process. A new file is
// filled first: stores then never find the disk full, and the page cache uses large
// pages, which halve the cost of writing them back.
func mapShared(f *os.File, size int64, fresh bool) ([]byte, error) {
	if fresh {
		zeros := make([]byte, 1<<20)
		for off := int64(0); off < size; off += int64(len(zeros)) {
			if _, err := f.WriteAt(zeros[:min(size-off, int64(len(zeros)))], off); err != nil {
				return nil, err
			}
		}
	}
	return syscall.Mmap(int(f.Fd()), 0, int(size), syscall.PROT_READ|syscall.PROT_WRITE, syscall.MAP_SHARED)
}

func unmapShared(b []byte) error { return syscall.Munmap(b) }

// openDirect opens a file with direct I/O if the file system supports it.
func openDirect(path string, flags int) (f *os.File, direct bool, err error) {
	f, err = os.OpenFile(path, flags|syscall.O_DIRECT, 0o600)
	if errors.Is(err, syscall.EINVAL) {
		f, err = os.OpenFile(path, flags, 0o600)
		return f, false, err
	}
	return f, true, err
}

// useBuffers switches the file's writes back to the page cache.
func useBuffers(f *os.File) error {
	_, _, no := syscall.Syscall(syscall.SYS_FCNTL, f.Fd(), syscall.F_SETFL, 0)
	if no != 0 {
		return no
	}
	return nil
}
