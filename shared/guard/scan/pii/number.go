package pii

// Limits of a number that is written in groups.
const (
	maxGroups = 10
	maxDigits = 24
)

type group struct{ start, end int }

// numeral is a number in groups.
type numeral struct {
	text   string
	groups []group
	before int    // where the preceding words may begin
	hints  uint16 // meaning of those words
	read   bool
}

// number reads the groups of digits at i and classifies them. It returns where to continue.
func (f *finder) number(i int) int {
	text := f.text
	if i > 0 && class[text[i-1]]&alpha != 0 {
		return f.mixed(i)
	}
	if end := f.finnish(i); end > 0 {
		return end
	}
	f.one = numeral{text: text, groups: f.spare[:0], before: f.done}
	n := &f.one
	end, count := i, 0
	for at := i; ; {
		from := at
		for at < len(text) && class[text[at]]&digit != 0 {
			at++
		}
		if at < len(text) && class[text[at]]&alpha != 0 && !(text[at]|32 == 'x') {
			// A group with letters does not belong to a number.
			if len(n.groups) == 0 {
				return f.mixed(i)
			}
			break
		}
		n.groups = append(n.groups, group{from, at})
		end = at
		if count += at - from; count >= maxDigits || len(n.groups) == maxGroups {
			break
		}
		gap := between(text[at:])
		if gap == 0 {
			break
		}
		at += gap
	}
	if end-i < 7 {
		return end
	}
	for s := 0; s < len(n.groups); {
		e, kind := f.which(n, s)
		if e < 0 {
			s++
			continue
		}
		if f.done < n.groups[e].end { // it was not found together with its letters
			f.add(f.sign(n.groups[s].start), n.groups[e].end+f.tail(n.groups[e].end, kind), kind)
		}
		s = e + 1
	}
	return end
}

// between returns the length of the separator between groups of digits, or 0 if no group
// follows.
func between(s string) int {
	k := 0
	for k < len(s) && k < 3 {
		switch s[k] {
		case ' ', '-', '.', '/', '(', ')':
			k++
			continue
		}
		break
	}
	if k == 0 || k >= len(s) || class[s[k]]&digit == 0 {
		return 0
	}
	switch s[:k] {
	case " ", "-", ".", "/", ") ", ")", " (", "-(", ")-", ".-", " - ", "/ ", " /":
		return k
	}
	return 0
}

// sign returns the beginning of a number including its plus or bracket.
func (f *finder) sign(start int) int {
	if start > f.done && f.text[start-1] == '(' {
		start--
	}
	if start > f.done && f.text[start-1] == '+' {
		start--
	}
	return start
}

// tail returns the length of a trailing sign that belongs to a number.
func (f *finder) tail(end int, k Kind) int {
	if k == National && end < len(f.text) && f.text[end]|32 == 'x' {
		return 1
	}
	return 0
}

// sep returns the separator of the groups from..from+n, or 0 if they differ.
func (n *numeral) sep(from, count int) byte {
	var c byte
	for k := from; k < from+count; k++ {
		a, b := n.groups[k].end, n.groups[k+1].start
		if b-a != 1 || c != 0 && n.text[a] != c {
			return 0
		}
		c = n.text[a]
	}
	return c
}

// which finds the longest sequence of groups from s that is a known number; e < 0 if there is
// none.
func (f *finder) which(n *numeral, s int) (e int, k Kind) {
	if n.network4(s) {
		return s + 3, IP
	}
	if f.british(n, s) {
		return s + 2, National
	}
	d := f.place[:0]
	var ends [maxGroups]int
	for e := s; e < len(n.groups); e++ {
		g := n.groups[e]
		if len(d)+g.end-g.start > len(f.place) {
			break
		}
		d = append(d, n.text[g.start:g.end]...)
		ends[e] = len(d)
	}
	c := &f.row
	*c = candidate{finder: f, numeral: n, from: s}
	for e := len(n.groups) - 1; e >= s; e-- {
		if ends[e] < 7 {
			break
		}
		if ends[e] > 19 {
			continue
		}
		c.to, c.d, c.size = e, d[:ends[e]], 0
		if k, ok := c.kind(); ok {
			return e, k
		}
	}
	return -1, 0
}

// candidate is a sequence of groups that may be a known number.
type candidate struct {
	*finder
	*numeral
	from, to int
	d        []byte // the digits without separators
	form     [2 * maxGroups]byte
	size     int // of the shape; 0 before it is computed
}

func (c *candidate) kind() (Kind, bool) {
	switch {
	case c.card():
		return Card, true
	case c.ssn():
		return SSN, true
	case c.national():
		return National, true
	case c.phone():
		return Phone, true
	}
	return 0, false
}

// shape returns the sizes of the groups and the separators: 3-2-4. A space is written _.
func (c *candidate) shape() []byte {
	if c.size > 0 {
		return c.form[:c.size]
	}
	out := c.form[:0]
	for k := c.from; k <= c.to; k++ {
		g := c.groups[k]
		if k > c.from {
			switch gap := c.numeral.text[c.groups[k-1].end:g.start]; {
			case gap == " ":
				out = append(out, '_')
			case len(gap) == 1:
				out = append(out, gap[0])
			case gap == ") " || gap == ")":
				out = append(out, ')')
			default:
				out = append(out, '?')
			}
		}
		if g.end-g.start > 9 {
			out = append(out, 'n')
		} else {
			out = append(out, byte('0'+g.end-g.start))
		}
	}
	c.size = len(out)
	return out
}

