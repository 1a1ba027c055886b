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

// bedrockJobsShape serves Bedrock's control plane, and the bucket mock-bucket of Amazon S3,
// with requests signed for that service. Jobs make progress when they are read.
var bedrockJobsShape = &shape{name: "bedrock-jobs", match: bedrockJobsMatch, authenticate: awsAuthenticate, refuse: bedrockRefuse}

const mockBucket = "/mock-bucket/"

var (
	jobName  = regexp.MustCompile(`^[a-zA-Z0-9](-*[a-zA-Z0-9+.\-])*$`)
	jobPaths = regexp.MustCompile(`^/(model-invocation-job|model-invocation-jobs|model-customization-jobs)(?:/([^/]+)(/stop)?)?$`)
)

func bedrockJobsMatch(x *exchange) func(*exchange) *apiError {
	path := bedrockPath(x.path)
	if key, ok := strings.CutPrefix(path, mockBucket); ok {
		return func(x *exchange) *apiError { return bucketObject(x, key) }
	}
	m := jobPaths.FindStringSubmatch(path)
	if m == nil {
		return nil
	}
	kind := "invocation"
	if strings.Contains(m[1], "customization") {
		kind = "customization"
	}
	return func(x *exchange) *apiError {
		id, err := url.PathUnescape(m[2])
		switch {
		case err != nil:
		case x.r.Method == "POST" && id == "" && m[1] != "model-invocation-jobs":
			return awsJobMade(x, kind)
		case x.r.Method == "GET" && id == "" && m[1] != "model-invocation-job":
			return awsJobList(x, kind)
		case x.r.Method == "GET" && id != "" && m[3] == "":
			return awsJob(x, kind, id, func(n *thing) {
				if n.reads++; kind == "invocation" && n.reads == 2 && !n.stopped {
					runInvocations(x, n)
				}
			}, true)
		case x.r.Method == "POST" && m[3] != "":
			if len(x.body) > 0 && string(x.body) != "{}" {
				return bedrockInvalid("This request takes no body")
			}
			return awsJob(x, kind, id, func(n *thing) { n.stopped, n.reads = true, 0 }, false)
		}
		return &apiError{status: http.StatusNotFound, typ: "UnknownOperationException", message: "Unknown operation"}
	}
}

// bucketObject serves one object of the bucket.
func bucketObject(x *exchange, key string) *apiError {
	name, err := url.PathUnescape(key)
	if err != nil || x.r.Header.Get("X-Amz-Content-Sha256") == "" && strings.HasPrefix(x.r.Header.Get("Authorization"), "AWS4") {
		return s3Refused(x, 400, "InvalidRequest", "Missing required header for this request: x-amz-content-sha256")
	}
	q, _ := url.ParseQuery(x.query)
	upload := q.Get("uploadId")
	switch {
	case x.r.Method == "PUT" && upload == "":
		x.s.things.remove("object", name)
		keep(x, &thing{id: name, kind: "object", content: x.body})
		return s3Said(x, "")
	case x.r.Method == "PUT":
		part, err := strconv.Atoi(q.Get("partNumber"))
		if x.s.things.get("upload", upload) == nil || err != nil || part < 1 {
			return s3Refused(x, 404, "NoSuchUpload", "The specified upload does not exist")
		}
		keep(x, &thing{id: upload + "#" + strconv.Itoa(part), kind: "part", content: x.body})
		x.w.Header()["ETag"] = []string{`"part` + strconv.Itoa(part) + `"`}
		return s3Said(x, "")
	case x.r.Method == "POST" && q.Has("uploads"):
		id := x.newID("upload-", seedOf(name))
		keep(x, &thing{id: id, kind: "upload"})
		return s3Said(x, "<InitiateMultipartUploadResult><Bucket>mock-bucket</Bucket><Key>"+name+"</Key><UploadId>"+id+"</UploadId></InitiateMultipartUploadResult>")
	case x.r.Method == "POST" && upload != "":
		return objectParts(x, name, upload)
	case x.r.Method == "DELETE":
		x.s.things.remove("upload", upload)
		return s3Said(x, "")
	case x.r.Method == "GET":
		n := x.s.things.get("object", name)
		if n == nil {
			return s3Refused(x, 404, "NoSuchKey", "The specified key does not exist.")
		}
		_, _ = x.w.Write(n.content)
		return nil
	}
	return s3Refused(x, 405, "MethodNotAllowed", "The specified method is not allowed against this resource.")
}

