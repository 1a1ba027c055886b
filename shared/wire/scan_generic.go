//go:build !amd64

package wire

// What amd64 has in assembly; everywhere else words are looked at.
const hasSkipText = false

func skipText([]byte) int { return 0 }
