package job

import (
	"context"
	"io"
	"net/http"
	"net/url"
	"strings"
	"time"

	"gateway/shared/chat"
	"gateway/shared/dialect/cohere"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Cohere carries embed jobs, which are batches of rows that ask for embeddings by one
// model. Their rows are a dataset, and so are their results: Avro files at addresses that
// the provider gives.
type Cohere struct{}

var _ chat.Jobs = Cohere{}

// mostCohere bounds a dataset at Cohere, in bytes.
const mostCohere = 1536 << 20

// How long to wait for the provider to check a dataset. No job takes an unchecked one.
const (
	checkEvery = 500 * time.Millisecond
	checkTimes = 100
)

// Name implements chat.Jobs.
func (Cohere) Name() string { return "cohere.jobs" }

// DecodeError implements chat.Jobs. Datasets are in an object store, which answers in XML.
func (Cohere) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	if f := storeError(status, h, body); f != nil {
		return f
	}
	return cohere.Embeddings{}.DecodeError(status, h, body)
}

// Do implements chat.Jobs.
func (c Cohere) Do(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	return steps{
		"batches_create": c.create,
		"batches_get":    c.one,
		"batches_cancel": c.stop,
		"batches_list":   c.list,
	}.do(ctx, j, "batch", c.open)
}

// stop requests the end of a job and returns its state.
func (c Cohere) stop(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	if err := discard(j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, ID: j.ID})); err != nil {
		return nil, err
	}
	return c.one(ctx, j)
}

// Usage implements chat.Jobs. It comes from the job, not from its rows.
func (c Cohere) Usage(ctx context.Context, j *chat.Job) ([]chat.Meter, error) {
	job, err := c.job(ctx, j, j.ID)
	if err != nil || job.Meta.Billed.Input <= 0 {
		return nil, err
	}
	m := chat.Meter{Model: job.Model, Complete: true}
	m.Usage.Set(pricing.Input, int64(min(job.Meta.Billed.Input, pricing.MaxUnits)))
	return []chat.Meter{m}, nil
}

// create makes a dataset of the rows and starts a job once it has been checked.
func (c Cohere) create(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
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
	f, err := inputFile(ctx, j, "input_file_id", want.Input, "batch")
	if err != nil {
		return nil, err
	}
	r, err := newRows(j, want, cohere.Embeddings{}.Name())
	if err != nil {
		return nil, err
	}
	var shared embedShape
	r.one, r.shape = true, shared.row
	name := "gateway-" + strings.ToLower(j.Request)
	file := &hostFile{name: "rows.jsonl", field: "data", most: mostCohere, source: func() io.ReadCloser {
		return r.source(ctx, f, func(dst []byte, _ int64, id string, text []byte) []byte {
			dst = wire.AppendJSONString(append(dst, `{"custom_id":`...), id)
			return append(append(append(dst, `,"text":`...), text...), "}\n"...)
		})
	}}
	if err := r.fault(someRows(file)); err != nil {
		return nil, err
	}
	query := url.Values{"name": {name}, "type": {"embed-input"}, "keep_fields": {"custom_id"}}
	dataset, err := sendForm(ctx, j, file, query.Encode())
	if err := r.fault(err); err != nil {
		return nil, err
	}
	if err := c.checked(ctx, j, dataset); err != nil {
		return nil, err
	}
	want.Model, want.Rows, want.Object = r.last.Model, r.n, dataset
	o := upstream.Begin(nil)
	o.Str("model", want.Model)
	o.Str("dataset_id", dataset)
	o.Str("name", orElse(want.JobName, name))
	for _, m := range shared.members {
		o.Raw(m.name, m.value)
	}
	o.Close('}')
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: o.B})
	if err != nil {
		return nil, err
	}
	var made embedJob
	if err := readJSON(resp, &made); err != nil {
		return nil, err
	}
	if made.ID == "" {
		return nil, upstream.Invalid("The provider's response names no job", nil)
	}
	if err := remember(ctx, j, made.ID, &want.note); err != nil {
		return nil, err
	}
	b := &Batch{ID: made.ID, Status: validating, Created: j.Now.Unix()}
	return batchResponse(ctx, j, b)
}

// embedShape extracts the text of an embedding request. The other fields apply to the entire
// job.
type embedShape struct {
	rest    string
	members []embedMember
}

type embedMember struct {
	name  string
	value []byte
}

