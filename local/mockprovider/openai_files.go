package mockprovider

import (
	"maps"
	"slices"
	"strconv"
	"strings"
)

// behaviors are what the kinds of objects.txtar do besides storing objects.
var behaviors = map[string]behavior{}

func init() { // the functions refer to the table by the collections
	for _, more := range []map[string]behavior{fileBehaviors(), threadBehaviors(), vectorBehaviors(), conversationBehaviors(), jobBehaviors()} {
		maps.Copy(behaviors, more)
	}
}

func fileBehaviors() map[string]behavior {
	return map[string]behavior{
		"file": {create: upload},
		"upload": {
			created: func(_ *exchange, n *resource) { n.state = "pending" },
			cancel: func(_ *exchange, n *resource) *apiError {
				if e := pending(n); e != nil {
					return e
				}
				n.state = "cancelled"
				return nil
			},
			values: map[string]func(*exchange, *resource) any{"file": func(x *exchange, n *resource) any {
				if f := x.s.objects.get("file", n.output); f != nil {
					return collections()["file"].write(x, f)
				}
				return nil
			}},
		},
		"container": {created: func(x *exchange, n *resource) {
			for _, f := range n.body.get("file_ids").arr {
				of := x.s.objects.get("file", f.s)
				keep(x, &resource{id: x.newID("cfile_", seedOf(f.s)), kind: "container_file", parent: n.id, name: of.name, content: of.content})
			}
		}},
		"container_file": {create: createContainerFile, values: map[string]func(*exchange, *resource) any{
			"path-inside": func(_ *exchange, n *resource) any { return "/mnt/data/" + n.name },
		}},
		"eval_run": {check: func(x *exchange, n *resource) *apiError {
			source := n.body.at("data_source.source")
			if source.get("type").s != "file_id" {
				return nil
			}
			return refersTo(x, source, "id", "file")
		}},
		"batch": {check: func(x *exchange, n *resource) *apiError {
			if x.s.objects.get("file", n.body.get("input_file_id").s).purpose != "batch" {
				return badRequest("input_file_id", "invalid_value", "The purpose of the file must be batch.")
			}
			return nil
		}, finish: runBatch, values: map[string]func(*exchange, *resource) any{
			"detailed": func(x *exchange, _ *resource) any { return !strings.HasPrefix(x.path, jobHosts+"groq/") },
		}},
		"job": {check: func(x *exchange, n *resource) *apiError {
			id := n.body.get("training_file").s
			if file := x.s.objects.get("file", id); file == nil {
				return badRequest("training_file", "file_not_found", "invalid training_file: "+id)
			} else if file.purpose != "fine-tune" {
				return badRequest("training_file", "invalid_value", "The purpose of the file must be fine-tune.")
			}
			return nil
		}, values: map[string]func(*exchange, *resource) any{"tuned": func(_ *exchange, n *resource) any { return tunedName(n) }}},
		"event": {listing: func(x *exchange, job string) *apiError {
			messages := []string{"Job created", "Files validated, job enqueued", "Job started", "Job completed"}
			of := x.s.objects.get("job", job)
			return addParts(x, "event", "ftevent-", job, min(of.reads, 3)+1, func(i int, n *resource) { n.name = messages[i] })
		}},
		"checkpoint": {listing: func(x *exchange, job string) *apiError {
			of := x.s.objects.get("job", job)
			return addParts(x, "checkpoint", "ftckpt_", job, 2*btoi(collections()["job"].state(of) == "succeeded"), func(i int, n *resource) {
				n.model, n.rows = tunedName(of)+":ckpt-step-"+strconv.Itoa(i+1), int64(i+1)
			})
		}},
	}
}

func tunedName(n *resource) string { return "ft:" + n.model + ":mock::" + n.id[len(n.id)-4:] }

// addParts makes the parts of a job that are still missing, until there are count of them.
func addParts(x *exchange, kind, prefix, job string, count int, set func(int, *resource)) *apiError {
	locked(x, func() []byte {
		for i := len(x.s.objects.children(kind, job)); i < count; i++ {
			n := &resource{id: prefix + strings.TrimPrefix(job, "ftjob-") + "n" + strconv.Itoa(i), kind: kind, parent: job}
			set(i, n)
			keep(x, n)
		}
		return nil
	})
	return nil
}

var purposes = []string{"assistants", "batch", "fine-tune", "vision", "user_data", "evals"}

// upload serves POST /files.
func upload(x *exchange) *apiError {
	u, e := parseForm(x, "file")
	if e != nil {
		return e
	}
	purpose := u.fields["purpose"]
	if !slices.Contains(purposes, purpose) {
		return badRequest("purpose", "invalid_value", "'"+purpose+"' is not one of "+strings.Join(purposes, ", "))
	}
	if (purpose == "batch" || purpose == "fine-tune") && !strings.HasSuffix(u.name, ".jsonl") {
		return badRequest("file", "invalid_file_format", "Invalid file format. Supported formats: ['jsonl']")
	}
	return storeFile(x, u, "file-", &resource{kind: "file", purpose: purpose, content: u.files["file"]})
}

// storeFile stores the file of a form and responds with its object.
func storeFile(x *exchange, u *uploaded, prefix string, n *resource) *apiError {
	id, done, e := begin(x, prefix, u.name)
	if done {
		return e
	}
	n.id, n.name = id, u.name
	x.plain(id, collections()[n.kind].write(x, keep(x, n)), Usage{})
	return nil
}

func fileContent(x *exchange) *apiError {
	n := x.s.objects.get("file", x.vars[0])
	if n == nil {
		return notFound("File", x.vars[0])
	}
	if n.purpose == "assistants" {
		return badRequest("", "", "Not allowed to download files of purpose: assistants")
	}
	return sendFile(x, n)
}

