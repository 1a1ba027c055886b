package mockprovider

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// jobHostShape serves the files, batches and fine-tuning jobs of hosts that speak OpenAI's
// chat, each below /hosts/{name}. Jobs make progress when they are read.
var jobHostShape = &shape{name: "job-hosts", match: jobHostMatch, authenticate: jobHostKey}

const jobHosts = "/hosts/"

// jobHostRoutes are the routes of hosts that differ from OpenAI's; other paths are the same.
// {id} matches one segment.
var jobHostRoutes map[string][]operation

func init() { // the handlers refer to the table for their links
	jobHostRoutes = map[string][]operation{
		"groq":  {{"GET", "/batches/{id}", plainBatch}},
		"azure": {}, "fireworks": fireworksRoutes(), "cohere": cohereJobRoutes(),
		"mistral": {
			{"POST", "/batch/jobs", hostBatchMade("mistral")}, {"GET", "/batch/jobs", hostList("mistral", "batch")},
			{"GET", "/batch/jobs/{id}", hostBatch("mistral")}, {"POST", "/batch/jobs/{id}/cancel", hostStopped("mistral", "batch")},
			{"POST", "/fine_tuning/jobs", hostTuningMade("mistral")}, {"GET", "/fine_tuning/jobs", hostList("mistral", "tune")},
			{"GET", "/fine_tuning/jobs/{id}", hostTuning("mistral")}, {"POST", "/fine_tuning/jobs/{id}/cancel", hostStopped("mistral", "tune")},
		},
		"together": {
			{"POST", "/files/upload", togetherUpload},
			{"POST", "/batches", hostBatchMade("together")}, {"GET", "/batches", hostList("together", "batch")},
			{"GET", "/batches/{id}", hostBatch("together")}, {"POST", "/batches/{id}/cancel", hostStopped("together", "batch")},
			{"POST", "/fine-tunes", hostTuningMade("together")}, {"GET", "/fine-tunes", hostList("together", "tune")},
			{"GET", "/fine-tunes/{id}", hostTuning("together")}, {"POST", "/fine-tunes/{id}/cancel", hostStopped("together", "tune")},
		},
	}
}

// jobHostKey looks for the key where the host wants it.
func jobHostKey(x *exchange) *apiError {
	if strings.HasPrefix(x.path, jobHosts+"azure/") {
		return azureKey(x)
	}
	return x.authenticate()
}

func jobHostMatch(x *exchange) func(*exchange) *apiError {
	rest, ok := strings.CutPrefix(x.path, jobHosts)
	if !ok {
		return nil
	}
	host, path, _ := strings.Cut(rest, "/")
	routes, ok := jobHostRoutes[host]
	if !ok {
		return nil
	}
	path = "/" + strings.TrimPrefix(strings.TrimPrefix(path, "openai/"), "v1/")
	return func(x *exchange) *apiError {
		version, _ := url.ParseQuery(x.query)
		if host == "azure" && !azureVersion.MatchString(version.Get("api-version")) {
			return &apiError{status: http.StatusNotFound, code: "404", message: "Resource not found"}
		}
		for _, o := range routes {
			if id, ok := segmentOf(o.path, path); ok && o.method == x.r.Method {
				return o.handle(x, id, "")
			}
		}
		for _, o := range operations {
			if id, ok := segmentOf(o.path, path); ok && o.method == x.r.Method && (strings.HasPrefix(path, "/files") || strings.HasPrefix(path, "/batches")) {
				return o.handle(x, id, "")
			}
		}
		return &apiError{status: http.StatusNotFound, message: "Not Found"}
	}
}

// segmentOf matches a path that has at most one variable.
func segmentOf(pattern, path string) (id string, ok bool) {
	want, got := strings.Split(pattern, "/"), strings.Split(path, "/")
	if len(want) != len(got) {
		return "", false
	}
	for i := range want {
		if want[i] == "{id}" && got[i] != "" {
			id = got[i]
		} else if want[i] != got[i] {
			return "", false
		}
	}
	return id, true
}

