package chat

import (
	"encoding/json"

	"gateway/shared/pricing"
)

// Response is a complete response.
type Response struct {
	ID, Model string
	Created   int64 // Unix seconds; zero if unknown
	Choices   []Choice
	Usage     pricing.Usage
	// ReportedTotal is the provider's total if it is not the sum of Usage.
	ReportedTotal int64
	// Billed is what the provider charges for, if it reports that separately from Usage, which
	// the client receives. If nil or unknown, Usage is billed.
	Billed *pricing.Usage

	SystemFingerprint string
	ServiceTier       string
	Served
}

// Choice is one alternative of a response.
type Choice struct {
	Index int
	Parts []Part // in the model's order

	Stop         StopReason
	Native       string // the provider's value of Stop
	StopSequence string // the matched stop string, for StopSequence

	// Logprobs is the object in the OpenAI format, verbatim.
	Logprobs json.RawMessage
	// Extra are provider fields of the choice without a canonical form (groundingMetadata,
	// safetyRatings), for clients that do not require the strict format.
	Extra []Field
}

// Text joins the text parts of a choice.
func (c *Choice) Text() string {
	m := Message{Parts: c.Parts}
	return m.Text()
}

// Attribute sets the origin of foreign parts that have none, such as those of a response that a
// Collector assembled: its deltas do not name the provider's dialect.
func (r *Response) Attribute(origin string) {
	for i := range r.Choices {
		parts := r.Choices[i].Parts
		for j := range parts {
			if p := &parts[j]; p.Kind == Foreign && p.Origin == "" {
				p.Origin = origin
			}
		}
	}
}

// Meter returns the accounting data of the response.
func (r *Response) Meter() Meter {
	m := Meter{Model: r.Model, ID: r.ID, Usage: r.Usage, ReportedTotal: r.ReportedTotal, Complete: true, Started: true, Served: r.Served}
	if m.Mode == "" {
		m.Mode = pricing.ModeOf(r.ServiceTier)
	}
	if r.Billed != nil && r.Billed.Known() {
		m.Usage = *r.Billed
	}
	for i := range r.Choices {
		c := &r.Choices[i]
		if m.Finish == "" {
			m.Finish = c.Native
		}
		for j := range c.Parts {
			p := &c.Parts[j]
			m.OutputBytes += int64(len(p.Text))
			if p.Call != nil {
				m.OutputBytes += int64(len(p.Call.Name) + len(p.Call.Arguments))
			}
		}
	}
	return m
}

// Signed is reasoning that a provider requires before a tool call.
type Signed struct {
	ToolCallID string
	Parts      []Part
}

// Signed returns the signed reasoning of the response, each with the tool calls that follow it,
// so that it can be stored for clients that cannot return it. The first call after the
// reasoning carries it.
func (r *Response) Signed() []Signed {
	var out []Signed
	for i := range r.Choices {
		out = appendSigned(out, r.Choices[i].Parts)
	}
	return out
}

func appendSigned(out []Signed, parts []Part) []Signed {
	var pending []Part
	for _, p := range parts {
		switch p.Kind {
		case Reasoned, RedactedReasoned:
			if p.Kind == RedactedReasoned || p.Signature != "" {
				pending = append(pending, p)
			}
		case Call:
			if len(pending) > 0 && p.Call.ID != "" {
				out = append(out, Signed{ToolCallID: p.Call.ID, Parts: pending})
				pending = nil
			}
		}
	}
	return out
}
