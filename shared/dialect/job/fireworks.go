package job

import (
	"context"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
)

// Fireworks implements batch inference jobs of Fireworks AI, each of one model, and
// supervised fine-tuning jobs. They read and write datasets, which are uploaded and
// downloaded at addresses from the provider. A job is stopped by deleting it; a note
// records that.
type Fireworks struct{}

var _ chat.Jobs = Fireworks{}

// mostFireworks bounds a dataset at Fireworks AI, in bytes.
const mostFireworks = 500 << 20

// Name implements chat.Jobs.
func (Fireworks) Name() string { return "fireworks.jobs" }

// DecodeError implements chat.Jobs. Datasets are in an object store, which answers in XML.
func (Fireworks) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	if f := storeError(status, h, body); f != nil {
		return f
	}
	return openai.Chat{}.DecodeError(status, h, body)
}

// Do implements chat.Jobs.
func (f Fireworks) Do(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	return steps{
		"batches_create":  f.create,
		"batches_get":     f.one,
		"batches_cancel":  f.stop,
		"batches_list":    batchList(pages[inferenceJob]{googleQuery, byToken[inferenceJob]("batchInferenceJobs", "nextPageToken")}),
		"finetune_create": f.tune,
		"finetune_get":    f.tuning,
		"finetune_cancel": f.stopTuning,
		"finetune_list":   tuningList(pages[supervisedJob]{googleQuery, byToken[supervisedJob]("supervisedFineTuningJobs", "nextPageToken")}),
	}.do(ctx, j, "batch fine-tune", f.open)
}

// Usage implements chat.Jobs.
func (f Fireworks) Usage(ctx context.Context, j *chat.Job) ([]chat.Meter, error) {
	return usageOf(ctx, j, f.open)
}

// account is the beginning of the names of everything in the account.
func (Fireworks) account(j *chat.Job) (string, error) {
	id := j.Field("fireworks_account_id")
	if id == "" {
		return "", fault.Invalid("fireworks_account_id", "fireworks_account_id is required: the account that the datasets and jobs belong to")
	}
	return "accounts/" + id + "/", nil
}

// fullModel is the name of a model with the account that it belongs to.
func fullModel(name string) string {
	if strings.HasPrefix(name, "accounts/") {
		return name
	}
	return "accounts/fireworks/models/" + name
}

// dataset makes a dataset of a file. It first reads all that is to be sent, before anything
// is made.
func (f Fireworks) dataset(ctx context.Context, j *chat.Job, id string, file *hostFile) error {
	p, err := newPayload(file.source, "", "", file.most, nil)
	if err != nil {
		return err
	}
	o := upstream.Begin(nil)
	o.Str("datasetId", id)
	o.Raw("dataset", []byte(`{"userUploaded":{}}`))
	o.Close('}')
	if err := discard(j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: "files_upload", Header: jsonBody, Body: o.B})); err != nil {
		return err
	}
	name := id + ".jsonl"
	o = upstream.Begin(nil)
	o.Key("filenameToSize")
	o.Open('{')
	o.Int(name, p.length)
	o.B = append(o.B, "}}"...)
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: "files_get", ID: id, Suffix: ":getUploadEndpoint", Header: jsonBody, Body: o.B})
	if err != nil {
		return err
	}
	urls, err := signedURLs(resp)
	if err != nil {
		return err
	}
	if urls[name] == "" {
		return upstream.Invalid("The provider's response names no address to upload to", nil)
	}
	size := itoa(p.length)
	put := p.into(&chat.JobCall{Method: http.MethodPut, URL: urls[name], Header: http.Header{
		"Content-Type": {"application/octet-stream"}, "X-Goog-Content-Length-Range": {size + "," + size},
	}})
	if err := discard(j.Call(ctx, put)); err != nil {
		return err
	}
	return discard(j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: "files_get", ID: id, Suffix: ":validateUpload", Header: jsonBody, Body: []byte("{}")}))
}

// signedURLs reads addresses by the names of files.
func signedURLs(resp *http.Response) (map[string]string, error) {
	var answer struct {
		URLs map[string]string `json:"filenameToSignedUrls"`
	}
	err := readJSON(resp, &answer)
	return answer.URLs, err
}

// create makes a dataset of the rows and starts a job.
func (f Fireworks) create(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	want, err := readBatchRequest(j)
	if err != nil {
		return nil, err
	}
	if want.RoleARN != "" || len(want.OutputData) > 0 {
		j.Loss.Add("provider_options", upstream.UnsupportedField)
	}
	if err := j.Loss.Err(); err != nil {
		return nil, err
	}
	account, err := f.account(j)
	if err != nil {
		return nil, err
	}
	in, err := inputFile(ctx, j, "input_file_id", want.Input, "batch")
	if err != nil {
		return nil, err
	}
	r, err := newRows(j, want, openai.Chat{}.Name())
	if err != nil {
		return nil, err
	}
	r.one, r.shape = true, withoutModel
	id := "gateway-" + strings.ToLower(j.Request)
	if err := r.fault(someRows(r.rowsFile(ctx, in, mostFireworks))); err != nil {
		return nil, err
	}
	if err := r.fault(f.dataset(ctx, j, id, r.rowsFile(ctx, in, mostFireworks))); err != nil {
		return nil, err
	}
	want.Model, want.Rows, want.Object = r.last.Model, r.n, id+"-output"
	o := upstream.Begin(nil)
	o.Str("displayName", orElse(want.JobName, id))
	o.Str("model", fullModel(want.Model))
	o.Str("inputDatasetId", account+"datasets/"+id)
	o.Str("outputDatasetId", account+"datasets/"+want.Object)
	o.Close('}')
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: o.B})
	if err != nil {
		return nil, err
	}
	job, err := f.read(resp)
	if err != nil {
		return nil, err
	}
	made := job.batch()
	if err := remember(ctx, j, made.ID, &want.note); err != nil {
		return nil, err
	}
	return batchResponse(ctx, j, made)
}

