package mockprovider

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"math"
	"net/url"
	"strings"
)

// Cohere's datasets and embed jobs. A dataset is validated at its second read; the output
// of a job is two Avro files at signed addresses.
func cohereJobRoutes() []operation {
	return []operation{
		{"POST", "/datasets", cohereDataset}, {"GET", "/datasets/{id}", cohereDatasetOne},
		{"POST", "/embed-jobs", embedJobMade}, {"GET", "/embed-jobs", embedJobs},
		{"GET", "/embed-jobs/{id}", embedJobOne}, {"POST", "/embed-jobs/{id}/cancel", embedJobStopped},
	}
}

func cohereDataset(x *exchange, _, _ string) *apiError {
	q, _ := url.ParseQuery(x.query)
	u, e := parseForm(x, "data")
	if e != nil {
		return e
	}
	if q.Get("type") != "embed-input" || q.Get("name") == "" || q.Get("keep_fields") != "custom_id" || u.name == "" {
		return badRequest("type", "", "name, type and keep_fields are required")
	}
	n := keep(x, &thing{id: x.newID("dataset-", seedOf(u.name)), kind: "cohere-dataset", content: u.files["data"]})
	return listed(x, append(appendString([]byte(`{"id":`), n.id), '}'))
}

func cohereDatasetOne(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("cohere-dataset", id)
	if n == nil {
		return notFound("Dataset", id)
	}
	return listed(x, changed(x, n, func(n *thing) { n.reads++ }, func(b []byte, n *thing) []byte {
		state := "processing"
		switch {
		case n.reads > 1 && bytes.Contains(n.content, []byte("mock-invalid")):
			state = "failed"
		case n.reads > 1 || n.output != "":
			state = "validated"
		}
		b = appendString(append(b, `{"dataset":{"id":`...), n.id)
		b = append(b, `,"validation_status":"`+state+`","dataset_parts":[`...)
		for i, part := range strings.Fields(n.output) {
			if i > 0 {
				b = append(b, ',')
			}
			b = append(appendString(append(b, `{"name":"part","url":`...), signedURL(x, part)), '}')
		}
		return append(b, `]}}`...)
	}))
}

func embedJobMade(x *exchange, _, _ string) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := known(v, "", "model", "dataset_id", "input_type", "name", "embedding_types", "truncate"); e != nil {
		return e
	}
	in := x.s.things.get("cohere-dataset", v.get("dataset_id").s)
	if in == nil || in.reads < 2 || v.get("model").s == "" || v.get("input_type").s == "" {
		return badRequest("dataset_id", "", "the dataset is not validated, or model and input_type are missing")
	}
	for line := range strings.Lines(string(in.content)) {
		if row, err := parseJSON(strings.TrimSpace(line)); err != nil || row.get("text").kind != text || row.get("custom_id").kind != text {
			return badRequest("dataset_id", "", "a row is not valid")
		}
	}
	id, done, e := begin(x, "embed-", in.id)
	if done {
		return e
	}
	n := keep(x, &thing{id: id, kind: "embed-job", name: in.id, model: v.get("model").s})
	x.plain(id, append(appendString([]byte(`{"job_id":`), n.id), '}'), Usage{})
	return nil
}

func embedJobOne(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("embed-job", id)
	if n == nil {
		return notFound("Job", id)
	}
	return listed(x, changed(x, n, func(n *thing) {
		if n.reads++; n.reads == 2 && !n.stopped {
			runEmbedJob(x, n)
		}
	}, appendEmbedJob))
}

func embedJobStopped(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("embed-job", id)
	if n == nil {
		return notFound("Job", id)
	}
	_ = changed(x, n, func(n *thing) { n.stopped, n.reads = true, 0 }, appendEmbedJob)
	return listed(x, []byte("{}"))
}

func embedJobs(x *exchange, _, _ string) *apiError {
	page, _, _ := x.s.things.page("embed-job", "", "", maxThings, nil)
	b := []byte(`{"embed_jobs":[`)
	x.s.things.jobs.Lock()
	for i, n := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendEmbedJob(b, n)
	}
	x.s.things.jobs.Unlock()
	return listed(x, append(b, `]}`...))
}

func appendEmbedJob(b []byte, n *thing) []byte {
	state := [...]string{"processing", "processing", "complete"}[min(n.reads, 2)]
	if n.stopped {
		state = [...]string{"cancelling", "cancelling", "cancelled"}[min(n.reads, 2)]
	}
	b = appendString(append(b, `{"job_id":`...), n.id)
	b = appendString(append(b, `,"model":`...), n.model)
	b = append(b, `,"status":"`+state+`","created_at":`+n.at(0)...)
	if n.output != "" {
		b = appendString(append(b, `,"output_dataset_id":`...), n.output)
		b = appendInt(b, `,"meta":{"billed_units":{"input_tokens":`, n.usage.Input, "}}")
	}
	return append(b, '}')
}

// runEmbedJob writes the vectors for the rows of a dataset into another dataset.
func runEmbedJob(x *exchange, n *thing) {
	in := x.s.things.get("cohere-dataset", n.name)
	if in == nil {
		return
	}
	var parts [2][]byte
	var counts [2]int64
	for line := range strings.Lines(string(in.content)) {
		v, _ := parseJSON(strings.TrimSpace(line))
		i := int(n.rows % 2)
		n.rows++
		n.usage.Input += tokensOf(v.get("text").s)
		parts[i] = avroText(parts[i], v.get("text").s)
		parts[i] = avroText(append(parts[i], 2), v.get("custom_id").s) // the second type of a union
		vector := embed(v.get("text").s, 1536)
		parts[i] = binary.AppendVarint(parts[i], int64(len(vector)))
		for _, f := range vector {
			parts[i] = binary.LittleEndian.AppendUint32(parts[i], math.Float32bits(float32(f)))
		}
		parts[i] = append(parts[i], 0)
		counts[i]++
	}
	out := keep(x, &thing{id: n.id + "-output", kind: "cohere-dataset"})
	for i, codec := range []string{"null", "deflate"} {
		if counts[i] > 0 {
			part := keep(x, &thing{id: out.id + "-" + codec, kind: "signed", content: avroFile(codec, parts[i], counts[i])})
			out.output += part.id + " "
		}
	}
	n.output = out.id
	row := x.s.bill.begin("/v1/embed-jobs", n.model, n.id, false)
	row.settle(200, n.usage, false, "", -prices[n.model].cost(n.usage)/2)
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
