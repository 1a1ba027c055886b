//go:build amd64 || arm64

package usage

import (
	"os"
	"syscall"
)

// dontNeed is POSIX_FADV_DONTNEED.
const dontNeed = 4

// dropCache takes a part of a file out of the page cache as far as it is on the
// disk, and begins to write what is not. It is advice: nothing depends on it.
func dropCache(f *os.File, off, length int64) {
	if length <= 0 {
		return
	}
	raw, err := f.SyscallConn()
	if err != nil {
		return
	}
	_ = raw.Control(func(fd uintptr) {
		_, _, _ = syscall.Syscall6(syscall.SYS_FADVISE64, fd, uintptr(off), uintptr(length), dontNeed, 0, 0)
	})
}
