package relay

import (
	"log/slog"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// clipText keeps a caller's or provider's text short in messages and records.
func clipText(s string) string { return fault.Clip(s, 300) }

// fault reports a failure that no caller sees; request is "" where it is of none.
func (r *Relay) fault(where, request string, err error) {
	if r.Faults != nil {
		r.Faults(where, err)
		return
	}
	slog.Error("gateway failure", "where", where, "request_id", request, "error", err.Error())
}

// brokeOff is what the books say of an answer that is cut.
func brokeOff() *fault.Fault {
	return fault.New(fault.InvalidProviderResponse, "", "the answer broke off")
}

// recorded is what the books keep of a refusal. Providers repeat prompts in their errors,
// so only status, type and code of those are kept; the words are in the sealed bodies.
func recorded(f *fault.Fault) string {
	if said := chat.ProviderErrorOf(f); said != nil {
		return clipText(said.Error())
	}
	return clipText(f.Message)
}
