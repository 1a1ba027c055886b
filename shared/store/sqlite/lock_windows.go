package sqlite

import (
	"errors"
	"os"

	"golang.org/x/sys/windows"
)

// lockOffset is after the content: on Windows locked bytes cannot be read, and the content
// names the holder.
const lockOffset = 1 << 20

// tryLock takes the file's lock, which ends with the process or with the file. held is
// true if another process has it.
func tryLock(f *os.File) (held bool, err error) {
	err = windows.LockFileEx(windows.Handle(f.Fd()),
		windows.LOCKFILE_EXCLUSIVE_LOCK|windows.LOCKFILE_FAIL_IMMEDIATELY, 0, 1, 0,
		&windows.Overlapped{Offset: lockOffset})
	return errors.Is(err, windows.ERROR_LOCK_VIOLATION), err
}
