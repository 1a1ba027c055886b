package secret

import (
	"strings"

	"gateway/shared/guard/scan/mask"
)

// Limits for random texts, in characters and in sixteenths of bits per character.
const (
	shortest  = 10       // after a name
	longest   = 36       // from this length on also without a name
	hexBits   = 3 * 16   // of hexadecimal digits after a name
	wordBits  = 3*16 + 4 // of other characters after a name
	aloneBits = 4*16 + 6 // without a name
)

// findRandom finds a text that looks random.
func findRandom(text string, from, end int, kinds uint8) (mask.Span, bool) {
	word := text[from:end]
	if kinds&figure == 0 || kinds&(small|large) == 0 || len(word) > 512 {
		return mask.Span{}, false
	}
	if followsName(text, from) {
		size := pair(text, end) - from
		if len(word) < shortest || isPlaceholder(word) || hasWords(word) {
			return mask.Span{}, false
		}
		least := wordBits
		if kinds&(large|mark) == 0 && hexadecimal(word) {
			least = hexBits
		}
		if spread(word) >= least-8 {
			return mask.Span{Start: from, End: from + size, Label: Token}, true
		}
		return mask.Span{}, false
	}
	if len(word) < longest || kinds&small == 0 || kinds&large == 0 || strings.Count(word, "/")+strings.Count(word, ".")+strings.Count(word, "-")+strings.Count(word, "_") > len(word)/12 || hasWords(word) {
		return mask.Span{}, false
	}
	if from > 0 && strings.IndexByte(",;", text[from-1]) >= 0 && from > 6 && strings.HasSuffix(text[:from-1], "base64") {
		return mask.Span{}, false // an image or a file
	}
	return mask.Span{Start: from, End: from + len(word), Label: Token}, spread(word) >= aloneBits
}

// pair includes the equals signs at the end of base64.
func pair(text string, end int) int {
	for k := 0; k < 2 && end < len(text) && text[end] == '='; k++ {
		end++
	}
	return end
}

func hexadecimal(s string) bool {
	for i := range len(s) {
		if class[s[i]]&figure == 0 && (s[i]|32 < 'a' || s[i]|32 > 'f') {
			return false
		}
	}
	return true
}

// hasWords reports whether a text consists of words: long runs of lowercase letters with few
// other characters, as in file names.
func hasWords(s string) bool {
	letters, rows, row := 0, 0, 0
	for i := 0; i <= len(s); i++ {
		if i < len(s) && class[s[i]]&small != 0 {
			row++
			continue
		}
		if row >= 4 {
			rows++
			letters += row
		}
		row = 0
	}
	return letters*2 > len(s)
}

// secretNames are suffixes of names for secrets.
var secretNames = []string{"password", "passwd", "pwd", "secret", "token", "apikey", "api_key", "api-key", "accesskey", "access_key", "secret_key", "secretkey", "accountkey", "client_secret", "auth", "credential", "credentials", "passphrase", "private_key", "bearer", "signing_key", "api key", "encryption_key", "auth_key", "key"}

// followsName reports whether the name of a secret precedes a position: password = "...
func followsName(text string, at int) bool {
	i := at
	sign := false
	for i > 0 && at-i < 8 {
		switch c := text[i-1]; c {
		case ' ', '"', '\'', '`', '>':
		case '=', ':':
			sign = true
		default:
			goto name
		}
		i--
	}
name:
	if i == 0 || i == at {
		return false
	}
	from := i
	for from > 0 && i-from < 24 && (class[text[from-1]]&(small|large) != 0 || text[from-1] == '_' || text[from-1] == '-' || text[from-1] == ' ') {
		from--
	}
	word := strings.ToLower(text[from:i])
	for _, n := range secretNames {
		if strings.HasSuffix(word, n) && (sign || n == "bearer") {
			return n != "key" || len(word) == 3 || word[len(word)-4] == '_' || word[len(word)-4] == '-'
		}
	}
	if is, ok := strings.CutSuffix(word, " is"); ok {
		for _, n := range secretNames {
			if n != "key" && n != "auth" && strings.HasSuffix(is, n) {
				return true
			}
		}
	}
	return false
}
