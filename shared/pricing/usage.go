package pricing

import "math/bits"

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
	// Estimated says that the counts are the gateway's own estimate.
	Estimated bool
	// Limited says that the provider's counts were more than a request can use and were
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

// Known reports whether any class was reported.
func (u Usage) Known() bool { return u.has != 0 }

// Classes is the set of reported classes: bit c is set for class c.
func (u Usage) Classes() uint64 { return u.has }

// Plus sums two usages class by class (several attempts of one request).
func (u Usage) Plus(v Usage) Usage {
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
	return u.n[Input] + u.Cached() + u.Written() + u.n[AudioIn] + u.n[ImageIn]
}

// Cached is all tokens in that were read from the provider's prompt cache.
func (u Usage) Cached() int64 { return u.n[CacheRead] + u.n[AudioCacheRead] + u.n[ImageCacheRead] }

// Written is all tokens in that were written to the provider's prompt cache.
func (u Usage) Written() int64 {
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
