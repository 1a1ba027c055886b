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

// messageBatchShape serves Anthropic's Message Batches. A batch makes progress when it is
// read: at its second read it has ended.
var messageBatchShape = &shape{name: "message-batches", match: messageBatchMatch, authenticate: (*exchange).authenticate}

var batchRowName = named{64, regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)}

func messageBatchMatch(x *exchange) func(*exchange) *apiError {
	rest, ok := strings.CutPrefix(strings.TrimPrefix(x.path, "/v1"), "/messages/batches")
	if !ok {
		return nil
	}
	id, op, _ := strings.Cut(strings.TrimPrefix(rest, "/"), "/")
	handle := map[string]func(*exchange, string) *apiError{
		"POST ": messageBatchMade, "GET ": messageBatchList, "GET id": messageBatchOne,
		"POST id/cancel": messageBatchStopped, "GET id/results": messageBatchResults,
	}
	key := x.r.Method + " "
	if id != "" {
		key += "id"
	}
	if op != "" {
		key += "/" + op
	}
	do := handle[key]
	if do == nil {
		return func(*exchange) *apiError { return &apiError{status: http.StatusNotFound, message: "Not found"} }
	}
	return func(x *exchange) *apiError {
		if x.r.Header.Get("Anthropic-Version") == "" {
			return badRequest("", "", "anthropic-version: header is required")
		}
		if x.r.Method == http.MethodPost && op == "cancel" && len(x.body) > 0 {
			return badRequest("", "", "This request takes no body.")
		}
		return do(x, id)
	}
}

func messageBatchMade(x *exchange, _ string) *apiError {
	v, e := parseBody(x)
	if e != nil {
		return e
	}
	if e := only(v, "", "requests"); e != nil {
		return e
	}
	requests := v.get("requests")
	if requests.kind != array || len(requests.arr) == 0 || len(requests.arr) > 100_000 {
		return badRequest("", "", "requests: List should have between 1 and 100000 items")
	}
	seen := map[string]bool{}
	for i, r := range requests.arr {
		at := "requests." + strconv.Itoa(i)
		if e := only(r, at, "custom_id", "params"); e != nil {
			return e
		}
		id := r.get("custom_id").s
		if !batchRowName.matches(id) || seen[id] {
			return badRequest("", "", at+".custom_id: String should match pattern '^[a-zA-Z0-9_-]{1,64}$' and be unique")
		}
		if seen[id] = true; r.get("params").kind != object || r.get("params").get("stream").yes {
			return badRequest("", "", at+".params: Field required")
		}
	}
	id, done, e := begin(x, "msgbatch_", v.s)
	if done {
		return e
	}
	n := keep(x, &thing{id: id, kind: "message_batch", body: v, rows: int64(len(requests.arr))})
	x.plain(id, appendMessageBatch(nil, n), Usage{})
	return nil
}

func messageBatchOne(x *exchange, id string) *apiError {
	n := x.s.things.get("message_batch", id)
	if n == nil {
		return &apiError{status: 404, message: "Batch not found: " + id}
	}
	return listed(x, changed(x, n, func(n *thing) {
		if n.reads++; n.reads == 2 && !n.stopped || n.reads == 1 && n.stopped {
			runMessageBatch(x, n)
		}
	}, appendMessageBatch))
}

func messageBatchStopped(x *exchange, id string) *apiError {
	n := x.s.things.get("message_batch", id)
	if n == nil {
		return &apiError{status: 404, message: "Batch not found: " + id}
	}
	ended := false
	b := changed(x, n, func(n *thing) {
		if ended = n.content != nil; !ended {
			n.stopped, n.reads = true, 0
		}
	}, appendMessageBatch)
	if ended {
		return badRequest("", "", "Batch cannot be canceled after it has ended.")
	}
	return listed(x, b)
}

