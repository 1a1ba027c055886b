//go:build !purego

package wire

import "unsafe"

// Every arm64 processor has what skipText uses.
const hasSkipText = true

// skipText is an index of b up to which there is nothing but text and escapes of
// two bytes. Either fewer than leastText bytes are left there, or what stands
// there is neither.
func skipText(b []byte) int { return skipTextNEON(unsafe.SliceData(b), len(b)) }

//go:noescape
func skipTextNEON(p *byte, n int) int
