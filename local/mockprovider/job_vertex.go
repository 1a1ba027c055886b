package mockprovider

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"strconv"
	"strings"
	"time"
)

// vertexJobsShape serves batch prediction and tuning jobs of Vertex AI, and the bucket
// mock-gcs of Cloud Storage. Jobs make progress when they are read.
var vertexJobsShape = &shape{name: "vertex-jobs", match: vertexJobsMatch, authenticate: vertexAuthenticate, refuse: geminiRefuse}

const gcsBucket = "/mock-gcs/"

var vertexJobPath = regexp.MustCompile(`^/v1/projects/([^/]+)/locations/([^/]+)/(batchPredictionJobs|tuningJobs)(?:/(\d+))?(:cancel)?$`)

func vertexJobsMatch(x *exchange) func(*exchange) *apiError {
	path := x.path
	if strings.HasPrefix(path, "/v1/v1/") {
		path = strings.TrimPrefix(path, "/v1") // after a base URL that ends in /v1
	}
	if key, ok := strings.CutPrefix(strings.TrimPrefix(path, "/v1"), gcsBucket); ok {
		return func(x *exchange) *apiError { return bucketObject(x, "gcs/"+key) }
	}
	m := vertexJobPath.FindStringSubmatch(path)
	if m == nil {
		return nil
	}
	parent, kind, id := "projects/"+m[1]+"/locations/"+m[2]+"/"+m[3], m[3], m[4]
	return func(x *exchange) *apiError {
		switch {
		case x.r.Method == "POST" && id == "" && kind == "tuningJobs":
			return tuningMade(x, parent)
		case x.r.Method == "POST" && id == "":
			return predictionMade(x, parent)
		case x.r.Method == "GET" && id == "":
			return vertexJobList(x, kind)
		case x.r.Method == "GET" && m[5] == "":
			return vertexJob(x, parent+"/"+id, kind, func(n *thing) {
				if n.reads++; kind == "batchPredictionJobs" && n.reads == 2 && !n.stopped {
					runPredictions(x, n)
				}
			}, true)
		case x.r.Method == "POST" && m[5] != "":
			if len(x.body) > 0 && string(x.body) != "{}" {
				return invalid("Request contains an invalid argument.")
			}
			return vertexJob(x, parent+"/"+id, kind, func(n *thing) { n.stopped, n.reads = true, 0 }, false)
		}
		return &apiError{status: http.StatusNotFound, message: "Requested entity was not found."}
	}
}

func vertexAuthenticate(x *exchange) *apiError {
	key, _ := strings.CutPrefix(x.r.Header.Get("Authorization"), "Bearer ")
	if key == VertexToken || strings.HasPrefix(key, "mock-") && key != "mock-denied" {
		return nil
	}
	if strings.Contains(x.path, gcsBucket) {
		_ = s3Refused(x, http.StatusUnauthorized, "AuthenticationRequired", "Authentication required.")
		return &apiError{status: http.StatusUnauthorized}
	}
	return &apiError{status: http.StatusUnauthorized, typ: "UNAUTHENTICATED", message: "Request had invalid authentication credentials."}
}

// gcsObject finds the object at a gs:// address.
func gcsObject(x *exchange, uri string) *thing {
	key, ok := strings.CutPrefix(uri, "gs:/"+gcsBucket)
	if !ok {
		return nil
	}
	return x.s.things.get("object", "gcs/"+key)
}

// vertexModelOf returns the publisher and the model of the path of a publisher's model.
func vertexModelOf(path string) (publisher, model string) {
	parts := strings.Split(path, "/")
	if len(parts) != 4 || parts[0] != "publishers" || parts[2] != "models" {
		return "", ""
	}
	return parts[1], parts[3]
}

