package pii

import "strings"

// maxMixed is the length limit of words with letters and digits.
const maxMixed = 40

// mixed finds account and identity numbers with letters and digits around i. It returns where
// to continue.
func (f *finder) mixed(i int) int {
	text := f.text
	start, end := i, i
	for start > f.done && i-start < maxMixed && class[text[start-1]]&(alpha|digit) != 0 {
		start--
	}
	for end < len(text) && class[text[end]]&(alpha|digit) != 0 {
		end++
	}
	if start > 0 && (class[text[start-1]]&(alpha|digit) != 0 || text[start-1] == '_' || text[start-1] == '-') || end-start > maxMixed {
		return end
	}
	word := text[start:end]
	switch {
	case len(word) < 4:
	case form(word[:4], "aa00"):
		if n := iban(text[start:]); n > 0 {
			f.add(start, start+n, IBAN)
			return max(end, start+n)
		}
		f.paper(word, start)
	default:
		f.paper(word, start)
	}
	return end
}

// paper finds a personal number that has letters.
func (f *finder) paper(word string, start int) {
	ok := false
	switch len(word) {
	case 8: // 12345678-Z
		if end := start + 8; digits(word) && end+1 < len(f.text) && f.text[end] == '-' && spanish(word, f.text[end+1]) {
			f.add(start, end+2, National)
			return
		}
	case 9:
		ok = (form(word, "00000000a") || form(word, "a0000000a")) && spanish(word[:8], word[8]) || form(word, "a0000000a") && singapore(word) || form(word, "aa000000a") && british(word)
	case 10:
		ok = form(word, "aaaaa0000a") && word == strings.ToUpper(word) && word[3] == 'P' && hintsBefore(f.text, start, f.done)&(hintNational|hintTax) != 0
	case 11:
		ok = f.finnish(start) > 0
		if ok {
			return
		}
	case 16:
		ok = form(word, "aaaaaa00a00a000a") && italian(word)
	case 18:
		ok = form(word[:17], "aaaa000000aaaaaa0") && mexican(word) || form(word[:17], "aaaa000000aaaaaaa") && mexican(word) || digits(word[:17]) && word[17]|32 == 'x' && f.chinese(word)
	}
	if ok {
		f.add(start, start+len(word), National)
	}
}

// form reports whether s has letters where form has a, and digits where it has 0.
func form(s, form string) bool {
	if len(s) != len(form) {
		return false
	}
	for i := range len(s) {
		want := uint8(digit)
		if form[i] == 'a' {
			want = alpha
		}
		if class[s[i]]&want == 0 {
			return false
		}
	}
	return true
}

func (f *finder) chinese(word string) bool {
	for i := range nationals {
		if nationals[i].country == "CN" {
			return nationals[i].check([]byte(strings.ToUpper(word)))
		}
	}
	return false
}

func upper(c byte) byte {
	if c >= 'a' && c <= 'z' {
		return c - 32
	}
	return c
}

// spanish checks the letter of a DNI or NIE.
func spanish(word string, letter byte) bool {
	v := 0
	for i := range len(word) {
		c := upper(word[i])
		switch {
		case i == 0 && c >= 'X' && c <= 'Z':
			c = '0' + c - 'X'
		case c < '0' || c > '9':
			return false
		}
		v = v*10 + int(c-'0')
	}
	return len(word) == 8 && "TRWAGMYFPDXBNJZSQVHLCKE"[v%23] == upper(letter)
}

// singapore checks the letter of an NRIC or FIN.
func singapore(word string) bool {
	sum := 0
	for i, w := range "2765432" {
		sum += int(word[i+1]-'0') * int(w-'0')
	}
	letters := "JZIHGFEDCBA"
	switch upper(word[0]) {
	case 'S':
	case 'T':
		sum += 4
	case 'F':
		letters = "XWUTRQPNMLK"
	case 'G':
		letters, sum = "XWUTRQPNMLK", sum+4
	default:
		return false
	}
	return letters[sum%11] == upper(word[8])
}

// british checks the letters of a National Insurance number.
func british(word string) bool {
	a, b, last := upper(word[0]), upper(word[1]), upper(word[len(word)-1])
	if strings.IndexByte("DFIQUV", a) >= 0 || strings.IndexByte("DFIOQUV", b) >= 0 || last < 'A' || last > 'D' {
		return false
	}
	switch string([]byte{a, b}) {
	case "BG", "GB", "NK", "KN", "TN", "NT", "ZZ":
		return false
	}
	return true
}

