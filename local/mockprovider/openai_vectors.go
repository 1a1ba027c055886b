package mockprovider

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

// vectorOperations are vector stores, their files, batches of files, and search.
func vectorOperations() []operation {
	return []operation{
		{"POST", "/vector_stores", vectorsMade},
		{"GET", "/vector_stores", vectorsList},
		{"GET", "/vector_stores/{id}", vectorsOne},
		{"POST", "/vector_stores/{id}", vectorsOne},
		{"DELETE", "/vector_stores/{id}", vectorsGone},
		{"POST", "/vector_stores/{id}/search", vectorsSearched},
		{"POST", "/vector_stores/{id}/files", vectorFileMade},
		{"GET", "/vector_stores/{id}/files", vectorFileList},
		{"GET", "/vector_stores/{id}/files/{sub}", vectorFileOne},
		{"POST", "/vector_stores/{id}/files/{sub}", vectorFileOne},
		{"DELETE", "/vector_stores/{id}/files/{sub}", vectorFileGone},
		{"GET", "/vector_stores/{id}/files/{sub}/content", vectorFileText},
		{"POST", "/vector_stores/{id}/file_batches", vectorBatchMade},
		{"GET", "/vector_stores/{id}/file_batches/{sub}", vectorBatchOne},
		{"POST", "/vector_stores/{id}/file_batches/{sub}/cancel", vectorBatchStopped},
		{"GET", "/vector_stores/{id}/file_batches/{sub}/files", vectorBatchFiles},
	}
}

func vectorsBody(x *exchange, fields string) (value, *apiError) {
	if e := beta(x); e != nil {
		return value{}, e
	}
	v, e := checked(x, fields)
	if e != nil {
		return v, e
	}
	if e := atMost(v, map[string]int{"file_ids": 500}); e != nil {
		return v, e
	}
	if a := v.get("expires_after"); a.given() {
		if a.get("anchor").s != "last_active_at" {
			return v, unsupportedValue("expires_after.anchor", a.get("anchor").s, "last_active_at")
		}
		if days, ok := a.get("days").integer(); !ok || days < 1 || days > 365 {
			return v, badRequest("expires_after.days", "invalid_value", "Invalid 'expires_after.days': expected an integer between 1 and 365.")
		}
	}
	return v, checkChunking(v.get("chunking_strategy"))
}

func checkChunking(c value) *apiError {
	switch c.get("type").s {
	case "":
		if c.given() {
			return missingParam("chunking_strategy.type")
		}
	case "auto":
	case "static":
		size, ok := c.get("static").get("max_chunk_size_tokens").integer()
		overlap, whole := c.get("static").get("chunk_overlap_tokens").integer()
		if !ok || size < 100 || size > 4096 || !whole || overlap < 0 || overlap > size/2 {
			return badRequest("chunking_strategy.static", "invalid_value", "max_chunk_size_tokens must be between 100 and 4096, chunk_overlap_tokens at most half of it.")
		}
	default:
		return unsupportedValue("chunking_strategy.type", c.get("type").s, "auto", "static")
	}
	return nil
}

func vectorsMade(x *exchange, _, _ string) *apiError {
	v, e := vectorsBody(x, "name description file_ids expires_after chunking_strategy metadata")
	if e != nil {
		return e
	}
	if e := filesExist(x, v.get("file_ids")); e != nil {
		return e
	}
	id, done, e := begin(x, "vs_", "vector_store"+v.s)
	if done {
		return e
	}
	n := keep(x, &thing{id: id, kind: "vector_store", body: v})
	x.plain(id, locked(x, func() json.RawMessage {
		for _, f := range v.get("file_ids").arr {
			attach(x, id, f.s, "", value{})
		}
		return writeVectors(x, n)
	}), Usage{})
	return nil
}

