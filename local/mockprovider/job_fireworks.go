package mockprovider

import (
	"net/http"
	"net/url"
	"strconv"
	"strings"
)

// The account mock-account of Fireworks: datasets, which are uploaded and downloaded
// without a key at separate addresses, and jobs, which are stopped by deleting them. Jobs
// make progress when they are read.
const fireworksAccount = "accounts/mock-account/"

func fireworksRoutes() []operation {
	return []operation{
		{"POST", "/datasets", datasetMade}, {"POST", "/datasets/{id}", datasetDone}, {"GET", "/datasets/{id}", datasetOne},
		{"POST", "/batchInferenceJobs", fireworksMade("batchInferenceJobs")}, {"GET", "/batchInferenceJobs", fireworksList("batchInferenceJobs")},
		{"GET", "/batchInferenceJobs/{id}", fireworksOne("batchInferenceJobs")}, {"DELETE", "/batchInferenceJobs/{id}", fireworksGone("batchInferenceJobs")},
		{"POST", "/supervisedFineTuningJobs", fireworksMade("supervisedFineTuningJobs")}, {"GET", "/supervisedFineTuningJobs", fireworksList("supervisedFineTuningJobs")},
		{"GET", "/supervisedFineTuningJobs/{id}", fireworksOne("supervisedFineTuningJobs")}, {"DELETE", "/supervisedFineTuningJobs/{id}", fireworksGone("supervisedFineTuningJobs")},
	}
}

// signedShape serves the addresses that datasets are uploaded and downloaded at.
var signedShape = &shape{name: "signed", match: signedMatch, authenticate: func(x *exchange) *apiError {
	if x.r.Header.Get("Authorization") != "" || !strings.Contains(x.query, "signature=") {
		return &apiError{status: http.StatusForbidden, message: "the address is signed and takes no key"}
	}
	return nil
}}

func signedMatch(x *exchange) func(*exchange) *apiError {
	name, ok := strings.CutPrefix(x.path, "/signed/")
	if !ok {
		return nil
	}
	return func(x *exchange) *apiError {
		if x.r.Method == http.MethodPut {
			size := strconv.Itoa(len(x.body))
			if x.r.Header.Get("X-Goog-Content-Length-Range") != size+","+size {
				return &apiError{status: http.StatusBadRequest, message: "the length is not the one that was told"}
			}
			keep(x, &thing{id: name, kind: "signed", content: x.body})
			return nil
		}
		n := x.s.things.get("signed", name)
		if n == nil {
			return &apiError{status: http.StatusNotFound, message: "No such object"}
		}
		_, _ = x.w.Write(n.content)
		return nil
	}
}

// signedURL is such an address.
func signedURL(x *exchange, name string) string {
	return "http://" + x.r.Host + "/signed/" + name + "?signature=mock"
}

func datasetMade(x *exchange, _, _ string) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := known(v, "", "datasetId", "dataset"); e != nil {
		return e
	}
	id := v.get("datasetId").s
	if id == "" || v.get("dataset").get("userUploaded").kind != object || x.s.things.get("dataset", id) != nil {
		return badRequest("datasetId", "", "invalid dataset")
	}
	keep(x, &thing{id: id, kind: "dataset"})
	return listed(x, []byte(`{"name":"`+fireworksAccount+`datasets/`+id+`","state":"UPLOADING"}`))
}

// datasetDone serves the methods of datasets.
func datasetDone(x *exchange, name, _ string) *apiError {
	id, method, _ := strings.Cut(name, ":")
	n := x.s.things.get("dataset", id)
	if n == nil {
		return notFound("Dataset", id)
	}
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	switch method {
	case "getUploadEndpoint":
		size, ok := v.get("filenameToSize").get(id + ".jsonl").integer()
		if !ok || size < 1 {
			return badRequest("filenameToSize", "", "filenameToSize is required")
		}
		return listed(x, []byte(`{"filenameToSignedUrls":{`+quoted(id+".jsonl")+`:`+quoted(signedURL(x, id))+`}}`))
	case "validateUpload":
		signed := x.s.things.get("signed", id)
		if signed == nil {
			return badRequest("", "", "nothing was uploaded")
		}
		n.content = signed.content
		return listed(x, []byte("{}"))
	}
	return &apiError{status: http.StatusNotFound, message: "Not Found"}
}

func datasetOne(x *exchange, name, _ string) *apiError {
	id, method, _ := strings.Cut(name, ":")
	n := x.s.things.get("dataset", id)
	if n == nil || method != "getDownloadEndpoint" {
		return notFound("Dataset", id)
	}
	x.s.things.remove("signed", id)
	keep(x, &thing{id: id, kind: "signed", content: n.content})
	return listed(x, []byte(`{"filenameToSignedUrls":{"README.md":"http://127.0.0.1:1/","BIJOutputSet.jsonl":`+quoted(signedURL(x, id))+`}}`))
}

