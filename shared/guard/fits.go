package guard

import (
	"bytes"
	"context"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// Fits reports whether a JSON value matches a JSON schema. It returns true for a schema that
// cannot be compiled or has patterns that take too long: the provider has accepted the request
// with it.
func Fits(ctx context.Context, schema, value []byte) bool {
	s, err := CompileSchema(schema)
	if err != nil {
		return true
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	if err != nil {
		return false
	}
	switch s.Validate(ctx, v).(type) {
	case nil:
		return true
	case *jsonschema.ValidationError:
		return false
	}
	return true // ErrTime, or the request has ended
}
