package upstream

import (
	"context"
	"errors"
	"fmt"

	"gateway/shared/egress"
	"gateway/shared/fault"
)

// Failure is a server or an agent whose answer breaks its protocol, or that cannot be
// called. Its text quotes nothing from the upstream.
type Failure struct {
	Status int // of HTTP; 0: none came
	Why    string
	Cause  error
}

// Error implements error.
func (f *Failure) Error() string { return f.Why }

// Unwrap returns the cause.
func (f *Failure) Unwrap() error { return f.Cause }

// Fail returns a Failure.
func Fail(status int, format string, args ...any) *Failure {
	return &Failure{Status: status, Why: fmt.Sprintf(format, args...)}
}

// Unreachable hides the text of a transport's error, except the rejections of the guard. what
// names the upstream: the server.
func Unreachable(what string, err error) *Failure {
	f := Fail(0, "%s cannot be reached", what)
	switch {
	case egress.Refused(err):
		f.Why = what + "'s address is one that the gateway does not call"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled): // the waiting caller ended the call, if it still waits
		f.Why = what + " did not respond in time"
	}
	f.Cause = err
	return f
}

// Unresolved means that a secret manager does not give the credentials. It has the words of
// the fault, which names references and no secret.
func Unresolved(err error) *Failure {
	f := Fail(0, "the credentials could not be read: %s", fault.From(err).Message)
	f.Cause = err
	return f
}
