package usage

import (
	"io"
	"os"
	"syscall"
	"unsafe"
)

// gather writes nonempty parts consecutively in one system call.
func gather(f *os.File, parts ...[]byte) (n int, err error) {
	raw, err := f.SyscallConn()
	if err != nil {
		return 0, err
	}
	vec := make([]syscall.Iovec, len(parts))
	left := 0
	for i, p := range parts {
		vec[i].Base = unsafe.SliceData(p)
		vec[i].SetLen(len(p))
		left += len(p)
	}
	var failed error
	err = raw.Write(func(fd uintptr) bool {
		for left > 0 {
			w, _, no := syscall.Syscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&vec[0])), uintptr(len(vec)))
			if no == syscall.EINTR {
				continue
			}
			if no != 0 {
				failed = no
				return true
			}
			if w == 0 {
				failed = io.ErrShortWrite
				return true
			}
			n, left = n+int(w), left-int(w)
			for left > 0 && w >= uintptr(vec[0].Len) { // interrupted by a signal or a full disk
				w -= uintptr(vec[0].Len)
				vec = vec[1:]
			}
			if left > 0 {
				vec[0].Base = (*byte)(unsafe.Add(unsafe.Pointer(vec[0].Base), w))
				vec[0].SetLen(int(uintptr(vec[0].Len) - w))
			}
		}
		return true
	})
	if err == nil {
		err = failed
	}
	return n, err
}
