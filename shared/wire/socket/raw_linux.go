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

// question is a read that tells what it left behind. The memory of its call stands
// in the connection.
type question struct {
	asked  bool
	told   bool
	header syscall.Msghdr
	part   syscall.Iovec
	note   struct {
		syscall.Cmsghdr
		left int32
		_    [4]byte
	}
}

// inq is Linux' TCP_INQ, by its number: each read is told how much it left behind,
// where the end of the connection counts as one byte.
const inq = 36

func (q *question) read(fd uintptr, p []byte) (n int, more bool, no syscall.Errno) {
	if !q.asked {
		q.asked = true
		q.told = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_TCP, inq, 1) == nil
		q.header.Iov, q.header.Iovlen = &q.part, 1
		q.header.Control = (*byte)(unsafe.Pointer(&q.note))
	}
	if !q.told {
		n, no = read(fd, p)
		return n, true, no
	}
	q.part.Base = unsafe.SliceData(p)
	q.part.SetLen(len(p))
	q.header.SetControllen(int(unsafe.Sizeof(q.note)))
	q.note.Level = 0
	r, _, no := syscall.RawSyscall(syscall.SYS_RECVMSG, fd, uintptr(unsafe.Pointer(&q.header)), 0)
	q.part.Base = nil
	if no != 0 {
		return 0, true, no
	}
	n = int(r)
	received(fd, p[:n])
	return n, q.note.Level != syscall.IPPROTO_TCP || q.note.Type != inq || q.note.left != 0, 0
}

// write writes as much as the socket takes of parts, which are MaxParts at most.
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