// whole reports whether the digits are one group.
func (c *candidate) whole() bool { return c.from == c.to }

// standsAlone reports whether the candidate stands alone: no digits or dashes continue it before or
// after, which would make it a part of something longer.
func (c *candidate) standsAlone() bool {
	text, start, end := c.numeral.text, c.groups[c.from].start, c.groups[c.to].end
	if c.from == 0 && start > 0 && (text[start-1] == '-' || text[start-1] == '.' || text[start-1] == '/' || text[start-1] == '_' || text[start-1] == '=' && start > 1 && class[text[start-2]]&alpha == 0) {
		return false
	}
	return end == len(text) || text[end] != '_' && (text[end] != '-' || end+1 == len(text) || class[text[end+1]]&(digit|alpha) == 0)
}

// card reports whether the digits are a card number: brand prefix, length and Luhn check digit.
func (c *candidate) card() bool {
	n := len(c.d)
	if n < 14 || n > 19 || !c.standsAlone() || !luhn(c.d) {
		return false
	}
	if !c.whole() {
		switch string(c.shape()) {
		case "4_4_4_4", "4-4-4-4", "4_6_5", "4-6-5", "4_6_4", "4-6-4", "4_4_4_4_3", "4-4-4-4-3", "4.4.4.4":
		default:
			return false
		}
	}
	head := func(k int) int {
		v := 0
		for _, b := range c.d[:k] {
			v = v*10 + int(b-'0')
		}
		return v
	}
	two, four := head(2), head(4)
	switch {
	case c.d[0] == '4':
		return n == 16 || n == 19
	case two >= 51 && two <= 55, four >= 2221 && four <= 2720:
		return n == 16
	case two == 34 || two == 37:
		return n == 15
	case four == 6011 || two == 65 || four >= 6440 && four <= 6499, two == 35, two == 62, two == 81, four >= 2200 && four <= 2204, four >= 5018 && four <= 5038, two == 60, two == 50, two == 67, two == 63:
		return n == 16 || n == 19
	case two == 36 || two == 38 || two == 39 || head(3) >= 300 && head(3) <= 305:
		return n == 14 || n == 16
	}
	return false
}

func luhn(d []byte) bool {
	sum, same := 0, true
	for i := range d {
		v := int(d[len(d)-1-i] - '0')
		if i%2 == 1 {
			if v *= 2; v > 9 {
				v -= 9
			}
		}
		sum += v
		same = same && d[i] == d[0]
	}
	return sum%10 == 0 && !same
}

// ssn reports whether the digits have the format of a US social security number. Ranges that
// were never issued count as well if hyphens or a word indicate one, because redaction cannot
// distinguish them.
func (c *candidate) ssn() bool {
	if len(c.d) != 9 || !c.standsAlone() {
		return false
	}
	shape := string(c.shape())
	switch shape {
	case "3-2-4":
		return true
	case "3_2_4":
		return c.issued() || c.hasHint(hintAmerican)
	case "9", "3.2.4":
		return c.hasHint(hintAmerican)
	}
	return false
}

// issued reports whether the digits are in an issued range.
func (c *candidate) issued() bool {
	d := string(c.d)
	return d[0] != '9' && d[:3] != "000" && d[:3] != "666" && d[3:5] != "00" && d[5:] != "0000" && d != "123456789" && d != "078051120" && d != "219099999"
}

// phone reports whether the digits are a phone number.
func (c *candidate) phone() bool {
	n := len(c.d)
	text, start := c.numeral.text, c.groups[c.from].start
	if c.from == 0 && start > 0 && text[start-1] == '(' {
		start--
	}
	plus := c.from == 0 && start > 0 && text[start-1] == '+'
	if n < 7 || n > 15 || !c.standsAlone() {
		return false
	}
	if plus {
		return n >= 8 && country(c.d)
	}
	shape := c.shape()
	switch string(shape) {
	case "3-3-4", "3.3.4", "3_3_4", "3)3-4", "3)3_4", "3)3.4", "3_3-4":
		if c.d[0] >= '2' && c.d[3] >= '2' {
			return true
		}
	case "1-3-3-4", "1_3_3_4", "1.3.3.4", "1?3)3-4", "1_3-3-4", "1_3)3-4":
		if c.d[0] == '1' && c.d[1] >= '2' && c.d[4] >= '2' {
			return true
		}
	}
	first := c.groups[c.from].end - c.groups[c.from].start
	if c.from == 0 && c.d[0] == '0' && c.d[1] != '0' && n >= 9 && n <= 12 && !c.whole() && first >= 2 && first <= 5 && c.to-c.from <= 4 {
		return true
	}
	return c.hasHint(hintPhone) && !c.date(shape)
}

// date reports whether the groups are a date.
func (c *candidate) date(shape []byte) bool {
	switch string(shape) {
	case "4-2-2", "2-2-4", "4.2.2", "2.2.4", "4/2/2", "2/2/4", "1/2/4", "2/1/4":
		return true
	}
	return false
}

// country reports whether digits begin with a country code.
func country(d []byte) bool {
	switch d[0] {
	case '0':
		return false
	case '1', '7':
		return len(d) == 11
	}
	return true
}
