package mockprovider

import (
	"encoding/json"
	"net/url"
	"slices"
	"strings"
)

func vectorBehaviors() map[string]behavior {
	return map[string]behavior{
		"vector_store": {
			created: func(x *exchange, n *resource) { attachFiles(x, n, n.id, "") },
			read:    func(x *exchange, n *resource) { indexFiles(x, n.id) },
			changed: func(x *exchange, n *resource, _ value) *apiError { indexFiles(x, n.id); return nil },
			values: map[string]func(*exchange, *resource) any{
				"counts": func(x *exchange, n *resource) any { return fileCounts(x, n.id, "") },
				"bytes": func(x *exchange, n *resource) any {
					sum := 0
					for _, f := range storeFiles(x, n.id, "", "completed") {
						sum += len(f.content)
					}
					return sum
				},
				"status": func(x *exchange, n *resource) any {
					if len(storeFiles(x, n.id, "", "in_progress")) > 0 {
						return "in_progress"
					}
					return "completed"
				},
			},
		},
		"vector_file": {
			create: createVectorFile, listing: listVectorFiles,
			read: func(x *exchange, n *resource) { indexFiles(x, n.parent) },
		},
		"file_batch": {
			created: func(x *exchange, n *resource) { attachFiles(x, n, n.parent, n.id) },
			read:    func(x *exchange, n *resource) { indexFiles(x, n.parent) },
			cancel: func(x *exchange, n *resource) *apiError {
				for _, f := range storeFiles(x, n.parent, n.id, "in_progress") {
					f.state = "cancelled"
				}
				return nil
			},
			values: map[string]func(*exchange, *resource) any{
				"counts": func(x *exchange, n *resource) any { return fileCounts(x, n.parent, n.id) },
			},
		},
	}
}

// firstFault returns the first error that is not nil.
func firstFault(faults ...*apiError) *apiError {
	for _, e := range faults {
		if e != nil {
			return e
		}
	}
	return nil
}

// storeFiles are the files of a store, or of one batch of it, in a state; "" is all states.
func storeFiles(x *exchange, store, batch, state string) []*resource {
	return x.s.objects.find("vector_file", func(n *resource) bool {
		return n.parent == store && (batch == "" || n.output == batch) && (state == "" || n.state == state)
	})
}

func fileCounts(x *exchange, store, batch string) json.RawMessage {
	count := func(state string) int { return len(storeFiles(x, store, batch, state)) }
	return fill(`{"in_progress":$,"completed":$,"failed":$,"cancelled":$,"total":$}`, count("in_progress"), count("completed"), count("failed"), count("cancelled"), count(""))
}

// attach puts a file into a store. The file is in progress until something of the store is
// read; a file that is not text fails.
func attach(x *exchange, store, file, batch string, settings value) *resource {
	of := x.s.objects.get("file", file)
	return replace(x, &resource{id: file, kind: "vector_file", parent: store, state: "in_progress", name: of.name, content: of.content, output: batch, body: settings})
}

func attachFiles(x *exchange, n *resource, store, batch string) {
	for _, f := range n.body.get("file_ids").arr {
		attach(x, store, f.s, batch, value{kind: object, obj: []member{{"attributes", n.body.get("attributes")}}})
	}
}

// indexFiles finishes the files of a store that are in progress.
func indexFiles(x *exchange, store string) {
	for _, n := range storeFiles(x, store, "", "in_progress") {
		n.state = "completed"
		if strings.HasSuffix(n.name, ".bin") {
			n.state, n.failed = "failed", "unsupported_file"
		}
	}
}

var vectorFileRules = parseRules("file_id!:s attributes:o chunking_strategy{type!=auto|static static}")

func createVectorFile(x *exchange) *apiError {
	c := collections()["vector_file"]
	store, e := c.begin(x, false)
	if e != nil {
		return e
	}
	v, e := c.body(x, vectorFileRules)
	if e = firstFault(e, refersTo(x, v, "file_id", "file")); e != nil {
		return e
	}
	id, done, e := begin(x, "", v.s)
	if done {
		return e
	}
	x.plain(id, locked(x, func() []byte { return c.write(x, attach(x, store, v.get("file_id").s, "", v)) }), Usage{})
	return nil
}

func listVectorFiles(x *exchange, store string) *apiError {
	locked(x, func() []byte { indexFiles(x, store); return nil })
	return nil
}

// listBatchFiles serves GET .../file_batches/{id}/files.
func listBatchFiles(x *exchange) *apiError {
	store, batch := x.vars[0], x.vars[1]
	if x.s.objects.child("file_batch", store, batch) == nil {
		return notFound("file batch", batch)
	}
	c := *collections()["vector_file"]
	c.filters = append(slices.Clone(c.filters), [2]string{"batch", "output"})
	x.vars, x.query = x.vars[:1], strings.TrimPrefix(x.query+"&batch="+url.QueryEscape(batch), "&")
	return c.all(x)
}

func vectorFileContent(x *exchange) *apiError {
	return collections()["vector_file"].find(x, func(n *resource) ([]byte, *apiError) {
		return fill(`{"object":"vector_store.file_content.page","data":[{"type":"text","text":$}],"has_more":false,"next_page":null}`, string(n.content)), nil
	})
}

var searchRules = parseRules("query!! filters max_num_results:1..50i ranking_options rewrite_query")

// searchVectors serves POST /vector_stores/{id}/search: it finds files by the words of the
// query that they contain.
func searchVectors(x *exchange) *apiError {
	c := collections()["vector_store"]
	v, e := c.body(x, searchRules)
	if e != nil {
		return e
	}
	q := v.get("query")
	queries := []string{q.s}
	if q.kind == array {
		queries, _ = v.strings("query")
	}
	return c.find(x, func(n *resource) ([]byte, *apiError) {
		indexFiles(x, n.id)
		hits := []json.RawMessage{}
		for _, f := range storeFiles(x, n.id, "", "completed") {
			score, filter := scoreOf(string(f.content), queries), v.get("filters")
			if score == 0 || filter.given() && f.body.get("attributes").get(filter.get("key").s).s != filter.get("value").s {
				continue
			}
			hits = append(hits, fill(`{"file_id":$,"filename":$,"score":$,"attributes":$,"content":[{"type":"text","text":$}]}`, f.id, f.name, score, f.body.get("attributes").source("{}"), string(f.content)))
		}
		if most, ok := v.get("max_num_results").integer(); ok && len(hits) > int(most) {
			hits = hits[:most]
		}
		return fill(`{"object":"vector_store.search_results.page","search_query":$,"data":$,"has_more":false,"next_page":null}`, queries, list(hits)), nil
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
