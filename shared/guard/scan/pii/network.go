package pii

import "net/netip"

// network6 finds an IPv6 address around the colon at i.
func (f *finder) network6(i int) {
	text := f.text
	if i < f.six {
		return
	}
	start, end, colons := i, i, 0
	for start > f.done && i-start < 46 && class[text[start-1]]&hex != 0 {
		start--
	}
	for end < len(text) && end-start < 46 && (class[text[end]]&hex != 0 || text[end] == '.') {
		if text[end] == ':' {
			colons++
		}
		end++
	}
	f.six = end
	for end > i && text[end-1] == '.' {
		end--
	}
	if start > 0 && class[text[start-1]]&(alpha|digit) != 0 || end < len(text) && class[text[end]]&(alpha|digit) != 0 || colons < 2 || end-start < 7 {
		return
	}
	if a, err := netip.ParseAddr(text[start:end]); err == nil && !a.IsLoopback() && !a.IsUnspecified() {
		f.add(start, end, IP)
	}
}

// network4 reports whether four groups of digits are an assignable IPv4 address.
func (n *numeral) network4(from int) bool {
	if len(n.groups)-from < 4 || n.sep(from, 3) != '.' {
		return false
	}
	var octets [4]byte
	for k := range octets {
		g := n.groups[from+k]
		if g.end-g.start > 3 {
			return false
		}
		v := 0
		for _, c := range n.text[g.start:g.end] {
			v = v*10 + int(c-'0')
		}
		if v > 255 {
			return false
		}
		octets[k] = byte(v)
	}
	start, end := n.groups[from].start, n.groups[from+3].end
	switch {
	case start > 0 && (n.text[start-1] == '.' || n.text[start-1] == '-' || class[n.text[start-1]]&alpha != 0):
		return false // part of a version or a name
	case end+1 < len(n.text) && (n.text[end] == '.' || n.text[end] == '-') && class[n.text[end+1]]&(digit|alpha) != 0 && n.text[end] == '.':
		return false
	case end < len(n.text) && class[n.text[end]]&alpha != 0:
		return false
	}
	return octets[0] != 0 && octets[0] != 127 && octets[0] != 255
}
