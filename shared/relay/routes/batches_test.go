package routes

import "testing"

func TestStartsBatch(t *testing.T) {
	t.Parallel()
	for path, want := range map[string]bool{
		"/batches": true, "/v1/batches": true, "/v1/batches/": true, "/v1/BATCHES": true, "/v1/%62atches": true, "/v1/files/../batches": true, "/v1/batches;a=b": true,
		"/openai/v1/batches": true, "/v1/messages/batches": true, "/v1/batches/b_1/requests": true,
		"/v1beta/models/gemini-2.5-flash:batchGenerateContent": true, "/v1beta/models/e:asyncBatchEmbedContent": true,
		"/v1/batch/jobs": true, "/v1/embed-jobs": true, "/model-invocation-job": true, "/async-invoke": true,
		"/v1/projects/p/locations/l/batchPredictionJobs": true, "/v1/accounts/a/batchInferenceJobs": true,
		"/v1/batches/b_1": false, "/v1/batches/b_1/cancel": false, "/v1/messages/batches/b_1/cancel": false, "/v1/fine_tuning/jobs": false,
		"/v1/embed-jobs/e/cancel": false, "/v1/chat/completions": false, "/v1/vector_stores/v/file_batches": false, "/": false, "": false,
	} {
		if got := StartsBatch("POST", path); got != want {
			t.Errorf("%s: %v", path, got)
		}
		if StartsBatch("GET", path) {
			t.Errorf("a read of %s", path)
		}
	}
}
