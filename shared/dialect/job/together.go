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

// Together carries batches and fine-tuning jobs of Together AI.
type Together struct{}

var _ chat.Jobs = Together{}

// mostTogether bounds the rows of a batch at Together AI, in bytes.
const mostTogether = 100 << 20

// Name implements chat.Jobs.
func (Together) Name() string { return "together.jobs" }

// DecodeError implements chat.Jobs.
func (Together) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return openai.Chat{}.DecodeError(status, h, body)
}

// Do implements chat.Jobs.
func (t Together) Do(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
	return steps{
		"batches_create":  t.create,
		"batches_get":     by(t.one, http.MethodGet),
		"batches_cancel":  by(t.one, http.MethodPost),
		"batches_list":    t.list,
		"finetune_create": t.tune,
		"finetune_get":    by(t.tuning, http.MethodGet),
		"finetune_cancel": by(t.tuning, http.MethodPost),
		"finetune_list":   t.tunings,
	}.do(ctx, j, "batch fine-tune", t.open)
}

// Usage implements chat.Jobs.
func (t Together) Usage(ctx context.Context, j *chat.Job) ([]chat.Meter, error) {
	return usageOf(ctx, j, t.open)
}

// forTogether says what is sent along with a file.
func forTogether(purpose string) func(*hostFile) {
	return func(f *hostFile) {
		f.fields = [][2]string{{"purpose", purpose}, {"file_name", f.name}, {"file_type", "jsonl"}}
	}
}

// create uploads the rows and starts a batch.
func (t Together) create(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
	want, err := readHosted(j)
	if err != nil {
		return nil, err
	}
	f, err := inputFile(ctx, j, "input_file_id", want.Input, "batch")
	if err != nil {
		return nil, err
	}
	r, err := newRows(j, want, openai.Chat{}.Name(), openai.Completions{}.Name())
	if err != nil {
		return nil, err
	}
	file := r.rowsFile(ctx, f, mostTogether)
	forTogether("batch-api")(file)
	id, err := sendForm(ctx, j, file, "")
	if err := r.fault(err); err != nil {
		return nil, err
	}
	if want.Rows = r.n; len(r.talks) == 1 {
		want.Model = r.last.Model
	} else {
		want.Model = "" // rows tell theirs
	}
	o := upstream.Begin(nil)
	o.Str("input_file_id", id)
	if r.last.Wire() == (openai.Completions{}).Name() {
		o.Str("endpoint", "/v1/completions")
	} else {
		o.Str("endpoint", hostEndpoint(want.Endpoint))
	}
	o.Str("completion_window", "24h")
	o.Close('}')
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: o.B})
	if err != nil {
		return nil, err
	}
	job, err := t.read(resp)
	if err != nil {
		return nil, err
	}
	made := job.batch()
	if err := remember(ctx, j, made.ID, &want.note); err != nil {
		return nil, err
	}
	return answerBatch(ctx, j, made)
}

// togetherJob is a batch at Together AI. It tells its progress in percent and not
// in rows.
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
		b.Output = b.ID + answersSuffix
	}
	if t.Failures != "" {
		b.Errors = b.ID + errorsSuffix
	}
	return b
}

// read reads a batch, which stands in a member when it is new.
func (Together) read(resp *http.Response) (*togetherJob, error) {
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
		return nil, upstream.Invalid("The provider's answer is no batch", nil)
	}
	return job, nil
}

func (t Together) job(ctx context.Context, j *chat.Job, op, method, id string) (*togetherJob, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: method, Operation: op, ID: id})
	if err != nil {
		return nil, err
	}
	return t.read(resp)
}

func (t Together) one(ctx context.Context, j *chat.Job, method string) (*chat.JobAnswer, error) {
	job, err := t.job(ctx, j, j.Operation, method, j.ID)
	if err != nil {
		return nil, err
	}
	b := job.batch()
	if b.Ended > 0 && job.Output+job.Failures != "" {
		if err := t.count(ctx, j, b, job); err != nil {
			return nil, err
		}
	}
	return answerBatch(ctx, j, b)
}

// count adds how the rows of an ended batch fared, which nothing but its files
// tells.
func (t Together) count(ctx context.Context, j *chat.Job, b *Batch, job *togetherJob) error {
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

// none asks for a list that has one page.
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
		return nil, "", upstream.Invalid("The provider's answer cannot be read", err)
	}
	return entries, "", nil
}

func (Together) list(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
	jobs, more, err := tokenPage(ctx, j, func(t *togetherJob) string { return t.ID }, none, listed[togetherJob])
	if err != nil {
		return nil, err
	}
	batches := make([]*Batch, len(jobs))
	for i := range jobs {
		batches[i] = jobs[i].batch()
	}
	return answerBatches(ctx, j, batches, more)
}

// open reads the rows that a batch made.
func (t Together) open(ctx context.Context, j *chat.Job, batch string) (*results, error) {
	job, err := t.job(ctx, j, "batches_get", http.MethodGet, batch)
	if err != nil {
		return nil, err
	}
	return hostResults(ctx, j, job.batch(), contents(job.Output, job.Failures))
}

// tune uploads the files and starts a fine-tuning job.
func (t Together) tune(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
	want, err := readTune(j)
	if err != nil {
		return nil, err
	}
	hyper, err := want.hyper()
	if err != nil {
		return nil, err
	}
	want.loseOptions(j)
	if hyper["learning_rate_multiplier"] != "" {
		j.Loss.Add("hyperparameters.learning_rate_multiplier", upstream.NotTaken)
	}
	if err := j.Loss.Err(); err != nil {
		return nil, err
	}
	training, validation, err := want.send(ctx, j, maxExamples, forTogether("fine-tune"))
	if err != nil {
		return nil, err
	}
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
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: o.B})
	if err != nil {
		return nil, err
	}
	return t.answer(ctx, j, resp, &want.tuneNote)
}

// maxExamples bounds a file of examples, in bytes: what the room takes, and what
// the provider's shape adds.
const maxExamples = 1 << 30

// togetherTuning is a fine-tuning job at Together AI.
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

func (Together) answer(ctx context.Context, j *chat.Job, resp *http.Response, n *tuneNote) (*chat.JobAnswer, error) {
	var job togetherTuning
	if err := readJSON(resp, &job); err != nil {
		return nil, err
	}
	if job.ID == "" {
		return nil, upstream.Invalid("The provider's answer is no job", nil)
	}
	if n != nil {
		if err := rememberTuning(ctx, j, job.ID, n); err != nil {
			return nil, err
		}
	}
	return answerTuning(ctx, j, job.tuning())
}

func (t Together) tuning(ctx context.Context, j *chat.Job, method string) (*chat.JobAnswer, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: method, Operation: j.Operation, ID: j.ID})
	if err != nil {
		return nil, err
	}
	return t.answer(ctx, j, resp, nil)
}

func (Together) tunings(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
	jobs, more, err := tokenPage(ctx, j, func(t *togetherTuning) string { return t.ID }, none, listed[togetherTuning])
	if err != nil {
		return nil, err
	}
	page := make([]*Tuning, len(jobs))
	for i := range jobs {
		page[i] = jobs[i].tuning()
	}
	return answerTunings(ctx, j, page, more)
}
