package upstream

import (
	"context"
	"errors"
	"fmt"

	"gateway/shared/egress"
	"gateway/shared/fault"
)

// Failure is a server or an agent that does not answer as its protocol says, or that
// cannot be called. Its text holds nothing that the upstream said.
type Failure struct {
	Status int // of HTTP; 0: none came
	Why    string
	Cause  error
}

// Error implements error.
func (f *Failure) Error() string { return f.Why }

// Unwrap gives what led to it.
func (f *Failure) Unwrap() error { return f.Cause }

// Fail makes a Failure.
func Fail(status int, format string, args ...any) *Failure {
	return &Failure{Status: status, Why: fmt.Sprintf(format, args...)}
}

// Unreachable hides what a transport says but for what the guard refused. what is the
// upstream in prose: the server.
func Unreachable(what string, err error) *Failure {
	f := Fail(0, "%s cannot be reached", what)
	switch {
	case egress.Refused(err):
		f.Why = what + "'s address is one that the gateway does not call"
	case errors.Is(err, context.DeadlineExceeded), errors.Is(err, context.Canceled): // by who waits, unless nobody does any more
		f.Why = what + " did not answer in time"
	}
	f.Cause = err
	return f
}

// Unresolved is credentials that a secret manager does not give, in the words of the
// fault that says so, which names references and no secret.
func Unresolved(err error) *Failure {
	f := Fail(0, "the credentials could not be read: %s", fault.From(err).Message)
	f.Cause = err
	return f
}
