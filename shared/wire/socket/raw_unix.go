//go:build darwin || (linux && !amd64 && !arm64)

package socket

import "syscall"

func read(fd uintptr, p []byte) (int, syscall.Errno) {
	n, err := syscall.Read(int(fd), p)
	return n, number(err)
}

// write writes as much of the first part as the socket takes.
func write(fd uintptr, parts [][]byte) (int, syscall.Errno) {
	n, err := syscall.Write(int(fd), parts[0])
	return n, number(err)
}

func number(err error) syscall.Errno {
	no, _ := err.(syscall.Errno)
	return no
}
