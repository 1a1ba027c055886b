package job

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"gateway/shared/chat"
	"gateway/shared/fault"
)

// If a host lists something that is not a job, it is listed as a job of which nothing is
// known; something that is not a list is the provider's fault. Nothing that a host says
// ends the process.
func TestListsOfNonsense(t *testing.T) {
	t.Parallel()
	const members = "data results jobs invocationJobSummaries modelCustomizationJobSummaries batchInferenceJobs supervisedFineTuningJobs batchPredictionJobs tuningJobs embed_jobs"
	for _, jobs := range []chat.Jobs{Anthropic{}, Bedrock{}, Cohere{}, Fireworks{}, Mistral{}, TogetherAI{}, Vertex{}} {
		for _, op := range []string{"batches_list", "finetune_list"} {
			if name := jobs.Name(); op == "finetune_list" && (name == (Anthropic{}).Name() || name == (Cohere{}).Name()) {
				continue // they fine-tune nothing
			}
			for value, fails := range map[string]bool{`[null]`: false, `[{}]`: false, `null`: false, `[7]`: true, `"x"`: true} {
				body := value
				if jobs.Name() != (TogetherAI{}).Name() || op == "finetune_list" {
					body = `{"` + strings.Join(strings.Fields(members), `":`+value+`,"`) + `":` + value + `}`
				}
				j := &chat.Job{
					Operation: op, Loss: &chat.Loss{}, Field: func(string) string { return "field" }, Files: &room{notes: map[string][]byte{}},
					Call: func(context.Context, *chat.JobCall) (*http.Response, error) {
						return &http.Response{StatusCode: 200, Header: http.Header{}, Body: io.NopCloser(strings.NewReader(body))}, nil
					},
				}
				a, err := jobs.Do(t.Context(), j)
				if fails != (err != nil) || err != nil && fault.From(err).Source != fault.SourceProvider {
					t.Errorf("%s, %s, %s: %v, %v", jobs.Name(), op, body, a, err)
				}
			}
		}
	}
}
