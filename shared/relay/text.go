package relay

import (
	"errors"
	"log/slog"

	"gateway/shared/chat"
	"gateway/shared/fault"
	"gateway/shared/relay/target"
)

// clipText truncates a caller's or provider's text for messages and records.
func clipText(s string) string { return fault.Clip(s, 300) }

// fault reports a failure that no caller sees; request is "" where it is of none.
func (r *Relay) fault(where, request string, err error) {
	if r.Faults != nil {
		r.Faults(where, err)
		return
	}
	slog.Error("gateway failure", "where", where, "request_id", request, "error", err.Error())
}

// brokeOff returns the recorded fault of a truncated response.
func brokeOff() *fault.Fault {
	return fault.New(fault.InvalidProviderResponse, "", "the response was truncated")
}

// recorded returns the recorded text of a fault. Providers repeat prompts in their errors, so
// only their status, type and code are stored; the message is in the sealed bodies. The address
// of a provider is not stored, because readers of logs may lack the right to see it.
func recorded(f *fault.Fault) string {
	if said := chat.ProviderErrorOf(f); said != nil {
		return clipText(said.Error())
	}
	var none *target.NoAnswer
	if errors.As(f, &none) {
		return none.Error()
	}
	return clipText(f.Message)
}
