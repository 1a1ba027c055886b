//go:build darwin || (linux && !amd64 && !arm64)

package socket

import "syscall"

func read(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Read(int(fd), p)
	return n, number(err)
}

// question is a read that tells what it left behind.
type question struct{}

func (*question) read(fd uintptr, p []byte) (n int, more bool, no syscall.Errno) {
	if n, no = read(fd, p); no != 0 {
		return 0, true, no
	}
	var one [1]byte
	_, _, err := syscall.Recvfrom(int(fd), one[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
	return n, err != syscall.EAGAIN, 0
}

// write writes as much as the socket takes of the first part.
func write(fd uintptr, parts [][]byte) (int, syscall.Errno) {
	n, err := syscall.Write(int(fd), parts[0])
	return n, number(err)
}

func number(err error) syscall.Errno {
	no, _ := err.(syscall.Errno)
	return no
}
