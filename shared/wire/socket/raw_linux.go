//go:build linux && (amd64 || arm64)

package socket

import (
	"runtime"
	"syscall"
	"unsafe"
)

func read(fd uintptr, p []byte) (int, syscall.Errno) {
	n, _, no := syscall.RawSyscall6(syscall.SYS_RECVFROM, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), 0, 0, 0)
	if no == 0 {
		received(fd, p[:n])
	}
	return int(n), no
}

// write writes as much of parts as the socket takes. There are at most MaxParts.
func write(fd uintptr, parts [][]byte) (int, syscall.Errno) {
	sending(parts)
	if len(parts) == 1 {
		p := parts[0]
		n, _, no := syscall.RawSyscall6(syscall.SYS_SENDTO, fd, uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)), syscall.MSG_NOSIGNAL, 0, 0)
		return int(n), no
	}
	var iov [MaxParts]syscall.Iovec
	for i, p := range parts {
		iov[i].Base = unsafe.SliceData(p)
		iov[i].SetLen(len(p))
	}
	n, _, no := syscall.RawSyscall(syscall.SYS_WRITEV, fd, uintptr(unsafe.Pointer(&iov)), uintptr(len(parts)))
	runtime.KeepAlive(parts)
	return int(n), no
}
