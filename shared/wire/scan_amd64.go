//go:build !purego

package wire

import (
	"unsafe"

	"golang.org/x/sys/cpu"
)

// hasSkipText tells whether skipText may be called.
var hasSkipText = cpu.X86.HasAVX2

// skipText is an index of b up to which there is nothing but text and escapes of
// two bytes. Either fewer than leastText bytes are left there, or what stands
// there is neither.
func skipText(b []byte) int { return skipTextAVX2(unsafe.SliceData(b), len(b)) }

//go:noescape
func skipTextAVX2(p *byte, n int) int
