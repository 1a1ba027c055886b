package target

import "testing"

// TestRowsOfEvaluations: rows of a run that are not in its body cannot be judged, in any
// spelling of the path.
func TestRowsOfEvaluations(t *testing.T) {
	t.Parallel()
	const inline = `{"data_source":{"type":"completions","source":{"type":"file_content","content":[]}}}`
	for _, c := range []struct {
		path, body string
		elsewhere  bool
	}{
		{"/evals/e/runs", inline, false},
		{"/evals/e/runs", `{"data_source":{"type":"jsonl","source":{"type":"file_id","id":"file-1"}}}`, true},
		{"/evals/e/runs", `{"data_source":{"type":"completions","source":{"type":"stored_completions"}}}`, true},
		{"/evals/e/runs", `{"data_source":{"type":"responses","source":{"type":"responses"}}}`, true},
		{"/v1/Evals/e/runs", `{"data_source":{"Source":{"type":"file_content"}}}`, true},
		{"/evals/e/%72uns", `{}`, true},
		{"/evals/e/runs", `[]`, true},
		{"/evals", `{}`, false},
		{"/evals/e/runs/r", `{}`, false},
		{"/threads/t/runs", `{}`, false},
	} {
		if got := EvalRowsElsewhere(c.path, []byte(c.body)); got != c.elsewhere {
			t.Errorf("%s %s: %t", c.path, c.body, got)
		}
	}
}