func predictionMade(x *exchange, parent string) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := known(v, "", "displayName", "model", "inputConfig", "outputConfig", "instanceConfig", "modelParameters", "labels"); e != nil {
		return e
	}
	publisher, model := vertexModelOf(v.get("model").s)
	in, out := v.get("inputConfig"), v.get("outputConfig")
	if v.get("displayName").s == "" || model == "" {
		return invalid("List of found errors: displayName and model are required")
	}
	if in.get("instancesFormat").s != "jsonl" || out.get("predictionsFormat").s != "jsonl" || len(in.get("gcsSource").get("uris").arr) != 1 {
		return invalid("Only jsonl in Cloud Storage is known here")
	}
	prefix := out.get("gcsDestination").get("outputUriPrefix").s
	uri := in.get("gcsSource").get("uris").arr[0].s
	file := gcsObject(x, uri)
	if file == nil || !strings.HasPrefix(prefix, "gs:/"+gcsBucket) {
		return &apiError{status: http.StatusNotFound, message: "The input or the output is not there: " + uri}
	}
	if publisher == "anthropic" && v.get("instanceConfig").given() {
		return invalid("instanceConfig is not supported for partner models")
	}
	if publisher == "google" && (len(v.get("instanceConfig").get("excludedFields").arr) != 1 || v.get("instanceConfig").get("excludedFields").arr[0].s != "requestId") {
		return invalid("the field requestId is not excluded")
	}
	embeds := strings.Contains(model, "embedding")
	for line := range strings.Lines(string(file.content)) {
		row, err := parseJSON(strings.TrimSpace(line))
		good := err == nil && row.get("request").kind == object && row.get("requestId").kind == text
		switch {
		case embeds:
			good = err == nil && row.get("content").kind == text && row.get("requestId").kind == text
		case publisher == "anthropic":
			good = err == nil && row.get("request").get("anthropic_version").s == "vertex-2023-10-16" && !row.get("request").get("model").given() && row.get("custom_id").kind == text
		}
		if !good {
			return invalid("a line of the input is not valid: %s", strings.TrimSpace(line))
		}
	}
	name := parent + "/" + strconv.FormatUint(uint64(seedOf(uri))+1_000_000, 10)
	n := keep(x, &thing{id: name, kind: "batchPredictionJobs", name: uri, output: prefix, model: v.get("model").s, body: v})
	return listed(x, appendVertexJob(nil, n))
}

func tuningMade(x *exchange, parent string) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := known(v, "", "baseModel", "tunedModelDisplayName", "supervisedTuningSpec", "description", "labels"); e != nil {
		return e
	}
	spec := v.get("supervisedTuningSpec")
	if e := known(spec, "supervisedTuningSpec", "trainingDatasetUri", "validationDatasetUri", "hyperParameters"); e != nil {
		return e
	}
	hyper := spec.get("hyperParameters")
	if e := known(hyper, "hyperParameters", "epochCount", "learningRateMultiplier", "adapterSize"); e != nil {
		return e
	}
	if hyper.get("adapterSize").given() && !strings.HasPrefix(hyper.get("adapterSize").s, "ADAPTER_SIZE_") {
		return invalid("Invalid value at 'tuning_job.supervised_tuning_spec.hyper_parameters.adapter_size'")
	}
	uri := spec.get("trainingDatasetUri").s
	for _, at := range []string{uri, spec.get("validationDatasetUri").s} {
		file := gcsObject(x, at)
		if at == "" && at != uri {
			continue
		}
		if file == nil {
			return &apiError{status: http.StatusNotFound, message: "The data set is not there: " + at}
		}
		for line := range strings.Lines(string(file.content)) {
			row, err := parseJSON(strings.TrimSpace(line))
			if err != nil || len(row.get("contents").arr) == 0 || row.get("contents").arr[0].get("parts").kind != array {
				return invalid("a line of the data set is not valid")
			}
		}
	}
	if v.get("baseModel").s == "" {
		return invalid("baseModel is required")
	}
	n := keep(x, &thing{id: parent + "/" + strconv.FormatUint(uint64(seedOf(uri))+2_000_000, 10), kind: "tuningJobs", model: v.get("baseModel").s, body: v})
	return listed(x, appendVertexJob(nil, n))
}

// vertexJob changes a job; withBody makes the response contain the job.
func vertexJob(x *exchange, name, kind string, do func(*thing), withBody bool) *apiError {
	n := x.s.things.get(kind, name)
	if n == nil {
		return &apiError{status: http.StatusNotFound, message: "The job " + name + " does not exist."}
	}
	b := changed(x, n, do, appendVertexJob)
	if !withBody {
		b = []byte("{}")
	}
	return listed(x, b)
}

func (n *thing) vertexState() string {
	switch {
	case n.stopped && n.reads < 2:
		return "JOB_STATE_CANCELLING"
	case n.stopped:
		return "JOB_STATE_CANCELLED"
	}
	return [...]string{"JOB_STATE_PENDING", "JOB_STATE_RUNNING", "JOB_STATE_SUCCEEDED"}[min(n.reads, 2)]
}

func appendVertexJob(b []byte, n *thing) []byte {
	at := func(d int64) string {
		return `"` + time.Unix(n.created+d, 0).UTC().Format("2006-01-02T15:04:05.000000Z") + `"`
	}
	state := n.vertexState()
	b = appendString(append(b, `{"name":`...), n.id)
	b = append(b, `,"state":"`+state+`","createTime":`+at(0)+`,"updateTime":`+at(1)...)
	ended := state == "JOB_STATE_SUCCEEDED" || state == "JOB_STATE_CANCELLED"
	if ended {
		b = append(b, `,"startTime":`+at(1)+`,"endTime":`+at(2)...)
	}
	if n.kind == "tuningJobs" {
		b = appendString(append(b, `,"baseModel":`...), n.model)
		if state == "JOB_STATE_SUCCEEDED" {
			b = append(b, `,"tunedModel":{"model":"projects/1/locations/us-central1/models/7","endpoint":"projects/1/locations/us-central1/endpoints/8"}`...)
			b = append(b, `,"tuningDataStats":{"supervisedTuningDataStats":{"totalBillableTokenCount":"42"}}`...)
		}
		return append(b, '}')
	}
	b = appendString(append(b, `,"model":`...), n.model)
	if ended && !n.stopped {
		b = appendString(append(b, `,"outputInfo":{"gcsOutputDirectory":`...), n.output+"/prediction-model-1")
		b = append(b, `},"completionStats":{"successfulCount":"`+itoa(n.good)+`","failedCount":"`+itoa(n.rows-n.good)+`","incompleteCount":"-1"}`...)
	}
	return append(b, '}')
}