// someRows reads all rows before anything is made from them.
func someRows(file *hostFile) error {
	src := file.source()
	defer src.Close()
	_, err := io.Copy(io.Discard, src)
	return err
}

// inferenceJob is a batch at Fireworks AI.
type inferenceJob struct {
	Name    string `json:"name"`
	Model   string `json:"model"`
	State   string `json:"state"`
	Created string `json:"createTime"`
	Updated string `json:"updateTime"`
	Output  string `json:"outputDatasetId"`
	Status  struct {
		Message string `json:"message"`
	} `json:"status"`
	Progress struct {
		Total count `json:"totalInputRequests"`
		Good  count `json:"successfullyProcessedRequests"`
		Bad   count `json:"failedRequests"`
	} `json:"jobProgress"`
}

var fireworksStates = map[string]string{
	"CREATING": validating, "PENDING": validating, "VALIDATING": validating, "RUNNING": inProgress, "WRITING_RESULTS": inProgress, "EVALUATION": inProgress,
	"COMPLETED": completed, "EARLY_STOPPED": completed, "FAILED": failed, "FAILED_CLEANING_UP": failed, "CANCELLED": cancelled, "DELETING": cancelled,
	"DELETING_CLEANING_UP": cancelled, "EXPIRED": expired,
}

func (v *inferenceJob) batch() *Batch {
	b := &Batch{
		ID: lastSegment(v.Name), Created: seconds(v.Created), Total: int64(v.Progress.Total), Completed: int64(v.Progress.Good), Failed: int64(v.Progress.Bad),
		Status: orElse(fireworksStates[strings.TrimPrefix(v.State, "JOB_STATE_")], validating),
	}
	b.Model = v.Model
	switch b.Status {
	case failed:
		b.Problem = orElse(v.Status.Message, "The job failed.")
		b.Ended = seconds(v.Updated)
	case completed, cancelled, expired:
		b.Ended = seconds(v.Updated)
	}
	if b.Status == completed {
		if b.Completed > 0 || b.Total == 0 {
			b.Output = b.ID + responsesSuffix
		}
		if b.Failed > 0 {
			b.Errors = b.ID + errorsSuffix
		}
	}
	return b
}

func (Fireworks) read(resp *http.Response) (*inferenceJob, error) {
	v := new(inferenceJob)
	if err := readJSON(resp, v); err != nil {
		return nil, err
	}
	if v.Name == "" || v.State == "" {
		return nil, upstream.Invalid("The provider's response is not a job", nil)
	}
	return v, nil
}

func (f Fireworks) job(ctx context.Context, j *chat.Job, id string) (*inferenceJob, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: "batches_get", ID: id})
	if err != nil {
		return nil, err
	}
	return f.read(resp)
}

func (f Fireworks) one(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	job, err := f.job(ctx, j, j.ID)
	if err == nil {
		return batchResponse(ctx, j, job.batch())
	}
	b := &Batch{ID: j.ID, Status: cancelled}
	if !notFound(err) || recall(ctx, j, b) != nil || b.Stopped == 0 {
		return nil, err
	}
	b.Created, b.Cancelling, b.Ended = b.Stopped, b.Stopped, b.Stopped
	return chat.JobJSON(b.Append(nil)), nil
}

// stop deletes a job that has not ended.
func (f Fireworks) stop(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	job, err := f.job(ctx, j, j.ID)
	if err != nil {
		return nil, err
	}
	b := job.batch()
	if b.Ended > 0 {
		return nil, fault.Invalid("id", "id names a batch that is %s and cannot be cancelled", b.Status)
	}
	if err := discard(j.Call(ctx, &chat.JobCall{Method: http.MethodDelete, Operation: j.Operation, ID: j.ID})); err != nil {
		return nil, err
	}
	if err := recall(ctx, j, b); err != nil {
		return nil, err
	}
	b.Stopped = j.Now.Unix()
	if err := remember(ctx, j, b.ID, &b.note); err != nil {
		return nil, err
	}
	b.Status, b.Cancelling = cancelling, b.Stopped
	return chat.JobJSON(b.Append(nil)), nil
}

// open reads the dataset that a job wrote.
func (f Fireworks) open(ctx context.Context, j *chat.Job, batch string) (*results, error) {
	job, err := f.job(ctx, j, batch)
	if err != nil {
		return nil, err
	}
	b := job.batch()
	if job.Output == "" || b.Output+b.Errors == "" {
		return nil, fault.Newf(fault.NotFound, "id", "The batch %q has no results", clip(batch))
	}
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: "files_get", ID: lastSegment(job.Output), Suffix: ":getDownloadEndpoint"})
	if err != nil {
		return nil, err
	}
	urls, err := signedURLs(resp)
	if err != nil {
		return nil, err
	}
	var calls []*chat.JobCall
	for _, name := range slices.Sorted(maps.Keys(urls)) {
		if strings.HasSuffix(name, ".jsonl") {
			calls = append(calls, &chat.JobCall{Method: http.MethodGet, URL: urls[name]})
		}
	}
	return hostResults(ctx, j, b, calls)
}
