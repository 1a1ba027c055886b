package mockprovider

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
)

var batchEndpoints = []string{"/v1/chat/completions", "/v1/completions", "/v1/embeddings", "/v1/responses", "/v1/moderations"}

// batchMade serves POST /batches. A batch makes progress when it is read: at its second
// read it is finished.
func batchMade(x *exchange, _, _ string) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	for _, name := range []string{"input_file_id", "endpoint", "completion_window"} {
		if v.get(name).kind != text {
			return badRequest(name, "missing_required_parameter", "Missing required parameter: '"+name+"'.")
		}
	}
	if v.get("model").given() {
		return badRequest("model", "unknown_parameter", "Unknown parameter: 'model'.")
	}
	file := x.s.things.get("file", v.get("input_file_id").s)
	if file == nil {
		return notFound("File", v.get("input_file_id").s)
	}
	if file.purpose != "batch" {
		return badRequest("input_file_id", "invalid_value", "The purpose of the file must be batch.")
	}
	if !slices.Contains(batchEndpoints, v.get("endpoint").s) {
		return badRequest("endpoint", "invalid_value", "Invalid 'endpoint'.")
	}
	if v.get("completion_window").s != "24h" {
		return badRequest("completion_window", "invalid_value", "Invalid 'completion_window'. Supported values are: '24h'.")
	}
	id, done, e := begin(x, "batch_", file.id)
	if done {
		return e
	}
	n := keep(x, &thing{id: id, kind: "batch", name: file.id, body: v, content: nil})
	x.plain(id, appendBatch(nil, n), Usage{})
	return nil
}

func batchList(x *exchange, _, _ string) *apiError { return paged(x, "batch", "", nil, appendBatch) }

func batchOne(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("batch", id)
	if n == nil {
		return &apiError{status: 404, message: "No batch found with id '" + id + "'."}
	}
	return listed(x, changed(x, n, func(n *thing) {
		if n.reads++; n.reads == 2 && !n.stopped {
			runBatch(x, n)
		}
	}, appendBatch))
}

func batchStopped(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("batch", id)
	if n == nil {
		return &apiError{status: 404, message: "No batch found with id '" + id + "'."}
	}
	if len(x.body) > 0 {
		return badRequest("", "", "This request takes no body.")
	}
	refused := false
	b := changed(x, n, func(n *thing) {
		if refused = n.state() == "completed" || n.state() == "cancelled"; !refused {
			n.stopped, n.reads = true, 0
		}
	}, appendBatch)
	if refused {
		return &apiError{status: 409, message: "Cannot cancel a batch that has ended."}
	}
	return listed(x, b)
}

func (n *thing) state() string {
	switch {
	case n.stopped && n.reads == 0:
		return "cancelling"
	case n.stopped:
		return "cancelled"
	}
	return [...]string{"validating", "in_progress", "completed"}[min(n.reads, 2)]
}

// runBatch writes the answers to the rows of the input file into an output file, and bills
// them at half the price. Rows without a custom_id or a body fail.
func runBatch(x *exchange, n *thing) {
	in := x.s.things.get("file", n.name)
	if in == nil {
		return
	}
	var out, failed []byte
	for line := range strings.Lines(string(in.content)) {
		if strings.TrimSpace(line) == "" {
			continue
		}
		n.rows++
		v, err := parseJSON(strings.TrimSpace(line))
		row := appendString([]byte(`{"id":`), x.newID("batch_req_", seedOf(line)))
		row = appendString(append(row, `,"custom_id":`...), v.get("custom_id").s)
		if err != nil || v.get("custom_id").s == "" || v.get("body").kind != object {
			failed = append(append(failed, row...), `,"response":null,"error":{"code":"invalid_row","message":"The row is not valid."}}`+"\n"...)
			continue
		}
		n.good++
		if n.model == "" {
			n.model = v.get("body").get("model").s
		}
		u := Usage{Input: tokensOf(v.get("body").s), Output: 3}
		n.usage.add(u)
		row = append(row, `,"response":{"status_code":200,"request_id":"req_mock","body":{"id":"chatcmpl-mock","object":"chat.completion","created":1,"model":`...)
		row = appendString(row, v.get("body").get("model").s)
		row = append(row, `,"choices":[{"index":0,"message":{"role":"assistant","content":"A batched answer"},"finish_reason":"stop"}],"usage":{"prompt_tokens":`...)
		row = appendInt(row, "", u.Input, `,"completion_tokens":3,"total_tokens":`)
		out = append(append(strconv.AppendInt(append(out, row...), u.Input+3, 10), `}}},"error":null}`...), '\n')
	}
	if out != nil {
		n.output = keep(x, &thing{id: x.newID("file-", 1), kind: "file", name: n.id + "_output.jsonl", purpose: "batch_output", content: out}).id
	}
	if failed != nil {
		n.failed = keep(x, &thing{id: x.newID("file-", 2), kind: "file", name: n.id + "_error.jsonl", purpose: "batch_output", content: failed}).id
	}
	row := x.s.bill.begin("/v1/batches", n.model, n.id, false)
	row.settle(200, n.usage, false, "", -prices[n.model].cost(n.usage)/2)
}

