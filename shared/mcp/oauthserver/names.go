package oauthserver

import (
	"strings"
	"sync"
	"unicode"

	"golang.org/x/text/unicode/norm"
)

// BuiltIn is the display name of the gateway's command line client.
const BuiltIn = "The gateway's command line"

// Reserved reports whether a name looks like that of a built-in client: it contains the
// client's name, or is its id.
func Reserved(name string) bool {
	s := skeleton(name)
	return strings.Contains(s, skeleton("gateway's command line")) || strings.TrimPrefix(s, "the") == skeleton("gateway-cli")
}

// skeleton returns the letters and digits of a name in one spelling: without case, accents and
// width, with look-alikes of other scripts replaced by Latin letters.
func skeleton(name string) string {
	var b strings.Builder
	for _, r := range norm.NFKD.String(name) {
		r = unicode.ToLower(r)
		if latin, ok := lookalikes()[r]; ok {
			r = latin
		}
		if unicode.IsLetter(r) && !unicode.Is(unicode.Lm, r) || unicode.IsDigit(r) {
			b.WriteRune(r)
		}
	}
	return b.String()
}

// lookalikes maps letters and digits that look like a lowercase Latin letter (Unicode UTS 39).
// It is computed on first use, so that programs without registration do not link it.
var lookalikes = sync.OnceValue(func() map[rune]rune {
	out := map[rune]rune{}
	for latin, others := range map[rune]string{
		'a': "аαɑ", 'c': "сϲⅽ", 'd': "ԁⅾ", 'e': "еєҽ", 'g': "ɡցԍ", 'h': "һհ", 'i': "іιıɩ1lӏⅰ|", 'j': "јϳ", 'k': "кκ", 'm': "мⅿ", 'n': "ոпη",
		'o': "оοօ0", 'p': "рρ", 'q': "ԛ", 's': "ѕʂ", 't': "тτ", 'u': "υսʋ", 'v': "νѵⅴ", 'w': "ԝωɯ", 'x': "хχ", 'y': "уүγʏ", 'z': "ᴢ",
	} {
		for _, r := range others {
			out[r] = latin
		}
	}
	return out
})
