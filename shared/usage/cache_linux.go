//go:build amd64 || arm64

package usage

import (
	"os"
	"syscall"
)

// dontNeed is POSIX_FADV_DONTNEED.
const dontNeed = 4

// dropCache evicts the written part of a file range from the page cache and starts to
// write the rest. It is advice: correctness does not depend on it.
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