// attach puts a file into a store. The file is in progress until something of the store is
// read; a file that is not text fails.
func attach(x *exchange, store, file, batch string, settings value) *thing {
	of := x.s.things.get("file", file)
	n := &thing{id: file, kind: "vector_file", parent: store, purpose: "in_progress", name: of.name, content: of.content, output: batch, body: settings}
	if old := x.s.things.child("vector_file", store, file); old != nil {
		x.s.things.drop(old)
	}
	return keep(x, n)
}

// indexed finishes the files of a store that are in progress.
func indexed(x *exchange, store string) {
	for _, n := range x.s.things.children("vector_file", store) {
		if n.purpose == "in_progress" {
			n.purpose = "completed"
			if strings.HasSuffix(n.name, ".bin") {
				n.purpose, n.failed = "failed", "unsupported_file"
			}
		}
	}
}

// counts are the numbers of files by state, in a store or in one batch of it.
func counts(x *exchange, store, batch string) (json.RawMessage, int) {
	by, bytes, total := map[string]int{}, 0, 0
	for _, n := range x.s.things.children("vector_file", store) {
		if batch != "" && n.output != batch {
			continue
		}
		total++
		if by[n.purpose]++; n.purpose == "completed" {
			bytes += len(n.content)
		}
	}
	return doc("in_progress", by["in_progress"], "completed", by["completed"], "failed", by["failed"], "cancelled", by["cancelled"], "total", total), bytes
}

func writeVectors(x *exchange, n *thing) json.RawMessage {
	counts, bytes := counts(x, n.id, "")
	state := "completed"
	if slices.ContainsFunc(x.s.things.children("vector_file", n.id), func(f *thing) bool { return f.purpose == "in_progress" }) {
		state = "in_progress"
	}
	v := n.body
	return doc("id", n.id, "object", "vector_store", "created_at", n.created, "name", v.get("name"), "description", v.get("description"), "usage_bytes", bytes,
		"file_counts", counts, "status", state, "expires_after", v.get("expires_after"), "expires_at", nil, "last_active_at", n.created, "metadata", v.get("metadata").source("{}"))
}

func vectorsList(x *exchange, _, _ string) *apiError {
	if e := beta(x); e != nil {
		return e
	}
	return listing(x, "vector_store", "", "desc", nil, func(n *thing) json.RawMessage { return writeVectors(x, n) })
}

func vectorsOne(x *exchange, id, _ string) *apiError {
	var v value
	if x.r.Method == "POST" {
		var e *apiError
		if v, e = vectorsBody(x, "name expires_after metadata"); e != nil {
			return e
		}
	}
	return one(x, "vector_store", "", id, func(n *thing) (json.RawMessage, *apiError) {
		indexed(x, id)
		n.body = n.body.with(v)
		return writeVectors(x, n), nil
	})
}

func vectorsGone(x *exchange, id, _ string) *apiError {
	return gonePart(x, "vector_store", "", id, "vector_store.deleted")
}

func vectorFileMade(x *exchange, store, _ string) *apiError {
	v, e := vectorsBody(x, "file_id attributes chunking_strategy")
	if e != nil {
		return e
	}
	if v.get("file_id").kind != text {
		return missingParam("file_id")
	}
	if e := checkAttributes(v.get("attributes")); e != nil {
		return e
	}
	if x.s.things.get("vector_store", store) == nil {
		return notFound("vector store", store)
	}
	if x.s.things.get("file", v.get("file_id").s) == nil {
		return notFound("File", v.get("file_id").s)
	}
	id, done, e := begin(x, "", v.s)
	if done {
		return e
	}
	x.plain(id, locked(x, func() json.RawMessage { return writeVectorFile(attach(x, store, v.get("file_id").s, "", v)) }), Usage{})
	return nil
}

func checkAttributes(v value) *apiError {
	if v.given() && v.kind != object {
		return wrongType("attributes", "an object", v.kind)
	}
	for _, m := range v.obj {
		if m.v.kind != text && m.v.kind != number && m.v.kind != boolean {
			return wrongType("attributes."+m.name, "a string, a number or a boolean", m.v.kind)
		}
	}
	return nil
}

