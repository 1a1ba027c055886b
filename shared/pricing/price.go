// Package pricing defines the billable units (usage classes) and their prices (the price book).
// Prices are int64 femto-dollars per unit; a request is summed in 128 bits and rounded once,
// half up, to nano-dollars.
//
// The price list is data/prices.txt: one line per model, sorted by provider and model, fields
// separated by tabs: provider, model, then sections of space-separated name=price. The first
// section contains the base rates, the others begin with a header:
//
//	mode[@region,region][>tokens][[when]]   a complete set of rates for a mode
//	                                (standard, batch, flex, priority, fast), in
//	                                those regions, above so many input tokens, at
//	                                that time
//	+batch                          rates that differ from the base in batches
//
// A time has up to three comma-separated parts, all in UTC: from..until, each a day
// (2026-12-31; until includes the day) or a time (2026-08-16T16:00; until excludes it), either
// may be absent; mon-fri, days of the week; and hours, 01:00-04:00+06:00-10:00, with exclusive
// ends, which may pass midnight:
//
//	standard[2026-08-16T16:00..,mon-fri,01:00-04:00+06:00-10:00]
//
// Prices in that file are US dollars per million units, with up to nine decimal places: every
// such price is an integer number of femto-dollars per unit. List prices with more digits
// (thirds of a cent per token) are rounded half up to that, which is off by at most half a
// dollar per 10^15 units.
//
// Names are usage classes, or: minute (per 60 seconds of audio), images@q:s (an image of
// quality q and size s), seconds@WxH (a second of video of that size),
// web_searches@low|medium|high (by search context), video_in@tier, per_image (the tokens of the
// request are not charged), unpriced, and the counts that are assumed when a request does not
// specify them (default_seconds, default_samples, default_steps). Absent is not zero: a class
// without a price is charged as its nearest more expensive relative (see fallback), a declared
// zero is free.
package pricing

import (
	"cmp"
	"math"
	"math/bits"
	"strings"
	"time"
)

// Options are the facts of a request that its price depends on. The zero value
// is a standard request with a prompt of unknown size.
type Options struct {
	Mode          string // Standard (or empty), Batch, flex...; see ModeOf
	Region        string // of the provider; empty: unknown
	ContextTokens int64  // tokens in, cached ones included
	Quality, Size string // of images (hd, 1024x1024); Size also of video, Quality of video given to an embedding
	SearchContext string // low, medium, high
	// At is the time of the request. Prices that are limited in time do not apply to the zero
	// time.
	At time.Time
}

// Price is the price of one model under given options. It is a value: adjusting one does
// not change the book. The zero Price charges nothing.
type Price struct {
	rate     [NumClasses]int64 // femto-dollars per unit, fallbacks filled in
	has      uint64            // declared classes
	minute   int64             // femto-dollars per 60 seconds
	byMinute bool
	perImage bool
	unsure   bool  // the list has no price for this mode, and no rule gives one
	above    int64 // see MinPromptSize
	line     string
	defaults Defaults
}

// MinPromptSize returns the size that a prompt must exceed for the price to apply, in tokens; 0: the price
// applies to all smaller prompts as well.
func (p Price) MinPromptSize() int64 { return p.above }

// Line names the line of the price list with these rates, and what changed them:
// "openai/gpt-5.6 priority", "openai/gpt-5.6 standard>272000 (adjusted)".
func (p Price) Line() string { return p.line }

// Rate gives the price of a class in femto-dollars per unit. declared is false when the
// rate comes from a fallback, or when there is none (then it is 0).
func (p Price) Rate(c Class) (femtoDollars int64, declared bool) {
	return p.rate[c], p.has&(1<<c) != 0
}

// PerMinute gives the price of 60 seconds of audio in femto-dollars.
func (p Price) PerMinute() (femtoDollars int64, ok bool) { return p.minute, p.byMinute }

// PerImage means that the request is charged only by its images, not by its tokens.
func (p Price) PerImage() bool { return p.perImage }

// Defaults are the counts to assume when the request gives none.
func (p Price) Defaults() Defaults { return p.defaults }

// Free reports whether nothing that the price charges for costs anything.
func (p Price) Free() bool {
	for set := p.has; set != 0; set &= set - 1 {
		if p.rate[bits.TrailingZeros64(set)] > 0 {
			return false
		}
	}
	return p.minute == 0
}

// OnlyTools reports whether the price charges for nothing but calls of tools that the provider
// runs itself, as that of a free moderation model does.
func (p Price) OnlyTools() bool {
	for set := p.has; set != 0; set &= set - 1 {
		switch c := Class(bits.TrailingZeros64(set)); c {
		case WebSearches, FileSearches, EnterpriseSearches, MapSearches, XSearches, CodeExecutions, AttachmentSearches:
		default:
			if p.rate[c] > 0 {
				return false
			}
		}
	}
	return p.minute == 0
}