func vertexJobList(x *exchange, kind string) *apiError {
	q, err := url.ParseQuery(x.query)
	limit, bad := strconv.Atoi(q.Get("pageSize"))
	if err != nil || bad != nil || limit < 1 || limit > 100 {
		return invalid("page_size must be from 1 to 100")
	}
	page, more, known := x.s.things.page(kind, "", q.Get("pageToken"), limit, nil)
	if !known {
		return invalid("page_token is not valid")
	}
	b := []byte(`{"` + kind + `":[`)
	x.s.things.jobs.Lock()
	for i, n := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendVertexJob(b, n)
	}
	x.s.things.jobs.Unlock()
	b = append(b, ']')
	if more {
		b = appendString(append(b, `,"nextPageToken":`...), page[len(page)-1].id)
	}
	return listed(x, append(b, '}'))
}

// runPredictions writes the answers to a job's rows into the bucket; it splits vectors into
// two objects.
func runPredictions(x *exchange, n *thing) {
	in := gcsObject(x, n.name)
	if in == nil {
		return
	}
	publisher, model := vertexModelOf(n.model)
	embeds := strings.Contains(model, "embedding")
	var out [2][]byte
	for line := range strings.Lines(string(in.content)) {
		v, _ := parseJSON(strings.TrimSpace(line))
		w, r := httptest.NewRecorder(), x.r.Clone(x.r.Context())
		r.Header.Set("Content-Type", "application/json")
		y := &exchange{shape: geminiShape, s: x.s, w: w, r: r, body: []byte(v.get("request").s), path: "/batchPredictionJobs", model: model, st: unsteered()}
		var e *apiError
		switch {
		case embeds:
			y.body = append(appendString([]byte(`{"instances":[{"content":`), v.get("content").s), `}],"parameters":`...)
			if p := n.body.get("modelParameters"); p.kind == object {
				y.body = append(append(y.body, p.s...), '}')
			} else {
				y.body = append(y.body, "{}}"...)
			}
			e = vertexPredict(y, true)
		case publisher == "anthropic":
			e = vertexAnthropic(y, geminiPath{vertex: true, publisher: publisher, model: model, method: "rawPredict"})
		default:
			e = generateContent(y, true, false)
		}
		part := &out[0]
		if embeds && n.rows%2 == 1 {
			part = &out[1]
		}
		n.rows++
		status := `""`
		if e == nil {
			n.good++
		} else {
			status = quoted("Bad Request: " + string(appendGeminiError(nil, e.status, geminiStatus(e.status), e.message, "")))
			w.Body.Reset()
			w.Body.WriteString("{}")
		}
		*part = appendPrediction(*part, v, w.Body.Bytes(), status, embeds, publisher, e == nil)
	}
	folder := "gcs/" + strings.TrimPrefix(n.output, "gs:/"+gcsBucket) + "/prediction-model-1/"
	if !embeds {
		keep(x, &thing{id: folder + "predictions.jsonl", kind: "object", content: out[0]})
		return
	}
	for i, content := range out {
		if content != nil {
			keep(x, &thing{id: folder + "00000000000" + strconv.Itoa(i) + ".jsonl", kind: "object", content: content})
		}
	}
}

// appendPrediction writes one line of results.
func appendPrediction(b []byte, row value, answer []byte, status string, embeds bool, publisher string, good bool) []byte {
	switch {
	case embeds:
		b = appendString(append(b, `{"instance":{"content":`...), row.get("content").s)
		b = appendString(append(b, `},"requestId":`...), row.get("requestId").s)
		if good {
			v, _ := parseJSON(string(answer))
			b = append(append(b, `,"predictions":`...), v.get("predictions").s...)
		}
		return append(b, `,"status":`+status+"}\n"...)
	case publisher == "anthropic":
		b = appendString(append(b, `{"custom_id":`...), row.get("custom_id").s)
	default:
		b = appendString(append(b, `{"requestId":`...), row.get("requestId").s)
	}
	b = append(b, `,"status":`+status+`,"processed_time":"2026-01-02T03:04:05.678+00:00","request":`...)
	b = append(append(b, row.get("request").s...), `,"response":`...)
	return append(append(b, answer...), "}\n"...)
}
