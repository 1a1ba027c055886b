//go:build !linux

package usage

import (
	"bytes"
	"os"
)

// gather writes parts consecutively.
func gather(f *os.File, parts ...[]byte) (int, error) {
	return f.Write(bytes.Join(parts, nil))
}
