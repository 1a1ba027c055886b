package guardrail

import (
	"gateway/shared/guard/chain"
	"gateway/shared/wire"
)

// FirstEvent is what a stream begins with: what the hooks before it said, for clients
// that do not keep to the strict shape.
func (s *State) FirstEvent(endpoint string, strict bool) []byte {
	if !s.On || strict || len(s.Results.Before) == 0 {
		return nil
	}
	return event(endpoint, (&chain.Results{Before: s.Results.Before}).Append(nil, false))
}

// LastEvent is what a stream ends with, behind its terminal event: what the hooks
// behind it said.
func (s *State) LastEvent(endpoint string, strict bool) []byte {
	if !s.On || strict || len(s.Results.After) == 0 {
		return nil
	}
	return event(endpoint, append(s.Shown().AppendAfter([]byte{'{'}), '}'))
}

// event is one event of hook results. Where clients read events by their names it has
// one, which those that do not know it pass over.
func event(endpoint string, results []byte) []byte {
	switch endpoint {
	case "messages", "createModelResponse", "getModelResponse":
		return wire.AppendSSE(nil, "hook_results", append(append([]byte(`{"type":"hook_results","hook_results":`), results...), '}'))
	}
	return wire.AppendSSE(nil, "", append(append([]byte(`{"hook_results":`), results...), '}'))
}
