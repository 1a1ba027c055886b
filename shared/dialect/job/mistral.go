package job

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strconv"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// Mistral carries batch jobs of Mistral AI, each of one model, and fine-tuning
// jobs.
type Mistral struct{}

var _ chat.Jobs = Mistral{}

// mostMistral bounds a file at Mistral AI, in bytes.
const mostMistral = 512 << 20

// Name implements chat.Jobs.
func (Mistral) Name() string { return "mistral.jobs" }

// DecodeError implements chat.Jobs.
func (Mistral) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	return openai.Chat{}.DecodeError(status, h, body)
}

// Do implements chat.Jobs.
func (m Mistral) Do(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
	return steps{
		"batches_create":  m.create,
		"batches_get":     by(m.one, http.MethodGet),
		"batches_cancel":  by(m.one, http.MethodPost),
		"batches_list":    m.list,
		"finetune_create": m.tune,
		"finetune_get":    by(m.tuning, http.MethodGet),
		"finetune_cancel": by(m.tuning, http.MethodPost),
		"finetune_list":   m.tunings,
	}.do(ctx, j, "batch fine-tune", m.open)
}

// Usage implements chat.Jobs.
func (m Mistral) Usage(ctx context.Context, j *chat.Job) ([]chat.Meter, error) {
	return usageOf(ctx, j, m.open)
}

// create uploads the rows and starts a job.
func (m Mistral) create(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
	want, err := readHosted(j)
	if err != nil {
		return nil, err
	}
	f, err := inputFile(ctx, j, "input_file_id", want.Input, "batch")
	if err != nil {
		return nil, err
	}
	r, err := newRows(j, want, openai.Chat{}.Name(), chat.EmbeddingRows)
	if err != nil {
		return nil, err
	}
	r.one, r.shape = true, withoutModel
	file := r.rowsFile(ctx, f, mostMistral)
	file.fields = [][2]string{{"purpose", "batch"}}
	id, err := sendForm(ctx, j, file, "")
	if err := r.fault(err); err != nil {
		return nil, err
	}
	want.Model, want.Rows = r.last.Model, r.n
	o := upstream.Begin(nil)
	o.List("input_files", []string{id})
	o.Str("endpoint", hostEndpoint(want.Endpoint))
	o.Str("model", want.Model)
	if len(want.Metadata) > 0 {
		o.Raw("metadata", want.Metadata)
	}
	o.Int("timeout_hours", 24)
	o.Close('}')
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: o.B})
	if err != nil {
		return nil, err
	}
	job, err := m.read(resp)
	if err != nil {
		return nil, err
	}
	made := job.batch()
	if err := remember(ctx, j, made.ID, &want.note); err != nil {
		return nil, err
	}
	return answerBatch(ctx, j, made)
}

// mistralJob is a batch at Mistral AI. Times are Unix seconds.
type mistralJob struct {
	ID        string `json:"id"`
	Model     string `json:"model"`
	Status    string `json:"status"`
	Output    string `json:"output_file"`
	Failures  string `json:"error_file"`
	Created   int64  `json:"created_at"`
	Began     int64  `json:"started_at"`
	Ended     int64  `json:"completed_at"`
	Total     int64  `json:"total_requests"`
	Succeeded int64  `json:"succeeded_requests"`
	Failed    int64  `json:"failed_requests"`
	Errors    []struct {
		Message string `json:"message"`
	} `json:"errors"`
}

var mistralStates = map[string]string{
	"QUEUED": validating, "RUNNING": inProgress, "SUCCESS": completed, "FAILED": failed, "TIMEOUT_EXCEEDED": expired,
	"CANCELLATION_REQUESTED": cancelling, "CANCELLED": cancelled,
}

func (m *mistralJob) batch() *Batch {
	b := &Batch{
		ID: m.ID, Created: m.Created, Began: m.Began, Ended: m.Ended, Total: m.Total, Completed: m.Succeeded, Failed: m.Failed,
		Status: orElse(mistralStates[m.Status], inProgress),
	}
	b.Model = m.Model
	if b.Status == failed {
		b.Problem = "The job failed."
		if len(m.Errors) > 0 && m.Errors[0].Message != "" {
			b.Problem = m.Errors[0].Message
		}
	}
	if m.Output != "" && m.Succeeded > 0 {
		b.Output = b.ID + answersSuffix
	}
	if m.Failures != "" || m.Output != "" && m.Failed > 0 {
		b.Errors = b.ID + errorsSuffix
	}
	return b
}

