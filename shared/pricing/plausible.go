package pricing

import "math/bits"

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