// plainBatch is a batch of a host that does not report usage.
func plainBatch(x *exchange, id, sub string) *apiError {
	w := httptest.NewRecorder()
	y := *x
	y.w = w
	if e := batchOne(&y, id, sub); e != nil {
		return e
	}
	body := w.Body.String()
	if at := strings.Index(body, `,"model":`); at > 0 {
		body = body[:at] + body[strings.Index(body, `,"metadata":`):]
	}
	return listed(x, []byte(body))
}

// togetherUpload accepts a file with its name and type.
func togetherUpload(x *exchange, _, _ string) *apiError {
	u, e := parseForm(x, "file")
	if e != nil {
		return e
	}
	if !slices.Contains([]string{"batch-api", "fine-tune"}, u.fields["purpose"]) || u.fields["file_name"] == "" || u.fields["file_type"] != "jsonl" {
		return badRequest("purpose", "invalid_value", "purpose, file_name and file_type are required")
	}
	id, done, e := begin(x, "file-", u.name)
	if done {
		return e
	}
	n := keep(x, &thing{id: id, kind: "file", name: u.name, purpose: u.fields["purpose"], content: u.files["file"]})
	x.plain(id, appendFile(nil, n), Usage{})
	return nil
}

func hostBatchMade(host string) func(*exchange, string, string) *apiError {
	return func(x *exchange, _, _ string) *apiError {
		v, e := parseBody(x)
		if e != nil {
			return e
		}
		var file, model string
		switch host {
		case "mistral":
			if e := known(v, "", "input_files", "endpoint", "model", "metadata", "timeout_hours"); e != nil {
				return e
			}
			if len(v.get("input_files").arr) != 1 || v.get("model").s == "" {
				return badRequest("model", "", "model and input_files are required")
			}
			file, model = v.get("input_files").arr[0].s, v.get("model").s
		case "together":
			if e := known(v, "", "input_file_id", "endpoint", "completion_window"); e != nil {
				return e
			}
			file = v.get("input_file_id").s
		}
		in := x.s.things.get("file", file)
		if in == nil || !slices.Contains(batchEndpoints, v.get("endpoint").s) {
			return notFound("File", file)
		}
		for line := range strings.Lines(string(in.content)) {
			row, err := parseJSON(strings.TrimSpace(line))
			if err != nil || row.get("custom_id").kind != text || row.get("body").kind != object || row.get("body").get("model").given() != (host == "together") || len(row.obj) != 2 {
				return badRequest("input_file_id", "", "a row is not valid: "+line)
			}
		}
		id, done, e := begin(x, "job-", file)
		if done {
			return e
		}
		n := keep(x, &thing{id: id, kind: host + "-batch", name: file, model: model, body: v})
		b := appendHostBatch(nil, n)
		if host == "together" {
			b = append(append([]byte(`{"job":`), b...), '}')
		}
		x.plain(id, b, Usage{})
		return nil
	}
}

func hostBatch(host string) func(*exchange, string, string) *apiError {
	return func(x *exchange, id, _ string) *apiError {
		n := x.s.things.get(host+"-batch", id)
		if n == nil {
			return notFound("Batch", id)
		}
		return listed(x, changed(x, n, func(n *thing) {
			if n.reads++; n.reads == 2 && !n.stopped {
				runHostBatch(x, n)
			}
		}, appendHostBatch))
	}
}

func hostStopped(host, kind string) func(*exchange, string, string) *apiError {
	return func(x *exchange, id, _ string) *apiError {
		n := x.s.things.get(host+"-"+kind, id)
		if n == nil {
			return notFound("Job", id)
		}
		if len(x.body) > 0 {
			return badRequest("", "", "This request takes no body.")
		}
		return listed(x, changed(x, n, func(n *thing) { n.stopped, n.reads = true, 0 }, appendHostThing))
	}
}

func appendHostThing(b []byte, n *thing) []byte {
	if strings.HasSuffix(n.kind, "-batch") {
		return appendHostBatch(b, n)
	}
	return appendHostTuning(b, n)
}