func (Mistral) read(resp *http.Response) (*mistralJob, error) {
	job := new(mistralJob)
	if err := readJSON(resp, job); err != nil {
		return nil, err
	}
	if job.ID == "" || job.Status == "" {
		return nil, upstream.Invalid("The provider's answer is no job", nil)
	}
	return job, nil
}

func (m Mistral) job(ctx context.Context, j *chat.Job, op, method, id string) (*mistralJob, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: method, Operation: op, ID: id})
	if err != nil {
		return nil, err
	}
	return m.read(resp)
}

func (m Mistral) one(ctx context.Context, j *chat.Job, method string) (*chat.JobAnswer, error) {
	job, err := m.job(ctx, j, j.Operation, method, j.ID)
	if err != nil {
		return nil, err
	}
	return answerBatch(ctx, j, job.batch())
}

// numbered asks for a page of a list whose pages have numbers and one length.
func numbered(_ int, token string) url.Values {
	return url.Values{"page": {orElse(token, "0")}, "page_size": {itoa(maxPage)}}
}

// numberedPage reads one page of such a list; its number is counted by n.
func numberedPage[T any](n *int) func(*http.Response) ([]T, string, error) {
	return func(resp *http.Response) ([]T, string, error) {
		var page struct {
			Data []T `json:"data"`
		}
		if err := readJSON(resp, &page); err != nil {
			return nil, "", err
		}
		if *n++; len(page.Data) < maxPage {
			return page.Data, "", nil
		}
		return page.Data, strconv.Itoa(*n), nil
	}
}

func (Mistral) list(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
	jobs, more, err := tokenPage(ctx, j, func(m *mistralJob) string { return m.ID }, numbered, numberedPage[mistralJob](new(int)))
	if err != nil {
		return nil, err
	}
	batches := make([]*Batch, len(jobs))
	for i := range jobs {
		batches[i] = jobs[i].batch()
	}
	return answerBatches(ctx, j, batches, more)
}

// open reads the rows that a job made.
func (m Mistral) open(ctx context.Context, j *chat.Job, batch string) (*results, error) {
	job, err := m.job(ctx, j, "batches_get", http.MethodGet, batch)
	if err != nil {
		return nil, err
	}
	return hostResults(ctx, j, job.batch(), contents(job.Output, job.Failures))
}

// tune uploads the files and starts a fine-tuning job.
func (m Mistral) tune(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
	want, err := readTune(j)
	if err != nil {
		return nil, err
	}
	hyper, err := want.hyper()
	if err != nil {
		return nil, err
	}
	want.loseOptions(j)
	for _, name := range []string{"batch_size", "learning_rate_multiplier"} {
		if hyper[name] != "" {
			j.Loss.Add("hyperparameters."+name, upstream.NotTaken)
		}
	}
	if err := j.Loss.Err(); err != nil {
		return nil, err
	}
	training, validation, err := want.send(ctx, j, mostMistral, func(f *hostFile) { f.fields = [][2]string{{"purpose", "fine-tune"}} })
	if err != nil {
		return nil, err
	}
	o := upstream.Begin(nil)
	o.Str("model", want.Model)
	o.Key("training_files")
	o.Open('[')
	o.Open('{')
	o.Str("file_id", training)
	o.Int("weight", 1)
	o.B = append(o.B, "}]"...)
	if validation != "" {
		o.List("validation_files", []string{validation})
	}
	o.StrIf("suffix", want.Suffix)
	o.Bool("auto_start", true)
	o.Key("hyperparameters")
	o.Open('{')
	if n := hyper["n_epochs"]; n != "" {
		o.Raw("epochs", []byte(n))
	}
	o.B = append(o.B, "}}"...)
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: o.B})
	if err != nil {
		return nil, err
	}
	return m.answer(ctx, j, resp, &want.tuneNote)
}