func (s *embedShape) row(body []byte) ([]byte, error) {
	var text []byte
	var rest strings.Builder
	var members []embedMember
	n := 0
	d := wire.NewDecoder(body)
	for key := range d.Object {
		name := string(key)
		switch name {
		case "model":
			d.Skip()
		case "texts":
			for range d.Array {
				text = d.RawStr()
				n++
			}
		case "input_type", "embedding_types", "truncate":
			raw := upstream.Clone(d.Raw())
			members = append(members, embedMember{name, raw})
			rest.WriteString(name + string(raw))
		default:
			d.Fail("%s is not accepted in batches: texts only, of one length of vectors", name)
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	switch {
	case n != 1:
		return nil, fault.Invalid("input", "input must be one text in a row, not a list of %d", n)
	case s.members != nil && s.rest != rest.String():
		return nil, fault.Invalid("input_type", "input_type, embedding_types and truncate must be the same in all rows")
	}
	s.members, s.rest = members, rest.String()
	return text, nil
}

// dataset is one of Cohere's.
type dataset struct {
	Dataset struct {
		ID     string `json:"id"`
		State  string `json:"validation_status"`
		Reason string `json:"validation_error"`
		Parts  []struct {
			URL string `json:"url"`
		} `json:"dataset_parts"`
	} `json:"dataset"`
}

func (Cohere) dataset(ctx context.Context, j *chat.Job, id string) (*dataset, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: "files_get", ID: id})
	if err != nil {
		return nil, err
	}
	d := new(dataset)
	return d, readJSON(resp, d)
}

// checked waits until the provider has checked a dataset.
func (c Cohere) checked(ctx context.Context, j *chat.Job, id string) error {
	for range checkTimes {
		d, err := c.dataset(ctx, j, id)
		if err != nil {
			return err
		}
		switch d.Dataset.State {
		case "validated":
			return nil
		case "failed", "skipped":
			return fault.Invalid("input_file_id", "input_file_id: %s does not accept the rows: %s", j.ProviderName, clip(orElse(d.Dataset.Reason, d.Dataset.State)))
		}
		select {
		case <-ctx.Done():
			return fault.From(ctx.Err())
		case <-time.After(checkEvery):
		}
	}
	return upstream.Failed(http.StatusServiceUnavailable, "validation", "The provider is still checking the rows: try again")
}

// embedJob is a batch at Cohere.
type embedJob struct {
	ID      string `json:"job_id"`
	Model   string `json:"model"`
	Status  string `json:"status"`
	Created string `json:"created_at"`
	Output  string `json:"output_dataset_id"`
	Meta    struct {
		Billed struct {
			Input float64 `json:"input_tokens"`
		} `json:"billed_units"`
	} `json:"meta"`
}

var cohereStates = map[string]string{
	"processing": inProgress, "complete": completed, "cancelling": cancelling, "cancelled": cancelled, "failed": failed,
}

func (e *embedJob) batch() *Batch {
	b := &Batch{ID: e.ID, Created: seconds(e.Created), Status: orElse(cohereStates[e.Status], inProgress)}
	b.Model = e.Model
	switch b.Status {
	case inProgress:
		b.Began = b.Created
	case failed:
		b.Problem = "The job failed."
	case completed:
		if e.Output != "" {
			b.Output = b.ID + responsesSuffix
		}
	}
	return b
}

func (Cohere) job(ctx context.Context, j *chat.Job, id string) (*embedJob, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: "batches_get", ID: id})
	if err != nil {
		return nil, err
	}
	e := new(embedJob)
	if err := readJSON(resp, e); err != nil {
		return nil, err
	}
	if e.ID == "" || e.Status == "" {
		return nil, upstream.Invalid("The provider's response is not a job", nil)
	}
	return e, nil
}

func (c Cohere) one(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	job, err := c.job(ctx, j, j.ID)
	if err != nil {
		return nil, err
	}
	b := job.batch()
	if err := c.noted(ctx, j, b); err != nil {
		return nil, err
	}
	if b.Ended > 0 && b.Stopped == 0 {
		b.Stopped = b.Ended
		if err := remember(ctx, j, b.ID, &b.note); err != nil {
			return nil, err
		}
	}
	return chat.JobJSON(b.Append(nil)), nil
}

// noted adds the stored data. A job accepts all of its rows or none. It does not report
// when it ended, so the time when its end was first observed is used.
func (Cohere) noted(ctx context.Context, j *chat.Job, batches ...*Batch) error {
	if err := recall(ctx, j, batches...); err != nil {
		return err
	}
	for _, b := range batches {
		if b.Status == completed {
			b.Completed = b.Total
		}
		if b.Status == completed || b.Status == failed || b.Status == cancelled {
			if b.Ended = b.Stopped; b.Ended == 0 {
				b.Ended = j.Now.Unix()
			}
		}
	}
	return nil
}

func (c Cohere) list(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	jobs, more, err := tokenPage(ctx, j, func(e *embedJob) string { return e.ID }, none, func(resp *http.Response) ([]embedJob, string, error) {
		var page struct {
			Jobs []embedJob `json:"embed_jobs"`
		}
		err := readJSON(resp, &page)
		return page.Jobs, "", err
	})
	if err != nil {
		return nil, err
	}
	ids, entries, batches := make([]string, len(jobs)), make([][]byte, len(jobs)), make([]*Batch, len(jobs))
	for i := range jobs {
		batches[i] = jobs[i].batch()
	}
	if err := c.noted(ctx, j, batches...); err != nil {
		return nil, err
	}
	for i, b := range batches {
		ids[i], entries[i] = b.ID, b.Append(nil)
	}
	return chat.JobJSON(appendList(nil, ids, entries, more)), nil
}
