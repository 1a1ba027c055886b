package job

import (
	"context"
	"io"
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
)

// hostBatch is a batch in a host's form.
type hostBatch interface {
	batch() *Batch
	// files are the ids of the files with its results: answers and failures, empty for none.
	files() (answers, failures string)
}

// hostTuning is a fine-tuning job in a host's form.
type hostTuning interface{ tuning() *Tuning }

// uploads serves hosts that take rows and examples as uploaded files, and that also give
// the results of rows as files.
type uploads[B hostBatch, T hostTuning] struct {
	most, mostExamples int64                             // bytes of a file
	wires              []string                          // of rows
	along              func(f *hostFile, purpose string) // adds the fields that are sent with a file
	purposes           [2]string                         // of rows and of examples

	prepare func(r *rows) // may be nil
	body    func(want *batchRequest, r *rows, file string) []byte
	read    func(*http.Response) (B, error)
	fared   func(ctx context.Context, j *chat.Job, b *Batch, job B) error // counts how the rows fared; may be nil
	list    step

	lost       []string // hyperparameters that are not taken
	readTuning func(*http.Response) (T, error)
	tuning     func(want *tuneRequest, training, validation string, hyper map[string]string) []byte
	tunings    step
}

func (u *uploads[B, T]) do(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	return steps{
		"batches_create":  u.create,
		"batches_get":     by(u.one, http.MethodGet),
		"batches_cancel":  by(u.one, http.MethodPost),
		"batches_list":    u.list,
		"finetune_create": u.tune,
		"finetune_get":    by(u.tuned, http.MethodGet),
		"finetune_cancel": by(u.tuned, http.MethodPost),
		"finetune_list":   u.tunings,
	}.do(ctx, j, "batch fine-tune", u.open)
}

// create uploads the rows and starts a batch.
func (u *uploads[B, T]) create(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	want, err := readHosted(j)
	if err != nil {
		return nil, err
	}
	f, err := inputFile(ctx, j, "input_file_id", want.Input, "batch")
	if err != nil {
		return nil, err
	}
	r, err := newRows(j, want, u.wires...)
	if err != nil {
		return nil, err
	}
	if u.prepare != nil {
		u.prepare(r)
	}
	file := r.rowsFile(ctx, f, u.most)
	u.along(file, u.purposes[0])
	id, err := sendForm(ctx, j, file, "")
	if err := r.fault(err); err != nil {
		return nil, err
	}
	want.Rows = r.n
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: u.body(want, r, id)})
	if err != nil {
		return nil, err
	}
	job, err := u.read(resp)
	if err != nil {
		return nil, err
	}
	made := job.batch()
	if err := remember(ctx, j, made.ID, &want.note); err != nil {
		return nil, err
	}
	return batchResponse(ctx, j, made)
}

// readJob reads a response that is a job. J is a pointer to a struct.
func readJob[S any, J interface {
	*S
	valid() bool
}](resp *http.Response) (J, error) {
	job := J(new(S))
	if err := readJSON(resp, job); err != nil {
		return nil, err
	}
	if !job.valid() {
		return nil, upstream.Invalid("The provider's response is not a job", nil)
	}
	return job, nil
}

func (u *uploads[B, T]) job(ctx context.Context, j *chat.Job, op, method, id string) (job B, err error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: method, Operation: op, ID: id})
	if err != nil {
		return job, err
	}
	return u.read(resp)
}

func (u *uploads[B, T]) one(ctx context.Context, j *chat.Job, method string) (*chat.JobResponse, error) {
	job, err := u.job(ctx, j, j.Operation, method, j.ID)
	if err != nil {
		return nil, err
	}
	b := job.batch()
	if u.fared != nil {
		if err := u.fared(ctx, j, b, job); err != nil {
			return nil, err
		}
	}
	return batchResponse(ctx, j, b)
}

// open reads the rows that a batch made.
func (u *uploads[B, T]) open(ctx context.Context, j *chat.Job, batch string) (*results, error) {
	job, err := u.job(ctx, j, "batches_get", http.MethodGet, batch)
	if err != nil {
		return nil, err
	}
	return hostResults(ctx, j, job.batch(), contents(job.files()))
}

// tune uploads the files and starts a fine-tuning job.
func (u *uploads[B, T]) tune(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	want, err := readTune(j)
	if err != nil {
		return nil, err
	}
	hyper, err := want.hyper()
	if err != nil {
		return nil, err
	}
	want.loseOptions(j)
	for _, name := range u.lost {
		if hyper[name] != "" {
			j.Loss.Add("hyperparameters."+name, upstream.UnsupportedField)
		}
	}
	if err := j.Loss.Err(); err != nil {
		return nil, err
	}
	training, validation, err := want.send(ctx, j, u.mostExamples, func(f *hostFile) { u.along(f, u.purposes[1]) })
	if err != nil {
		return nil, err
	}
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: u.tuning(want, training, validation, hyper)})
	if err != nil {
		return nil, err
	}
	return u.respond(ctx, j, resp, &want.tuneNote)
}

func (u *uploads[B, T]) respond(ctx context.Context, j *chat.Job, resp *http.Response, n *tuneNote) (*chat.JobResponse, error) {
	job, err := u.readTuning(resp)
	if err != nil {
		return nil, err
	}
	t := job.tuning()
	if n != nil {
		if err := rememberTuning(ctx, j, t.ID, n); err != nil {
			return nil, err
		}
	}
	return tuningResponse(ctx, j, t)
}

func (u *uploads[B, T]) tuned(ctx context.Context, j *chat.Job, method string) (*chat.JobResponse, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: method, Operation: j.Operation, ID: j.ID})
	if err != nil {
		return nil, err
	}
	return u.respond(ctx, j, resp, nil)
}

// loseOptions reports options that only clouds know.
func (a *tuneRequest) loseOptions(j *chat.Job) {
	if a.RoleARN != "" || a.JobName != "" {
		j.Loss.Add("provider_options", upstream.UnsupportedField)
	}
}

// send uploads the files of a job as conversations and returns their ids at the provider;
// prepare adds the fields that are sent with them.
func (a *tuneRequest) send(ctx context.Context, j *chat.Job, most int64, prepare func(*hostFile)) (training, validation string, err error) {
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

// someExamples reads all examples before anything is sent.
func someExamples(f *hostFile, field string, count *int) error {
	src := f.source()
	defer src.Close()
	_, err := io.Copy(io.Discard, src)
	return examplesFault(err, field, *count)
}

// step is how a provider does one operation.
type step func(ctx context.Context, j *chat.Job) (*chat.JobResponse, error)

// steps are a provider's steps, by operation.
type steps map[string]step

// by makes a step of a function that two operations share; they differ in the method of the
// call.
func by(f func(ctx context.Context, j *chat.Job, method string) (*chat.JobResponse, error), method string) step {
	return func(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) { return f(ctx, j, method) }
}

// do executes an operation. Operations without a step concern files, which are stored for
// the workspace with the given purposes, or the results of a batch.
func (s steps) do(ctx context.Context, j *chat.Job, purposes string, open opener) (*chat.JobResponse, error) {
	if one, ok := s[j.Operation]; ok {
		return one(ctx, j)
	}
	if got, done, err := storedFiles(ctx, j, purposes); done {
		return got, err
	}
	return resultsFile(ctx, j, open)
}
