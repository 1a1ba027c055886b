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

// NanoDollars is an amount of money: 1e-9 US dollars. Ledger and budgets use it.
type NanoDollars int64

// Dollar is one US dollar.
const Dollar NanoDollars = 1_000_000_000

// femto is how many femto-dollars make a nano-dollar.
const femto = 1_000_000
