package pii

import (
	"strings"
	"sync"

	"gateway/shared/guard/scan/lexicon"
)

// Meanings of words before a number.
const (
	sayPhone uint16 = 1 << iota
	sayAmerican
	sayNational
	sayTax
)

// reach is the distance in bytes of a word before a number.
const reach = 48

var sayings = sync.OnceValue(func() *lexicon.Set {
	m := map[uint64]uint16{}
	for list, what := range map[string]uint16{
		"phone telephone tel mobile cell call fax whatsapp telegram sms text ring telefon telefono telefone handy mobil movil celular portable numero rufnummer telefonnummer dial hotline reach cellphone landline voicemail": sayPhone,
		"ssn social": sayAmerican | sayNational,
		"id identity identification identifier national personal citizen personnummer personnumer cpr bsn burgerservicenummer sofinummer nif nhs nino insurance egn teudat zehut mynumber steuer identifikationsnummer steueridentifikationsnummer idnr steuerid contribuinte pesel cpf dni nie passport ausweis medical patient sin aadhaar henkilotunnus hetu resident egn": sayNational,
		"tax tfn taxpayer pan tin itin": sayTax | sayNational | sayAmerican,
	} {
		for _, w := range strings.Fields(list) {
			m[lexicon.Hash(w)] |= what
		}
	}
	return lexicon.NewSet(m)
})

func (n *numeral) says(what uint16) bool {
	if !n.read {
		n.read = true
		n.said = saysBefore(n.text, n.groups[0].start, n.before)
	}
	return n.said&what != 0
}

// saysBefore returns the meaning of the words before a position, back to the last match.
func saysBefore(text string, at, from int) uint16 {
	from = max(from, at-reach)
	for from < at && text[from] >= 0x80 && text[from] < 0xC0 {
		from++
	}
	var said uint16
	r := lexicon.Reader{Text: text[from:at]}
	set := sayings()
	for w := (lexicon.Word{}); r.Next(&w); {
		v, _ := set.Find(w.Hash)
		said |= v
	}
	return said
}
