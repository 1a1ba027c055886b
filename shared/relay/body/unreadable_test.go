package body

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"testing"
)

// The fault of an incomplete body tells the client the remedy.
func TestWhyABodyDidNotArrive(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		err    error
		status int
	}{
		{&http.MaxBytesError{Limit: 5}, 413},
		{io.ErrUnexpectedEOF, 400},
		{errors.New("another"), 400},
		{os.ErrDeadlineExceeded, 408},
		{&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}, 408},
		{fmt.Errorf("form: %w", &net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}), 408},
	} {
		if f := Unreadable(c.err); f.Status() != c.status || f.Field != "body" {
			t.Errorf("%v: %d at %q", c.err, f.Status(), f.Field)
		}
	}
}
