package instrumentation

import (
	"strconv"
	"strings"

	"gateway/shared/observe/otlp"
	"gateway/shared/wire"
)

// failure is what the events of a span report about its failure.
type failure struct{ kind, text string }

// event names.
const (
	eventException = "exception"
	eventChoice    = "gen_ai.choice"
)

// events reads exceptions and messages, and content in the attributes of events.
func (r *reader) events(all []otlp.ReceivedEvent) {
	for i := range all {
		e := &all[i]
		switch {
		case e.Name == eventException:
			r.failure = failure{otlp.Text(e.Attrs, "exception.type"), otlp.Text(e.Attrs, "exception.message")}
			continue
		case e.Name == eventChoice:
			r.messages[1] = append(r.messages[1], *e)
			continue
		case strings.HasPrefix(e.Name, "gen_ai.") && strings.HasSuffix(e.Name, ".message"):
			r.messages[0] = append(r.messages[0], *e)
			continue
		}
		for j := range e.Attrs {
			if s, ok := r.slots[e.Attrs[j].Key]; ok && !r.has[s.field] {
				r.set(s, &e.Attrs[j])
			}
		}
	}
}

// statusOf is the HTTP status of the response. Where it is not reported, a failure has the
// status in its text or that of its type, else 500.
func (r *reader) statusOf(t *otlp.ReceivedSpan, finish string) int {
	code, _ := r.count(status)
	kind, text := r.text(errType), r.text(errText)
	failed := t.Status == otlp.StatusError || kind != "" || r.failure != failure{} || strings.EqualFold(r.text(level), "error") || finish == "error" || code >= 400 && code <= 599
	if !failed {
		if code >= 200 && code <= 299 {
			return int(code)
		}
		return 200
	}
	if code >= 400 && code <= 599 {
		return int(code)
	}
	texts := []string{kind, t.Message, text, r.failure.text, r.failure.kind}
	for _, s := range texts {
		if n := leadingStatus(s); n != 0 {
			return n
		}
	}
	for _, s := range texts {
		if n := statusInJSON(s); n != 0 {
			return n
		}
	}
	for _, s := range []string{r.failure.kind, kind} {
		if n := statusOfType(s); n != 0 {
			return n
		}
	}
	return 500
}

// failureText is what a failed span states about its failure.
func (r *reader) failureText(t *otlp.ReceivedSpan) string {
	for _, s := range []string{t.Message, r.failure.text, r.text(errText), r.failure.kind, r.text(errType)} {
		if s != "" {
			return s
		}
	}
	return ""
}

// leadingStatus returns the status at the start of a text, also after the name of an
// error: "429 Too many requests", "Error: 429 ...", "HTTP 503".
func leadingStatus(s string) int {
	if before, rest, ok := strings.Cut(s, ": "); ok && !strings.ContainsAny(before, " {\"") && strings.HasSuffix(before, "Error") {
		s = rest
	}
	for _, word := range []string{"HTTP ", "Status code: ", "status code "} {
		s = strings.TrimPrefix(s, word)
	}
	if len(s) < 3 || len(s) > 3 && (s[3] >= '0' && s[3] <= '9' || s[3] == '.' || s[3] == '_') {
		return 0
	}
	return failed(s[:3])
}

func failed(s string) int {
	if n, err := strconv.Atoi(s); err == nil && n >= 400 && n <= 599 {
		return n
	}
	return 0
}

// statusInJSON is the status in an error that is JSON within a text, as providers write it.
func statusInJSON(s string) int {
	i := strings.IndexByte(s, '{')
	if i < 0 {
		return 0
	}
	return statusInObject(wire.NewDecoder([]byte(s[i:])), 0)
}

// maxErrorDepth is how deep errors are searched for a status.
const maxErrorDepth = 4

func statusInObject(d *wire.Decoder, depth int) (n int) {
	named := 0
	for key := range d.Object {
		switch k := string(key); {
		case d.Kind() == wire.KindObject && depth < maxErrorDepth:
			if inner := statusInObject(d, depth+1); n == 0 {
				n = inner
			}
		case d.Kind() == wire.KindNumber && (k == "code" || k == "status" || k == "status_code" || k == "statusCode"):
			if code := failed(string(d.Num())); code != 0 {
				n = code
			}
		case d.Kind() == wire.KindString && (k == "code" || k == "status" || k == "type"):
			text := d.Str()
			if code := failed(text); code != 0 {
				n = code
			} else if named == 0 {
				named = statusOfType(text)
			}
		}
	}
	if n == 0 {
		return named
	}
	return n
}

// types are parts of the names of errors in lower case, without separators.
var types = []struct {
	part   string
	status int
}{
	{"ratelimit", 429}, {"toomanyrequests", 429}, {"resourceexhausted", 429}, {"throttl", 429}, {"quota", 429},
	{"authentication", 401}, {"unauthorized", 401}, {"unauthenticated", 401}, {"invalidapikey", 401},
	{"permission", 403}, {"forbidden", 403}, {"accessdenied", 403},
	{"notfound", 404}, {"nosuchmodel", 404}, {"badrequest", 400}, {"invalidrequest", 400}, {"invalidargument", 400}, {"validation", 400},
	{"unprocessable", 422}, {"conflict", 409}, {"toolarge", 413}, {"overloaded", 529}, {"unavailable", 503}, {"timeout", 504}, {"deadlineexceeded", 504}, {"timedout", 504},
	{"useraborted", 499}, {"useabort", 499}, {"aborterror", 499}, {"cancel", 499},
}

// statusOfType is the status of an error by the name of its type; 0 if the name says none.
func statusOfType(name string) int {
	name = strings.NewReplacer("_", "", "-", "", " ", "").Replace(strings.ToLower(name))
	for _, t := range types {
		if strings.Contains(name, t.part) {
			return t.status
		}
	}
	return 0
}
