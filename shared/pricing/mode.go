package pricing

import (
	"math/bits"
	"strings"
)

// Modes in which providers serve; each may have its own prices.
const (
	Standard = "standard"
	Batch    = "batch"
	Flex     = "flex"
	Priority = "priority"
	Fast     = "fast" // of Anthropic models; for other vendors it means Priority

	ultrafast = "ultrafast"
	scaled    = "scale"
)

// ModeOf returns the mode for a provider's service tier or traffic type; "" if there is none,
// or if it has no separate price.
func ModeOf(tier string) string {
	switch word, _ := strings.CutPrefix(strings.ToLower(tier), "on_demand_"); word {
	case "default", "standard", "standard_only", "on_demand", "reserved":
		return Standard
	case "priority", "fast":
		return Priority
	case "flex", "batch", "ultrafast", "scale":
		return word
	}
	return ""
}

// ModeOfLine returns the mode of a line of the price list, given by Price.Line; "" for base
// rates, and for prices that come from no line of the list.
func ModeOfLine(line string) string {
	words := strings.Fields(line)
	if len(words) < 2 || words[0] == ownLine || words[0] == organisationLine || strings.HasPrefix(words[1], "(") {
		return ""
	}
	mode := strings.TrimPrefix(words[1], "+")
	if end := strings.IndexAny(mode, "@>;"); end >= 0 {
		mode = mode[:end]
	}
	return mode
}

// regionUS is where Anthropic charges more than its list, which names no regions: a tenth
// more for every token.
const (
	regionUS  = "us"
	usPercent = 110
)

func (p *Price) inUS() {
	for set := p.has & tokenClasses; set != 0; set &= set - 1 {
		c := bits.TrailingZeros64(set)
		p.rate[c] = p.rate[c] / 100 * usPercent
	}
	fill(&p.rate, p.has)
	p.line += " (us)"
}
