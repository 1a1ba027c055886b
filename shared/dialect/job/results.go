package job

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"sort"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/openai"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/pricing"
	"gateway/shared/wire"
)

// Ids of the files that hold a batch's results.
const (
	responsesSuffix = "_output"
	errorsSuffix    = "_errors"
)

// maxResponse bounds a response that is read completely, in bytes.
const maxResponse = 16 << 20

// readJSON reads a response completely.
func readJSON(resp *http.Response, into any) error {
	defer resp.Body.Close()
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxResponse+1))
	if err == nil && len(body) > maxResponse {
		err = errRow
	}
	if err == nil {
		err = json.Unmarshal(body, into)
	}
	if err != nil {
		return upstream.Invalid("The provider's response cannot be read", err)
	}
	return nil
}

// result is one row of results.
type result struct {
	id, kind   string
	message    []byte // the response to the request
	model      string
	inputs     int    // of a row for embeddings, if there are several
	code, text string // why there is no response
}

func (r *result) good() bool { return r.kind == "succeeded" }

// results are the rows that a provider gives for a batch, and how one is read.
type results struct {
	src   io.ReadCloser
	read  func(line []byte) (*result, error)
	model string // of rows that do not name theirs
	meter func(*result) chat.Meter
}

// opener opens the results of a batch, by its id.
type opener func(ctx context.Context, j *chat.Job, batch string) (*results, error)

// resultsFile serves the operations on the files of a batch's results: one file has the
// rows that were answered, one has the others.
func resultsFile(ctx context.Context, j *chat.Job, open opener) (*chat.JobResponse, error) {
	batch, good := strings.CutSuffix(j.ID, responsesSuffix)
	if !good {
		var bad bool
		if batch, bad = strings.CutSuffix(j.ID, errorsSuffix); !bad {
			return nil, unknown(j.ID)
		}
	}
	if j.Operation == "files_delete" {
		return nil, fault.Newf(fault.UnsupportedOperation, "id", "The results of a batch are deleted at %s", j.ProviderName)
	}
	src, err := resultRows(ctx, j, open, batch, good)
	if err != nil {
		return nil, err
	}
	if j.Operation == "files_content" {
		return &chat.JobResponse{Type: "application/jsonl", Body: src, Length: -1}, nil
	}
	defer src.Close()
	n, err := io.Copy(io.Discard, src)
	if err != nil {
		return nil, upstream.Invalid("The provider's results were truncated", err)
	}
	return chat.JobJSON(appendFile(nil, &chat.StoredFile{ID: j.ID, Name: batch + ".jsonl", Purpose: "batch_output", Bytes: n, Created: j.Now.Unix()})), nil
}

// resultRows are the rows of a batch that were answered, or those that were not,
// in OpenAI's shape.
func resultRows(ctx context.Context, j *chat.Job, open opener, batch string, good bool) (io.ReadCloser, error) {
	b := &Batch{ID: batch}
	if err := recall(ctx, j, b); err != nil {
		return nil, err
	}
	got, err := open(ctx, j, batch)
	if err != nil {
		return nil, err
	}
	w := &output{j: j, batch: batch, client: dialects[b.Endpoint], talks: map[string]*chat.Conversation{}}
	return transform(got.src, func(dst []byte, _ int, line []byte) ([]byte, error) {
		r, err := got.read(line)
		if err != nil || r.good() != good {
			return dst, err
		}
		if good {
			return w.writeRow(dst, r.id, orElse(r.model, got.model), r.message, max(r.inputs, 1)), nil
		}
		return w.failed(dst, r.id, r.code, r.text), nil
	}), nil
}

// meteredBy returns a function that reads what a row used, as a dialect reports it.
func meteredBy(d interface{ MeterResponse([]byte) chat.Meter }) func(*result) chat.Meter {
	return func(r *result) chat.Meter { return d.MeterResponse(r.message) }
}

// each reads all rows.
func (r *results) each(take func(*result)) error {
	for src := newLines(r.src); ; {
		line, err := src.next()
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return upstream.Invalid("The provider's results were truncated", err)
		}
		row, err := r.read(line)
		if err != nil {
			return err
		}
		take(row)
	}
}

func notFound(err error) bool {
	var f *fault.Fault
	return errors.As(err, &f) && f.Status() == http.StatusNotFound
}

