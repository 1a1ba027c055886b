package chat

import (
	"encoding/json"
	"strconv"

	"gateway/shared/pricing"
)

// ResponseFeatures is a set of response features that not every client format supports.
type ResponseFeatures uint16

// The features. All others are supported by every format, or concern only the gateway.
const (
	HoldsChoices     ResponseFeatures = 1 << iota // choices after the first
	HoldsFingerprint                              // Response.SystemFingerprint
	HoldsTier                                     // Response.ServiceTier
	HoldsSequence                                 // Choice.StopSequence
	HoldsLogprobs                                 // Choice.Logprobs, Delta.Logprobs
	HoldsExtra                                    // Choice.Extra, Delta.Extra
	HoldsRefusals                                 // parts that are a Refusal
	HoldsThinking                                 // parts that are Reasoned
	HoldsRedacted                                 // that are RedactedReasoned
	HoldsCitations                                // Part.Citations, if Held.Cites accepts them
	HoldsForeign                                  // blocks of other dialects
	HoldsImages                                   // parts that are an Image, if Held.Images accepts them
	HoldsCalls                                    // the first tool call
	HoldsMoreCalls                                // the others
	HoldsSigned                                   // Part.Signature of Reasoned
	HoldsSignedCalls                              // ToolCall.Signature
)

// ResponseSupport states which parts of a response the client's format supports.
type ResponseSupport struct {
	Features ResponseFeatures
	// OwnDialect is the dialect with foreign blocks that are written even if HoldsForeign is not set.
	OwnDialect string
	// Cites reports whether a source, one JSON object, is written. If nil, all are.
	Cites func(citation []byte) bool
	// Images reports whether an image is written. If nil, all are.
	Images func(*Media) bool
	// Content is the path of a response's parts within a choice; Choice is the path of the
	// choice, without its number. Both are empty for a format with one response.
	Content, Choice string
	// Broken is the handling of tool calls with arguments that are not a JSON object.
	Broken BrokenCalls
	// CompleteCalls is set if the format cannot split calls: a stream holds each back until it is
	// complete.
	CompleteCalls bool
}

// Names of features in reports, below the choice or its content.
const (
	lostSequence  = "stop_sequence"
	lostLogprobs  = "logprobs"
	lostRefusal   = "refusal"
	lostThinking  = "thinking"
	lostRedacted  = "redacted_thinking"
	lostCitations = "citations"
	lostImages    = "images"
	lostCalls     = "tool_calls"
	lostSigned    = "thinking.signature"
	lostCallSign  = "tool_calls.thought_signature"
)

// NoPlace is the reason of every loss of a response.
const NoPlace = "no equivalent in the client's format"

// writesImage reports whether the client's format supports an image.
func (h *ResponseSupport) writesImage(m *Media) bool {
	return h.Features&HoldsImages != 0 && (h.Images == nil || h.Images(m))
}

// Writes reports whether the client's format supports a citation, an image or a foreign block
// of a provider's dialect. It is true for any other delta.
func (h *ResponseSupport) Writes(d *Delta, origin string) bool {
	switch d.Kind {
	case DeltaCitation:
		return h.Features&HoldsCitations != 0 && (h.Cites == nil || h.Cites(d.JSON))
	case DeltaImage:
		return h.writesImage(ReadImage(d.Text()))
	case DeltaForeign:
		return h.Features&HoldsForeign != 0 || origin != "" && origin == h.OwnDialect
	}
	return true
}

// LossReporter reports what the client does not receive of a response. It examines everything that
// the client's encoder receives, complete or streamed, and allocates only for a loss.
type LossReporter struct {
	support ResponseSupport
	origin  string // the provider's dialect
	loss    *Loss
}

// NewLossReporter returns a report for a response that client writes with o.
func NewLossReporter(client ResponseWriter, o *Options, loss *Loss) LossReporter {
	return LossReporter{client.Support(o), o.Origin, loss}
}

// no reports whether the client's format lacks a feature.
func (m *LossReporter) no(h ResponseFeatures) bool { return m.support.Features&h == 0 }

// add reports a feature of a choice; content is set if it is one of its parts.
func (m *LossReporter) add(choice int, content bool, name string) {
	m.because(choice, content, name, NoPlace)
}

// because reports a feature of a choice with a reason.
func (m *LossReporter) because(choice int, content bool, name, reason string) {
	path := name
	if content && m.support.Content != "" {
		path = m.support.Content + "." + path
	}
	if m.support.Choice != "" {
		path = m.support.Choice + "[" + strconv.Itoa(choice) + "]." + path
	}
	m.loss.AddMissed(path, reason)
}

// further reports a choice after the first.
func (m *LossReporter) further(choice int) {
	m.loss.AddMissed("choices["+strconv.Itoa(choice)+"]", NoPlace)
}

// Examine examines a complete response.
func (m *LossReporter) Examine(r *Response) {
	if r.SystemFingerprint != "" && m.no(HoldsFingerprint) {
		m.loss.AddMissed("system_fingerprint", NoPlace)
	}
	if r.ServiceTier != "" && m.no(HoldsTier) {
		m.loss.AddMissed("service_tier", NoPlace)
	}
	for i := range r.Choices {
		if i > 0 && m.no(HoldsChoices) {
			m.further(i)
			continue
		}
		m.choice(&r.Choices[i])
	}
}

