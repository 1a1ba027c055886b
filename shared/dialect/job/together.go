package job

import (
	"context"
	"encoding/json"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// TogetherAI carries batches and fine-tuning jobs of TogetherAI AI.
type TogetherAI struct{}

var _ chat.Jobs = TogetherAI{}

// mostTogether bounds the rows of a batch at TogetherAI AI, in bytes.
const mostTogether = 100 << 20

// Name implements chat.Jobs.
func (TogetherAI) Name() string { return "together.jobs" }

// DecodeError implements chat.Jobs.
func (TogetherAI) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return openai.Chat{}.DecodeError(status, h, body)
}

// Do implements chat.Jobs.
func (TogetherAI) Do(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	return onTogether.do(ctx, j)
}

// Usage implements chat.Jobs.
func (TogetherAI) Usage(ctx context.Context, j *chat.Job) ([]chat.Meter, error) {
	return usageOf(ctx, j, onTogether.open)
}

var onTogether = uploads[*togetherJob, *togetherTuning]{
	most: mostTogether, mostExamples: maxExamples,
	wires: []string{openai.Chat{}.Name(), openai.Completions{}.Name()},
	along: func(f *hostFile, purpose string) {
		f.fields = [][2]string{{"purpose", purpose}, {"file_name", f.name}, {"file_type", "jsonl"}}
	},
	purposes:   [2]string{"batch-api", "fine-tune"},
	body:       togetherBatch,
	read:       readTogether,
	fared:      countTogether,
	list:       batchList(pages[togetherJob]{none, func() pageReader[togetherJob] { return listed[togetherJob] }}),
	lost:       []string{"learning_rate_multiplier"},
	readTuning: readJob[togetherTuning],
	tuning:     togetherTune,
	tunings:    tuningList(pages[togetherTuning]{none, func() pageReader[togetherTuning] { return listed[togetherTuning] }}),
}

// togetherBatch is the body of a new batch. If its rows have several models, the rows name
// them.
func togetherBatch(want *batchRequest, r *rows, file string) []byte {
	if want.Model = ""; len(r.talks) == 1 {
		want.Model = r.last.Model
	}
	o := upstream.Begin(nil)
	o.Str("input_file_id", file)
	if r.last.Wire() == (openai.Completions{}).Name() {
		o.Str("endpoint", "/v1/completions")
	} else {
		o.Str("endpoint", hostEndpoint(want.Endpoint))
	}
	o.Str("completion_window", "24h")
	o.Close('}')
	return o.B
}

// togetherTune is the body of a new fine-tuning job.
func togetherTune(want *tuneRequest, training, validation string, hyper map[string]string) []byte {
	o := upstream.Begin(nil)
	o.Str("model", want.Model)
	o.Str("training_file", training)
	o.StrIf("validation_file", validation)
	o.StrIf("suffix", want.Suffix)
	for _, name := range []string{"n_epochs", "batch_size"} {
		if n := hyper[name]; n != "" {
			o.Raw(name, []byte(n))
		}
	}
	o.Close('}')
	return o.B
}

// togetherJob is a batch at TogetherAI AI. It gives its progress in percent, not in rows.
type togetherJob struct {
	ID       string `json:"id"`
	Status   string `json:"status"`
	Created  string `json:"created_at"`
	Ended    string `json:"completed_at"`
	Deadline string `json:"job_deadline"`
	Model    string `json:"model_id"`
	Output   string `json:"output_file_id"`
	Failures string `json:"error_file_id"`
	Error    string `json:"error"`
}

var togetherStates = map[string]string{
	"VALIDATING": validating, "IN_PROGRESS": inProgress, "COMPLETED": completed, "FAILED": failed, "EXPIRED": expired,
	"CANCELLING": cancelling, "CANCELLED": cancelled,
}

