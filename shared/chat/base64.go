package chat

// CleanBase64 validates base64 in either alphabet, with or without padding, and returns its
// standard form. It copies only if necessary.
func CleanBase64(s string) (string, bool) {
	plain := true
	n := len(s)
	for n > 0 && s[n-1] == '=' {
		n--
	}
	for i := range n {
		if class := base64Class[s[i]]; class != 1 {
			if class == 0 {
				return "", false
			}
			plain = false
		}
	}
	if plain && len(s)%4 == 0 && len(s)-n <= 2 {
		return s, n > 0
	}
	b := make([]byte, 0, len(s)+3)
	for i := range n {
		switch c := s[i]; c {
		case '-':
			b = append(b, '+')
		case '_':
			b = append(b, '/')
		case ' ', '\n', '\r', '\t':
		default:
			b = append(b, c)
		}
	}
	if len(b)%4 == 1 || len(b) == 0 {
		return "", false
	}
	for len(b)%4 != 0 {
		b = append(b, '=')
	}
	return string(b), true
}

// base64Class is 1 for the standard alphabet, 2 for characters that are corrected, 0 for
// invalid ones.
var base64Class = func() (t [256]uint8) {
	for _, c := range "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/" {
		t[c] = 1
	}
	for _, c := range "-_ \n\r\t" {
		t[c] = 2
	}
	return t
}()
