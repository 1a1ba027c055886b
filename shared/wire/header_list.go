package wire

import "strings"

// ParseList reads a header that lists names: "a, b" or the bracketed form ["a", "b"] with
// or without quotes. Empty entries are omitted.
func ParseList(header string) []string {
	s := strings.TrimSpace(header)
	if strings.HasPrefix(s, "[") && strings.HasSuffix(s, "]") && len(s) > 1 {
		s = s[1 : len(s)-1]
	}
	var list []string
	for part := range strings.SplitSeq(s, ",") {
		part = strings.TrimSpace(part)
		if n := len(part); n > 1 && (part[0] == '"' || part[0] == '\'') && part[n-1] == part[0] {
			part = strings.TrimSpace(part[1 : n-1])
		}
		if part != "" {
			list = append(list, part)
		}
	}
	return list
}
