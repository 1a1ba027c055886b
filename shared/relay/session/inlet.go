package session

import (
	"context"
	"errors"
	"io"

	"gateway/shared/egress"
	"gateway/shared/egress/buffer"
	"gateway/shared/fault"
)

// inlet reads the messages of one side completely.
type inlet struct {
	conn  Conn
	lease egress.Lease // of the message that is read
	most  int64        // bytes of one
}

// each calls f with the messages, one after the other, until the side or f ends it. f must not
// retain their bytes.
func (in *inlet) each(ctx context.Context, f func(binary bool, p []byte) error) error {
	defer in.lease.Free()
	for {
		binary, r, err := in.conn.Next()
		if err != nil {
			return err
		}
		buf := buffer.New()
		if err = buf.ReadAll(ctx, &in.lease, r, -1, in.most); err != nil {
			err = Unheld(err)
		} else {
			err = f(binary, buf.B)
		}
		buf.Free()
		in.lease.Free()
		if err != nil {
			return err
		}
	}
}

// Unheld returns the reason for ending a session when there is no memory for a message.
func Unheld(err error) error {
	switch {
	case errors.Is(err, buffer.ErrTooLarge):
		err = &Ended{TooLarge, "a message has more bytes than the gateway takes"}
	case fault.Is(err, fault.ServiceUnavailable):
		err = &Ended{ServerError, "the gateway holds as many large messages as its memory allows"}
	case errors.Is(err, io.ErrUnexpectedEOF):
		err = &Ended{Lost, ""}
	}
	return err
}
