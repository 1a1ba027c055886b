package target

import (
	"testing"

	"gateway/shared/provider"
)

func TestWhatReasonsWithTools(t *testing.T) {
	t.Parallel()
	const tools = `"tools":[{"name":"now"}]`
	for _, c := range []struct {
		body         string
		when, unless bool
	}{
		{`{` + tools + `}`, false, true},
		{`{` + tools + `,"reasoning_effort":"low"}`, true, true},
		{`{` + tools + `,"reasoning_effort":"none"}`, false, false},
		{`{` + tools + `,"reasoning_effort":null}`, false, true},
		{`{` + tools + `,"reasoning_effort":7}`, false, false},
		{`{` + tools + `,"thinking":{"type":"enabled","budget_tokens":1024}}`, true, true},
		{`{` + tools + `,"thinking":{"type":"adaptive"}}`, true, true},
		{`{` + tools + `,"thinking":{"type":"disabled"}}`, false, true},
		{`{` + tools + `,"output_config":{"effort":"high"}}`, true, true},
		{`{` + tools + `,"output_config":{"format":null}}`, false, true},
		{`{"tools":[],"reasoning_effort":"low"}`, false, false},
		{`{"tools":[` + "\n\t" + `],"reasoning_effort":"low"}`, false, false},
		{`{"tools":null,"reasoning_effort":"low"}`, false, false},
		{`{"tools":"x","reasoning_effort":"low"}`, false, false},
		{`{"reasoning_effort":"low"}`, false, false},
		{``, false, false},
		{`{"tools":`, false, false},
	} {
		if got := reasonsWithTools([]byte(c.body), provider.ByResponsesWhenEffort); got != c.when {
			t.Errorf("%s: %t where it is asked for", c.body, got)
		}
		if got := reasonsWithTools([]byte(c.body), provider.ByResponsesUnlessNoEffort); got != c.unless {
			t.Errorf("%s: %t where it is usual", c.body, got)
		}
	}
}
