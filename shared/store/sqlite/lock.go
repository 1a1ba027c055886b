package sqlite

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
)

// ErrInUse is returned by Open for a file that another process, or this one, has open.
var ErrInUse = errors.New("store: the data file is in use")

// lockFile takes the lock beside the data file and writes the process id into it, for the
// error message of the next process.
func lockFile(path string) (*os.File, error) {
	name := path + ".lock"
	f, err := os.OpenFile(name, os.O_RDWR|os.O_CREATE, 0o600)
	if err != nil {
		return nil, fmt.Errorf("store: %w", err)
	}
	held, err := tryLock(f)
	if err != nil {
		defer f.Close()
		if !held {
			return nil, fmt.Errorf("store: lock %s: %w", name, err)
		}
		return nil, fmt.Errorf("%w: %s is open in %s; stop it or choose another data directory", ErrInUse, path, holder(f))
	}
	if err := f.Truncate(0); err == nil {
		// The id is only for people; the lock works without it.
		_, _ = f.WriteAt([]byte(strconv.Itoa(os.Getpid())+"\n"), 0)
	}
	return f, nil
}

func holder(f *os.File) string {
	b := make([]byte, 20)
	n, _ := f.ReadAt(b, 0)
	if pid := strings.TrimSpace(string(b[:n])); pid != "" {
		return "process " + pid
	}
	return "another process"
}
