package mockprovider

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"encoding/json"
	"iter"
	"math"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strconv"
	"strings"
)

// jsonLines are the rows of a file that are JSON.
func jsonLines(content []byte) iter.Seq[value] {
	return func(yield func(value) bool) {
		for line := range strings.Lines(string(content)) {
			if v, err := parseJSON(strings.TrimSpace(line)); err == nil && !yield(v) {
				return
			}
		}
	}
}

// runRows answers the rows of a job's input, and counts them; row returns the line of a result
// for the response of a request that succeeded, or for its error.
func runRows(x *exchange, n *resource, input string, run func(v value) ([]byte, *apiError), row func(v value, response []byte, e *apiError)) {
	in := x.s.objects.get(input, n.name)
	if in == nil || n.stopped {
		return
	}
	for v := range jsonLines(in.content) {
		response, e := run(v)
		if n.rows++; e == nil {
			n.good++
		}
		row(v, response, e)
	}
}

// runRow answers one request with a handler.
func runRow(x *exchange, y exchange, body []byte, handle func(*exchange) *apiError) ([]byte, *apiError) {
	w, r := httptest.NewRecorder(), x.r.Clone(x.r.Context())
	r.Header.Set("Content-Type", "application/json")
	y.s, y.w, y.r, y.body, y.st = x.s, w, r, body, unsteered()
	e := handle(&y)
	return w.Body.Bytes(), e
}

// rowOf answers one request in OpenAI's format.
func rowOf(x *exchange, endpoint string, body []byte) ([]byte, *apiError) {
	run := map[string]func(*exchange) *apiError{"/v1/embeddings": embeddings, "/v1/completions": completion}[endpoint]
	if run == nil {
		run = chatCompletion
	}
	return runRow(x, exchange{path: "/batch" + endpoint}, body, run)
}

// withModel adds the model to the body of a row, if it is not "".
func withModel(body value, model string) []byte {
	if model == "" {
		return []byte(body.s)
	}
	return fill(`{"model":$,$`, model, json.RawMessage(strings.TrimSpace(body.s)[1:]))
}

// runHostBatch answers the rows of a batch into two files.
func runHostBatch(x *exchange, n *resource) {
	var out, failed []byte
	only := ""
	if n.kind == "mistral-batch" {
		only = n.model
	}
	runRows(x, n, "file", func(v value) ([]byte, *apiError) {
		return rowOf(x, n.body.get("endpoint").s, withModel(v.get("body"), only))
	}, func(v value, response []byte, e *apiError) {
		if e != nil {
			failed = append(failed, fill(`{"id":"row","custom_id":$,"response":{"status_code":$,"body":{"message":$}},"error":null}`+"\n", v.get("custom_id"), e.status, e.message)...)
			return
		}
		out = append(out, fill(`{"id":"row","custom_id":$,"response":{"status_code":200,"body":$},"error":null}`+"\n", v.get("custom_id"), response)...)
	})
	n.output, n.failed = storeRows(x, "", out), storeRows(x, "", failed)
}

// runFireworks writes the responses to a job's rows into its output dataset.
func runFireworks(x *exchange, n *resource) {
	var out []byte
	runRows(x, n, "dataset", func(v value) ([]byte, *apiError) {
		return rowOf(x, "/v1/chat/completions", withModel(v.get("body"), n.model))
	}, func(v value, response []byte, e *apiError) {
		if e != nil {
			out = append(out, fill(`{"custom_id":$,"error":{"message":$}}`+"\n", v.get("custom_id"), e.message)...)
			return
		}
		out = append(out, fill(`{"custom_id":$,"response":$}`+"\n", v.get("custom_id"), response)...)
	})
	keep(x, &resource{id: n.body.get("outputDatasetId").s, kind: "dataset", content: out})
}

// runInvocations writes the responses to a job's rows into the bucket.
func runInvocations(x *exchange, n *resource) {
	var out []byte
	run := func(y *exchange) *apiError { return converse(y, false) }
	if strings.Contains(n.model, "embed") {
		run = invoke
	}
	runRows(x, n, "object", func(v value) ([]byte, *apiError) {
		return runRow(x, exchange{shape: bedrockShape, path: "/model-invocation-job", model: n.model}, []byte(v.get("modelInput").s), run)
	}, func(v value, response []byte, e *apiError) {
		if e != nil {
			out = append(out, fill(`{"recordId":$,"modelInput":$,"error":{"errorCode":$,"errorMessage":$}}`+"\n", v.get("recordId"), v.get("modelInput"), e.status, e.message)...)
			return
		}
		out = append(out, fill(`{"recordId":$,"modelInput":$,"modelOutput":$}`+"\n", v.get("recordId"), v.get("modelInput"), response)...)
	})
	folder := n.output + n.id[strings.LastIndexByte(n.id, '/')+1:] + "/"
	keep(x, &resource{id: folder + n.name[strings.LastIndexByte(n.name, '/')+1:] + ".out", kind: "object", content: out})
	keep(x, &resource{id: folder + "manifest.json.out", kind: "object", content: fill(`{"totalRecordCount":$,"processedRecordCount":$,"successRecordCount":$,"errorRecordCount":$}`, n.rows, n.rows, n.good, n.rows-n.good)})
}