func fireworksMade(kind string) func(*exchange, string, string) *apiError {
	members := map[string][]string{
		"batchInferenceJobs":       {"displayName", "model", "inputDatasetId", "outputDatasetId"},
		"supervisedFineTuningJobs": {"displayName", "baseModel", "dataset", "evaluationDataset", "outputModel", "epochs"},
	}[kind]
	return func(x *exchange, _, _ string) *apiError {
		v, e := parseBody(x)
		if e != nil {
			return e
		}
		if e := known(v, "", members...); e != nil {
			return e
		}
		model, from, wants := v.get("model").s, v.get("inputDatasetId").s, "body"
		if kind == "supervisedFineTuningJobs" {
			model, from, wants = v.get("baseModel").s, v.get("dataset").s, "messages"
		}
		in := x.s.things.get("dataset", strings.TrimPrefix(from, fireworksAccount+"datasets/"))
		if in == nil || in.content == nil || !strings.HasPrefix(model, "accounts/") {
			return notFound("Dataset", from)
		}
		for line := range strings.Lines(string(in.content)) {
			if row, err := parseJSON(strings.TrimSpace(line)); err != nil || !row.get(wants).given() || row.get("body").get("model").given() {
				return badRequest("dataset", "", "a row is not valid")
			}
		}
		id, done, e := begin(x, "fw-", in.id)
		if done {
			return e
		}
		n := keep(x, &thing{id: id, kind: kind, name: in.id, model: model, output: v.get("outputDatasetId").s, body: v})
		x.plain(id, appendFireworks(nil, n), Usage{})
		return nil
	}
}

func fireworksOne(kind string) func(*exchange, string, string) *apiError {
	return func(x *exchange, id, _ string) *apiError {
		n := x.s.things.get(kind, id)
		if n == nil {
			return notFound("Job", id)
		}
		return listed(x, changed(x, n, func(n *thing) {
			if n.reads++; n.reads == 2 && kind == "batchInferenceJobs" {
				runFireworks(x, n)
			}
		}, appendFireworks))
	}
}

func fireworksGone(kind string) func(*exchange, string, string) *apiError {
	return func(x *exchange, id, _ string) *apiError {
		if !x.s.things.remove(kind, id) {
			return notFound("Job", id)
		}
		return listed(x, []byte("{}"))
	}
}

func fireworksList(kind string) func(*exchange, string, string) *apiError {
	return func(x *exchange, _, _ string) *apiError {
		q, _ := url.ParseQuery(x.query)
		limit, err := strconv.Atoi(q.Get("pageSize"))
		page, more, known := x.s.things.page(kind, "", q.Get("pageToken"), limit, nil)
		if err != nil || limit < 1 || limit > 200 || !known {
			return badRequest("pageSize", "", "invalid page")
		}
		b := []byte(`{"` + kind + `":[`)
		x.s.things.jobs.Lock()
		for i, n := range page {
			if i > 0 {
				b = append(b, ',')
			}
			b = appendFireworks(b, n)
		}
		x.s.things.jobs.Unlock()
		b = append(b, ']')
		if more {
			b = appendString(append(b, `,"nextPageToken":`...), page[len(page)-1].id)
		}
		return listed(x, append(b, '}'))
	}
}

func appendFireworks(b []byte, n *thing) []byte {
	state := [...]string{"VALIDATING", "RUNNING", "COMPLETED"}[min(n.reads, 2)]
	b = appendString(append(b, `{"name":`...), fireworksAccount+n.kind+"/"+n.id)
	b = append(b, `,"state":"JOB_STATE_`+state+`","createTime":`+n.at(0)+`,"updateTime":`+n.at(2)...)
	if n.kind == "supervisedFineTuningJobs" {
		b = appendString(append(b, `,"baseModel":`...), n.model)
		if state == "COMPLETED" {
			b = append(b, `,"completedTime":`+n.at(2)+`,"outputModel":"`+fireworksAccount+`models/tuned"`...)
		}
		return append(b, '}')
	}
	b = appendString(append(b, `,"model":`...), n.model)
	b = appendString(append(b, `,"outputDatasetId":`...), n.output)
	return append(b, `,"jobProgress":{"totalInputRequests":`+itoa(n.rows)+`,"successfullyProcessedRequests":`+itoa(n.good)+`,"failedRequests":`+itoa(n.rows-n.good)+`}}`...)
}

// runFireworks writes the answers to a job's rows into its output dataset.
func runFireworks(x *exchange, n *thing) {
	in := x.s.things.get("dataset", n.name)
	if in == nil {
		return
	}
	var out []byte
	for line := range strings.Lines(string(in.content)) {
		v, _ := parseJSON(strings.TrimSpace(line))
		w, e := runRow(x, "/v1/chat/completions", `{"model":`+quoted(n.model)+`,`+strings.TrimSpace(v.get("body").s)[1:])
		n.rows++
		out = appendString(append(out, `{"custom_id":`...), v.get("custom_id").s)
		if e != nil {
			out = append(appendString(append(out, `,"error":{"message":`...), e.message), "}}\n"...)
			continue
		}
		n.good++
		out = append(append(append(out, `,"response":`...), w...), "}\n"...)
	}
	keep(x, &thing{id: strings.TrimPrefix(n.output, fireworksAccount+"datasets/"), kind: "dataset", content: out})
}
