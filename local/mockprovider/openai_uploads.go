package mockprovider

import (
	"encoding/json"
	"slices"
	"strings"
)

// uploadOperations are uploads in parts, containers and evaluations.
func uploadOperations() []operation {
	return []operation{
		{"POST", "/uploads", uploadMade},
		{"POST", "/uploads/{id}/parts", uploadPart},
		{"POST", "/uploads/{id}/complete", uploadDone},
		{"POST", "/uploads/{id}/cancel", uploadStopped},
		{"POST", "/containers", containerMade},
		{"GET", "/containers", containerList},
		{"GET", "/containers/{id}", containerOne},
		{"DELETE", "/containers/{id}", containerGone},
		{"POST", "/containers/{id}/files", containerFileMade},
		{"GET", "/containers/{id}/files", containerFileList},
		{"GET", "/containers/{id}/files/{sub}", containerFileOne},
		{"DELETE", "/containers/{id}/files/{sub}", containerFileGone},
		{"GET", "/containers/{id}/files/{sub}/content", containerFileContent},
		{"POST", "/evals", evalMade},
		{"GET", "/evals", evalList},
		{"GET", "/evals/{id}", evalOne},
		{"POST", "/evals/{id}", evalOne},
		{"DELETE", "/evals/{id}", evalGone},
		{"POST", "/evals/{id}/runs", evalRunMade},
		{"GET", "/evals/{id}/runs", evalRunList},
		{"GET", "/evals/{id}/runs/{sub}", evalRunOne},
		{"DELETE", "/evals/{id}/runs/{sub}", evalRunGone},
		{"GET", "/evals/{id}/runs/{sub}/output_items", evalItems},
	}
}

// held reads or changes a thing of an API that needs no beta header.
func held(x *exchange, kind, parent, id string, do func(*thing) (json.RawMessage, *apiError)) *apiError {
	return read(x, func() (json.RawMessage, *apiError) {
		n := x.s.things.child(kind, parent, id)
		if n == nil {
			return nil, notFound(strings.ReplaceAll(kind, "_", " "), id)
		}
		return do(n)
	})
}

func uploadMade(x *exchange, _, _ string) *apiError {
	v, e := checked(x, "bytes filename mime_type purpose expires_after")
	if e != nil {
		return e
	}
	for _, name := range []string{"filename", "mime_type", "purpose"} {
		if v.get(name).kind != text {
			return missingParam(name)
		}
	}
	if n, ok := v.get("bytes").integer(); !ok || n < 1 || n > 8<<30 {
		return badRequest("bytes", "invalid_value", "Invalid 'bytes': expected an integer between 1 and 8589934592.")
	}
	if !slices.Contains(purposes, v.get("purpose").s) {
		return unsupportedValue("purpose", v.get("purpose").s, purposes...)
	}
	id, done, e := begin(x, "upload_", v.s)
	if done {
		return e
	}
	x.plain(id, writeUpload(keep(x, &thing{id: id, kind: "upload", name: v.get("filename").s, purpose: "pending", body: v}), nil), Usage{})
	return nil
}

func writeUpload(n, file *thing) json.RawMessage {
	var made any
	if file != nil {
		made = json.RawMessage(appendFile(nil, file))
	}
	return doc("id", n.id, "object", "upload", "bytes", n.body.get("bytes"), "created_at", n.created, "expires_at", n.created+3600, "filename", n.name,
		"purpose", n.body.get("purpose"), "status", n.purpose, "file", made)
}

// pending returns an upload that still accepts parts.
func pending(x *exchange, id string) (*thing, *apiError) {
	n := x.s.things.get("upload", id)
	if n == nil {
		return nil, notFound("Upload", id)
	}
	if n.purpose != "pending" {
		return nil, badRequest("", "", "The upload is "+n.purpose+"; it takes nothing more.")
	}
	return n, nil
}

func uploadPart(x *exchange, id, _ string) *apiError {
	u, e := parseForm(x, "data")
	if e != nil {
		return e
	}
	if _, e := pending(x, id); e != nil {
		return e
	}
	if len(u.files["data"]) > 64<<20 {
		return badRequest("data", "", "A part can be at most 64 MB.")
	}
	part, done, e := begin(x, "part_", id)
	if done {
		return e
	}
	n := keep(x, &thing{id: part, kind: "part", parent: id, content: u.files["data"]})
	x.plain(part, doc("id", part, "object", "upload.part", "created_at", n.created, "upload_id", id), Usage{})
	return nil
}

