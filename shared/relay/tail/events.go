package tail

import (
	"gateway/shared/chat"
	"gateway/shared/wire"
)

// MeterEvents is what the last event of a stream that tells usage says of it.
func MeterEvents(meter func([]byte) chat.Meter, tail []byte) (last chat.Meter) {
	EachEvent(tail, func(data []byte) {
		if m := meter(data); m.Usage.Known() {
			last = m
		}
	})
	return last
}

// EachEvent gives the data of the events of a stream that has ended, the last one
// also without the empty line behind it. data is valid during the call.
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
