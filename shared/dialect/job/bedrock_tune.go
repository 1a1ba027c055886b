package job

import (
	"context"
	"errors"
	"net/http"
	"strings"

	"gateway/shared/chat"
	"gateway/shared/dialect/upstream"
	"gateway/shared/fault"
	"gateway/shared/wire"
)

// bedrockHyper are the names of hyperparameters at Bedrock.
var bedrockHyper = map[string]string{"n_epochs": "epochCount", "learning_rate_multiplier": "learningRateMultiplier", "batch_size": "batchSize"}

// tune writes the files to the bucket and starts a customization job.
func (b Bedrock) tune(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	want, err := readTune(j)
	if err != nil {
		return nil, err
	}
	if err := role(want.RoleARN); err != nil {
		return nil, err
	}
	bucket, err := b.bucket(j)
	if err != nil {
		return nil, err
	}
	hyper, err := want.hyper()
	if err != nil {
		return nil, err
	}
	folder := bucket + "/gateway/tuning/" + j.Request + "/"
	if err := examples(ctx, j, "training_file", want.Training, folder+"training.jsonl", appendExample); err != nil {
		return nil, err
	}
	if want.Validation != "" {
		if err := examples(ctx, j, "validation_file", want.Validation, folder+"validation.jsonl", appendExample); err != nil {
			return nil, err
		}
	}
	name := "gateway-" + strings.ToLower(j.Request)
	o := upstream.Begin(nil)
	o.Str("clientRequestToken", j.Request)
	o.Str("jobName", orElse(want.JobName, name))
	o.Str("customModelName", orElse(want.Suffix, name))
	o.Str("roleArn", want.RoleARN)
	o.Str("baseModelIdentifier", want.Model)
	o.Str("customizationType", "FINE_TUNING")
	o.Key("trainingDataConfig")
	o.Open('{')
	o.Str("s3Uri", "s3://"+folder+"training.jsonl")
	o.Close('}')
	if want.Validation != "" {
		o.Key("validationDataConfig")
		o.Open('{')
		o.Key("validators")
		o.Open('[')
		o.Open('{')
		o.Str("s3Uri", "s3://"+folder+"validation.jsonl")
		o.B = append(o.B, "}]}"...)
	}
	o.Key("outputDataConfig")
	o.Open('{')
	o.Str("s3Uri", "s3://"+folder+"output/")
	o.Close('}')
	o.Key("hyperParameters")
	o.Open('{')
	for _, key := range []string{"n_epochs", "learning_rate_multiplier", "batch_size"} {
		o.StrIf(bedrockHyper[key], hyper[key])
	}
	o.B = append(o.B, "}}"...)
	arn, err := b.start(ctx, j, o.B)
	if err != nil {
		return nil, err
	}
	made := &Tuning{ID: EscapeSegment(arn), Status: tuneRunning, Created: j.Now.Unix()}
	if err := rememberTuning(ctx, j, made.ID, &want.tuneNote); err != nil {
		return nil, err
	}
	return tuningResponse(ctx, j, made)
}

// examples writes a file of examples to the bucket, each in the provider's form.
func examples(ctx context.Context, j *chat.Job, field, id, object string, write func(dst, line []byte) ([]byte, error)) error {
	f, count, err := examplesFile(ctx, j, field, id, 0, write)
	if err != nil {
		return err
	}
	src := f.source()
	defer src.Close()
	err = putObject(ctx, j, object, src)
	return examplesFault(err, field, *count)
}

// examplesFault returns the error if examples could not be read to their end.
func examplesFault(err error, field string, count int) error {
	switch {
	case errors.Is(err, errRow):
		return fault.Newf(fault.BodyTooLarge, field, "%s: a line must have at most %d bytes", field, maxRow)
	case err == nil && count == 0:
		return fault.Invalid(field, "%s must be a file with at least one example", field)
	}
	return err
}

// appendExample writes one example as Bedrock reads it.
func appendExample(dst, line []byte) ([]byte, error) {
	e, err := readExample(line)
	if err != nil {
		return dst, err
	}
	if e.prompt != "" {
		return append(append(dst, line...), '\n'), nil
	}
	o := upstream.Begin(dst)
	o.Str("schemaVersion", "bedrock-conversation-2024")
	if len(e.system) > 0 {
		o.Key("system")
		appendTexts(o, e.system...)
	}
	o.Key("messages")
	o.Open('[')
	for i := 0; i < len(e.messages); i += 2 {
		o.Open('{')
		o.Str("role", e.messages[i])
		o.Key("content")
		appendTexts(o, e.messages[i+1])
		o.Close('}')
	}
	return append(o.B, "]}\n"...), nil
}

func appendTexts(o *upstream.Object, texts ...string) {
	o.Open('[')
	for _, t := range texts {
		o.Open('{')
		o.Str("text", t)
		o.Close('}')
	}
	o.Close(']')
}

// readTurn reads one message with a text as content.
func readTurn(d *wire.Decoder) (role, text string) {
	for key := range d.Object {
		switch string(key) {
		case "role":
			role = d.Str()
		case "content":
			text = d.Str()
		default:
			d.Skip()
		}
	}
	return role, text
}

// customizationJob is a fine-tuning job at Bedrock.
type customizationJob struct {
	ARN     string `json:"jobArn"`
	Base    string `json:"baseModelArn"`
	Tuned   string `json:"outputModelArn"`
	Custom  string `json:"customModelArn"` // in lists
	Status  string `json:"status"`
	Message string `json:"failureMessage"`
	Created string `json:"creationTime"`
	Ended   string `json:"endTime"`
}

func (c *customizationJob) tuning() *Tuning {
	t := &Tuning{ID: EscapeSegment(c.ARN), Created: seconds(c.Created), Ended: seconds(c.Ended), Status: tuneRunning}
	t.Model = c.Base[strings.LastIndexByte(c.Base, '/')+1:]
	switch c.Status {
	case "Completed":
		t.Status, t.Tuned = tuneSucceeded, orElse(c.Tuned, c.Custom)
	case "Failed":
		t.Status, t.Problem = tuneFailed, orElse(c.Message, "The job failed.")
	case "Stopping", "Stopped":
		t.Status = tuneCancelled
	}
	return t
}

func (Bedrock) tuning(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	arn, err := Named(j.ID)
	if err != nil {
		return nil, err
	}
	resp, err := j.Call(ctx, &chat.JobCall{Method: http.MethodGet, Operation: "finetune_get", ID: arn})
	if err != nil {
		return nil, err
	}
	var c customizationJob
	if err := readJSON(resp, &c); err != nil {
		return nil, err
	}
	if c.ARN == "" {
		return nil, upstream.Invalid("The provider's response is not a job", nil)
	}
	return tuningResponse(ctx, j, c.tuning())
}

func (b Bedrock) stopTuning(ctx context.Context, j *chat.Job) (*chat.JobResponse, error) {
	arn, err := Named(j.ID)
	if err != nil {
		return nil, err
	}
	if err := discard(j.Call(ctx, &chat.JobCall{Method: http.MethodPost, Operation: j.Operation, ID: arn})); err != nil {
		return nil, err
	}
	return b.tuning(ctx, j)
}
