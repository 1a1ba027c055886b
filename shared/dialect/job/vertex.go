package job

import (
	"context"
	"net/http"
	"net/url"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/anthropic"
	"gateway/shared/dialect/gemini"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Vertex implements batch prediction jobs of Vertex AI, with rows that are requests of
// Gemini, of Claude or for embeddings, and tuning jobs. Both read and write the bucket of
// the credential in Cloud Storage.
type Vertex struct{}

var _ chat.Jobs = Vertex{}

// Name implements chat.Jobs.
func (Vertex) Name() string { return "vertex.jobs" }

// DecodeError implements chat.Jobs. Cloud Storage answers in XML.
func (Vertex) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	if f := storeError(status, h, body); f != nil {
		return f
	}
	return gemini.Generate{}.DecodeError(status, h, body)
}

// Do implements chat.Jobs.
func (v Vertex) Do(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	return steps{
		"batches_create":  v.create,
		"batches_get":     v.one,
		"batches_cancel":  v.stop,
		"batches_list":    batchList(pages[predictionJob]{googleQuery, byToken[predictionJob]("batchPredictionJobs", "nextPageToken")}),
		"finetune_create": v.tune,
		"finetune_get":    v.tuning,
		"finetune_cancel": v.stopTuning,
		"finetune_list":   tuningList(pages[tuningJob]{googleQuery, byToken[tuningJob]("tuningJobs", "nextPageToken")}),
	}.do(ctx, j, "batch fine-tune", v.open)
}

// Usage implements chat.Jobs.
func (v Vertex) Usage(ctx context.Context, j *chat.Job) ([]chat.Meter, error) {
	return usageOf(ctx, j, v.open)
}

// bucket is where the files of jobs are.
func (Vertex) bucket(j *chat.Job) (string, error) {
	bucket := j.Field("vertex_storage_bucket_name")
	if bucket == "" {
		return "", fault.Invalid("vertex_storage_bucket_name", "vertex_storage_bucket_name is required: Vertex AI reads and writes the files of jobs in a bucket of Cloud Storage")
	}
	return bucket, nil
}

// create writes the rows to the bucket and starts a job.
func (v Vertex) create(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	want, err := readBatchRequest(j)
	if err != nil {
		return nil, err
	}
	if want.Named != "" {
		want.Model = want.Named // with its publisher
	}
	if len(want.OutputData) > 0 {
		j.Loss.Add("output_data_config", "results are stored next to the rows")
	}
	if want.RoleARN != "" {
		j.Loss.Add("role_arn", upstream.UnsupportedField)
	}
	if err := j.Loss.Err(); err != nil {
		return nil, err
	}
	bucket, err := v.bucket(j)
	if err != nil {
		return nil, err
	}
	f, err := inputFile(ctx, j, "input_file_id", want.Input, "batch")
	if err != nil {
		return nil, err
	}
	if want.Model == "" {
		want.Model = j.Field("provider_model")
	}
	r, err := newRows(j, want, gemini.Generate{}.Name(), anthropic.Messages{}.Name(), gemini.VertexEmbeddings{}.Name())
	if err != nil {
		return nil, err
	}
	r.one = true
	var parameters instanceShape
	if want.Endpoint == embeddingsEndpoint {
		r.shape = parameters.instance
	}
	src := r.source(ctx, f, func(dst []byte, _ int64, id string, body []byte) []byte { return appendInstance(dst, r.last, id, body) })
	defer src.Close()
	folder := bucket + "/gateway/batches/" + j.Request + "/"
	if err := putObject(ctx, j, folder+"rows.jsonl", src); err != nil {
		return nil, r.fault(err)
	}
	if err := r.fault(nil); err != nil {
		return nil, err
	}
	want.Rows, want.Object, want.Model = r.n, folder, r.last.Model
	if isClaude(r.last) {
		want.Model = claudePrefix + want.Model
	}
	resp, err := j.Call(ctx, &chat.JobCall{
		Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: v.appendJob(j, want, folder, isClaude(r.last), parameters.parameters),
	})
	if err != nil {
		return nil, err
	}
	job, err := v.read(resp)
	if err != nil {
		return nil, err
	}
	made := job.batch()
	if err := remember(ctx, j, made.ID, &want.note); err != nil {
		return nil, err
	}
	return batchResponse(ctx, j, made)
}

