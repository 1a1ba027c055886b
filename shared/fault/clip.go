package fault

import "unicode/utf8"

// Clip shortens a text of foreign origin to about n bytes, between characters, and marks the
// cut. Like the makers of faults, it is not inlined.
//
//go:noinline
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