func (t *togetherJob) batch() *Batch {
	b := &Batch{
		ID: t.ID, Created: seconds(t.Created), Ended: seconds(t.Ended), Expires: seconds(t.Deadline),
		Status: orElse(togetherStates[strings.ToUpper(t.Status)], inProgress),
	}
	b.Model = t.Model
	if b.Status == failed {
		b.Problem = orElse(t.Error, "The batch failed.")
	}
	if t.Output != "" {
		b.Output = b.ID + responsesSuffix
	}
	if t.Failures != "" {
		b.Errors = b.ID + errorsSuffix
	}
	return b
}

func (t *togetherJob) files() (string, string) { return t.Output, t.Failures }

// readTogether reads a batch. A new batch is inside a field.
func readTogether(resp *http.Response) (*togetherJob, error) {
	var answer struct {
		togetherJob
		Job *togetherJob `json:"job"`
	}
	if err := readJSON(resp, &answer); err != nil {
		return nil, err
	}
	job := &answer.togetherJob
	if answer.Job != nil {
		job = answer.Job
	}
	if job.ID == "" || job.Status == "" {
		return nil, upstream.Invalid("The provider's response is not a batch", nil)
	}
	return job, nil
}

// countTogether counts the results of an ended batch, which are only in its files.
func countTogether(ctx context.Context, j *chat.Job, b *Batch, job *togetherJob) error {
	if b.Ended == 0 || job.Output+job.Failures == "" {
		return nil
	}
	got, err := hostResults(ctx, j, job.batch(), contents(job.Output, job.Failures))
	if err != nil {
		return err
	}
	defer got.src.Close()
	return got.each(func(r *result) {
		if b.Total++; r.good() {
			b.Completed++
		} else {
			b.Failed++
		}
	})
}

// none returns the query for a list with one page.
func none(int, string) url.Values { return url.Values{} }

// listed reads a list that has one page: an array, or an object with one.
func listed[T any](resp *http.Response) ([]T, string, error) {
	var raw json.RawMessage
	if err := readJSON(resp, &raw); err != nil {
		return nil, "", err
	}
	var entries []T
	var err error
	if wire.KindOf(raw) == wire.KindArray {
		err = json.Unmarshal(raw, &entries)
	} else {
		var page struct {
			Data []T `json:"data"`
		}
		err = json.Unmarshal(raw, &page)
		entries = page.Data
	}
	if err != nil {
		return nil, "", upstream.Invalid("The provider's response cannot be read", err)
	}
	return entries, "", nil
}

// maxExamples limits a file of examples, in bytes: the limit of stored files, plus what
// the provider's format adds.
const maxExamples = 1 << 30

// togetherTuning is a fine-tuning job at TogetherAI AI.
type togetherTuning struct {
	ID      string `json:"id"`
	Model   string `json:"model"`
	Status  string `json:"status"`
	Created string `json:"created_at"`
	Updated string `json:"updated_at"`
	Tuned   string `json:"model_output_name"`
	Output  string `json:"output_name"`
	Tokens  int64  `json:"token_count"`
}

var togetherTunings = map[string]string{
	"pending": tuneQueued, "queued": tuneQueued, "running": tuneRunning, "compressing": tuneRunning, "uploading": tuneRunning, "completed": tuneSucceeded,
	"error": tuneFailed, "user_error": tuneFailed, "cancelled": tuneCancelled, "cancel_requested": tuneCancelled,
}

func (t *togetherTuning) tuning() *Tuning {
	out := &Tuning{ID: t.ID, Created: seconds(t.Created), Status: orElse(togetherTunings[strings.ToLower(t.Status)], tuneRunning), Trained: t.Tokens}
	out.Model = t.Model
	switch out.Status {
	case tuneSucceeded:
		out.Tuned, out.Ended = orElse(t.Tuned, t.Output), seconds(t.Updated)
	case tuneFailed:
		out.Problem, out.Ended = "The job failed.", seconds(t.Updated)
	case tuneCancelled:
		out.Ended = seconds(t.Updated)
	}
	return out
}

func (t *togetherTuning) valid() bool { return t.ID != "" }