// Measures reports whether u counts a class that the price charges for.
func (p Price) Measures(u Usage) bool {
	for set := u.has; set != 0; set &= set - 1 {
		c := Class(bits.TrailingZeros64(set))
		if p.rate[c] > 0 || c == Seconds && p.minute > 0 {
			return true
		}
	}
	return false
}

// priced reports whether a class has a price, its own or a relative's.
func (p *Price) priced(c Class) bool {
	if p.has&(1<<c) != 0 || c == Requests || p.perImage && tokenClasses&(1<<c) != 0 {
		return true
	}
	if p.byMinute && (c == Seconds || audioTokens&(1<<c) != 0) {
		return true
	}
	if p.ByMegapixel() && (c == Pixels || c == Images) {
		return true // images are charged by their pixels
	}
	for _, f := range fallback[c] {
		if p.has&(1<<f) != 0 {
			return true
		}
	}
	return false
}

// Covers reports whether every class that u counts has a price. If one has none, the
// request costs more than Cost says.
func (p Price) Covers(u Usage) bool {
	if p.unsure {
		return false
	}
	for set := u.has; set != 0; set &= set - 1 {
		c := Class(bits.TrailingZeros64(set))
		if u.n[c] > 0 && !p.priced(c) {
			return false
		}
	}
	if p.byMinute && u.N(Seconds) == 0 && p.has&audioTokens == 0 {
		// Only minutes have a price, and they were not counted.
		return u.has&audioTokens == 0
	}
	if p.ByMegapixel() && u.N(Images) > 0 {
		return u.has&(1<<Megapixels|1<<Pixels) != 0
	}
	return true
}

const (
	inputClasses  = 1<<Input | 1<<CacheRead | 1<<CacheWrite5m | 1<<CacheWrite30m | 1<<CacheWrite1h | 1<<CacheWrite12h | 1<<AudioIn | 1<<AudioCacheRead | 1<<ImageIn | 1<<ImageCacheRead
	outputClasses = 1<<Output | 1<<Reasoning | 1<<AudioOut | 1<<ImageOut | 1<<VideoOut
	tokenClasses  = inputClasses | outputClasses
	audioTokens   = 1<<AudioIn | 1<<AudioCacheRead | 1<<AudioOut
)

// Cost is what u costs: the sum over its classes in 128 bits, rounded once,
// half up, to nano-dollars. It saturates at the largest amount; negative counts
// count as nothing. A model priced by the minute charges its seconds instead of
// its audio tokens when both were counted.
func (p Price) Cost(u Usage) NanoDollars {
	set := u.has
	if p.perImage {
		set &^= tokenClasses
	}
	minutes := int64(0)
	if p.byMinute && u.n[Seconds] > 0 {
		set &^= audioTokens | 1<<Seconds
		minutes = u.n[Seconds]
	}
	var hi, lo uint64
	for ; set != 0; set &= set - 1 {
		c := bits.TrailingZeros64(set)
		n, rate := u.n[c], p.rate[c]
		if Class(c) == Pixels {
			rate = p.rate[Megapixels]
		}
		if n <= 0 || rate == 0 {
			continue
		}
		h, l := bits.Mul64(uint64(n), uint64(rate))
		if Class(c) == Pixels {
			h, l = perMegapixel(h, l)
		}
		if h >= tooMuch {
			return math.MaxInt64
		}
		var carry uint64
		lo, carry = bits.Add64(lo, l, 0)
		hi += h + carry
	}
	if minutes == 0 {
		return round(hi, lo, femto)
	}
	// In sixtieths of a femto-dollar, so that the price of a second is exact.
	h, l := bits.Mul64(uint64(minutes), uint64(p.minute))
	if h >= 60*tooMuch {
		return math.MaxInt64
	}
	top, low := bits.Mul64(lo, 60)
	top += hi * 60
	low, carry := bits.Add64(low, l, 0)
	return round(top+h+carry, low, 60*femto)
}

// tooMuch bounds the high word of one class's cost: 2^84 femto-dollars are more
// than NanoDollars can hold. Below it no sum of classes overflows 128 bits.
const tooMuch = 1 << 20

// round divides a 128-bit amount by unit, half up, saturating.
func round(hi, lo, unit uint64) NanoDollars {
	lo, carry := bits.Add64(lo, unit/2, 0)
	hi += carry
	if hi >= unit {
		return math.MaxInt64
	}
	q, _ := bits.Div64(hi, lo, unit)
	if q > math.MaxInt64 {
		return math.MaxInt64
	}
	return NanoDollars(q)
}

