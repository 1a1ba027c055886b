package response

import (
	"gateway/shared/chat"
	"gateway/shared/pricing"
)

// Estimates replace usage that a provider did not report, or reported only in part because its
// stream was truncated. They are recorded as estimates.
const (
	bytesOfAToken  = 4
	tokensOfAFrame = 4 // overhead of a message besides its text
)

// EstimateOutput counts the output of a stream that was truncated before the final count: some providers
// have only reported an initial one.
func EstimateOutput(u *pricing.Usage, m chat.Meter) {
	if made := m.OutputEstimate(); made > u.OutputTokens() {
		u.Add(pricing.Output, made-u.OutputTokens())
		u.Estimated = true
	}
}

// FillUsage returns the usage of a conversation as far as the provider reported it, with an estimate
// of the side that it did not count. input estimates the input tokens. noOutput means that there
// is no output. A single total is split: the output is estimated, and the rest is the input.
func FillUsage(m chat.Meter, input func() int64, noOutput bool) pricing.Usage {
	u := m.Usage
	switch in, out := u.HasInput(), u.HasOutput() || noOutput; {
	case in == out:
		return u // complete, or in units other than tokens
	case !in:
		u.Set(pricing.Input, input())
	default:
		made := m.OutputEstimate()
		if m.TotalOnly() {
			made = min(made, u.N(pricing.Input))
			u.Add(pricing.Input, -made)
		}
		if made == 0 {
			return u // no output was received
		}
		u.Set(pricing.Output, made)
	}
	u.Estimated = true
	return u
}

// EstimateTokens estimates the input tokens of a conversation. Images and audio are not counted.
func EstimateTokens(r *chat.Request) int64 {
	var n int64
	for i := range r.Messages {
		n += tokensOfAFrame + tokensOfParts(r.Messages[i].Parts)
	}
	for i := range r.Tools {
		n += TokensOfBytes(len(r.Tools[i].Name) + len(r.Tools[i].Description.Value) + len(r.Tools[i].Schema))
	}
	return n
}

func tokensOfParts(parts []chat.Part) (n int64) {
	for i := range parts {
		p := &parts[i]
		n += TokensOfBytes(len(p.Text))
		if p.Call != nil {
			n += TokensOfBytes(len(p.Call.Name) + len(p.Call.Arguments))
		}
		if p.Media != nil && p.Media.Plain {
			n += TokensOfBytes(len(p.Media.Data))
		}
		if p.Result != nil {
			n += tokensOfParts(p.Result.Parts)
		}
	}
	return n
}

// TokensOfBytes estimates the tokens of a text with a number of bytes.
func TokensOfBytes(bytes int) int64 { return int64(bytes+bytesOfAToken-1) / bytesOfAToken }
