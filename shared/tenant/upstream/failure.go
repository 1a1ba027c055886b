package upstream

import (
	"context"
	"errors"
	"fmt"

	"gateway/shared/egress"
	"gateway/shared/fault"
)

// Failure is a server or an agent that violates its protocol or cannot be called. Its text
// quotes nothing from the upstream.
type Failure struct {
	Status int // HTTP status; zero if there was no response
	Why    string
	Cause  error
}

func (f *Failure) Error() string { return f.Why }

func (f *Failure) Unwrap() error { return f.Cause }

// Fail returns a Failure.
func Fail(status int, format string, args ...any) *Failure {
	return &Failure{Status: status, Why: fmt.Sprintf(format, args...)}
}

// Unreachable returns a Failure without the text of a transport's error, except for rejections
// by the egress guard. what names the upstream, such as "the server".
func Unreachable(what string, err error) *Failure {
	f := Fail(0, "%s cannot be reached", what)
	switch {
	case egress.IsBlocked(err):
		f.Why = what + " has an address that the gateway may not call"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled): // a caller that still waits ended the call
		f.Why = what + " did not respond in time"
	}
	f.Cause = err
	return f
}

// Unresolved returns the Failure of a secret manager. Its text is that of the fault, which
// names references and no secret.
func Unresolved(err error) *Failure {
	f := Fail(0, "the credentials could not be read: %s", fault.From(err).Message)
	f.Cause = err
	return f
}