// runMessageBatch answers the requests at half the price; it answers none of a batch that
// was cancelled.
func runMessageBatch(x *exchange, n *thing) {
	var b []byte
	n.good = 0
	for _, r := range n.body.get("requests").arr {
		b = appendString(append(b, `{"custom_id":`...), r.get("custom_id").s)
		if n.stopped {
			b = append(b, `,"result":{"type":"canceled"}}`+"\n"...)
			continue
		}
		y := &exchange{s: x.s, w: httptest.NewRecorder(), r: x.r, body: []byte(r.get("params").s), anthropic: true, st: unsteered()}
		q, e := checkMessage(y, r.get("params"), false)
		if e == nil && y.st.status >= 400 {
			e = &apiError{status: y.st.status, message: faultMessage(y.st.status)}
		}
		if e != nil {
			b = appendString(append(b, `,"result":{"type":"errored","error":{"type":"error","error":{"type":"invalid_request_error","message":`...), e.message)
			b = append(b, "}}}}\n"...)
			continue
		}
		m := &messageAnswer{q: q, x: y, id: x.newID("msg_", q.seed)}
		m.answer = q.answer(0)
		m.usage = Usage{Input: q.prompt}
		m.usage.Output, m.usage.Reasoning = m.answer.generated()
		row := x.s.bill.begin("/v1/messages/batches", y.model, m.id, false)
		row.settle(200, m.usage, false, "", -prices[y.model].cost(m.usage)/2)
		b = append(append(append(b, `,"result":{"type":"succeeded","message":`...), m.body()...), "}}\n"...)
		n.good++
	}
	n.content = b
}

func messageBatchResults(x *exchange, id string) *apiError {
	n := x.s.things.get("message_batch", id)
	if n == nil || n.content == nil {
		return &apiError{status: 404, message: "Batch results are not available."}
	}
	row, done, e := begin(x, "", id)
	if done {
		return e
	}
	x.setHeaders("application/x-jsonl", row)
	x.row.close(http.StatusOK, Usage{}, false, "")
	x.w.WriteHeader(http.StatusOK)
	x.write(n.content)
	return nil
}

func appendMessageBatch(b []byte, n *thing) []byte {
	at := func(offset int64) string {
		return `"` + time.Unix(n.created+offset, 120_000_000).UTC().Format(time.RFC3339Nano) + `"`
	}
	state, ended, results, cancelled := "in_progress", "null", "null", "null"
	counts := [5]int64{n.rows, 0, 0, 0, 0} // processing, succeeded, errored, canceled, expired
	if n.stopped {
		state, cancelled = "canceling", at(1)
	}
	if n.content != nil {
		state, ended = "ended", at(2)
		results = `"https://api.anthropic.com/v1/messages/batches/` + n.id + `/results"`
		counts = [5]int64{0, n.good, n.rows - n.good, 0, 0}
		if n.stopped {
			counts = [5]int64{0, 0, 0, n.rows, 0}
		}
	}
	b = appendString(append(b, `{"id":`...), n.id)
	b = append(b, `,"type":"message_batch","processing_status":"`+state+`","request_counts":{"processing":`+itoa(counts[0])+`,"succeeded":`+itoa(counts[1])+
		`,"errored":`+itoa(counts[2])+`,"canceled":`+itoa(counts[3])+`,"expired":`+itoa(counts[4])+`},"ended_at":`+ended+`,"created_at":`+at(0)+
		`,"expires_at":`+at(86400)+`,"archived_at":null,"cancel_initiated_at":`+cancelled+`,"results_url":`+results+`}`...)
	return b
}

func messageBatchList(x *exchange, _ string) *apiError {
	q, err := url.ParseQuery(x.query)
	limit := 20
	if s := q.Get("limit"); err == nil && s != "" {
		limit, err = strconv.Atoi(s)
	}
	for name := range q {
		if name != "limit" && name != "after_id" && name != "before_id" {
			return badRequest("", "", name+": Extra inputs are not permitted")
		}
	}
	if err != nil || limit < 1 || limit > 1000 {
		return badRequest("", "", "limit: Input should be between 1 and 1000")
	}
	page, more, known := x.s.things.page("message_batch", "", q.Get("after_id"), limit, nil)
	if !known {
		return badRequest("", "", "after_id: not found")
	}
	b := []byte(`{"data":[`)
	x.s.things.jobs.Lock()
	for i, n := range page {
		if i > 0 {
			b = append(b, ',')
		}
		b = appendMessageBatch(b, n)
	}
	x.s.things.jobs.Unlock()
	first, last := "", ""
	if len(page) > 0 {
		first, last = page[0].id, page[len(page)-1].id
	}
	b = appendNullable(append(b, `],"first_id":`...), first)
	b = appendNullable(append(b, `,"last_id":`...), last)
	return listed(x, append(strconv.AppendBool(append(b, `,"has_more":`...), more), '}'))
}
