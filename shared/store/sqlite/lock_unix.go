//go:build !windows

package sqlite

import (
	"errors"
	"os"
	"syscall"
)

// tryLock takes the file's lock, which ends with the process or with the file. held is
// true if another process has it.
func tryLock(f *os.File) (held bool, err error) {
	err = syscall.Flock(int(f.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	return errors.Is(err, syscall.EWOULDBLOCK), err
}