func appendBatch(b []byte, n *thing) []byte {
	state := n.state()
	b = appendString(append(b, `{"id":`...), n.id)
	b = appendString(append(b, `,"object":"batch","endpoint":`...), n.body.get("endpoint").s)
	b = appendString(append(b, `,"errors":null,"input_file_id":`...), n.name)
	b = append(b, `,"completion_window":"24h","status":"`+state+`"`...)
	b = appendNullable(append(b, `,"output_file_id":`...), n.output)
	b = appendNullable(append(b, `,"error_file_id":`...), n.failed)
	b = appendInt(b, `,"created_at":`, n.created, "")
	b = appendInt(b, `,"expires_at":`, n.created+86400, "")
	for key, when := range map[string]bool{"in_progress_at": n.reads > 0, "completed_at": state == "completed", "cancelling_at": n.stopped, "cancelled_at": state == "cancelled"} {
		b = append(append(b, `,"`...), key...)
		if when {
			b = appendInt(b, `":`, n.created+1, "")
		} else {
			b = append(b, `":null`...)
		}
	}
	b = appendInt(b, `,"request_counts":{"total":`, n.rows, "")
	b = appendInt(b, `,"completed":`, n.good, "")
	b = appendInt(b, `,"failed":`, n.rows-n.good, "}")
	if state == "completed" {
		b = appendString(append(b, `,"model":`...), n.model)
		b = appendInt(b, `,"usage":{"input_tokens":`, n.usage.Input, `,"input_tokens_details":{"cached_tokens":0}`)
		b = appendInt(b, `,"output_tokens":`, n.usage.Output, `,"output_tokens_details":{"reasoning_tokens":0}`)
		b = appendInt(b, `,"total_tokens":`, n.usage.Input+n.usage.Output, "}")
	}
	b = append(b, `,"metadata":`...)
	if m := n.body.get("metadata"); m.kind == object {
		b = append(b, m.s...)
	} else {
		b = append(b, "null"...)
	}
	return append(b, '}')
}

// jobMade serves POST /fine_tuning/jobs. A job makes progress when it is read: at its third
// read it is done.
func jobMade(x *exchange, _, _ string) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := takeModel(x, v); e != nil {
		return e
	}
	file := x.s.things.get("file", v.get("training_file").s)
	if file == nil {
		return badRequest("training_file", "file_not_found", "invalid training_file: "+v.get("training_file").s)
	}
	if file.purpose != "fine-tune" {
		return badRequest("training_file", "invalid_value", "The purpose of the file must be fine-tune.")
	}
	id, done, e := begin(x, "ftjob-", file.id)
	if done {
		return e
	}
	n := keep(x, &thing{id: id, kind: "job", name: file.id, model: x.model, body: v})
	x.plain(id, appendJob(nil, n), Usage{})
	return nil
}

func (n *thing) jobState() string {
	if n.stopped {
		return "cancelled"
	}
	if n.failed != "" {
		return n.failed
	}
	return [...]string{"validating_files", "queued", "running", "succeeded"}[min(n.reads, 3)]
}

