package pricing

import (
	"math/bits"
	"strings"
)

// Class is one kind of billable unit. Classes are disjoint: a token counts in
// exactly one of them, so sums need no subtraction. Absent is not zero: see
// Usage.Get. The order is part of the event encoding: new classes go to the end.
type Class uint8

const (
	Input          Class = iota // text tokens in, neither cached nor written to a cache
	CacheRead                   // tokens in, read from the provider's prompt cache
	CacheWrite5m                // tokens in, written for five minutes (or without a stated time)
	CacheWrite1h                // tokens in, written for an hour
	AudioIn                     // audio tokens in
	AudioCacheRead              // audio tokens in, read from the cache
	ImageIn                     // image tokens in, where counted apart
	Output                      // text tokens out
	Reasoning                   // reasoning tokens out
	AudioOut                    // audio tokens out
	ImageOut                    // image tokens out
	Requests                    // calls to the provider
	WebSearches                 // searches the provider made
	Images                      // images made
	Seconds                     // seconds of audio or video
	Characters                  // synthesized characters
	Pages                       // pages read, or search units of a rerank

	ImageCacheRead     // image tokens in, read from the cache
	VideoOut           // video tokens out
	FileSearches       // file searches
	EnterpriseSearches // enterprise web searches
	MapSearches        // map look-ups
	XSearches          // searches of X
	CodeExecutions     // runs of a code tool
	AttachmentSearches // attachment searches
	RoutingUnits       // prompt tokens that a model router read
	InputImages        // images given, where priced by the image
	Megapixels         // megapixels made
	VideoIn            // seconds of video given to an embedding
	TrainingTokens     // tokens trained on
	TrainingHours      // hours of training

	CacheWrite30m // tokens in, written for half an hour
	CacheWrite12h // tokens in, written for twelve hours
	Pixels        // pixels of the images made, where priced by the megapixel and the host reports none; see Price.CountPixels
	NumClasses
)

// classNames are the names in records, segments and the price list; never renamed.
var classNames = [NumClasses]string{
	"input", "cache_read", "cache_write_5m", "cache_write_1h", "audio_in", "audio_cache_read", "image_in",
	"output", "reasoning", "audio_out", "image_out", "requests", "web_searches", "images", "seconds", "characters", "pages",
	"image_cache_read", "video_out", "file_searches", "enterprise_searches", "map_searches", "x_searches", "code_executions",
	"attachment_searches", "routing_units", "input_images", "megapixels", "video_in", "training_tokens", "training_hours",
	"cache_write_30m", "cache_write_12h", "pixels",
}

// String is the class's name in records.
func (c Class) String() string { return classNames[c] }

// ClassNamed finds a class by its name in records.
func ClassNamed(name string) (Class, bool) {
	for c, n := range classNames {
		if n == name {
			return Class(c), true
		}
	}
	return 0, false
}

// Usage counts units by class. The zero value knows nothing.
type Usage struct {
	n   [NumClasses]int64
	has uint64
	// Estimated means that the counts are the gateway's own estimate.
	Estimated bool
	// Limited means that the provider's counts were more than a request can use and were
	// replaced, see Limit.
	Limited bool
}

// Set records a count, zero included.
func (u *Usage) Set(c Class, n int64) { u.n[c] = n; u.has |= 1 << c }

// Add adds to a count.
func (u *Usage) Add(c Class, n int64) { u.n[c] += n; u.has |= 1 << c }

// Get gives a count; ok is false when nothing was reported for the class.
func (u Usage) Get(c Class) (n int64, ok bool) { return u.n[c], u.has&(1<<c) != 0 }

// N gives a count, 0 when absent.
func (u Usage) N(c Class) int64 { return u.n[c] }

// IsReported reports whether any class was reported.
func (u Usage) IsReported() bool { return u.has != 0 }

// Classes is the set of reported classes: bit c is set for class c.
func (u Usage) Classes() uint64 { return u.has }

// Sum sums two usages class by class (several attempts of one request).
func (u Usage) Sum(v Usage) Usage {
	for set := v.has; set != 0; set &= set - 1 {
		c := Class(bits.TrailingZeros64(set))
		u.Add(c, v.n[c])
	}
	u.Estimated = u.Estimated || v.Estimated
	u.Limited = u.Limited || v.Limited
	return u
}

// MaxUnits bounds how many units of a class one request, or one batch, can be charged.
const MaxUnits = 1e12

// Bounded is u without counts that are impossibly large. Such claims of a host would make
// sums overflow and turn into money that is given back.
func (u Usage) Bounded() Usage {
	for set := u.has; set != 0; set &= set - 1 {
		c := bits.TrailingZeros64(set)
		u.n[c] = max(0, min(u.n[c], MaxUnits))
	}
	return u
}

// InputTokens is all tokens in (what OpenAI calls prompt_tokens).
func (u Usage) InputTokens() int64 {
	return u.n[Input] + u.Cached() + u.CacheWrites() + u.n[AudioIn] + u.n[ImageIn]
}

// Cached is all tokens in that were read from the provider's prompt cache.
func (u Usage) Cached() int64 { return u.n[CacheRead] + u.n[AudioCacheRead] + u.n[ImageCacheRead] }

// CacheWrites is all tokens in that were written to the provider's prompt cache.
func (u Usage) CacheWrites() int64 {
	return u.n[CacheWrite5m] + u.n[CacheWrite30m] + u.n[CacheWrite1h] + u.n[CacheWrite12h]
}

// OutputTokens is all tokens out (completion_tokens).
func (u Usage) OutputTokens() int64 {
	return u.n[Output] + u.n[Reasoning] + u.n[AudioOut] + u.n[ImageOut] + u.n[VideoOut]
}

