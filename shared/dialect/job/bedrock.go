package job

import (
	"context"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/bedrock"
	"gateway/shared/dialect/converse"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// Bedrock implements model invocation jobs, with rows that are Converse requests or those
// of an embedding model, and model customization jobs. Both read and write the bucket of
// the credential.
type Bedrock struct{}

var _ chat.Jobs = Bedrock{}

// Name implements chat.Jobs.
func (Bedrock) Name() string { return "bedrock.jobs" }

// DecodeError implements chat.Jobs. Amazon S3 answers in XML.
func (Bedrock) DecodeError(status int, h http.Header, body []byte) *fault.Fault {
	if f := storeError(status, h, body); f != nil {
		return f
	}
	return converse.Converse{}.DecodeError(status, h, body)
}

// Do implements chat.Jobs.
func (b Bedrock) Do(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	return steps{
		"batches_create":  b.create,
		"batches_get":     b.one,
		"batches_cancel":  b.stop,
		"batches_list":    batchList(pages[invocationJob]{awsQuery, byToken[invocationJob]("invocationJobSummaries", "nextToken")}),
		"finetune_create": b.tune,
		"finetune_get":    b.tuning,
		"finetune_cancel": b.stopTuning,
		"finetune_list":   tuningList(pages[customizationJob]{awsQuery, byToken[customizationJob]("modelCustomizationJobSummaries", "nextToken")}),
	}.do(ctx, j, "batch fine-tune", b.open)
}

// Usage implements chat.Jobs.
func (b Bedrock) Usage(ctx context.Context, j *chat.Job) ([]chat.Meter, error) {
	return usageOf(ctx, j, b.open)
}

// bucket is where the files of jobs are.
func (Bedrock) bucket(j *chat.Job) (string, error) {
	bucket := j.Field("aws_s3_bucket")
	if bucket == "" {
		return "", fault.Invalid("aws_s3_bucket", "aws_s3_bucket is required: Bedrock reads and writes the files of jobs in a bucket of Amazon S3")
	}
	return bucket, nil
}

// role is the role by which Bedrock reads and writes the files.
func role(arn string) error {
	if !strings.HasPrefix(arn, "arn:") || !strings.Contains(arn, ":role/") {
		return fault.Invalid("role_arn", "role_arn is required: the ARN of the role as which Bedrock reads and writes the bucket")
	}
	return nil
}

// create writes the rows to the bucket and starts a job.
func (b Bedrock) create(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	want, err := readBatchRequest(j)
	if err != nil {
		return nil, err
	}
	if len(want.OutputData) > 0 {
		j.Loss.Add("output_data_config", "results are stored next to the rows")
	}
	if err := role(want.RoleARN); err != nil {
		return nil, err
	}
	bucket, err := b.bucket(j)
	if err != nil {
		return nil, err
	}
	f, err := inputFile(ctx, j, "input_file_id", want.Input, "batch")
	if err != nil {
		return nil, err
	}
	if want.Model == "" {
		want.Model = j.Field("aws_bedrock_model")
	}
	r, err := newRows(j, want, converse.Converse{}.Name(), bedrock.Embeddings{}.Name())
	if err != nil {
		return nil, err
	}
	r.one = true
	src := r.source(ctx, f, func(dst []byte, _ int64, id string, body []byte) []byte {
		dst = wire.AppendJSONString(append(dst, `{"recordId":`...), id)
		return append(append(append(dst, `,"modelInput":`...), body...), "}\n"...)
	})
	defer src.Close()
	folder := bucket + "/gateway/batches/" + j.Request + "/"
	if err := putObject(ctx, j, folder+"rows.jsonl", src); err != nil {
		return nil, r.fault(err)
	}
	if err := r.fault(nil); err != nil {
		return nil, err
	}
	want.Model, want.Rows = r.last.Model, r.n
	want.Object = folder
	arn, err := b.start(ctx, j, b.appendJob(j, want, folder))
	if err != nil {
		return nil, err
	}
	made := &Batch{ID: EscapeSegment(arn), Status: validating, Created: j.Now.Unix()}
	if err := remember(ctx, j, made.ID, &want.note); err != nil {
		return nil, err
	}
	return batchResponse(ctx, j, made)
}

func (Bedrock) appendJob(j *chat.Job, want *batchRequest, folder string) []byte {
	o := upstream.Begin(nil)
	o.Str("clientRequestToken", j.Request)
	o.Str("jobName", orElse(want.JobName, "gateway-batch-"+strings.ToLower(j.Request)))
	o.Str("modelId", want.Model)
	if want.Endpoint == embeddingsEndpoint {
		o.Str("modelInvocationType", "InvokeModel")
	} else {
		o.Str("modelInvocationType", "Converse")
	}
	o.Str("roleArn", want.RoleARN)
	o.Key("inputDataConfig")
	o.Open('{')
	o.Key("s3InputDataConfig")
	o.Open('{')
	o.Str("s3InputFormat", "JSONL")
	o.Str("s3Uri", "s3://"+folder+"rows.jsonl")
	o.B = append(o.B, "}}"...)
	o.Key("outputDataConfig")
	o.Open('{')
	o.Key("s3OutputDataConfig")
	o.Open('{')
	o.Str("s3Uri", "s3://"+folder+"output/")
	o.StrIf("s3EncryptionKeyId", j.Field("amz_server_side_encryption_aws_kms_key_id"))
	return append(o.B, "}}}"...)
}

// start sends the body of a new job and gives its ARN.
func (Bedrock) start(ctx context.Context, j *chat.Job, body []byte) (string, error) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, Header: jsonBody, Body: body})
	if err != nil {
		return "", err
	}
	var made struct {
		ARN string `json:"jobArn"`
	}
	if err := readJSON(resp, &made); err != nil {
		return "", err
	}
	if made.ARN == "" {
		return "", upstream.Invalid("The provider's response names no job", nil)
	}
	return made.ARN, nil
}