func uploadDone(x *exchange, id, _ string) *apiError {
	v, e := checked(x, "part_ids md5")
	if e != nil {
		return e
	}
	if len(v.get("part_ids").arr) == 0 {
		return missingParam("part_ids")
	}
	n, e := pending(x, id)
	if e != nil {
		return e
	}
	var content []byte
	for _, p := range v.get("part_ids").arr {
		part := x.s.things.child("part", id, p.s)
		if part == nil {
			return notFound("Part", p.s)
		}
		content = append(content, part.content...)
	}
	if want, _ := n.body.get("bytes").integer(); want != int64(len(content)) {
		return badRequest("part_ids", "invalid_value", "The number of bytes uploaded does not match the number that the upload was made with.")
	}
	row, done, e := begin(x, "file-", id)
	if done {
		return e
	}
	file := keep(x, &thing{id: row, kind: "file", name: n.name, purpose: n.body.get("purpose").s, content: content})
	b := changed(x, n, func(n *thing) { n.purpose = "completed" }, func(_ []byte, n *thing) []byte { return writeUpload(n, file) })
	x.plain(row, b, Usage{})
	return nil
}

func uploadStopped(x *exchange, id, _ string) *apiError {
	if e := noBody(x); e != nil {
		return e
	}
	if _, e := pending(x, id); e != nil {
		return e
	}
	return held(x, "upload", "", id, func(n *thing) (json.RawMessage, *apiError) {
		n.purpose = "cancelled"
		return writeUpload(n, nil), nil
	})
}

func containerMade(x *exchange, _, _ string) *apiError {
	v, e := checked(x, "name expires_after file_ids memory_limit network_policy skills")
	if e != nil {
		return e
	}
	if v.get("name").kind != text {
		return missingParam("name")
	}
	if e := filesExist(x, v.get("file_ids")); e != nil {
		return e
	}
	id, done, e := begin(x, "cntr_", v.s)
	if done {
		return e
	}
	n := keep(x, &thing{id: id, kind: "container", body: v})
	for _, f := range v.get("file_ids").arr {
		of := x.s.things.get("file", f.s)
		keep(x, &thing{id: x.newID("cfile_", seedOf(f.s)), kind: "container_file", parent: id, name: of.name, content: of.content})
	}
	x.plain(id, writeContainer(n), Usage{})
	return nil
}

func writeContainer(n *thing) json.RawMessage {
	return doc("id", n.id, "object", "container", "created_at", n.created, "status", "running", "name", n.body.get("name"), "last_active_at", n.created,
		"expires_after", n.body.get("expires_after").source(`{"anchor":"last_active_at","minutes":20}`))
}

func containerList(x *exchange, _, _ string) *apiError {
	return listing(x, "container", "", "desc", nil, writeContainer)
}

func containerOne(x *exchange, id, _ string) *apiError {
	return held(x, "container", "", id, func(n *thing) (json.RawMessage, *apiError) { return writeContainer(n), nil })
}

func containerGone(x *exchange, id, _ string) *apiError {
	return forgotten(x, "container", "", id, "container.deleted")
}

// forgotten deletes a thing of an API that needs no beta header.
func forgotten(x *exchange, kind, parent, id, object string) *apiError {
	return held(x, kind, parent, id, func(n *thing) (json.RawMessage, *apiError) {
		x.s.things.drop(n)
		return doc("id", id, "object", object, "deleted", true), nil
	})
}

func containerFileMade(x *exchange, container, _ string) *apiError {
	if x.s.things.get("container", container) == nil {
		return notFound("container", container)
	}
	n := &thing{kind: "container_file", parent: container}
	if strings.HasPrefix(x.r.Header.Get("Content-Type"), "multipart/") {
		u, e := parseForm(x, "file")
		if e != nil {
			return e
		}
		n.name, n.content = u.name, u.files["file"]
	} else {
		v, e := checked(x, "file_id")
		if e != nil {
			return e
		}
		of := x.s.things.get("file", v.get("file_id").s)
		if of == nil {
			return notFound("File", v.get("file_id").s)
		}
		n.name, n.content = of.name, of.content
	}
	id, done, e := begin(x, "cfile_", n.name)
	if done {
		return e
	}
	n.id = id
	x.plain(id, writeContainerFile(keep(x, n)), Usage{})
	return nil
}

func writeContainerFile(n *thing) json.RawMessage {
	return doc("id", n.id, "object", "container.file", "created_at", n.created, "bytes", len(n.content), "container_id", n.parent, "path", "/mnt/data/"+n.name, "source", "user")
}

func containerFileList(x *exchange, container, _ string) *apiError {
	if x.s.things.get("container", container) == nil {
		return notFound("container", container)
	}
	return listing(x, "container_file", container, "desc", nil, writeContainerFile)
}