func writeVectorFile(n *thing) json.RawMessage {
	var last any
	bytes := 0
	if n.failed != "" {
		last = doc("code", n.failed, "message", "The file could not be parsed because it is not supported.")
	}
	if n.purpose == "completed" {
		bytes = len(n.content)
	}
	return doc("id", n.id, "object", "vector_store.file", "created_at", n.created, "vector_store_id", n.parent, "status", n.purpose, "last_error", last,
		"usage_bytes", bytes, "attributes", n.body.get("attributes").source("{}"),
		"chunking_strategy", n.body.get("chunking_strategy").source(`{"type":"static","static":{"max_chunk_size_tokens":800,"chunk_overlap_tokens":400}}`))
}

// vectorFiles lists the files of a store for which keep is true.
func vectorFiles(x *exchange, store string, keep func(*thing) bool) *apiError {
	if e := beta(x); e != nil {
		return e
	}
	if x.s.things.get("vector_store", store) == nil {
		return notFound("vector store", store)
	}
	q, _ := url.ParseQuery(x.query)
	states := []string{"in_progress", "completed", "failed", "cancelled"}
	if f := q.Get("filter"); f != "" && !slices.Contains(states, f) {
		return unsupportedValue("filter", f, states...)
	}
	x.s.things.jobs.Lock()
	indexed(x, store)
	x.s.things.jobs.Unlock()
	return listing(x, "vector_file", store, "desc", func(n *thing) bool { return keep(n) && (q.Get("filter") == "" || q.Get("filter") == n.purpose) }, writeVectorFile)
}

func vectorFileList(x *exchange, store, _ string) *apiError {
	return vectorFiles(x, store, func(*thing) bool { return true })
}

func vectorFileOne(x *exchange, store, id string) *apiError {
	var v value
	if x.r.Method == "POST" {
		var e *apiError
		if v, e = vectorsBody(x, "attributes"); e != nil {
			return e
		}
		if e := checkAttributes(v.get("attributes")); e != nil {
			return e
		}
	}
	pollSoon(x)
	return one(x, "vector_file", store, id, func(n *thing) (json.RawMessage, *apiError) {
		indexed(x, store)
		n.body = n.body.with(v)
		return writeVectorFile(n), nil
	})
}

func vectorFileGone(x *exchange, store, id string) *apiError {
	return gonePart(x, "vector_file", store, id, "vector_store.file.deleted")
}

func vectorFileText(x *exchange, store, id string) *apiError {
	return one(x, "vector_file", store, id, func(n *thing) (json.RawMessage, *apiError) {
		return doc("object", "vector_store.file_content.page", "data", list([]json.RawMessage{doc("type", "text", "text", string(n.content))}), "has_more", false, "next_page", nil), nil
	})
}

func vectorBatchMade(x *exchange, store, _ string) *apiError {
	v, e := vectorsBody(x, "file_ids files attributes chunking_strategy")
	if e != nil {
		return e
	}
	if len(v.get("file_ids").arr) == 0 {
		return missingParam("file_ids")
	}
	if x.s.things.get("vector_store", store) == nil {
		return notFound("vector store", store)
	}
	if e := filesExist(x, v.get("file_ids")); e != nil {
		return e
	}
	id, done, e := begin(x, "vsfb_", v.s)
	if done {
		return e
	}
	n := keep(x, &thing{id: id, kind: "file_batch", parent: store, body: v})
	x.plain(id, locked(x, func() json.RawMessage {
		for _, f := range v.get("file_ids").arr {
			attach(x, store, f.s, id, v)
		}
		return writeVectorBatch(x, n)
	}), Usage{})
	return nil
}

func writeVectorBatch(x *exchange, n *thing) json.RawMessage {
	counts, _ := counts(x, n.parent, n.id)
	state := "in_progress"
	if n.stopped {
		state = "cancelled"
	} else if n.reads > 0 {
		state = "completed"
	}
	return doc("id", n.id, "object", "vector_store.files_batch", "created_at", n.created, "vector_store_id", n.parent, "status", state, "file_counts", counts)
}