var jsonBody = http.Header{"Content-Type": {"application/json"}}

// invocationJob is a batch at Bedrock.
type invocationJob struct {
	ARN     string `json:"jobArn"`
	Model   string `json:"modelId"`
	Status  string `json:"status"`
	Message string `json:"message"`
	Created string `json:"submitTime"`
	Ended   string `json:"endTime"`
	Expires string `json:"jobExpirationTime"`
	Input   struct {
		S3 struct {
			URI string `json:"s3Uri"`
		} `json:"s3InputDataConfig"`
	} `json:"inputDataConfig"`
	Output struct {
		S3 struct {
			URI string `json:"s3Uri"`
		} `json:"s3OutputDataConfig"`
	} `json:"outputDataConfig"`
}

var invocationStates = map[string]string{
	"Submitted": validating, "Validating": validating, "Scheduled": validating, "InProgress": inProgress, "Completed": completed,
	"PartiallyCompleted": completed, "Failed": failed, "Stopping": cancelling, "Stopped": cancelled, "Expired": expired,
}

// folder is where the job's results lie, as bucket/key.
func (v *invocationJob) folder() string {
	return strings.TrimSuffix(strings.TrimPrefix(v.Output.S3.URI, "s3://"), "/") + "/" + v.ARN[strings.LastIndexByte(v.ARN, '/')+1:] + "/"
}

func (v *invocationJob) batch() *Batch {
	b := &Batch{ID: EscapeSegment(v.ARN), Created: seconds(v.Created), Ended: seconds(v.Ended), Expires: seconds(v.Expires), Status: invocationStates[v.Status]}
	b.Model = v.Model[strings.LastIndexByte(v.Model, '/')+1:]
	switch b.Status {
	case "":
		b.Status = inProgress // an unknown state means that it is on its way
	case failed:
		b.Problem = orElse(v.Message, "The job failed.")
	case inProgress, completed:
		b.Began = b.Created
	}
	return b
}

// job reads one job.
func (Bedrock) job(ctx context.Context, j *chat.Job, id string) (*invocationJob, error) {
	arn, err := Named(id)
	if err != nil {
		return nil, err
	}
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: "batches_get", ID: arn})
	if err != nil {
		return nil, err
	}
	v := new(invocationJob)
	if err := readJSON(resp, v); err != nil {
		return nil, err
	}
	if v.ARN == "" || v.Status == "" {
		return nil, upstream.Invalid("The provider's response is not a job", nil)
	}
	return v, nil
}

func (b Bedrock) one(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	v, err := b.job(ctx, j, j.ID)
	if err != nil {
		return nil, err
	}
	made := v.batch()
	if made.Ended > 0 && made.Status != failed {
		b.count(ctx, j, v, made)
	}
	return batchResponse(ctx, j, made)
}

// count adds the row counts in the manifest of an ended job. A job without a manifest has
// no results.
func (Bedrock) count(ctx context.Context, j *chat.Job, v *invocationJob, b *Batch) {
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Object: v.folder() + "manifest.json.out"})
	if err != nil {
		return
	}
	var m struct {
		Total int64 `json:"totalRecordCount"`
		Good  int64 `json:"successRecordCount"`
		Bad   int64 `json:"errorRecordCount"`
	}
	if readJSON(resp, &m) != nil {
		return
	}
	b.Total, b.Completed, b.Failed = m.Total, m.Good, m.Bad
	if m.Good > 0 {
		b.Output = b.ID + responsesSuffix
	}
	if m.Bad > 0 {
		b.Errors = b.ID + errorsSuffix
	}
}

func (b Bedrock) stop(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	arn, err := Named(j.ID)
	if err != nil {
		return nil, err
	}
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, ID: arn})
	if err != nil {
		return nil, err
	}
	_ = resp.Body.Close()
	return b.one(ctx, j)
}

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
