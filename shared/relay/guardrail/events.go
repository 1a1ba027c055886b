package guardrail

import (
	"gateway/shared/guard/chain"
	"gateway/shared/wire"
)

// FirstEvent returns the first event of a stream, with the results of the input hooks, for
// clients that accept extensions of the schema.
func (s *State) FirstEvent(endpoint string, strict bool) []byte {
	if !s.On || strict || len(s.Results.Before) == 0 {
		return nil
	}
	return event(endpoint, (&chain.Results{Before: s.Results.Before}).Append(nil, false))
}

// LastEvent returns the event that follows the terminal event of a stream, with the results of
// the output hooks.
func (s *State) LastEvent(endpoint string, strict bool) []byte {
	if !s.On || strict || len(s.Results.After) == 0 {
		return nil
	}
	return event(endpoint, append(s.Shown().AppendAfter([]byte{'{'}), '}'))
}

// event returns one event of hook results. Where clients dispatch events by name, it has a name
// that other clients ignore.
func event(endpoint string, results []byte) []byte {
	switch endpoint {
	case "messages", "createModelResponse", "getModelResponse":
		return wire.AppendSSE(nil, "hook_results", append(append([]byte(`{"type":"hook_results","hook_results":`), results...), '}'))
	}
	return wire.AppendSSE(nil, "", append(append([]byte(`{"hook_results":`), results...), '}'))
}
