//go:build !purego

package wire

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// hasSkipText reports whether skipText may be called.
var hasSkipText = cpu.X86.HasAVX2

// skipText is an index of b up to which there is only text and escapes of two bytes. There
// either fewer than leastText bytes are left, or the byte is neither text nor such an
// escape.
func skipText(b []byte) int { return skipTextAVX2(unsafe.SliceData(b), len(b)) }

//go:noescape
func skipTextAVX2(p *byte, n int) int
