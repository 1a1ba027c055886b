package sessions

import (
	"bytes"
	"encoding/json"
	"strings"

	"gateway/shared/dialect/live"
	"gateway/shared/dialect/realtime"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

var nestedKeys = wire.NewKeySet("type", "response", "decision", "delta")

const (
	nestedType = iota
	nestedResponse
	nestedDecision
	nestedDelta
)

// nested reads an event of a response that is made within the session.
func (s *Session) nested(event []byte) []live.Step {
	var w wire.Walk
	if event == nil || nestedKeys.Walk(event, &w) != nil {
		return nil
	}
	kind, _ := text(event, &w, nestedType, "type")
	switch kind {
	case "response.created":
		return s.created(member(event, &w, nestedResponse))
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return s.done(member(event, &w, nestedResponse), kind[len("response."):])
	}
	if delta := member(event, &w, nestedDelta); delta != nil {
		s.made(int64(len(delta)))
	}
	return nil
}

// outputFields are the fields of a response's output that hold what the model says, or has tools
// do.
var outputFields = map[string]bool{"text": false, "refusal": false, "arguments": true, "input": true, "code": false}

// made is what a response within the session has made, once it has ended.
func made(event []byte) string {
	var w wire.Walk
	if event == nil || nestedKeys.Walk(event, &w) != nil {
		return ""
	}
	response := member(event, &w, nestedResponse)
	if response == nil || !bytes.Contains(response, outputWord) {
		return ""
	}
	return strings.Join(live.Texts(response, outputFields), "\n")
}

var outputWord = []byte(`"output"`)

// named are the fields of a response or a decision that are read.
type named struct {
	ID    string `json:"id"`
	Model string `json:"model"`
}

func nameOf(object []byte) (n named, ok bool) {
	if object == nil || json.Unmarshal(object, &n) != nil || n.ID == "" || len(n.ID) > maxName || len(n.Model) > maxName {
		return n, false
	}
	return n, true
}

func (s *Session) created(response []byte) []live.Step {
	n, ok := nameOf(response)
	if !ok {
		return nil
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.open[n.ID] != nil || len(s.open) >= maxOpen {
		return nil
	}
	s.open[n.ID] = &delegated{model: n.Model, at: s.all, reads: s.history + tokens(s.all-s.upTo)}
	return []live.Step{{Do: live.Begins, ID: n.ID, Model: n.Model, Input: s.history + s.all - s.upTo}}
}

// reads counts bytes that responses read from now on: their instructions, the text and
// speech in the session, and the results of others.
func (s *Session) reads(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.all += bytes
}

// made counts a piece. Few events name their response, so the estimate of every running
// response grows by it.
func (s *Session) made(bytes int64) {
	s.mu.Lock()
	defer s.mu.Unlock()
	for _, d := range s.open {
		d.made += bytes
	}
}

func (s *Session) done(response []byte, finish string) []live.Step {
	n, ok := nameOf(response)
	if !ok {
		return nil
	}
	m := s.meter(response)
	s.mu.Lock()
	defer s.mu.Unlock()
	d := s.open[n.ID]
	delete(s.open, n.ID)
	step := live.Step{Do: live.Ends, ID: n.ID, Model: n.Model, Usage: m.Usage, Served: m.PriceFacts, Finish: finish}
	switch {
	case m.Usage.IsReported():
		if d != nil && d.at >= s.upTo {
			s.history, s.upTo = max(s.history, m.Usage.TotalTokens()), d.at
		}
	case d != nil && finish == "failed" && d.made == 0: // providers charge nothing for it
	case d != nil:
		step = d.lost(n.ID)
		step.Finish = finish
		s.all += d.made
	case finish == "failed":
		return nil // its usage is not known, and nothing was made
	}
	if step.Model == "" && d != nil {
		step.Model = d.model
	}
	return []live.Step{step}
}

// bytesOfToken is the usual number of bytes of a token of text.
const bytesOfToken = 4

func tokens(bytes int64) int64 { return (bytes + bytesOfToken - 1) / bytesOfToken }

// lost ends a response without further events.
func (d *delegated) lost(id string) live.Step {
	step := live.Step{Do: live.Ends, ID: id, Model: d.model, Finish: realtime.ConnectionLost}
	step.Usage.Set(pricing.Input, d.reads)
	step.Usage.Set(pricing.Output, tokens(d.made))
	step.Usage.Estimated = true
	return step
}

// decided reads a decision, which arrives completely.
func (s *Session) decided(id string, event []byte) []live.Step {
	var w wire.Walk
	if event == nil || nestedKeys.Walk(event, &w) != nil {
		return nil
	}
	decision := member(event, &w, nestedDecision)
	var n named
	if decision == nil || json.Unmarshal(decision, &n) != nil || len(n.Model) > maxName {
		return nil
	}
	m := s.meter(decision)
	if !m.Usage.IsReported() {
		return nil
	}
	return []live.Step{{Do: live.Ends, ID: "decision " + id, Model: n.Model, Usage: m.Usage, Served: m.PriceFacts, Finish: "completed"}}
}