// runPredictions writes the responses to a job's rows into the bucket; it splits vectors into
// two objects.
func runPredictions(x *exchange, n *resource) {
	publisher, model := vertexModelOf(n.model)
	embeds := strings.Contains(model, "embedding")
	var out [2][]byte
	runRows(x, n, "object", func(v value) ([]byte, *apiError) {
		y := exchange{shape: geminiShape, path: "/batchPredictionJobs", model: model}
		switch {
		case embeds:
			return runRow(x, y, fill(`{"instances":[{"content":$}],"parameters":$}`, v.get("content"), n.body.get("modelParameters").source("{}")), vertexPredict)
		case publisher == "anthropic":
			return runRow(x, y, []byte(v.get("request").s), func(y *exchange) *apiError {
				return vertexAnthropic(y, geminiPath{vertex: true, publisher: publisher, model: model, method: "rawPredict"})
			})
		}
		return runRow(x, y, []byte(v.get("request").s), func(y *exchange) *apiError { return generateContent(y, true, false) })
	}, func(v value, response []byte, e *apiError) {
		status := ""
		if e != nil {
			status, response = "Bad Request: "+string(geminiErrorOf(e.status, geminiStatus(e.status), e.message, "")), []byte("{}")
		}
		part := 0
		switch {
		case embeds:
			result := fill(`{"instance":{"content":$},"requestId":$,"status":$}`+"\n", v.get("content"), v.get("requestId"), status)
			if e == nil {
				answer, _ := parseJSON(string(response))
				result = fill(`{"instance":{"content":$},"requestId":$,"predictions":$,"status":$}`+"\n", v.get("content"), v.get("requestId"), answer.get("predictions"), status)
			}
			part = int(n.rows-1) % 2
			out[part] = append(out[part], result...)
			return
		case publisher == "anthropic":
			out[0] = append(out[0], fill(`{"custom_id":$`, v.get("custom_id"))...)
		default:
			out[0] = append(out[0], fill(`{"requestId":$`, v.get("requestId"))...)
		}
		out[0] = append(out[0], fill(`,"status":$,"processed_time":"2026-01-02T03:04:05.678+00:00","request":$,"response":$}`+"\n", status, v.get("request"), response)...)
	})
	folder := n.output + "/prediction-model-1/"
	if !embeds {
		keep(x, &resource{id: folder + "predictions.jsonl", kind: "object", content: out[0]})
		return
	}
	for i, content := range out {
		if content != nil {
			keep(x, &resource{id: folder + "00000000000" + strconv.Itoa(i) + ".jsonl", kind: "object", content: content})
		}
	}
}

// runMessageBatch answers the requests at half the price; it answers none of a batch that
// was canceled.
func runMessageBatch(x *exchange, n *resource) {
	n.rows, n.good, n.content = 0, 0, []byte{}
	for _, r := range n.body.get("requests").arr {
		n.rows++
		result := []byte(`{"type":"canceled"}`)
		if !n.stopped {
			result = batchedMessage(x, n, r.get("params"))
		}
		n.content = append(n.content, fill(`{"custom_id":$,"result":$}`+"\n", r.get("custom_id"), result)...)
	}
}

func batchedMessage(x *exchange, n *resource, params value) []byte {
	y := &exchange{s: x.s, w: httptest.NewRecorder(), r: x.r, body: []byte(params.s), anthropic: true, st: unsteered()}
	q, e := checkMessage(y, params, false)
	if e == nil && y.st.status >= 400 {
		e = &apiError{status: y.st.status, message: faultMessage(y.st.status)}
	}
	if e != nil {
		return fill(`{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":$}}}`, e.message)
	}
	m := &messageResponse{q: q, x: y, id: x.newID("msg_", q.seed)}
	m.response = q.respond(0)
	m.usage = Usage{Input: q.prompt}
	m.usage.Output, m.usage.Reasoning = m.response.generated()
	x.s.bill.batched("/v1/messages/batches", y.model, m.id, m.usage)
	n.good++
	return fill(`{"type":"succeeded","message":$}`, m.body())
}

