package job

import (
	"strconv"
	"strings"

	"gateway/shared/fault"
)

const hexDigits = "0123456789ABCDEF"

func plainByte(c byte) bool {
	return c >= 'a' && c <= 'z' || c >= 'A' && c <= 'Z' || c >= '0' && c <= '9' || c == '-' || c == '_' || c == '.'
}

// Plain writes a name as one segment of a path that no client escapes: every byte except
// letters, digits, '-', '_' and '.' becomes '~' and two digits.
func Plain(name string) string {
	var b strings.Builder
	for i := range len(name) {
		if c := name[i]; plainByte(c) {
			b.WriteByte(c)
		} else {
			b.WriteByte('~')
			b.WriteByte(hexDigits[c>>4])
			b.WriteByte(hexDigits[c&15])
		}
	}
	return b.String()
}

// Named is the name that Plain wrote. Every other spelling is an error, so that each thing
// has only one id.
func Named(id string) (string, error) {
	var b strings.Builder
	for i := 0; i < len(id); i++ {
		if id[i] != '~' {
			b.WriteByte(id[i])
			continue
		}
		if i+2 >= len(id) {
			return "", unknown(id)
		}
		hi, lo := strings.IndexByte(hexDigits, id[i+1]), strings.IndexByte(hexDigits, id[i+2])
		if hi < 0 || lo < 0 {
			return "", unknown(id)
		}
		b.WriteByte(byte(hi<<4 | lo))
		i += 2
	}
	if name := b.String(); name != "" && Plain(name) == id {
		return name, nil
	}
	return "", unknown(id)
}

func itoa(n int64) string { return strconv.FormatInt(n, 10) }

// unknown is the answer for ids of things that do not exist.
func unknown(id string) error {
	if len(id) > 128 {
		id = id[:128] + "..."
	}
	return fault.Newf(fault.NotFound, "id", "There is nothing with the id %q", id)
}