// objectParts joins the parts of an upload. Each part except the last must have 5 MiB.
func objectParts(x *exchange, name, upload string) *apiError {
	var whole []byte
	count := strings.Count(string(x.body), "<Part>")
	for part := 1; part <= count; part++ {
		n := x.s.things.get("part", upload+"#"+strconv.Itoa(part))
		if n == nil || !strings.Contains(string(x.body), "part"+strconv.Itoa(part)+"&#34;") {
			return s3Refused(x, 400, "InvalidPart", "One or more of the specified parts could not be found.")
		}
		if part < count && len(n.content) < 5<<20 {
			return s3Refused(x, 400, "EntityTooSmall", "Your proposed upload is smaller than the minimum allowed size")
		}
		whole = append(whole, n.content...)
	}
	if !x.s.things.remove("upload", upload) || count == 0 {
		return s3Refused(x, 404, "NoSuchUpload", "The specified upload does not exist")
	}
	x.s.things.remove("object", name)
	keep(x, &thing{id: name, kind: "object", content: whole})
	return s3Said(x, "<CompleteMultipartUploadResult><Key>"+name+"</Key></CompleteMultipartUploadResult>")
}

func s3Said(x *exchange, xml string) *apiError {
	x.w.Header()["Content-Type"] = []string{"application/xml"}
	_, _ = x.w.Write([]byte(xml))
	return nil
}

func s3Refused(x *exchange, status int, code, message string) *apiError {
	x.w.Header()["Content-Type"] = []string{"application/xml"}
	x.w.WriteHeader(status)
	_, _ = x.w.Write([]byte(`<?xml version="1.0" encoding="UTF-8"?><Error><Code>` + code + `</Code><Message>` + message + `</Message></Error>`))
	return nil
}

// objectAt finds the object at an s3:// address.
func objectAt(x *exchange, uri string) *thing {
	key, ok := strings.CutPrefix(uri, "s3:/"+mockBucket)
	if !ok {
		return nil
	}
	return x.s.things.get("object", key)
}

func awsJobMade(x *exchange, kind string) *apiError {
	v, err := parseJSON(string(x.body))
	if err != nil {
		return bedrockInvalid("The body is not JSON")
	}
	members := map[string][]string{
		"invocation":    {"clientRequestToken", "jobName", "modelId", "modelInvocationType", "roleArn", "inputDataConfig", "outputDataConfig", "timeoutDurationInHours", "tags"},
		"customization": {"clientRequestToken", "jobName", "customModelName", "roleArn", "baseModelIdentifier", "customizationType", "trainingDataConfig", "validationDataConfig", "outputDataConfig", "hyperParameters"},
	}[kind]
	if e := only(v, "", members...); e != nil {
		return bedrockInvalid(e.message)
	}
	if !jobName.MatchString(v.get("jobName").s) || len(v.get("jobName").s) > 63 || !strings.Contains(v.get("roleArn").s, ":role/") {
		return bedrockInvalid("jobName and roleArn are required")
	}
	if e := invocationType(kind, v); e != nil {
		return e
	}
	input, model := v.get("inputDataConfig").get("s3InputDataConfig").get("s3Uri").s, v.get("modelId").s
	output := v.get("outputDataConfig").get("s3OutputDataConfig").get("s3Uri").s
	if kind == "customization" {
		input, model, output = v.get("trainingDataConfig").get("s3Uri").s, v.get("baseModelIdentifier").s, v.get("outputDataConfig").get("s3Uri").s
		for _, m := range v.get("hyperParameters").obj {
			if m.v.kind != text {
				return bedrockInvalid("hyperParameters must be strings")
			}
		}
	}
	file := objectAt(x, input)
	if file == nil || model == "" || !strings.HasPrefix(output, "s3:/"+mockBucket) {
		return bedrockInvalid("the model, the input and the output must be there")
	}
	for line := range strings.Lines(string(file.content)) {
		row, err := parseJSON(strings.TrimSpace(line))
		good := err == nil && row.get("recordId").kind == text && row.get("modelInput").kind == object
		if kind == "customization" {
			good = err == nil && (row.get("schemaVersion").s == "bedrock-conversation-2024" && row.get("messages").kind == array || row.get("prompt").kind == text)
		}
		if !good {
			return bedrockInvalid("a line of the input is not valid")
		}
	}
	id := "arn:aws:bedrock:us-east-1:123456789012:model-" + kind + "-job/" + x.newID("", seedOf(input))
	n := keep(x, &thing{id: id, kind: "aws-" + kind, name: input, output: output, model: model, body: v})
	return bedrockPlain(x, append(appendString([]byte(`{"jobArn":`), n.id), '}'), Usage{})
}

// invocationType checks that modelInvocationType fits the model: the rows of models that embed
// are not conversations.
func invocationType(kind string, v value) *apiError {
	embeds := strings.Contains(v.get("modelId").s, "embed")
	if kind == "invocation" && (v.get("modelInvocationType").s == "Converse") == embeds {
		return bedrockInvalid("The modelInvocationType does not go with the model")
	}
	return nil
}

// awsJob changes a job; withBody makes the response contain the job.
func awsJob(x *exchange, kind, id string, do func(*thing), withBody bool) *apiError {
	n := x.s.things.get("aws-"+kind, id)
	if n == nil {
		return &apiError{status: http.StatusNotFound, message: "The provided job identifier is not valid"}
	}
	b := changed(x, n, do, appendAWSJob)
	if !withBody {
		b = []byte("{}")
	}
	return bedrockPlain(x, b, Usage{})
}

