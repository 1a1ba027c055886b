//go:build !purego

package wire

import "unsafe"

// Every arm64 processor has the instructions that skipText uses.
const hasSkipText = true

// skipText is an index of b up to which there is only text and escapes of two bytes. There
// either fewer than leastText bytes are left, or the byte is neither text nor such an
// escape.
func skipText(b []byte) int { return skipTextNEON(unsafe.SliceData(b), len(b)) }

//go:noescape
func skipTextNEON(p *byte, n int) int