func appendJob(b []byte, n *thing) []byte {
	b = appendString(append(b, `{"object":"fine_tuning.job","id":`...), n.id)
	b = appendString(append(b, `,"model":`...), n.model)
	b = appendInt(b, `,"created_at":`, n.created, `,"finished_at":null,"fine_tuned_model":`)
	tuned := ""
	if n.jobState() == "succeeded" {
		tuned = "ft:" + n.model + ":mock::" + n.id[len(n.id)-4:]
	}
	b = appendNullable(b, tuned)
	b = append(b, `,"organization_id":"org-mock","status":"`+n.jobState()+`","hyperparameters":{"n_epochs":"auto"},"training_file":`...)
	b = appendString(b, n.name)
	return append(b, `,"validation_file":null,"result_files":[],"trained_tokens":null,"error":null,"seed":1}`...)
}

func jobList(x *exchange, _, _ string) *apiError { return paged(x, "job", "", nil, appendJob) }

func jobOne(x *exchange, id, _ string) *apiError { return withJob(x, id, func(n *thing) { n.reads++ }) }

func jobStopped(x *exchange, id, _ string) *apiError {
	if e := noBody(x); e != nil {
		return e
	}
	if n := x.s.things.get("job", id); n != nil && (n.stopped || n.reads >= 3) {
		return badRequest("", "job_already_ended", "The job has already ended.")
	}
	return withJob(x, id, func(n *thing) { n.stopped = true })
}

// jobPaused serves .../pause and .../resume.
func jobPaused(x *exchange, id, _ string) *apiError {
	if e := noBody(x); e != nil {
		return e
	}
	if n := x.s.things.get("job", id); n != nil && (n.stopped || n.reads >= 3) {
		return badRequest("", "job_already_ended", "The job has already ended.")
	}
	return withJob(x, id, func(n *thing) {
		n.failed = ""
		if strings.HasSuffix(x.path, "/pause") {
			n.failed = "paused"
		}
	})
}

func noJob(id string) *apiError {
	return &apiError{status: 404, param: "fine_tuning_job_id", code: "fine_tune_not_found", message: "Could not find fine tune: " + id}
}

func withJob(x *exchange, id string, do func(*thing)) *apiError {
	n := x.s.things.get("job", id)
	if n == nil {
		return noJob(id)
	}
	return listed(x, changed(x, n, do, appendJob))
}

// jobEvents lists the events of a job, newest first.
func jobEvents(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("job", id)
	if n == nil {
		return noJob(id)
	}
	said := []string{"Job created", "Files validated, job enqueued", "Job started", "Job completed"}
	return parts(x, id, "event", min(n.reads, 3)+1, func(i int) json.RawMessage {
		return doc("object", "fine_tuning.job.event", "id", partID(x, "ftevent-", id, i), "created_at", n.created, "level", "info", "message", said[i], "type", "message", "data", nil)
	})
}

// jobCheckpoints lists the two checkpoints of a job that succeeded.
func jobCheckpoints(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("job", id)
	if n == nil {
		return noJob(id)
	}
	made := 0
	if n.jobState() == "succeeded" {
		made = 2
	}
	return parts(x, id, "checkpoint", made, func(i int) json.RawMessage {
		return doc("object", "fine_tuning.job.checkpoint", "id", partID(x, "ftckpt_", id, i), "created_at", n.created, "fine_tuning_job_id", id,
			"fine_tuned_model_checkpoint", "ft:"+n.model+":mock::"+id[len(id)-4:]+":ckpt-step-"+strconv.Itoa(i+1), "step_number", i+1, "metrics", doc("step", i+1, "train_loss", 0.5))
	})
}

func partID(x *exchange, prefix, job string, i int) string {
	return prefix + strings.TrimPrefix(job, "ftjob-") + "n" + strconv.Itoa(i)
}

// parts makes those parts of a job (such as events) that are still missing, until there are
// made of them, and answers with a page of them.
func parts(x *exchange, job, kind string, made int, write func(int) json.RawMessage) *apiError {
	x.s.things.jobs.Lock()
	for i := len(x.s.things.children(kind, job)); i < made; i++ {
		v, err := parseJSON(string(write(i)))
		if err != nil {
			v = value{kind: object}
		}
		keep(x, &thing{id: v.get("id").s, kind: kind, parent: job, body: v})
	}
	x.s.things.jobs.Unlock()
	return listing(x, kind, job, "desc", nil, func(n *thing) json.RawMessage { return n.body.source("{}") })
}