func containerFileOne(x *exchange, container, id string) *apiError {
	return held(x, "container_file", container, id, func(n *thing) (json.RawMessage, *apiError) { return writeContainerFile(n), nil })
}

func containerFileGone(x *exchange, container, id string) *apiError {
	return forgotten(x, "container_file", container, id, "container.file.deleted")
}

func containerFileContent(x *exchange, container, id string) *apiError {
	n := x.s.things.child("container_file", container, id)
	if n == nil {
		return notFound("container file", id)
	}
	return sendFile(x, n)
}

func evalMade(x *exchange, _, _ string) *apiError {
	v, e := checked(x, "name data_source_config testing_criteria metadata")
	if e != nil {
		return e
	}
	if v.get("data_source_config").kind != object {
		return missingParam("data_source_config")
	}
	if v.get("testing_criteria").kind != array {
		return missingParam("testing_criteria")
	}
	id, done, e := begin(x, "eval_", v.s)
	if done {
		return e
	}
	x.plain(id, writeEval(keep(x, &thing{id: id, kind: "eval", body: v})), Usage{})
	return nil
}

func writeEval(n *thing) json.RawMessage {
	v := n.body
	return doc("id", n.id, "object", "eval", "created_at", n.created, "name", v.get("name"), "data_source_config", v.get("data_source_config"),
		"testing_criteria", v.get("testing_criteria"), "metadata", v.get("metadata").source("{}"))
}

func evalList(x *exchange, _, _ string) *apiError {
	return listing(x, "eval", "", "asc", nil, writeEval)
}

func evalOne(x *exchange, id, _ string) *apiError {
	var v value
	if x.r.Method == "POST" {
		var e *apiError
		if v, e = checked(x, "name metadata"); e != nil {
			return e
		}
	}
	return held(x, "eval", "", id, func(n *thing) (json.RawMessage, *apiError) {
		n.body = n.body.with(v)
		return writeEval(n), nil
	})
}

func evalGone(x *exchange, id, _ string) *apiError {
	return held(x, "eval", "", id, func(n *thing) (json.RawMessage, *apiError) {
		x.s.things.drop(n)
		return doc("object", "eval.deleted", "deleted", true, "eval_id", id), nil
	})
}

func evalRunMade(x *exchange, eval, _ string) *apiError {
	v, e := checked(x, "name data_source metadata")
	if e != nil {
		return e
	}
	if x.s.things.get("eval", eval) == nil {
		return notFound("eval", eval)
	}
	source := v.get("data_source").get("source")
	if source.get("type").kind != text {
		return missingParam("data_source.source.type")
	}
	if source.get("type").s == "file_id" && x.s.things.get("file", source.get("id").s) == nil {
		return notFound("File", source.get("id").s)
	}
	id, done, e := begin(x, "evalrun_", v.s)
	if done {
		return e
	}
	x.plain(id, writeEvalRun(keep(x, &thing{id: id, kind: "eval_run", parent: eval, body: v})), Usage{})
	return nil
}

func writeEvalRun(n *thing) json.RawMessage {
	state, passed := [...]string{"queued", "in_progress", "completed"}[min(n.reads, 2)], 0
	if n.reads >= 2 {
		passed = 1
	}
	return doc("id", n.id, "object", "eval.run", "eval_id", n.parent, "created_at", n.created, "name", n.body.get("name"), "status", state, "model", nil,
		"data_source", n.body.get("data_source"), "metadata", n.body.get("metadata").source("{}"), "report_url", "https://mock.invalid/"+n.id, "error", nil,
		"result_counts", doc("total", passed, "passed", passed, "failed", 0, "errored", 0), "per_model_usage", []string{}, "per_testing_criteria_results", []string{})
}

func evalRunList(x *exchange, eval, _ string) *apiError {
	return listing(x, "eval_run", eval, "asc", nil, writeEvalRun)
}

func evalRunOne(x *exchange, eval, id string) *apiError {
	return held(x, "eval_run", eval, id, func(n *thing) (json.RawMessage, *apiError) {
		n.reads++
		return writeEvalRun(n), nil
	})
}

func evalRunGone(x *exchange, eval, id string) *apiError {
	return held(x, "eval_run", eval, id, func(n *thing) (json.RawMessage, *apiError) {
		x.s.things.drop(n)
		return doc("object", "eval.run.deleted", "deleted", true, "run_id", id), nil
	})
}

func evalItems(x *exchange, eval, id string) *apiError {
	n := x.s.things.child("eval_run", eval, id)
	if n == nil {
		return notFound("eval run", id)
	}
	return listing(x, "eval_item", id, "asc", nil, writeEvalRun)
}
