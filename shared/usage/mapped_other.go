//go:build !linux || !(amd64 || arm64)

package usage

import (
	"errors"
	"os"
)

// On other systems events go to files directly.

func mapShared(*os.File, int64, bool) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapShared([]byte) error { return nil }

func openDirect(path string, flags int) (*os.File, bool, error) {
	f, err := os.OpenFile(path, flags, 0o600)
	return f, false, err
}

func useBuffers(*os.File) error { return nil }