func hostList(host, kind string) func(*exchange, string, string) *apiError {
	return func(x *exchange, _, _ string) *apiError {
		page, _, _ := x.s.things.page(host+"-"+kind, "", "", maxThings, nil)
		if host == "mistral" {
			q, _ := url.ParseQuery(x.query)
			number, err := strconv.Atoi(q.Get("page"))
			size, err2 := strconv.Atoi(q.Get("page_size"))
			if err != nil || err2 != nil || number < 0 || size < 1 {
				return badRequest("page", "", "page and page_size must be numbers")
			}
			page = page[min(number*size, len(page)):min((number+1)*size, len(page))]
		}
		b := []byte("[")
		x.s.things.jobs.Lock()
		for i, n := range page {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendHostThing(b, n)
		}
		x.s.things.jobs.Unlock()
		b = append(b, ']')
		if host == "mistral" || kind == "tune" {
			b = append(append([]byte(`{"object":"list","data":`), b...), '}')
		}
		return listed(x, b)
	}
}

// hostState is the host's word for the state of a batch.
func (n *thing) hostState() string {
	words := map[string][5]string{
		"mistral-batch":  {"QUEUED", "RUNNING", "SUCCESS", "CANCELLATION_REQUESTED", "CANCELLED"},
		"together-batch": {"VALIDATING", "IN_PROGRESS", "COMPLETED", "CANCELLING", "CANCELLED"},
		"mistral-tune":   {"QUEUED", "RUNNING", "SUCCESS", "CANCELLED", "CANCELLED"},
		"together-tune":  {"pending", "running", "completed", "cancelled", "cancelled"},
	}[n.kind]
	if n.stopped {
		return words[3+min(n.reads, 1)]
	}
	return words[min(n.reads, 2)]
}

func (n *thing) at(d int64) string {
	return `"` + time.Unix(n.created+d, 0).UTC().Format("2006-01-02T15:04:05.000000Z") + `"`
}

func appendHostBatch(b []byte, n *thing) []byte {
	state := n.hostState()
	ended := state == "SUCCESS" || state == "COMPLETED" || state == "CANCELLED"
	b = appendString(append(b, `{"id":`...), n.id)
	b = append(b, `,"status":"`+state+`"`...)
	if n.kind == "mistral-batch" {
		b = appendString(append(b, `,"object":"batch","model":`...), n.model)
		b = appendInt(b, `,"created_at":`, n.created, "")
		if n.reads > 0 {
			b = appendInt(b, `,"started_at":`, n.created+1, "")
		}
		if ended {
			b = appendInt(b, `,"completed_at":`, n.created+2, "")
		}
		b = appendNullable(append(b, `,"output_file":`...), n.output)
		b = appendNullable(append(b, `,"error_file":`...), n.failed)
		b = appendInt(b, `,"total_requests":`, n.rows, "")
		b = appendInt(b, `,"succeeded_requests":`, n.good, "")
		return appendInt(b, `,"failed_requests":`, n.rows-n.good, `,"errors":[]}`)
	}
	b = append(b, `,"created_at":`+n.at(0)+`,"job_deadline":`+n.at(86400)...)
	if ended {
		b = append(b, `,"completed_at":`+n.at(2)...)
	}
	b = appendNullable(append(b, `,"output_file_id":`...), n.output)
	b = appendNullable(append(b, `,"error_file_id":`...), n.failed)
	return append(b, `,"progress":50}`...)
}

