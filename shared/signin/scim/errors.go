package scim

import (
	"errors"

	"gateway/shared/fault"
)

// Type is the scimType of an error in RFC 7644 (3.12).
type Type string

const (
	InvalidFilter Type = "invalidFilter"
	TooMany       Type = "tooMany"
	Uniqueness    Type = "uniqueness"
	Mutability    Type = "mutability"
	InvalidSyntax Type = "invalidSyntax"
	InvalidPath   Type = "invalidPath"
	NoTarget      Type = "noTarget"
	InvalidValue  Type = "invalidValue"
)

// Error implements error, so that a fault can carry its type.
func (t Type) Error() string { return string(t) }

// invalid returns a 400 with a type for one attribute.
func invalid(t Type, field, format string, args ...any) *fault.Fault {
	return fault.Invalid(field, format, args...).WithCause(t)
}

// TypeOf returns the type of a fault, or "" if RFC 7644 has none for it.
func TypeOf(f *fault.Fault) Type {
	var t Type
	switch {
	case errors.As(f, &t):
		return t
	case f.Code == fault.Conflict:
		return Uniqueness
	case f.Code == fault.InvalidRequest:
		return InvalidValue
	}
	return ""
}
