// Package pricing knows what can be billed (usage classes) and what it costs
// (the price book). Prices are int64 femto-dollars per unit; a request is
// summed in 128 bits and rounded once, half up, to nano-dollars.
//
// The price list is data/prices.txt: one line per model, sorted by provider
// and model, fields separated by tabs: provider, model, then sections of
// space-separated name=price. The first section holds the base rates, the
// others a header first:
//
//	mode[@region,region][>tokens]   a complete set of rates for a mode
//	                                (standard, batch, flex, priority, fast), in
//	                                those regions, above so many input tokens
//	+batch                          rates that differ from the base in batches
//
// Prices in that file are US dollars per million units, with up to nine digits after the
// point: every such price is a whole number of femto-dollars per unit. List prices with
// more digits (thirds of a cent per token) are rounded half up to that, which is off by at
// most half a dollar per 10^15 units.
//
// Names are usage classes, or: minute (per 60 seconds of audio), images@q:s (an image of
// quality q and size s), seconds@WxH (a second of video of that size),
// web_searches@low|medium|high (by search context), video_in@tier, per_image (the tokens of
// the request are not charged), unpriced, and the counts that are assumed when a request
// does not give them (default_seconds, default_samples, default_steps). Absent is not zero:
// a class without a price is charged as its nearest dearer relative (see fallback), a
// declared zero is free.
package pricing

// NanoDollars is an amount of money: 1e-9 US dollars. Ledger and budgets use it.
type NanoDollars int64

// Dollar is one US dollar.
const Dollar NanoDollars = 1_000_000_000

// femto is how many femto-dollars make a nano-dollar.
const femto = 1_000_000