// loseOptions reports what only clouds know.
func (a *tuneAsked) loseOptions(j *chat.Job) {
	if a.RoleARN != "" || a.JobName != "" {
		j.Loss.Add("provider_options", upstream.NotTaken)
	}
}

// send uploads the files of a job as conversations and gives their ids at the
// provider; prepare says what is sent along.
func (a *tuneAsked) send(ctx context.Context, j *chat.Job, most int64, prepare func(*hostFile)) (training, validation string, err error) {
	if training, err = sendExamples(ctx, j, "training_file", a.Training, most, prepare); err != nil || a.Validation == "" {
		return training, "", err
	}
	validation, err = sendExamples(ctx, j, "validation_file", a.Validation, most, prepare)
	return training, validation, err
}

func sendExamples(ctx context.Context, j *chat.Job, field, id string, most int64, prepare func(*hostFile)) (string, error) {
	f, count, err := examplesFile(ctx, j, field, id, most, appendTalk)
	if err != nil {
		return "", err
	}
	if err := someExamples(f, field, count); err != nil {
		return "", err
	}
	prepare(f)
	sent, err := sendForm(ctx, j, f, "")
	return sent, tooLong(err, j, field, most)
}

// someExamples reads examples to their end before anything is sent.
func someExamples(f *hostFile, field string, count *int) error {
	src := f.source()
	defer src.Close()
	_, err := io.Copy(io.Discard, src)
	return examplesFault(err, field, *count)
}

// mistralTuning is a fine-tuning job at Mistral AI. Times are Unix seconds.
type mistralTuning struct {
	ID       string `json:"id"`
	Model    string `json:"model"`
	Status   string `json:"status"`
	Created  int64  `json:"created_at"`
	Modified int64  `json:"modified_at"`
	Tuned    string `json:"fine_tuned_model"`
	Tokens   int64  `json:"trained_tokens"`
}

var mistralTunings = map[string]string{
	"QUEUED": tuneQueued, "STARTED": tuneQueued, "VALIDATING": tuneValidating, "VALIDATED": tuneQueued, "RUNNING": tuneRunning, "SUCCESS": tuneSucceeded,
	"FAILED": tuneFailed, "FAILED_VALIDATION": tuneFailed, "CANCELLED": tuneCancelled, "CANCELLATION_REQUESTED": tuneCancelled,
}

func (m *mistralTuning) tuning() *Tuning {
	t := &Tuning{ID: m.ID, Created: m.Created, Status: orElse(mistralTunings[m.Status], tuneRunning), Tuned: m.Tuned, Trained: m.Tokens}
	t.Model = m.Model
	switch t.Status {
	case tuneFailed:
		t.Problem = "The job failed."
		if m.Status == "FAILED_VALIDATION" {
			t.Problem = "The files are not valid."
		}
		t.Ended = m.Modified
	case tuneSucceeded, tuneCancelled:
		t.Ended = m.Modified
	}
	return t
}

func (Mistral) answer(ctx context.Context, j *chat.Job, resp *http.Response, n *tuneNote) (*chat.JobAnswer, error) {
	var job mistralTuning
	if err := readJSON(resp, &job); err != nil {
		return nil, err
	}
	if job.ID == "" || job.Status == "" {
		return nil, upstream.Invalid("The provider's answer is no job", nil)
	}
	if n != nil {
		if err := rememberTuning(ctx, j, job.ID, n); err != nil {
			return nil, err
		}
	}
	return answerTuning(ctx, j, job.tuning())
}

func (m Mistral) tuning(ctx context.Context, j *chat.Job, method string) (*chat.JobAnswer, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: method, Operation: j.Operation, ID: j.ID})
	if err != nil {
		return nil, err
	}
	return m.answer(ctx, j, resp, nil)
}

func (Mistral) tunings(ctx context.Context, j *chat.Job) (*chat.JobAnswer, error) {
	jobs, more, err := tokenPage(ctx, j, func(m *mistralTuning) string { return m.ID }, numbered, numberedPage[mistralTuning](new(int)))
	if err != nil {
		return nil, err
	}
	page := make([]*Tuning, len(jobs))
	for i := range jobs {
		page[i] = jobs[i].tuning()
	}
	return answerTunings(ctx, j, page, more)
}
