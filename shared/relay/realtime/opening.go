package realtime

import (
	"context"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	wires "gateway/shared/dialect/live"
	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
	"gateway/shared/relay/session"
)

// MaxOpening limits a first message, in bytes.
const MaxOpening = 1 << 20

// OpenLive waits for a client's first message, at most within. The error is a fault of it, or a
// *session.Ended.
func OpenLive(ctx context.Context, within time.Duration, near session.Conn, wire wires.Wire, memory *egress.Memory, tenant string) (*session.Opened, error) {
	tooLate := fmt.Sprintf("The first message of a session, which names its model, must come within %v", within)
	late := time.AfterFunc(within, func() { near.Close(session.Policy, tooLate) })
	defer late.Stop()
	var lease egress.Lease
	lease.Of(memory, tenant)
	defer lease.Free()
	binary, buf, err := message(ctx, near, &lease, MaxOpening)
	if err != nil {
		if !late.Stop() {
			return nil, fault.New(fault.RequestTimeout, "", tooLate)
		}
		return nil, err
	}
	defer buf.Free()
	if !binary && !utf8.Valid(buf.B) {
		return nil, &session.Ended{Code: session.NotUTF8, Reason: "a text message must be UTF-8"}
	}
	o := &session.Opened{Near: near, Wire: wire, First: int64(len(buf.B))}
	o.Opening, err = wire.Opens(buf.B)
	return o, err
}

// message reads the next message of a side completely. The caller frees its buffer.
func message(ctx context.Context, c session.Conn, lease *egress.Lease, most int64) (binary bool, buf *buffer.Buffer, err error) {
	binary, r, err := c.Next()
	if err != nil {
		return false, nil, err
	}
	buf = buffer.New()
	if err = buf.ReadAll(ctx, lease, r, -1, most); err == nil {
		return binary, buf, nil
	}
	buf.Free()
	return false, nil, session.Unheld(err)
}

// CloseCode returns the close code for a fault.
func CloseCode(f *fault.Fault) int {
	switch status := f.Status(); {
	case f.Code == fault.ServiceUnavailable:
		return session.GoingAway
	case status == 429:
		return session.TryLater
	case status >= 500:
		return session.ServerError
	}
	return session.Policy
}

// reason returns the close reason for a fault: the field and the message.
func reason(f *fault.Fault) string {
	if f.Field == "" || strings.Contains(f.Message, f.Field) {
		return f.Message
	}
	return f.Field + ": " + f.Message
}

// RefuseLive sends a client the reason why no session starts, and disconnects it.
func RefuseLive(near session.Conn, wire wires.Wire, f *fault.Fault, id string) {
	if told := wire.Error(f, "event_"+id, ""); told != nil {
		_ = near.Write(false, told) // a client that is gone needs no reason
	}
	near.Close(CloseCode(f), reason(f))
	for { // until it has responded, or its time is over
		if _, _, err := near.Next(); err != nil {
			break
		}
	}
	near.Linger()
}
