package mockprovider

import (
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// thing is an object that the mock stores under an id.
type thing struct {
	id, kind, parent string
	created          int64
	reads            int // a job makes progress when it is read
	stopped          bool
	name, purpose    string
	content          []byte
	body             value // body of the request that made it
	output, failed   string
	rows, good       int64
	usage            Usage
	model            string
	run              *assistantRun // only for a run
}

// Limits of stored data: objects, and bytes of files. The oldest are dropped first.
const (
	maxThings     = 2000
	maxThingBytes = 64 << 20
)

// things stores the created objects, oldest first.
type things struct {
	mu    sync.Mutex
	jobs  sync.Mutex // held while a thing changes or is written; taken before mu
	all   []*thing
	bytes int
}

func (t *things) add(n *thing) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all = append(t.all, n)
	t.bytes += len(n.content)
	for len(t.all) > 1 && (len(t.all) > maxThings || t.bytes > maxThingBytes) {
		t.bytes -= len(t.all[0].content)
		t.all = t.all[1:]
	}
}

func (t *things) get(kind, id string) *thing {
	t.mu.Lock()
	defer t.mu.Unlock()
	for _, n := range t.all {
		if n.kind == kind && n.id == id {
			return n
		}
	}
	return nil
}

func (t *things) remove(kind, id string) bool {
	t.mu.Lock()
	defer t.mu.Unlock()
	before := len(t.all)
	t.all = slices.DeleteFunc(t.all, func(n *thing) bool { return n.kind == kind && n.id == id })
	return len(t.all) < before
}

// page returns the newest things of a kind after a given one, and whether more follow.
func (t *things) page(kind, parent, after string, limit int, keep func(*thing) bool) (page []*thing, more, known bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	known = after == ""
	for i := len(t.all) - 1; i >= 0; i-- {
		n := t.all[i]
		if n.kind != kind || n.parent != parent {
			continue
		}
		if !known {
			known = n.id == after
			continue
		}
		if keep != nil && !keep(n) {
			continue
		}
		if len(page) == limit {
			return page, true, true
		}
		page = append(page, n)
	}
	return page, false, known
}

func (t *things) reset() {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.all, t.bytes = nil, 0
}

// paged answers with a page of things as a list in OpenAI's format.
func paged(x *exchange, kind, parent string, keep func(*thing) bool, write func([]byte, *thing) []byte) *apiError {
	q, err := url.ParseQuery(x.query)
	if err != nil {
		return badRequest("", "", "bad query")
	}
	limit := 20
	if s := q.Get("limit"); s != "" {
		if limit, err = strconv.Atoi(s); err != nil || limit < 1 || limit > 10_000 {
			return badRequest("limit", "invalid_value", "Invalid 'limit'.")
		}
	}
	page, more, known := x.s.things.page(kind, parent, q.Get("after"), limit, keep)
	if !known {
		return badRequest("after", "invalid_value", "Invalid 'after': there is no "+q.Get("after"))
	}
	b := []byte(`{"object":"list","data":[`)
	x.s.things.jobs.Lock()
	for i, n := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = write(b, n)
	}
	x.s.things.jobs.Unlock()
	first, last := "", ""
	if len(page) > 0 {
		first, last = page[0].id, page[len(page)-1].id
	}
	b = appendNullable(append(b, `],"first_id":`...), first)
	b = appendNullable(append(b, `,"last_id":`...), last)
	b = strconv.AppendBool(append(b, `,"has_more":`...), more)
	return listed(x, append(b, '}'))
}

var purposes = []string{"assistants", "batch", "fine-tune", "vision", "user_data", "evals"}

// upload serves POST /files.
func upload(x *exchange, _, _ string) *apiError {
	u, e := parseForm(x, "file")
	if e != nil {
		return e
	}
	if !slices.Contains(purposes, u.fields["purpose"]) {
		return badRequest("purpose", "invalid_value", "'"+u.fields["purpose"]+"' is not one of "+strings.Join(purposes, ", "))
	}
	if p := u.fields["purpose"]; (p == "batch" || p == "fine-tune") && !strings.HasSuffix(u.name, ".jsonl") {
		return badRequest("file", "invalid_file_format", "Invalid file format. Supported formats: ['jsonl']")
	}
	id, done, e := begin(x, "file-", u.name)
	if done {
		return e
	}
	n := keep(x, &thing{id: id, kind: "file", name: u.name, purpose: u.fields["purpose"], content: u.files["file"]})
	x.plain(id, appendFile(nil, n), Usage{})
	return nil
}

// changed changes a thing and returns its JSON.
func changed(x *exchange, n *thing, do func(*thing), write func([]byte, *thing) []byte) []byte {
	x.s.things.jobs.Lock()
	defer x.s.things.jobs.Unlock()
	do(n)
	return write(nil, n)
}

// keep stores a new object.
func keep(x *exchange, n *thing) *thing {
	n.created = x.s.opts.Now().Unix()
	x.s.things.add(n)
	return n
}

func appendFile(b []byte, n *thing) []byte {
	b = appendString(append(b, `{"object":"file","id":`...), n.id)
	b = appendString(append(b, `,"purpose":`...), n.purpose)
	b = appendString(append(b, `,"filename":`...), n.name)
	b = appendInt(b, `,"bytes":`, int64(len(n.content)), "")
	return appendInt(b, `,"created_at":`, n.created, `,"status":"processed","status_details":null}`)
}

func fileList(x *exchange, _, _ string) *apiError {
	q, _ := url.ParseQuery(x.query)
	keep := func(n *thing) bool { return q.Get("purpose") == "" || n.purpose == q.Get("purpose") }
	return paged(x, "file", "", keep, appendFile)
}

func fileOne(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("file", id)
	if n == nil {
		return notFound("File", id)
	}
	return listed(x, appendFile(nil, n))
}

func fileGone(x *exchange, id, _ string) *apiError {
	if !x.s.things.remove("file", id) {
		return notFound("File", id)
	}
	return listed(x, append(appendString([]byte(`{"id":`), id), `,"object":"file","deleted":true}`...))
}

func fileContent(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("file", id)
	if n == nil {
		return notFound("File", id)
	}
	if n.purpose == "assistants" {
		return badRequest("", "", "Not allowed to download files of purpose: assistants")
	}
	return sendFile(x, n)
}

// Handlers of stored responses: those that were not created with store false.

func noResponse(id string) *apiError {
	return &apiError{status: http.StatusNotFound, message: "Response with id '" + id + "' not found."}
}

func responseOne(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("response", id)
	if n == nil {
		return noResponse(id)
	}
	return listed(x, n.content)
}

func responseGone(x *exchange, id, _ string) *apiError {
	if !x.s.things.remove("response", id) {
		return noResponse(id)
	}
	return listed(x, append(appendString([]byte(`{"id":`), id), `,"object":"response","deleted":true}`...))
}

func responseInput(x *exchange, id, _ string) *apiError {
	n := x.s.things.get("response", id)
	if n == nil {
		return noResponse(id)
	}
	b := []byte(`{"object":"list","data":`)
	if in := n.body.get("input"); in.kind == array {
		b = append(b, in.s...)
	} else {
		b = append(appendString(append(b, `[{"id":"msg_mock","type":"message","role":"user","content":[{"type":"input_text","text":`...), in.s), `}]}]`...)
	}
	return listed(x, append(b, `,"first_id":"msg_mock","last_id":"msg_mock","has_more":false}`...))
}
