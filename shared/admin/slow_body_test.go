package admin

import (
	"io"
	"net"
	"net/http/httptest"
	"os"
	"testing"

	"gateway/shared/fault"
)

// stuck is a body that stops coming.
type stuck struct{ err error }

func (s stuck) Read([]byte) (int, error) { return 0, s.err }

// A body that stops coming is another fault than one that ends early.
func TestStalledBodies(t *testing.T) {
	t.Parallel()
	for err, want := range map[error]int{&net.OpError{Op: "read", Net: "tcp", Err: os.ErrDeadlineExceeded}: 408, os.ErrDeadlineExceeded: 408, io.ErrUnexpectedEOF: 400} {
		req := httptest.NewRequest("POST", "/", stuck{err})
		b := &requestBody{request: req, route: &Route{Body: []Field{}}}
		if got := fault.From(b.read(httptest.NewRecorder())); got == nil || got.Status() != want {
			t.Errorf("%v: %v, want %d", err, got, want)
		}
	}
}
