package response

import (
	"gateway/shared/chat"
	"gateway/shared/wire"
)

// MeterEvents returns the usage in the last event of a stream that reports usage.
func MeterEvents(meter func([]byte) chat.Meter, tail []byte) (last chat.Meter) {
	EachEvent(tail, func(data []byte) {
		if m := meter(data); m.Usage.Known() {
			last = m
		}
	})
	return last
}

// EachEvent calls f with the data of the events of a complete stream, including a last one
// without the final blank line. data is valid during the call.
func EachEvent(stream []byte, f func(data []byte)) {
	var p wire.SSEParser
	give := func(_ string, data []byte) error {
		f(data)
		return nil
	}
	if p.Feed(stream, give) == nil {
		_ = p.End(give)
	}
}