// claudePrefix names the publisher in models of Anthropic, as clients name them.
const claudePrefix = "anthropic."

func isClaude(t *chat.Conversation) bool {
	return t.Provider != nil && t.Wire() == anthropic.Messages{}.Name()
}

// appendInstance writes one row. The output in Cloud Storage repeats the data beside the
// request; rows of Claude have a field for it.
func appendInstance(dst []byte, t *chat.Conversation, id string, body []byte) []byte {
	switch {
	case t.Translator != nil: // a row is an instance of :predict
		dst = wire.AppendJSONString(append(dst, `{"requestId":`...), id)
		return append(append(append(dst, ','), body[1:]...), '\n')
	case isClaude(t):
		dst = wire.AppendJSONString(append(dst, `{"custom_id":`...), id)
	default:
		dst = wire.AppendJSONString(append(dst, `{"requestId":`...), id)
	}
	return append(append(append(dst, `,"request":`...), body...), "}\n"...)
}

// instanceShape extracts the instance of a body of :predict. The other fields apply to the
// entire batch.
type instanceShape struct {
	parameters []byte
	seen       bool
}

func (s *instanceShape) instance(body []byte) ([]byte, error) {
	var one, parameters []byte
	count := 0
	d := wire.NewDecoder(body)
	for key := range d.Object {
		switch string(key) {
		case "instances":
			for range d.Array {
				one = d.Raw()
				count++
			}
		case "parameters":
			parameters = d.Raw()
		default:
			d.Skip()
		}
	}
	if err := d.End(); err != nil {
		return nil, err
	}
	switch {
	case count != 1:
		return nil, fault.Invalid("input", "input must be one text in a row, not a list of %d", count)
	case s.seen && string(parameters) != string(s.parameters):
		return nil, fault.Invalid("dimensions", "dimensions and auto_truncate must be the same in all rows")
	}
	s.parameters, s.seen = append(s.parameters[:0], parameters...), true
	return one, nil
}

func (Vertex) appendJob(j *chat.Job, want *batchRequest, folder string, claude bool, parameters []byte) []byte {
	o := upstream.Begin(nil)
	o.Str("displayName", orElse(want.JobName, "gateway-batch-"+strings.ToLower(j.Request)))
	publisher := "google"
	if claude {
		publisher = "anthropic"
	}
	o.Str("model", "publishers/"+publisher+"/models/"+strings.TrimPrefix(want.Model, claudePrefix))
	o.Key("inputConfig")
	o.Open('{')
	o.Str("instancesFormat", "jsonl")
	o.Key("gcsSource")
	o.Open('{')
	o.List("uris", []string{"gs://" + folder + "rows.jsonl"})
	o.B = append(o.B, "}}"...)
	o.Key("outputConfig")
	o.Open('{')
	o.Str("predictionsFormat", "jsonl")
	o.Key("gcsDestination")
	o.Open('{')
	o.Str("outputUriPrefix", "gs://"+folder+"output")
	o.B = append(o.B, "}}"...)
	if !claude {
		o.Key("instanceConfig")
		o.Open('{')
		o.Str("instanceType", "object")
		o.List("excludedFields", []string{"requestId"})
		o.Close('}')
	}
	if len(parameters) > 0 {
		o.Raw("modelParameters", parameters)
	}
	o.Close('}')
	return o.B
}

func (v Vertex) one(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	job, err := v.job(ctx, j, j.ID)
	if err != nil {
		return nil, err
	}
	return batchResponse(ctx, j, job.batch())
}

func (v Vertex) stop(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	if err := discard(j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, ID: j.ID})); err != nil {
		return nil, err
	}
	return v.one(ctx, j)
}

// googleQuery returns the query for a page of a Google list; n is 0 for the default size.
func googleQuery(n int, token string) url.Values {
	if n == 0 {
		n = 100
	}
	q := url.Values{"pageSize": {itoa(int64(n))}}
	if token != "" {
		q.Set("pageToken", token)
	}
	return q
}
