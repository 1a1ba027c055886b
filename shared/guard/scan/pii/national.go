package pii

import "strings"

// national is a national identification number.
type national struct {
	country string
	digits  int
	// shapes are formats in groups, separated by spaces; _ is a space within a shape.
	shapes string
	// strong numbers are also found as one group; others need a word that describes them. With
	// firm that also applies to numbers in groups.
	strong, firm bool
	check        func(d []byte) bool
}

var nationals = []national{
	{"BR", 11, "3.3.3-2 9-2", true, false, func(d []byte) bool {
		return differ(d) && d[9] == modDown(d[:9], 10) && d[10] == modDown(d[:10], 11)
	}},
	{"PL", 11, "", true, false, func(d []byte) bool {
		m := pair(d, 2) % 20
		return m >= 1 && m <= 12 && day(d, 4) && (10-weigh(d[:10], "1379137913")%10)%10 == num(d[10])
	}},
	{"NO", 11, "6_5", true, false, func(d []byte) bool {
		return day(d, 0) && month(d, 2) && weigh(d[:10], "3761894521")%11 == 0 && weigh(d, "54327654321")%11 == 0
	}},
	{"BE", 11, "2.2.2-3.2 6-3.2 6-5", true, false, func(d []byte) bool {
		if !month(d, 2) || !day(d, 4) {
			return false
		}
		n, check := value(d[:9]), value(d[9:])
		return 97-n%97 == check || 97-(2_000_000_000+n)%97 == check
	}},
	{"TR", 11, "", true, false, func(d []byte) bool {
		odd := num(d[0]) + num(d[2]) + num(d[4]) + num(d[6]) + num(d[8])
		even := num(d[1]) + num(d[3]) + num(d[5]) + num(d[7])
		return d[0] != '0' && ((odd*7-even)%10+10)%10 == num(d[9]) && (odd+even+num(d[9]))%10 == num(d[10])
	}},
	{"DE", 11, "2_3_3_3 2/3/3/3", false, true, func(d []byte) bool {
		p := 10
		for _, b := range d[:10] {
			s := (num(b) + p) % 10
			if s == 0 {
				s = 10
			}
			p = s * 2 % 11
		}
		return d[0] != '0' && (11-p)%10 == num(d[10])
	}},
	{"FR", 15, "1_2_2_2_3_3_2 13_2", true, false, func(d []byte) bool {
		return (d[0] == '1' || d[0] == '2') && (month(d, 3) || pair(d, 3) >= 20) && 97-value(d[:13])%97 == value(d[13:])
	}},
	{"SE", 10, "6-4", false, false, func(d []byte) bool { return month(d, 2) && day(d, 4) && luhn(d) }},
	{"SE", 12, "8-4", true, false, func(d []byte) bool {
		return (pair(d, 0) == 19 || pair(d, 0) == 20) && month(d, 4) && day(d, 6) && luhn(d[2:])
	}},
	{"DK", 10, "6-4", false, true, func(d []byte) bool { return day(d, 0) && month(d, 2) }},
	{"BG", 10, "", false, true, func(d []byte) bool {
		m := pair(d, 2) % 20
		return m >= 1 && m <= 12 && day(d, 4) && bulgarian(d)
	}},
	{"GB", 10, "3_3_4 3-3-4", false, true, func(d []byte) bool {
		r := 11 - weighDown(d[:9], 10)%11
		return r != 10 && r%11 == num(d[9])
	}},
	{"NL", 9, "4.2.3 3.3.3", false, true, func(d []byte) bool { return (weighDown(d[:8], 9)-num(d[8]))%11 == 0 && differ(d) }},
	{"CA", 9, "3_3_3 3-3-3", false, false, func(d []byte) bool { return d[0] != '0' && d[0] != '8' && luhn(d) }},
	{"AU", 9, "3_3_3", false, true, australian},
	{"IL", 9, "", false, true, func(d []byte) bool {
		sum := 0
		for i, b := range d {
			v := num(b) * (i%2 + 1)
			sum += v/10 + v%10
		}
		return sum%10 == 0 && differ(d)
	}},
	{"PT", 9, "3_3_3", false, true, func(d []byte) bool {
		r := 11 - weighDown(d[:8], 9)%11
		return (r >= 10 && d[8] == '0' || r < 10 && r == num(d[8])) && strings.IndexByte("123", d[0]) >= 0
	}},
	{"IN", 12, "4_4_4 4-4-4", false, false, func(d []byte) bool { return d[0] >= '2' && verhoeff(d) }},
	{"JP", 12, "4_4_4 4-4-4", false, true, func(d []byte) bool {
		sum := weigh(d[:11], "65432765432")
		r := sum % 11
		return r <= 1 && d[11] == '0' || r > 1 && 11-r == num(d[11])
	}},
	{"KR", 13, "6-7", false, false, func(d []byte) bool {
		return month(d, 2) && day(d, 4) && d[6] >= '1' && d[6] <= '8' && (11-weigh(d[:12], "234567892345")%11)%10 == num(d[12])
	}},
	{"CH", 13, "3.4.4.2", true, false, func(d []byte) bool {
		return string(d[:3]) == "756" && (10-weigh(d[:12], "131313131313")%10)%10 == num(d[12])
	}},
	{"ZA", 13, "6_4_3 6_4_2_1", true, false, func(d []byte) bool {
		return month(d, 2) && day(d, 4) && d[10] <= '2' && luhn(d)
	}},
	{"RO", 13, "", true, false, func(d []byte) bool {
		return d[0] >= '1' && d[0] <= '8' && month(d, 3) && day(d, 5) && romanian(d)
	}},
	{"CN", 18, "6_8_4", true, false, func(d []byte) bool {
		c := pair(d, 6)
		sum := 0
		for i, w := range []int{7, 9, 10, 5, 8, 4, 2, 1, 6, 3, 7, 9, 10, 5, 8, 4, 2} {
			sum += num(d[i]) * w
		}
		return (c == 19 || c == 20) && month(d, 10) && day(d, 12) && "10X98765432"[sum%11] == d[17]
	}},
}

