package main

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// What <linux/userfaultfd.h> defines, the same on all processors of 64 bits.
const (
	faultsUserMode   = 1    // UFFD_USER_MODE_ONLY: needs no privilege
	faultsAPI        = 0xAA // UFFD_API
	faultsAsync      = 1 << 15
	faultsRegister   = 0xC020AA00 // UFFDIO_REGISTER
	faultsNegotiate  = 0xC018AA3F // UFFDIO_API
	faultsWriteGuard = 1 << 1     // UFFDIO_REGISTER_MODE_WP
)

// pageByPage has the system map single pages of the areas. By default it maps
// with each page that is used the fifteen around it, and code that runs is spread
// so widely that this is most of the program. The system leaves it where an area
// is watched for writes, as a registered one is; nobody writes to these, and were
// a page written, asynchronous watching (Linux 6.7) lets that pass unasked. It
// holds as long as undo is not called. Where the system refuses, as many
// containers do, everything stays as it was.
func pageByPage(areas []area) (undo func(), err error) {
	fd, _, errno := unix.Syscall(unix.SYS_USERFAULTFD, unix.O_CLOEXEC|faultsUserMode, 0, 0)
	if errno != 0 {
		return nil, errno
	}
	undo = func() { _ = unix.Close(int(fd)) }
	api := struct{ api, features, ioctls uint64 }{api: faultsAPI, features: faultsAsync}
	if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, faultsNegotiate, uintptr(unsafe.Pointer(&api))); errno != 0 {
		undo()
		return nil, errno
	}
	for _, a := range areas {
		r := struct{ from, length, mode, ioctls uint64 }{from: uint64(a.from), length: uint64(a.to - a.from), mode: faultsWriteGuard}
		if _, _, errno := unix.Syscall(unix.SYS_IOCTL, fd, faultsRegister, uintptr(unsafe.Pointer(&r))); errno != 0 {
			undo()
			return nil, errno
		}
	}
	return undo, nil
}