// pending rejects an upload that accepts no more parts.
func pending(n *resource) *apiError {
	if n.state != "pending" {
		return badRequest("", "", "The upload is "+n.state+"; it takes nothing more.")
	}
	return nil
}

func uploadPart(x *exchange) *apiError {
	u, e := parseForm(x, "data")
	if e != nil {
		return e
	}
	n := x.s.objects.get("upload", x.vars[0])
	if n == nil {
		return notFound("Upload", x.vars[0])
	}
	if e := pending(n); e != nil {
		return e
	}
	part, done, e := begin(x, "part_", n.id)
	if done {
		return e
	}
	p := keep(x, &resource{id: part, kind: "part", parent: n.id, content: u.files["data"]})
	x.plain(part, fill(`{"id":$,"object":"upload.part","created_at":$,"upload_id":$}`, part, p.created, n.id), Usage{})
	return nil
}

// completeUpload joins the parts of an upload.
func completeUpload(x *exchange) *apiError {
	c := collections()["upload"]
	v, e := c.body(x, parseRules("part_ids!! md5"))
	if e != nil {
		return e
	}
	return c.find(x, func(n *resource) ([]byte, *apiError) {
		if e := pending(n); e != nil {
			return nil, e
		}
		var content []byte
		for _, p := range v.get("part_ids").arr {
			part := x.s.objects.child("part", n.id, p.s)
			if part == nil {
				return nil, notFound("Part", p.s)
			}
			content = append(content, part.content...)
		}
		if want, _ := n.body.get("bytes").integer(); want != int64(len(content)) {
			return nil, badRequest("part_ids", "invalid_value", "The number of bytes uploaded does not match the number that the upload was made with.")
		}
		file := keep(x, &resource{id: x.newID("file-", seedOf(n.id)), kind: "file", name: n.body.get("filename").s, purpose: n.body.get("purpose").s, content: content})
		n.state, n.output = "completed", file.id
		return c.write(x, n), nil
	})
}

// createContainerFile accepts a form or the id of a file.
func createContainerFile(x *exchange) *apiError {
	c := collections()["container_file"]
	container, e := c.begin(x, false)
	if e != nil {
		return e
	}
	u := &uploaded{}
	n := &resource{kind: "container_file", parent: container}
	if strings.HasPrefix(x.r.Header.Get("Content-Type"), "multipart/") {
		if u, e = parseForm(x, "file"); e != nil {
			return e
		}
		n.content = u.files["file"]
	} else {
		v, e := c.body(x, parseRules("file_id!:s"))
		if e = firstFault(e, refersTo(x, v, "file_id", "file")); e != nil {
			return e
		}
		of := x.s.objects.get("file", v.get("file_id").s)
		u.name, n.content = of.name, of.content
	}
	return storeFile(x, u, "cfile_", n)
}

func containerFileContent(x *exchange) *apiError {
	n := x.s.objects.child("container_file", x.vars[0], x.vars[1])
	if n == nil {
		return notFound("container file", x.vars[1])
	}
	return sendFile(x, n)
}

// pauseJob serves .../pause and .../resume.
func pauseJob(x *exchange) *apiError {
	if e := noBody(x); e != nil {
		return e
	}
	c := collections()["job"]
	return c.find(x, func(n *resource) ([]byte, *apiError) {
		if state := c.state(n); state == "cancelled" || state == "succeeded" {
			return nil, c.ended
		}
		n.state = ""
		if strings.HasSuffix(x.path, "/pause") {
			n.state = "paused"
		}
		return c.write(x, n), nil
	})
}

// runBatch writes the responses to the rows of the input file into an output file, and bills
// them at half the price. Rows without a custom_id or a body fail.
func runBatch(x *exchange, n *resource) {
	in := x.s.objects.get("file", n.body.get("input_file_id").s)
	if in == nil || n.stopped {
		return
	}
	var out, failed []byte
	for line := range strings.Lines(string(in.content)) {
		if line = strings.TrimSpace(line); line == "" {
			continue
		}
		n.rows++
		v, err := parseJSON(line)
		id, body := x.newID("batch_req_", seedOf(line)), v.get("body")
		if err != nil || v.get("custom_id").s == "" || body.kind != object {
			failed = append(failed, fill(`{"id":$,"custom_id":$,"response":null,"error":{"code":"invalid_row","message":"The row is not valid."}}`+"\n", id, v.get("custom_id").s)...)
			continue
		}
		n.good++
		if n.model == "" {
			n.model = body.get("model").s
		}
		u := Usage{Input: tokensOf(body.s), Output: 3}
		n.usage.add(u)
		out = append(out, fill(`{"id":$,"custom_id":$,"response":{"status_code":200,"request_id":"req_mock","body":{"id":"chatcmpl-mock","object":"chat.completion","created":1,"model":$,`+
			`"choices":[{"index":0,"message":{"role":"assistant","content":"A batched answer"},"finish_reason":"stop"}],"usage":{"prompt_tokens":$,"completion_tokens":3,"total_tokens":$}}},"error":null}`+"\n",
			id, v.get("custom_id").s, body.get("model").s, u.Input, u.Input+3)...)
	}
	n.output, n.failed = storeRows(x, n.id+"_output.jsonl", out), storeRows(x, n.id+"_error.jsonl", failed)
	x.s.bill.batched("/v1/batches", n.model, n.id, n.usage)
}

// storeRows stores a file with results and returns its id; "" if there are none.
func storeRows(x *exchange, name string, rows []byte) string {
	if rows == nil {
		return ""
	}
	return keep(x, &resource{id: x.newID("file-", 1), kind: "file", name: name, purpose: "batch_output", content: rows}).id
}