// nationalDigits contains the lengths in digits that occur.
var nationalDigits = func() (t [maxDigits + 1]bool) {
	for _, n := range nationals {
		t[n.digits] = true
	}
	t[17] = true // with an X after them
	return t
}()

// national reports whether the digits are a national identification number.
func (c *candidate) national() bool {
	n := len(c.d)
	if n > maxDigits || !nationalDigits[n] || !c.standsAlone() {
		return false
	}
	d := c.d
	if end := c.groups[c.to].end; n == 17 && end < len(c.numeral.text) && c.numeral.text[end]|32 == 'x' {
		d = append(append(make([]byte, 0, 18), d...), 'X')
		n = 18
	}
	for i := range nationals {
		row := &nationals[i]
		if row.digits != n {
			continue
		}
		if !c.whole() {
			if !has(row.shapes, string(c.shape())) {
				continue
			}
		}
		if !row.check(d) {
			continue
		}
		if c.whole() && row.strong || !c.whole() && !row.firm || c.hasHint(hintNational) {
			return true
		}
	}
	return false
}

// has reports whether a word is in a list with spaces.
func has(list, word string) bool {
	for list != "" {
		var one string
		one, list, _ = strings.Cut(list, " ")
		if one == word {
			return true
		}
	}
	return false
}

func num(b byte) int { return int(b - '0') }

func value(d []byte) int {
	v := 0
	for _, b := range d {
		v = v*10 + num(b)
	}
	return v
}

func pair(d []byte, i int) int   { return num(d[i])*10 + num(d[i+1]) }
func month(d []byte, i int) bool { return pair(d, i) >= 1 && pair(d, i) <= 12 }
func day(d []byte, i int) bool   { return pair(d, i) >= 1 && pair(d, i) <= 31 }

// differ reports whether the digits are not all the same.
func differ(d []byte) bool {
	for _, b := range d {
		if b != d[0] {
			return true
		}
	}
	return false
}

// weigh sums the digits by weights of one digit each.
func weigh(d []byte, weights string) int {
	sum := 0
	for i, b := range d {
		sum += num(b) * int(weights[i]-'0')
	}
	return sum
}

// weighDown sums the digits with weights that fall by one.
func weighDown(d []byte, first int) int {
	sum := 0
	for i, b := range d {
		sum += num(b) * (first - i)
	}
	return sum
}

// modDown returns the check digit of such a sum; 0 for ten and eleven.
func modDown(d []byte, first int) byte {
	r := 11 - weighDown(d, first)%11
	if r >= 10 {
		return '0'
	}
	return byte('0' + r)
}

func bulgarian(d []byte) bool {
	sum := 0
	for i, w := range []int{2, 4, 8, 5, 10, 9, 7, 3, 6} {
		sum += num(d[i]) * w
	}
	return sum%11%10 == num(d[9])
}

func romanian(d []byte) bool {
	r := weigh(d[:12], "279146358279") % 11
	return r == num(d[12]) || r == 10 && d[12] == '1'
}

func australian(d []byte) bool {
	sum := 0
	for i, w := range []int{1, 4, 3, 7, 5, 8, 6, 9, 10} {
		sum += num(d[i]) * w
	}
	return sum%11 == 0
}

const (
	dihedral = "0123456789" + "1234067895" + "2340178956" + "3401289567" + "4012395678" + "5987604321" + "6598710432" + "7659821043" + "8765932104" + "9876543210"
	permuted = "0123456789" + "1576283094" + "5803796142" + "8916043527" + "9453126870" + "4286573901" + "2793806415" + "7046913258"
)

// verhoeff checks the digit of Verhoeff's scheme.
func verhoeff(d []byte) bool {
	c := 0
	for i := range d {
		p := num(permuted[i%8*10+num(d[len(d)-1-i])])
		c = num(dihedral[c*10+p])
	}
	return c == 0
}