func messageBatchResults(x *exchange) *apiError {
	n := x.s.objects.get("message_batch", x.vars[0])
	if n == nil || n.content == nil {
		return &apiError{status: 404, message: "Batch results are not available."}
	}
	row, done, e := begin(x, "", n.id)
	if done {
		return e
	}
	x.setHeaders("application/x-jsonl", row)
	x.row.close(http.StatusOK, Usage{}, false, "")
	x.w.WriteHeader(http.StatusOK)
	x.write(n.content)
	return nil
}

// createDataset serves POST /datasets of Cohere. A dataset is validated at its second read.
func createDataset(x *exchange) *apiError {
	q, _ := url.ParseQuery(x.query)
	u, e := parseForm(x, "data")
	if e != nil {
		return e
	}
	if q.Get("type") != "embed-input" || q.Get("name") == "" || q.Get("keep_fields") != "custom_id" || u.name == "" {
		return badRequest("type", "", "name, type and keep_fields are required")
	}
	n := keep(x, &resource{id: x.newID("dataset-", seedOf(u.name)), kind: "cohere-dataset", content: u.files["data"]})
	return listed(x, fill(`{"id":$}`, n.id))
}

func datasetState(_ *exchange, n *resource) any {
	switch {
	case n.reads > 1 && bytes.Contains(n.content, []byte("mock-invalid")):
		return "failed"
	case n.reads > 1 || n.output != "":
		return "validated"
	}
	return "processing"
}

// datasetParts are the files of a dataset, at signed addresses.
func datasetParts(x *exchange, n *resource) any {
	var parts []json.RawMessage
	for _, id := range strings.Fields(n.output) {
		parts = append(parts, fill(`{"name":"part","url":$}`, signedURL(x, id)))
	}
	return list(parts)
}

// runEmbedJob writes the vectors for the rows of a dataset into another dataset of two Avro
// files.
func runEmbedJob(x *exchange, n *resource) {
	var parts [2][]byte
	var counts [2]int64
	runRows(x, n, "cohere-dataset", func(value) ([]byte, *apiError) { return nil, nil }, func(v value, _ []byte, _ *apiError) {
		i := int(n.rows-1) % 2
		n.usage.Input += tokensOf(v.get("text").s)
		parts[i] = avroText(parts[i], v.get("text").s)
		parts[i] = avroText(append(parts[i], 2), v.get("custom_id").s) // the second type of a union
		vector := embed(v.get("text").s, 1536)
		parts[i] = binary.AppendVarint(parts[i], int64(len(vector)))
		for _, f := range vector {
			parts[i] = binary.LittleEndian.AppendUint32(parts[i], math.Float32bits(f))
		}
		parts[i] = append(parts[i], 0)
		counts[i]++
	})
	if n.stopped {
		return
	}
	out := keep(x, &resource{id: n.id + "-output", kind: "cohere-dataset"})
	for i, codec := range []string{"null", "deflate"} {
		if counts[i] > 0 {
			part := keep(x, &resource{id: out.id + "-" + codec, kind: "signed", content: avroFile(codec, parts[i], counts[i])})
			out.output += part.id + " "
		}
	}
	n.output = out.id
	x.s.bill.batched("/v1/embed-jobs", n.model, n.id, n.usage)
}

const embedSchema = `{"type":"record","name":"row","fields":[{"name":"text","type":"string"},{"name":"custom_id","type":["null","string"]},` +
	`{"name":"embeddings","type":{"type":"record","name":"kinds","fields":[{"name":"float","type":{"type":"array","items":"float"}}]}}]}`

func avroText(b []byte, s string) []byte { return append(binary.AppendVarint(b, int64(len(s))), s...) }

// avroFile is an Avro object container file with one block.
func avroFile(codec string, block []byte, records int64) []byte {
	const sync = "0123456789abcdef"
	b := append([]byte("Obj\x01"), 4) // a map with two entries
	b = avroText(avroText(b, "avro.schema"), embedSchema)
	b = append(avroText(avroText(b, "avro.codec"), codec), 0)
	b = append(b, sync...)
	if codec == "deflate" {
		var packed bytes.Buffer
		w, _ := flate.NewWriter(&packed, flate.DefaultCompression)
		_, _ = w.Write(block)
		_ = w.Close()
		block = packed.Bytes()
	}
	b = binary.AppendVarint(b, records)
	b = append(binary.AppendVarint(b, int64(len(block))), block...)
	return append(b, sync...)
}
