package chat

import "testing"

func TestHoldsStrict(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string]bool{
		`{"type":"object","properties":{"a":{"type":"string"}},"required":["a"],"additionalProperties":false}`: true,
		`{"type":"object","properties":{},"additionalProperties":false}`:                                       true,
		`{"type":"array","items":{"type":"string"}}`:                                                           true,
		`{"type":"object","properties":{"a":{},"b":{}},"required":["a"],"additionalProperties":false}`:         false,
		`{"type":"object","properties":{"a":{}},"required":["a"]}`:                                             false,
		`{"properties":{"a":{}},"additionalProperties":false}`:                                                 false,
		`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":true}`:                 false,
		`{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":{}}`:                   false,
		`{"type":"object"}`:                          false,
		`{"type":["object","null"],"properties":{}}`: false,
		`{"type":"object","properties":{"a":{"type":"object","properties":{"b":{}}}},"required":["a"],"additionalProperties":false}`:                                                                                  false,
		`{"type":"array","items":{"type":"object","properties":{"b":{}},"additionalProperties":false}}`:                                                                                                               false,
		`{"anyOf":[{"type":"string"},{"type":"object","properties":{"b":{}},"additionalProperties":false}]}`:                                                                                                          false,
		`{"$defs":{"x":{"type":"object","properties":{"b":{}}}},"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"additionalProperties":false}`:                                               false,
		`{"$defs":{"x":{"type":"object","properties":{"b":{}},"required":["b"],"additionalProperties":false}},"type":"object","properties":{"a":{"$ref":"#/$defs/x"}},"required":["a"],"additionalProperties":false}`: true,
		`{"type":"object","properties":{"required":{}},"required":["required"],"additionalProperties":false}`:                                                                                                         true,
		`true`: false, `{"type":"object","properties":7}`: false, `{"required":[7],"properties":{},"additionalProperties":false}`: false,
	} {
		if got := HoldsStrict([]byte(schema)); got != want {
			t.Errorf("%s: %t", schema, got)
		}
	}
}

func TestObjectSchemaHasPropertiesWhereHostsDemandThem(t *testing.T) {
	for in, want := range map[string]string{
		`{}`:                `{"type":"object","properties":{}}`,
		`{"type":"object"}`: `{"properties":{},"type":"object"}`,
		`{"type":"object","properties":{"a":{}}}`: `{"type":"object","properties":{"a":{}}}`,
		`{"properties":{"a":{}}}`:                 `{"type":"object","properties":{"a":{}}}`,
		`{"anyOf":[{"type":"object"}]}`:           `{"anyOf":[{"type":"object"}]}`,
		`{"type":"string"}`:                       `{"type":"string"}`,
		``:                                        ``,
	} {
		if got := string(ObjectSchema([]byte(in))); got != want {
			t.Errorf("%s is %s, want %s", in, got, want)
		}
	}
}