// HasInput reports whether any count of tokens in was reported, zero included.
func (u Usage) HasInput() bool { return u.has&inputClasses != 0 }

// HasOutput reports whether any count of tokens out was reported, zero included.
func (u Usage) HasOutput() bool { return u.has&outputClasses != 0 }

// TotalTokens is tokens in and out.
func (u Usage) TotalTokens() int64 { return u.InputTokens() + u.OutputTokens() }

// MostTokens is the most tokens in, and the most tokens out, that one request can use: about
// ten times the largest context window, which allows for the rounds of tools that a provider
// runs on its servers.
const MostTokens = 100_000_000

// mostUnits is the most of every other class that one request can use.
var mostUnits = [NumClasses]int64{
	Requests: 10_000, WebSearches: 100_000, FileSearches: 100_000, EnterpriseSearches: 100_000, MapSearches: 100_000, XSearches: 100_000,
	CodeExecutions: 100_000, AttachmentSearches: 100_000, Images: 10_000, InputImages: 100_000, Megapixels: 1_000_000,
	Seconds: 10_000_000, VideoIn: 10_000_000, Characters: 100_000_000, Pages: 10_000_000, RoutingUnits: MostTokens,
	Pixels: MaxUnits - 1, TrainingTokens: MaxUnits, TrainingHours: 1_000_000,
}

// Limit returns u without counts that no single request can have. Such claims of a host are
// replaced by what most has of the same kind, and the result is marked as Limited and
// Estimated: a wrong count must not become money.
func (u Usage) Limit(most Usage) Usage {
	u = u.Bounded()
	limited := u
	if u.InputTokens() > MostTokens {
		limited.drop(inputClasses)
		limited.Set(Input, most.InputTokens())
	}
	if u.OutputTokens() > MostTokens {
		limited.drop(outputClasses)
		limited.Set(Output, most.OutputTokens())
	}
	for set := u.has &^ tokenClasses; set != 0; set &= set - 1 {
		if c := Class(bits.TrailingZeros64(set)); u.n[c] > mostUnits[c] {
			limited.Set(c, most.n[c])
		}
	}
	if limited != u {
		limited.Limited, limited.Estimated = true, true
	}
	return limited
}

// drop makes the classes of set unknown.
func (u *Usage) drop(set uint64) {
	for rest := u.has & set; rest != 0; rest &= rest - 1 {
		u.n[bits.TrailingZeros64(rest)] = 0
	}
	u.has &^= set
}

// DefaultImagePixels is the assumed size of an image if neither the request nor the response
// states it: 1024x1024, the documented default of the hosts that charge by the megapixel.
const DefaultImagePixels = 1024 * 1024

const pixelsPerMegapixel = 1_000_000

// ImageSizes describes the known sizes of the images that a request generated.
type ImageSizes struct {
	Pixels int64 // sum over the images with a size in the response
	Read   int64 // number of those images
	Each   int64 // pixels of every other image, as requested; zero if the request states no size
	Steps  int64 // inference steps, as requested; zero if the request states none
}

// ByMegapixel reports whether the price charges for megapixels.
func (p Price) ByMegapixel() bool { return p.rate[Megapixels] > 0 }

// CountPixels returns u with the pixels of its images if the price charges by the megapixel and
// the host reported no size. The size of an image is that in the response, else the requested
// one, else DefaultImagePixels; the last makes the usage an estimate. More inference steps than
// the price assumes count in proportion, fewer count as those.
func (p Price) CountPixels(u Usage, s ImageSizes) Usage {
	images := u.N(Images)
	if !p.ByMegapixel() || images <= 0 || u.has&(1<<Megapixels|1<<Pixels) != 0 {
		return u
	}
	pixels := s.Pixels
	if rest := images - s.Read; rest > 0 {
		each := s.Each
		if each <= 0 {
			each, u.Estimated = DefaultImagePixels, true
		}
		pixels += min(each, MaxUnits/images) * rest
	}
	u.Set(Pixels, p.scaleBySteps(pixels, s.Steps))
	return u
}

// BoundOfPixels returns a bound of images with the megapixels scaled by the inference steps.
func (p Price) BoundOfPixels(most Usage, steps int64) Usage {
	if n := most.N(Megapixels); p.ByMegapixel() && n > 0 {
		most.Set(Megapixels, p.scaleBySteps(n, steps))
	}
	return most
}

// scaleBySteps scales a count by the inference steps beyond those that the price assumes, rounded
// up. It saturates at MaxUnits.
func (p Price) scaleBySteps(n, steps int64) int64 {
	usual := p.defaults.Steps
	if usual <= 0 || steps <= usual {
		return min(n, MaxUnits)
	}
	hi, lo := bits.Mul64(uint64(n), uint64(steps))
	lo, carry := bits.Add64(lo, uint64(usual-1), 0)
	if hi += carry; hi >= uint64(usual) {
		return MaxUnits
	}
	scaled, _ := bits.Div64(hi, lo, uint64(usual))
	return int64(min(scaled, MaxUnits))
}

// perMegapixel divides the 128-bit product of pixels and the price of a megapixel, rounded up to a
// femto-dollar.
func perMegapixel(hi, lo uint64) (uint64, uint64) {
	lo, carry := bits.Add64(lo, pixelsPerMegapixel-1, 0)
	hi += carry
	top, rest := hi/pixelsPerMegapixel, hi%pixelsPerMegapixel
	low, _ := bits.Div64(rest, lo, pixelsPerMegapixel)
	return top, low
}

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