// british finds a National Insurance number in groups: AB 12 34 56 C.
func (f *finder) british(n *numeral, s int) bool {
	if s != 0 || len(n.groups) < 3 || n.sep(0, 2) != ' ' {
		return false
	}
	for _, g := range n.groups[:3] {
		if g.end-g.start != 2 {
			return false
		}
	}
	start, end, text := n.groups[0].start, n.groups[2].end, n.text
	if start < 3 || end+2 > len(text) || text[start-1] != ' ' || text[end] != ' ' || class[text[start-3]]&class[text[start-2]]&class[text[end+1]]&alpha == 0 {
		return false
	}
	if start > 3 && class[text[start-4]]&(alpha|digit) != 0 || end+2 < len(text) && class[text[end+2]]&(alpha|digit) != 0 || start-3 < f.done {
		return false
	}
	if !british(text[start-3:start-1] + text[end+1:end+2]) {
		return false
	}
	f.add(start-3, end+2, National)
	return true
}

// finnish returns the end of a personal identity code at i, or 0.
func (f *finder) finnish(i int) int {
	text := f.text
	if len(text)-i < 11 || strings.IndexByte("-+AaBCDEFYXWVU", text[i+6]) < 0 || !digits(text[i:i+6]) || !digits(text[i+7:i+10]) || class[text[i+10]]&(alpha|digit) == 0 {
		return 0
	}
	if i > 0 && (class[text[i-1]]&(alpha|digit) != 0 || text[i-1] == '-') || i+11 < len(text) && (class[text[i+11]]&(alpha|digit) != 0 || text[i+11] == '-') {
		return 0
	}
	d := []byte(text[i:i+6] + text[i+7:i+10])
	if !day(d, 0) || !month(d, 2) || "0123456789ABCDEFHJKLMNPRSTUVWXY"[value(d)%31] != upper(text[i+10]) {
		return 0
	}
	f.add(i, i+11, National)
	return i + 11
}

const italianOdd = "\x01\x00\x05\x07\x09\x0d\x0f\x11\x13\x15\x02\x04\x12\x14\x0b\x03\x06\x08\x0c\x0e\x10\x0a\x16\x19\x18\x17"

// italian checks the last letter of a codice fiscale.
func italian(word string) bool {
	sum := 0
	for i := range 15 {
		c := upper(word[i])
		if c >= 'A' {
			c -= 'A'
		} else {
			c -= '0'
		}
		if i%2 == 0 {
			sum += int(italianOdd[c])
		} else {
			sum += int(c)
		}
	}
	return byte('A'+sum%26) == upper(word[15])
}

// mexican checks the last digit of a CURP.
func mexican(word string) bool {
	if class[word[17]]&digit == 0 || upper(word[10]) != 'H' && upper(word[10]) != 'M' {
		return false
	}
	sum := 0
	for i := range 17 {
		c := upper(word[i])
		v := int(c - '0')
		switch {
		case c >= 'O':
			v = int(c-'A') + 11
		case c >= 'A':
			v = int(c-'A') + 10
		}
		sum += v * (18 - i)
	}
	return (10-sum%10)%10 == int(word[17]-'0')
}

// ibans lists the countries and the lengths of their account numbers.
const ibans = "AD24AE23AL28AT20AZ28BA20BE16BG22BH22BR29BY28CH21CR22CY28CZ24DE22DK18DO28EE20EG29ES24FI18FO18FR27GB22GE22GI23GL18GR27GT28HR21HU28IE22IL23IQ23IS26IT27" +
	"JO30KW30KZ20LB28LC32LI21LT20LU20LV21LY25MC27MD24ME22MK19MR27MT31MU30NL18NO15PK24PL28PS29PT25QA29RO24RS22SA24SC31SD18SE24SI19SK24SM27ST25SV28TL23TN24TR26UA29VA22VG24XK20"

// iban returns the length of the account number at the start of s, with or without spaces
// between groups, or 0.
func iban(s string) int {
	size := 0
	for i := 0; i < len(ibans); i += 4 {
		if ibans[i] == upper(s[0]) && ibans[i+1] == upper(s[1]) {
			size = int(ibans[i+2]-'0')*10 + int(ibans[i+3]-'0')
			break
		}
	}
	if size == 0 {
		return 0
	}
	var buf [34]byte
	n, i := 0, 0
	for ; i < len(s) && n < size; i++ {
		switch c := s[i]; {
		case class[c]&(alpha|digit) != 0:
			buf[n] = upper(c)
			n++
		case (c == ' ' || c == '-') && n%4 == 0 && s[i-1] != c:
		default:
			return 0
		}
	}
	if n < size || i < len(s) && class[s[i]]&(alpha|digit) != 0 {
		return 0
	}
	rest := 0
	for k := range size {
		c := buf[(k+4)%size]
		if c >= 'A' {
			rest = (rest*100 + int(c-'A') + 10) % 97
		} else {
			rest = (rest*10 + int(c-'0')) % 97
		}
	}
	if rest != 1 {
		return 0
	}
	return i
}