func vectorBatchOne(x *exchange, store, id string) *apiError {
	pollSoon(x)
	return one(x, "file_batch", store, id, func(n *thing) (json.RawMessage, *apiError) {
		n.reads++
		indexed(x, store)
		return writeVectorBatch(x, n), nil
	})
}

func vectorBatchStopped(x *exchange, store, id string) *apiError {
	if e := noBody(x); e != nil {
		return e
	}
	return one(x, "file_batch", store, id, func(n *thing) (json.RawMessage, *apiError) {
		if n.stopped || n.reads > 0 {
			return nil, badRequest("", "", "Cannot cancel a batch that has ended.")
		}
		n.stopped = true
		for _, f := range x.s.things.children("vector_file", store) {
			if f.output == id && f.purpose == "in_progress" {
				f.purpose = "cancelled"
			}
		}
		return writeVectorBatch(x, n), nil
	})
}

func vectorBatchFiles(x *exchange, store, id string) *apiError {
	if x.s.things.child("file_batch", store, id) == nil {
		return notFound("file batch", id)
	}
	return vectorFiles(x, store, func(n *thing) bool { return n.output == id })
}

// vectorsSearched serves POST /vector_stores/{id}/search: it finds files by the words of
// the query that they contain.
func vectorsSearched(x *exchange, store, _ string) *apiError {
	if e := beta(x); e != nil {
		return e
	}
	v, e := checked(x, "query filters max_num_results ranking_options rewrite_query")
	if e != nil {
		return e
	}
	var queries []string
	if q := v.get("query"); q.kind == text {
		queries = []string{q.s}
	} else {
		for _, s := range q.arr {
			queries = append(queries, s.s)
		}
	}
	if len(queries) == 0 {
		return missingParam("query")
	}
	if e := checkBounds(v, []bound{{"max_num_results", 1, 50, true}}); e != nil {
		return e
	}
	if x.s.things.get("vector_store", store) == nil {
		return notFound("vector store", store)
	}
	return read(x, func() (json.RawMessage, *apiError) {
		indexed(x, store)
		hits := []json.RawMessage{}
		for _, n := range x.s.things.children("vector_file", store) {
			score := scoreOf(string(n.content), queries)
			if n.purpose != "completed" || score == 0 || !matches(n.body.get("attributes"), v.get("filters")) {
				continue
			}
			hits = append(hits, doc("file_id", n.id, "filename", n.name, "score", score, "attributes", n.body.get("attributes").source("{}"),
				"content", list([]json.RawMessage{doc("type", "text", "text", string(n.content))})))
		}
		if most, ok := v.get("max_num_results").integer(); ok && len(hits) > int(most) {
			hits = hits[:most]
		}
		return doc("object", "vector_store.search_results.page", "search_query", queries, "data", list(hits), "has_more", false, "next_page", nil), nil
	})
}

// scoreOf is the share of the queries' words that a text contains.
func scoreOf(content string, queries []string) float64 {
	found, all := 0, 0
	for _, word := range strings.Fields(strings.ToLower(strings.Join(queries, " "))) {
		if all++; strings.Contains(strings.ToLower(content), word) {
			found++
		}
	}
	return float64(found) / float64(max(all, 1))
}

// matches applies a filter with eq, ne, and, or.
func matches(attributes, f value) bool {
	if !f.given() {
		return true
	}
	same := attributes.get(f.get("key").s).s == f.get("value").s
	switch f.get("type").s {
	case "eq":
		return same
	case "ne":
		return !same
	case "or":
		return slices.ContainsFunc(f.get("filters").arr, func(g value) bool { return matches(attributes, g) })
	}
	return !slices.ContainsFunc(f.get("filters").arr, func(g value) bool { return !matches(attributes, g) })
}
