package job

import (
	"context"
	"encoding/json"
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
func (Mistral) Do(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	return onMistral.do(ctx, j)
}

// Usage implements chat.Jobs.
func (Mistral) Usage(ctx context.Context, j *chat.Job) ([]chat.Meter, error) {
	return usageOf(ctx, j, onMistral.open)
}

var onMistral = uploads[*mistralJob, *mistralTuning]{
	most: mostMistral, mostExamples: mostMistral,
	wires:      []string{openai.Chat{}.Name(), chat.EmbeddingRows},
	along:      func(f *hostFile, purpose string) { f.fields = [][2]string{{"purpose", purpose}} },
	purposes:   [2]string{"batch", "fine-tune"},
	prepare:    func(r *rows) { r.one, r.shape = true, withoutModel },
	body:       mistralBatch,
	read:       readJob[mistralJob],
	list:       batchList(pages[mistralJob]{numbered, func() pageReader[mistralJob] { return numberedPage[mistralJob](new(int)) }}),
	lost:       []string{"batch_size", "learning_rate_multiplier"},
	readTuning: readJob[mistralTuning],
	tuning:     mistralTune,
	tunings:    tuningList(pages[mistralTuning]{numbered, func() pageReader[mistralTuning] { return numberedPage[mistralTuning](new(int)) }}),
}

// mistralBatch returns the body of a new batch with rows of one model.
func mistralBatch(want *batchRequest, r *rows, file string) []byte {
	want.Model = r.last.Model
	o := upstream.Begin(nil)
	o.List("input_files", []string{file})
	o.Str("endpoint", hostEndpoint(want.Endpoint))
	o.Str("model", want.Model)
	if len(want.Metadata) > 0 {
		o.Raw("metadata", want.Metadata)
	}
	o.Int("timeout_hours", 24)
	o.Close('}')
	return o.B
}

// mistralTune is the body of a new fine-tuning job.
func mistralTune(want *tuneRequest, training, validation string, hyper map[string]string) []byte {
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
	return o.B
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
		b.Output = b.ID + responsesSuffix
	}
	if m.Failures != "" || m.Output != "" && m.Failed > 0 {
		b.Errors = b.ID + errorsSuffix
	}
	return b
}

func (m *mistralJob) valid() bool { return m.ID != "" && m.Status != "" }

func (m *mistralJob) files() (string, string) { return m.Output, m.Failures }

// numbered returns the query for a page of a list with numbered pages of one length.
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

func (m *mistralTuning) valid() bool { return m.ID != "" && m.Status != "" }

// maxListed bounds the pages that are skipped to find where a list continues.
const maxListed = 20

// awsQuery returns the query for a page of an AWS list; n is 0 for the default size.
func awsQuery(n int, token string) url.Values {
	if n == 0 {
		n = 1000
	}
	q := url.Values{"maxResults": {itoa(int64(n))}, "sortBy": {"CreationTime"}, "sortOrder": {"Descending"}}
	if token != "" {
		q.Set("nextToken", token)
	}
	return q
}

// tokenPage returns one page of a list that continues by tokens. query returns the query
// for a page of a number of entries; read reads one and returns its entries and its
// token.
func tokenPage[T any](
	ctx context.Context, j *chat.Job, id func(*T) string, query func(n int, token string) url.Values, read pageReader[T],
) (page []T, more bool, err error) {
	var entries []T
	more, err = walkPages(ctx, j, query, func(resp *http.Response) (n int, next string, err error) {
		entries, next, err = read(resp)
		return len(entries), next, err
	}, func(i int) string { return id(&entries[i]) }, func(i int) int {
		page = append(page, entries[i])
		return len(page)
	})
	if err != nil {
		return nil, false, err
	}
	return page, more, nil
}

// walkPages is tokenPage without the type of an entry, so that it is compiled once. read reads a
// page and returns how many entries it has; id and take are called with the index of one of them,
// and take returns how many were taken.
func walkPages(
	ctx context.Context, j *chat.Job, query func(n int, token string) url.Values,
	read func(*http.Response) (n int, next string, err error), id func(i int) string, take func(i int) int,
) (more bool, err error) {
	limit, err := limitOf(j, defaultPage, maxPage)
	if err != nil {
		return false, err
	}
	after, token, taken := j.Query.Get("after"), "", 0
	found := after == ""
	for range maxListed {
		n := 0
		if found && taken == 0 {
			n = limit
		}
		resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: j.Operation, Query: query(n, token).Encode()})
		if err != nil {
			return false, err
		}
		entries, next, err := read(resp)
		if err != nil {
			return false, err
		}
		for i := range entries {
			switch {
			case !found:
				found = id(i) == after
			case taken == limit:
				return true, nil
			default:
				taken = take(i)
			}
		}
		if token = next; token == "" || taken == limit {
			break
		}
	}
	if !found {
		return false, fault.Invalid("after", "after must be the id of an entry of the list")
	}
	return token != "", nil
}

// pageReader reads a page of a list: its entries, and the token of the next.
type pageReader[T any] = func(*http.Response) ([]T, string, error)

// pages describes the lists of a host.
type pages[T any] struct {
	query func(n int, token string) url.Values
	read  func() pageReader[T] // for one walk through the list
}

// byToken reads pages with entries in one field, and the token of the next page in
// another.
func byToken[T any](entries, next string) func() pageReader[T] {
	return func() pageReader[T] {
		return func(resp *http.Response) (list []T, token string, err error) {
			token, err = readPage(resp, entries, next, &list)
			return list, token, err
		}
	}
}

func readPage(resp *http.Response, entries, next string, list any) (token string, err error) {
	var page map[string]json.RawMessage
	if err := readJSON(resp, &page); err != nil {
		return "", err
	}
	for member, into := range map[string]any{entries: list, next: &token} {
		if raw := page[member]; raw != nil && json.Unmarshal(raw, into) != nil {
			return "", upstream.Invalid("The provider's list cannot be read", nil)
		}
	}
	return token, nil
}

// batchList responds with a page of a host's list of batches.
func batchList[S any, P interface {
	*S
	batch() *Batch
}](of pages[S]) step {
	return func(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
		jobs, more, err := tokenPage(ctx, j, func(job *S) string { return P(job).batch().ID }, of.query, of.read())
		if err != nil {
			return nil, err
		}
		batches := make([]*Batch, len(jobs))
		for i := range jobs {
			batches[i] = P(&jobs[i]).batch()
		}
		return batchPage(ctx, j, batches, more)
	}
}

// tuningList responds with a page of a host's list of fine-tuning jobs.
func tuningList[S any, P interface {
	*S
	tuning() *Tuning
}](of pages[S]) step {
	return func(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
		jobs, more, err := tokenPage(ctx, j, func(job *S) string { return P(job).tuning().ID }, of.query, of.read())
		if err != nil {
			return nil, err
		}
		tunings := make([]*Tuning, len(jobs))
		for i := range jobs {
			tunings[i] = P(&jobs[i]).tuning()
		}
		return tuningPage(ctx, j, tunings, more)
	}
}
