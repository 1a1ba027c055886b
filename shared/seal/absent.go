package seal

import (
	"context"
	"errors"
)

// Absent is the Sealer of a process without a key: it cannot seal or open anything.
type Absent struct{}

var errAbsent = errors.New("seal: this process has no key")

// Seal implements Sealer.
func (Absent) Seal(context.Context, Binding, []byte) ([]byte, error) { return nil, errAbsent }

// Open implements Sealer.
func (Absent) Open(context.Context, Binding, []byte) ([]byte, error) { return nil, errAbsent }