// runHostBatch answers the rows of a batch into two files.
func runHostBatch(x *exchange, n *thing) {
	in := x.s.things.get("file", n.name)
	if in == nil {
		return
	}
	var out, failed []byte
	for line := range strings.Lines(string(in.content)) {
		v, _ := parseJSON(strings.TrimSpace(line))
		body := v.get("body").s
		if n.model != "" {
			body = `{"model":` + quoted(n.model) + `,` + strings.TrimSpace(body)[1:]
		}
		w, e := runRow(x, n.body.get("endpoint").s, body)
		n.rows++
		row := appendString([]byte(`{"id":"row","custom_id":`), v.get("custom_id").s)
		if e != nil {
			failed = appendInt(append(failed, row...), `,"response":{"status_code":`, int64(e.status), `,"body":{"message":`)
			failed = append(appendString(failed, e.message), `}},"error":null}`+"\n"...)
			continue
		}
		n.good++
		out = append(append(append(out, row...), `,"response":{"status_code":200,"body":`...), w...)
		out = append(out, `},"error":null}`+"\n"...)
	}
	if out != nil {
		n.output = keep(x, &thing{id: x.newID("file-", 3), kind: "file", purpose: "batch_output", content: out}).id
	}
	if failed != nil {
		n.failed = keep(x, &thing{id: x.newID("file-", 4), kind: "file", purpose: "batch_output", content: failed}).id
	}
}

// runRow answers one request in OpenAI's format.
func runRow(x *exchange, endpoint, body string) ([]byte, *apiError) {
	w, r := httptest.NewRecorder(), x.r.Clone(x.r.Context())
	r.Header.Set("Content-Type", "application/json")
	y := &exchange{s: x.s, w: w, r: r, body: []byte(body), path: "/batch" + endpoint, st: unsteered()}
	run := chatCompletion
	switch endpoint {
	case "/v1/embeddings":
		run = embeddings
	case "/v1/completions":
		run = completion
	}
	e := run(y)
	return w.Body.Bytes(), e
}

func hostTuningMade(host string) func(*exchange, string, string) *apiError {
	return func(x *exchange, _, _ string) *apiError {
		v, e := parseBody(x)
		if e != nil {
			return e
		}
		file := v.get("training_file").s
		members := []string{"model", "training_file", "validation_file", "suffix", "n_epochs", "batch_size"}
		if host == "mistral" {
			members = []string{"model", "training_files", "validation_files", "suffix", "hyperparameters", "auto_start"}
			if len(v.get("training_files").arr) == 1 {
				file = v.get("training_files").arr[0].get("file_id").s
			}
		}
		if e := known(v, "", members...); e != nil {
			return e
		}
		in := x.s.things.get("file", file)
		if in == nil || in.purpose != "fine-tune" || v.get("model").s == "" {
			return notFound("File", file)
		}
		for line := range strings.Lines(string(in.content)) {
			if row, err := parseJSON(strings.TrimSpace(line)); err != nil || row.get("messages").kind != array {
				return badRequest("training_file", "", "a line is not valid")
			}
		}
		id, done, e := begin(x, "ft-", file)
		if done {
			return e
		}
		n := keep(x, &thing{id: id, kind: host + "-tune", name: file, model: v.get("model").s, body: v})
		x.plain(id, appendHostTuning(nil, n), Usage{})
		return nil
	}
}

func hostTuning(host string) func(*exchange, string, string) *apiError {
	return func(x *exchange, id, _ string) *apiError {
		n := x.s.things.get(host+"-tune", id)
		if n == nil {
			return notFound("Job", id)
		}
		return listed(x, changed(x, n, func(n *thing) { n.reads++ }, appendHostTuning))
	}
}

func appendHostTuning(b []byte, n *thing) []byte {
	state := n.hostState()
	b = appendString(append(b, `{"id":`...), n.id)
	b = appendString(append(b, `,"model":`...), n.model)
	b = append(b, `,"status":"`+state+`"`...)
	if n.kind == "mistral-tune" {
		b = appendInt(b, `,"created_at":`, n.created, "")
		b = appendInt(b, `,"modified_at":`, n.created+2, "")
		if state == "SUCCESS" {
			b = append(b, `,"fine_tuned_model":"ft:mock","trained_tokens":42`...)
		}
		return append(b, '}')
	}
	b = append(b, `,"created_at":`+n.at(0)+`,"updated_at":`+n.at(2)...)
	if state == "completed" {
		b = append(b, `,"model_output_name":"ft:mock","token_count":42`...)
	}
	return append(b, '}')
}
