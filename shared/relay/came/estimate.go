package came

import (
	"gateway/shared/chat"
	"gateway/shared/pricing"
)

// Estimates stand in for usage that a provider did not report, or reported only
// in part because its stream was cut. They are marked as such in the books.
const (
	bytesOfAToken  = 4
	tokensOfAFrame = 4 // what a message costs beside its text
)

// MadeUp counts what was made of a stream that was cut before the final count:
// some providers have told a first one only.
func MadeUp(u *pricing.Usage, m chat.Meter) {
	if made := m.OutputEstimate(); made > u.OutputTokens() {
		u.Add(pricing.Output, made-u.OutputTokens())
		u.Estimated = true
	}
}

// TokensOf is about how many input tokens a conversation has. Images and
// sound are not counted.
func TokensOf(r *chat.Request) int64 {
	var n int64
	for i := range r.Messages {
		n += tokensOfAFrame + tokensOfParts(r.Messages[i].Parts)
	}
	for i := range r.Tools {
		n += Tokens(len(r.Tools[i].Name) + len(r.Tools[i].Description.Value) + len(r.Tools[i].Schema))
	}
	return n
}

func tokensOfParts(parts []chat.Part) (n int64) {
	for i := range parts {
		p := &parts[i]
		n += Tokens(len(p.Text))
		if p.Call != nil {
			n += Tokens(len(p.Call.Name) + len(p.Call.Arguments))
		}
		if p.Media != nil && p.Media.Plain {
			n += Tokens(len(p.Media.Data))
		}
		if p.Result != nil {
			n += tokensOfParts(p.Result.Parts)
		}
	}
	return n
}

// Tokens is about how many tokens a text of so many bytes has.
func Tokens(bytes int) int64 { return int64(bytes+bytesOfAToken-1) / bytesOfAToken }