func (m *LossReporter) choice(c *Choice) {
	m.stop(c.Index, c.Stop, c.StopSequence, c.Extra)
	if len(c.Logprobs) > 0 && m.no(HoldsLogprobs) {
		m.add(c.Index, false, lostLogprobs)
	}
	calls := 0
	for i := range c.Parts {
		p := &c.Parts[i]
		switch {
		case p.Kind == Foreign:
			m.foreign(c.Index, p.Type, p.Origin)
		case p.Kind == Image && !m.support.writesImage(p.Media):
			m.add(c.Index, true, lostImages)
		case p.Kind == Call:
			m.call(c.Index, calls, p.Call.Signature)
			calls++
		case p.Kind == Reasoned:
			m.reasoned(c.Index, p.Text != "", p.Signature != "")
		case p.Kind == RedactedReasoned && m.no(HoldsRedacted):
			m.add(c.Index, true, lostRedacted)
		case p.Kind == Refusal && m.no(HoldsRefusals):
			m.add(c.Index, true, lostRefusal)
		case p.Kind == Text:
			m.cited(c.Index, p)
		}
	}
}

// stop examines how a choice ended. If only the provider knows the stop string, a format
// without a field for it loses it.
func (m *LossReporter) stop(choice int, stop StopReason, sequence string, extra []Field) {
	if stop == StopSequence && sequence != "" && m.no(HoldsSequence) {
		m.add(choice, false, lostSequence)
	}
	if m.no(HoldsExtra) {
		for _, x := range extra {
			m.add(choice, false, clipName(x.Name))
		}
	}
}

func (m *LossReporter) reasoned(choice int, text, signed bool) {
	if text && m.no(HoldsThinking) {
		m.add(choice, true, lostThinking)
	}
	if signed && m.no(HoldsSigned) {
		m.add(choice, true, lostSigned)
	}
}

func (m *LossReporter) foreign(choice int, kind, origin string) {
	if !m.no(HoldsForeign) || origin != "" && origin == m.support.OwnDialect {
		return
	}
	if kind == "" {
		kind = "block"
	}
	m.add(choice, true, clipName(kind))
}

func (m *LossReporter) call(choice, n int, signature string) {
	switch {
	case n == 0 && m.no(HoldsCalls), n > 0 && m.no(HoldsMoreCalls):
		m.add(choice, true, lostCalls)
	case signature != "" && m.no(HoldsSignedCalls):
		m.add(choice, true, lostCallSign)
	}
}

// cited examines the sources of a text.
func (m *LossReporter) cited(choice int, p *Part) {
	if len(p.Citations) == 0 || m.support.Cites == nil && !m.no(HoldsCitations) {
		return
	}
	r := replay{emit: func(d *Delta) error { m.source(choice, d.JSON); return nil }}
	r.citations(Delta{}, p.Citations)
}

func (m *LossReporter) source(choice int, citation []byte) {
	if m.no(HoldsCitations) || m.support.Cites != nil && !m.support.Cites(citation) {
		m.add(choice, true, lostCitations)
	}
}

// Piece examines one step of a stream.
func (m *LossReporter) Piece(d *Delta) {
	if d.Kind == DeltaStart || d.Kind == DeltaUsage || d.Kind == DeltaPing || d.Kind == DeltaBlockStop {
		return
	}
	if d.Choice > 0 && m.no(HoldsChoices) {
		m.further(d.Choice)
		return
	}
	switch d.Kind {
	case DeltaText:
		if d.Logprobs != nil && m.no(HoldsLogprobs) {
			m.add(d.Choice, false, lostLogprobs)
		}
	case DeltaRefusal:
		if m.no(HoldsRefusals) {
			m.add(d.Choice, true, lostRefusal)
		}
	case DeltaThinking, DeltaSignature:
		m.reasoned(d.Choice, d.Kind == DeltaThinking, d.Kind == DeltaSignature)
	case DeltaRedacted:
		if m.no(HoldsRedacted) {
			m.add(d.Choice, true, lostRedacted)
		}
	case DeltaCitation:
		m.source(d.Choice, d.JSON)
	case DeltaImage:
		if !m.support.Writes(d, m.origin) {
			m.add(d.Choice, true, lostImages)
		}
	case DeltaForeign:
		m.foreign(d.Choice, "", m.origin)
	case DeltaToolStart:
		m.call(d.Choice, d.Call, d.Signature)
	case DeltaStop:
		m.stop(d.Choice, d.Stop, d.StopSequence, d.Extra)
	}
}

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
	PriceFacts
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
	m := Meter{Model: r.Model, ID: r.ID, Usage: r.Usage, ReportedTotal: r.ReportedTotal, Complete: true, Started: true, PriceFacts: r.PriceFacts}
	if m.Mode == "" {
		m.Mode = pricing.ModeOf(r.ServiceTier)
	}
	if r.Billed != nil && r.Billed.IsReported() {
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
