package fault

import "unicode/utf8"

// Clip cuts a text that came from elsewhere to about n bytes, between characters,
// and says so.
func Clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n] + "..."
}