func (n *thing) awsState() string {
	switch {
	case n.stopped && n.reads < 2:
		return "Stopping"
	case n.stopped:
		return "Stopped"
	case n.kind == "aws-customization":
		return [...]string{"InProgress", "InProgress", "Completed"}[min(n.reads, 2)]
	}
	return [...]string{"Submitted", "InProgress", "Completed"}[min(n.reads, 2)]
}

func appendAWSJob(b []byte, n *thing) []byte {
	at := func(d int64) string {
		return `"` + time.Unix(n.created+d, 0).UTC().Format("2006-01-02T15:04:05.000Z") + `"`
	}
	state := n.awsState()
	b = appendString(append(b, `{"jobArn":`...), n.id)
	b = append(b, `,"status":"`+state+`"`...)
	if state == "Completed" || state == "Stopped" {
		b = append(b, `,"endTime":`+at(2)...)
	}
	if n.kind == "aws-customization" {
		b = append(b, `,"creationTime":`+at(0)+`,"baseModelArn":"arn:aws:bedrock:us-east-1::foundation-model/`+n.model+`"`...)
		if state == "Completed" {
			b = append(b, `,"outputModelArn":"arn:aws:bedrock:us-east-1:123456789012:custom-model/tuned"`...)
		}
		return append(b, '}')
	}
	b = appendString(append(b, `,"modelId":`...), n.model)
	b = append(b, `,"submitTime":`+at(0)+`,"jobExpirationTime":`+at(86400)...)
	b = appendString(append(b, `,"inputDataConfig":{"s3InputDataConfig":{"s3Uri":`...), n.name)
	b = appendString(append(b, `}},"outputDataConfig":{"s3OutputDataConfig":{"s3Uri":`...), n.output)
	return append(b, "}}}"...)
}

func awsJobList(x *exchange, kind string) *apiError {
	q, err := url.ParseQuery(x.query)
	limit, bad := strconv.Atoi(q.Get("maxResults"))
	if err != nil || bad != nil || limit < 1 || limit > 1000 {
		return bedrockInvalid("maxResults must be from 1 to 1000")
	}
	page, more, known := x.s.things.page("aws-"+kind, "", q.Get("nextToken"), limit, nil)
	if !known {
		return bedrockInvalid("nextToken is not valid")
	}
	b := []byte(`{"` + map[string]string{"invocation": "invocationJobSummaries", "customization": "modelCustomizationJobSummaries"}[kind] + `":[`)
	x.s.things.jobs.Lock()
	for i, n := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendAWSJob(b, n)
	}
	x.s.things.jobs.Unlock()
	b = append(b, ']')
	if more {
		b = appendString(append(b, `,"nextToken":`...), page[len(page)-1].id)
	}
	return bedrockPlain(x, append(b, '}'), Usage{})
}

// runInvocations writes the answers to a job's rows into the bucket.
func runInvocations(x *exchange, n *thing) {
	in := objectAt(x, n.name)
	if in == nil {
		return
	}
	var out []byte
	for line := range strings.Lines(string(in.content)) {
		v, _ := parseJSON(strings.TrimSpace(line))
		w := httptest.NewRecorder()
		y := &exchange{shape: bedrockShape, s: x.s, w: w, r: x.r, body: []byte(v.get("modelInput").s), path: "/model-invocation-job", model: n.model, st: unsteered()}
		n.rows++
		out = appendString(append(out, `{"recordId":`...), v.get("recordId").s)
		out = append(append(out, `,"modelInput":`...), v.get("modelInput").s...)
		run := func(y *exchange) *apiError { return converse(y, false) }
		if strings.Contains(n.model, "embed") {
			run = invoke
		}
		if e := run(y); e != nil {
			out = append(out, `,"error":{"errorCode":`+strconv.Itoa(e.status)...)
			out = appendString(append(out, `,"errorMessage":`...), e.message)
			out = append(out, "}}\n"...)
			continue
		}
		n.good++
		out = append(append(append(out, `,"modelOutput":`...), w.Body.Bytes()...), "}\n"...)
	}
	folder := strings.TrimPrefix(n.output, "s3:/"+mockBucket) + n.id[strings.LastIndexByte(n.id, '/')+1:] + "/"
	keep(x, &thing{id: folder + n.name[strings.LastIndexByte(n.name, '/')+1:] + ".out", kind: "object", content: out})
	manifest := `{"totalRecordCount":` + itoa(n.rows) + `,"processedRecordCount":` + itoa(n.rows) + `,"successRecordCount":` + itoa(n.good) + `,"errorRecordCount":` + itoa(n.rows-n.good) + `}`
	keep(x, &thing{id: folder + "manifest.json.out", kind: "object", content: []byte(manifest)})
}
