//go:build amd64 || arm64

package socket

import (
	"syscall"
	"unsafe"
)

// closeWait is the state of a connection whose other side has ended.
const closeWait = 8

func tcpState(fd int) uint8 {
	var info syscall.TCPInfo
	size := uint32(unsafe.Sizeof(info))
	_, _, no := syscall.Syscall6(syscall.SYS_GETSOCKOPT, uintptr(fd), syscall.IPPROTO_TCP, syscall.TCP_INFO,
		uintptr(unsafe.Pointer(&info)), uintptr(unsafe.Pointer(&size)), 0)
	if no != 0 {
		return 0
	}
	return info.State
}
