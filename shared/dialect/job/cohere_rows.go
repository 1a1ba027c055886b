package job

import (
	"context"
	"net/http"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

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
// answer of a request.
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