// usageOf sums what the rows of a batch used.
func usageOf(ctx context.Context, j *chat.Job, open opener) ([]chat.Meter, error) {
	got, err := open(ctx, j, j.ID)
	if notFound(err) {
		return nil, nil // a batch that was stopped early has no results
	}
	if err != nil {
		return nil, err
	}
	defer got.src.Close()
	return got.sum(j.Tier)
}

// RowsUsage sums what the rows of a file of results in OpenAI's shape used, one
// entry for each model and tier (see chat.Job). It closes src.
func RowsUsage(src io.ReadCloser, tier func(model string, prompt int64) int64) ([]chat.Meter, error) {
	defer src.Close()
	got := &results{src: src, read: readHostRow, meter: meteredBy(openai.Chat{})}
	return got.sum(tier)
}

// sum sums what all rows used, by model and by the size of prompts that determines their price.
func (r *results) sum(tier func(model string, prompt int64) int64) ([]chat.Meter, error) {
	type group struct {
		model string
		above int64
	}
	sum := make(map[group]*chat.Meter)
	err := r.each(func(row *result) {
		if !row.good() {
			return
		}
		used := r.meter(row).Usage.Limit(pricing.Usage{})
		g, prompt := group{model: orElse(row.model, r.model)}, used.InputTokens()
		if tier != nil {
			g.above = tier(g.model, prompt)
		}
		if sum[g] == nil {
			sum[g] = &chat.Meter{Model: g.model, Complete: true}
		}
		sum[g].Usage, sum[g].Prompt = sum[g].Usage.Sum(used).Bounded(), max(sum[g].Prompt, prompt)
	})
	if err != nil {
		return nil, err
	}
	all := make([]chat.Meter, 0, len(sum))
	groups := slices.Collect(maps.Keys(sum))
	// Not slices.SortFunc, which is compiled for each type: 10 kB in functions that follow batches.
	sort.Slice(groups, func(i, j int) bool {
		a, b := groups[i], groups[j]
		return a.model < b.model || a.model == b.model && a.above < b.above
	})
	for _, g := range groups {
		all = append(all, *sum[g])
	}
	return all, nil
}

// open reads the dataset that a job made.
func (c Cohere) open(ctx context.Context, j *chat.Job, batch string) (*results, error) {
	job, err := c.job(ctx, j, batch)
	if err != nil {
		return nil, err
	}
	var d *dataset
	if job.Output != "" {
		if d, err = c.dataset(ctx, j, job.Output); err != nil {
			return nil, err
		}
	}
	if d == nil || len(d.Dataset.Parts) == 0 {
		return nil, fault.Newf(fault.NotFound, "id", "The batch %q has no results", clip(batch))
	}
	made := d.Dataset.Parts
	p := &parts{ctx: ctx, j: j, most: len(made), wrap: newAvroLines, call: func(n int) *chat.JobCall {
		return &chat.JobCall{Method: http.MethodGet, URL: made[n].URL}
	}}
	if err := p.next(); err != nil {
		return nil, err
	}
	return &results{src: p, read: readEmbedded, model: job.Model, meter: func(*result) chat.Meter { return chat.Meter{} }}, nil
}

// readEmbedded reads {custom_id, text, embeddings: {type: [...]} | [...]}, and makes it the
// response of a request.
func readEmbedded(line []byte) (*result, error) {
	r := &result{kind: "errored"}
	d := wire.NewDecoder(line)
	for key := range d.Object {
		switch string(key) {
		case "custom_id":
			r.id = upstream.OptString(d)
		case "embeddings":
			r.embedded(d)
		default:
			d.Skip()
		}
	}
	if err := d.End(); err != nil {
		return nil, upstream.Invalid("The provider's results cannot be read", err)
	}
	r.code, r.text = "model_error", unansweredTexts["errored"][1]
	return r, nil
}

// embedded reads the vector of one row; if there are several kinds, the first.
func (r *result) embedded(d *wire.Decoder) {
	take := func(kind string, vector []byte) {
		if wire.KindOf(vector) != wire.KindArray || string(vector) == "[]" || r.good() {
			return
		}
		r.kind = "succeeded"
		r.message = wire.AppendJSONString([]byte(`{"embeddings":{`), kind)
		r.message = append(append(append(r.message, `:[`...), vector...), `]}}`...)
	}
	if d.Kind() != wire.KindObject {
		take("float", d.Raw())
		return
	}
	for key := range d.Object {
		kind := string(key)
		take(kind, d.Raw())
	}
}
