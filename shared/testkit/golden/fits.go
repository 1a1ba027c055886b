package golden

import (
	"bytes"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// fits is chat.Request.Fits for cases.
func fits(schema, value []byte) bool {
	s, err := jsonschema.UnmarshalJSON(bytes.NewReader(schema))
	if err != nil {
		return true
	}
	c := jsonschema.NewCompiler()
	if c.AddResource("mem:schema", s) != nil {
		return true
	}
	compiled, err := c.Compile("mem:schema")
	if err != nil {
		return true
	}
	v, err := jsonschema.UnmarshalJSON(bytes.NewReader(value))
	return err == nil && compiled.Validate(v) == nil
}
