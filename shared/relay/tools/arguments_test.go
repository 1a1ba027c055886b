package tools

import (
	"testing"

	"gateway/shared/mcp"
)

// TestBrokenArgumentsReachNoServer checks that a call with arguments that are not a JSON object
// is not made. The model gets an error, and no server is called (the run has none).
func TestBrokenArgumentsReachNoServer(t *testing.T) {
	t.Parallel()
	for _, args := range []string{`{"a":`, `{"a":1}{"a":1}`, "```json\n{\"a\":1}\n```", `[1]`, `"{}"`, `{"a":1 "b":2}`, `null`, `1`, `{"a":1,"a":2}`} {
		if o := new(run).make(t.Context(), new(tool), args); !o.failed || o.code != mcp.CodeInvalidParams {
			t.Errorf("%s: %+v", args, o)
		}
	}
}
