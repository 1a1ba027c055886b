//go:build !linux || !(amd64 || arm64)

package sqlite

import (
	"errors"
	"os"
)

func mapShared(*os.File, int) ([]byte, error) { return nil, errors.ErrUnsupported }

func unmapShared([]byte) error { return nil }
