package chat

// StopReason is the reason why a response ended. The zero value is unknown.
type StopReason uint8

const (
	StopUnknown   StopReason = iota
	StopEnd                  // the model finished
	StopSequence             // a stop string of the client matched
	StopLength               // the token limit was reached
	StopContext              // the context window was full
	StopToolCalls            // the model waits for tool results
	StopFilter               // refused or filtered
	StopPause                // a long turn was paused and may continue
	StopMalformed            // the model called a tool with invalid arguments, see Held.Broken
)

var openAIStops = [...]string{"stop", "stop", "stop", "length", "length", "tool_calls", "content_filter", "stop", "stop"}

// OpenAI returns the finish_reason of the stop reason.
func (s StopReason) OpenAI() string { return openAIStops[s] }

var anthropicStops = [...]string{"end_turn", "end_turn", "stop_sequence", "max_tokens", "model_context_window_exceeded", "tool_use", "refusal", "pause_turn", "end_turn"}

// Anthropic returns the stop_reason of the stop reason.
func (s StopReason) Anthropic() string { return anthropicStops[s] }