// Bound is the most that a request of so many tokens in and out can cost: each side at its
// dearest declared class (including cache writes, audio and images), plus the fee of one
// call. It does not bound other units (images, seconds, searches): price those with Cost.
func (p Price) Bound(inputTokens, outputTokens int64) NanoDollars {
	var u Usage
	u.Set(Input, inputTokens)
	u.Set(Output, outputTokens)
	u.Set(Requests, 1)
	highest := p
	highest.byMinute = false
	highest.rate[Input] = p.mostExpensive(inputClasses)
	highest.rate[Output] = p.mostExpensive(outputClasses)
	return highest.Cost(u)
}

func (p *Price) mostExpensive(classes uint64) int64 {
	var most int64
	for set := classes; set != 0; set &= set - 1 {
		most = max(most, p.rate[bits.TrailingZeros64(set)])
	}
	return most
}

// pick chooses the rates for the options. Among the variants of the mode it takes one for
// the region (or for any region), for the time and for a prompt of this size: first one that
// names the region, then one that is limited in time, then the one with the highest context
// tier; of several with the same, the last one in the list. Without a variant it takes the batch
// or base rates. above is the context tier. sure is false if those replace a mode that is not
// priced like the standard one.
func (e *entry) pick(o *Options) (r *rates, above int64, sure bool) {
	mode := cmp.Or(o.Mode, Standard)
	var best *variant
	most := int64(-1)
	for i := range e.variants {
		v := &e.variants[i]
		if v.mode != mode || v.over > 0 && o.ContextTokens <= v.over || !v.when.includes(o.At) {
			continue
		}
		rank := v.over
		if v.when.limited() {
			rank += timed
		}
		if v.regions != "" {
			if !listed(v.regions, o.Region) {
				continue
			}
			rank += regional
		}
		if rank >= most {
			best, most = v, rank
		}
	}
	switch {
	case best != nil:
		return &best.rates, best.over, true
	case mode == Batch && e.batch != nil:
		return e.batch, 0, true
	}
	return &e.base, 0, mode != Fast && mode != ultrafast && mode != scaled
}

// What makes a variant fit better than any context tier.
const (
	timed    = 1 << 60
	regional = 1 << 61
)

// listed reports whether a comma list holds the item.
func listed(list, item string) bool {
	for item != "" && list != "" {
		var head string
		head, list, _ = strings.Cut(list, ",")
		if head == item {
			return true
		}
	}
	return false
}

// resolve makes the Price from the rates under the options.
func (r *rates) resolve(p *Price, o *Options) {
	p.rate, p.has, p.defaults = r.rate, r.has, r.defaults
	p.minute, p.byMinute, p.perImage, p.line = r.minute, r.byMinute, r.perImage, r.line
	for i := 0; i < len(r.tables); {
		j := i
		for j < len(r.tables) && r.tables[j].class == r.tables[i].class {
			j++
		}
		p.choose(r.tables[i:j], o)
		i = j
	}
}

// choose sets the price of a class that depends on the request. If the request does not specify
// it, the declared default applies, or otherwise the most expensive price.
func (p *Price) choose(table []choice, o *Options) {
	c := table[0].class
	price, rank := int64(0), 0
	for i := range table {
		t := &table[i]
		if r := t.rank(o); r > rank || r == rank && t.price > price {
			price, rank = t.price, r
		}
	}
	if rank == 0 && p.has&(1<<c) != 0 {
		return // the plain price of the class applies to what the table does not list
	}
	p.rate[c] = price
	p.has |= 1 << c
}

// rank returns how well a table's row fits the options; 0: it does not fit.
func (t *choice) rank(o *Options) int {
	switch t.class {
	case Images:
		quality, size, _ := strings.Cut(t.key, ":")
		r := 0
		switch quality {
		case o.Quality:
			r = 4
		case "default":
			r = 2
		default:
			return 0
		}
		switch size {
		case o.Size:
			return r + 1
		case "default":
			return r
		}
		return 0
	case Seconds:
		if t.key == o.Size {
			return 1
		}
	case WebSearches:
		if t.key == o.SearchContext {
			return 2
		}
		if t.key == "medium" {
			return 1
		}
	case VideoIn:
		if t.key == o.Quality {
			return 1
		}
	}
	return 0
}

// NanoDollars is an amount of money: 1e-9 US dollars. Ledger and budgets use it.
type NanoDollars int64

// Dollar is one US dollar.
const Dollar NanoDollars = 1_000_000_000

// femto is how many femto-dollars make a nano-dollar.
const femto = 1_000_000
