package relay

import (
	"strconv"

	"gateway/shared/fault"
	"gateway/shared/relay/accounting"
	"gateway/shared/relay/target"
	"gateway/shared/usage"
	"gateway/shared/wire"
)

// withAttempts adds the earlier attempts to an error's body, for clients that accept extensions
// of the schema. An error of a single attempt is unchanged.
func withAttempts(tg *target.Target, bill *accounting.Bill, body []byte) []byte {
	if tg.Plan.Walker == nil || tg.Strict() || len(body) == 0 || body[0] != '{' {
		return body
	}
	refused, skips := 0, tg.Plan.Walker.Skips(nil)
	for i := range skips {
		if skips[i].Reason == usage.SkipRejected {
			refused++
		}
	}
	if len(bill.Purse.Attempts)+refused < 2 {
		return body
	}
	return wire.Splice(nil, body, wire.InsertAt(0, "attempts", appendAttempts(bill, nil, skips)))
}

// appendAttempts writes the calls, then the targets that the gateway rejected.
func appendAttempts(bill *accounting.Bill, dst []byte, skips []usage.Skip) []byte {
	dst = append(dst, '[')
	for i := range bill.Purse.Attempts {
		a := &bill.Purse.Attempts[i]
		dst = appendAttempt(dst, a.OptionIndex, a.Provider, a.Model, a.Status, a.ErrorCode)
	}
	for i := range skips {
		if s := &skips[i]; s.Reason == usage.SkipRejected {
			dst = appendAttempt(dst, s.Path, "", "", s.Status, s.Code)
		}
	}
	return append(dst, ']')
}

func appendAttempt(dst []byte, option, provider, model string, status int, code string) []byte {
	if dst[len(dst)-1] == '}' {
		dst = append(dst, ',')
	}
	dst = append(dst, `{"option_index":`...)
	dst = wire.AppendJSONString(dst, option)
	for _, f := range [...]struct{ name, value string }{{"provider", provider}, {"model", model}, {"code", code}} {
		if f.value != "" {
			dst = append(append(append(dst, `,"`...), f.name...), `":`...)
			dst = wire.AppendJSONString(dst, f.value)
		}
	}
	dst = append(dst, `,"status":`...)
	dst = strconv.AppendInt(dst, int64(status), 10)
	return append(dst, '}')
}

// refused reports whether the gateway itself rejected the target. A timeout is the target's.
func (a *answer) refused() bool {
	return a.fault != nil && a.fault.Source != fault.SourceProvider && a.fault.Code != fault.RequestTimeout
}
