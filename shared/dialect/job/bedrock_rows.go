package job

import (
	"context"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/upstream"
	"gateway/shared/wire"
)

// open reads the rows that a job made.
func (aws Bedrock) open(ctx context.Context, j *chat.Job, batch string) (*results, error) {
	v, err := aws.job(ctx, j, batch)
	if err != nil {
		return nil, err
	}
	b := &Batch{ID: batch}
	if err := recall(ctx, j, b); err != nil {
		return nil, err
	}
	name := v.Input.S3.URI[strings.LastIndexByte(v.Input.S3.URI, '/')+1:]
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Object: v.folder() + name + ".out"})
	if err != nil {
		return nil, err
	}
	out := &results{src: resp.Body, read: readRecord, model: v.batch().Model, meter: meteredBy(converse.Converse{})}
	if b.Endpoint == embeddingsEndpoint {
		out.meter = meteredVectors(bedrock.Embeddings{}, out.model, j.Field)
	}
	return out, nil
}

// countTexts is how many texts or images a request for embeddings has, for models that take
// lists; 0 for other requests.
func countTexts(input []byte) (n int) {
	var w wire.Walk
	if wire.KindOf(input) != wire.KindObject || listKeys.Walk(input, &w) != nil {
		return 0
	}
	for i := range 2 {
		if list := w.Spans[i]; list.Present(input) && wire.KindOf(list.Of(input)) == wire.KindArray {
			d := wire.NewDecoder(list.Of(input))
			for range d.Array {
				d.Skip()
				n++
			}
		}
	}
	return n
}

var listKeys = wire.NewKeySet("texts", "images")

// readRecord reads {recordId, modelInput, modelOutput | error}.
func readRecord(line []byte) (*result, error) {
	r := &result{kind: "errored"}
	d := wire.NewDecoder(line)
	for key := range d.Object {
		switch string(key) {
		case "recordId":
			r.id = d.Str()
		case "modelInput":
			r.inputs = countTexts(d.Raw())
		case "modelOutput":
			if raw := d.Raw(); wire.KindOf(raw) == wire.KindObject {
				r.kind, r.message = "succeeded", raw
			}
		case "error":
			for key := range d.Object {
				switch string(key) {
				case "errorCode":
					r.code = string(d.Raw())
				case "errorMessage":
					r.text = upstream.OptString(d)
				default:
					d.Skip()
				}
			}
		default:
			d.Skip()
		}
	}
	if err := d.End(); err != nil {
		return nil, upstream.Invalid("The provider's results cannot be read", err)
	}
	r.code, r.text = orElse(strings.Trim(r.code, `"`), "model_error"), orElse(r.text, unansweredTexts["errored"][1])
	return r, nil
}
