package admin

import (
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"gateway/shared/fault"
)

// Answer is what a Do returns when the answer is not just the JSON of a value with the
// route's status.
type Answer struct {
	Status      int         // 0: the route's
	Header      http.Header // beside those of every answer
	ContentType string      // "": the route's
	Body        []byte      // as it is sent
	JSON        any         // in place of Body
	// Stream replaces Body: it is forwarded as it is read, and then closed.
	Stream io.ReadCloser
}

// Redirect sends the client to another address.
func Redirect(status int, to string) Answer {
	return Answer{Status: status, Header: http.Header{"Location": {to}}}
}

// Refusals is how routes of another protocol write refusals.
type Refusals struct {
	ContentType string
	Schema      Schema
	// Challenge is the WWW-Authenticate of a 401; "": it has none.
	Challenge string
	// Body returns the value that is written as JSON with the fault's status, or an Answer that
	// is written unchanged.
	Body func(c *Call, f *fault.Fault) any
}

const jsonType = "application/json"

// status and produces are those of an answer as the route describes it.
func (r *Route) status() int {
	if r.Status == 0 {
		return http.StatusOK
	}
	return r.Status
}

func (r *Route) produces() string {
	if r.Produces == "" {
		return jsonType
	}
	return r.Produces
}

// bodyless statuses have no body.
func bodyless(status int) bool {
	return status == http.StatusNoContent || status >= 300 && status < 400
}

// takes reports whether the route reads bodies of a media type.
func (r *Route) takes(media string) bool {
	if len(r.Consumes) > 0 {
		return slices.Contains(r.Consumes, media)
	}
	return media == jsonType || strings.HasSuffix(media, "+json")
}

// formType is the media type of forms: one text for each field. Routes that take it say so
// in Consumes.
const formType = "application/x-www-form-urlencoded"

// consumes is what bodies should be sent as.
func (r *Route) consumes() string {
	if len(r.Consumes) > 0 {
		return strings.Join(r.Consumes, " or ")
	}
	return jsonType
}

// answer returns the response for the result of a Do.
func (r *Route) answer(v any) (Answer, error) {
	a, whole := v.(Answer)
	if !whole {
		a = Answer{JSON: v}
	}
	if a.Status == 0 {
		a.Status = r.status()
	}
	if a.ContentType == "" {
		a.ContentType = r.produces()
	}
	if a.Body != nil || a.Stream != nil || bodyless(a.Status) {
		return a, nil
	}
	if a.JSON == nil {
		a.JSON = struct{}{}
	}
	var err error
	a.Body, err = json.Marshal(a.JSON)
	return a, err
}

// refuse returns the response for an error.
func refuse(c *Call, f *fault.Fault) Answer {
	a := Answer{Status: f.Status(), ContentType: jsonType}
	refusals := c.refusals
	if c.Route != nil {
		refusals = c.Route.Refusals
	}
	if refusals == nil {
		a.Body = f.AdminBody(c.RequestID)
		return a
	}
	body := refusals.Body(c, f)
	if own, ok := body.(Answer); ok {
		own.Status = a.Status
		return own
	}
	var err error
	a.ContentType = refusals.ContentType
	if refusals.Challenge != "" && a.Status == http.StatusUnauthorized {
		a.Header = http.Header{"Www-Authenticate": {refusals.Challenge}}
	}
	if a.Body, err = json.Marshal(body); err != nil {
		a.Body = f.AdminBody(c.RequestID)
	}
	return a
}

func (a *Answer) write(w http.ResponseWriter) {
	h := w.Header()
	for name, values := range a.Header {
		h[name] = values
	}
	if len(a.Body) > 0 || a.Stream != nil {
		h.Set("Content-Type", a.ContentType)
	}
	h.Set("Cache-Control", "no-store")
	h.Set("X-Content-Type-Options", "nosniff")
	w.WriteHeader(a.Status)
	// A caller who went away needs no answer.
	if a.Stream == nil {
		_, _ = w.Write(a.Body)
		return
	}
	defer a.Stream.Close()
	if strings.HasPrefix(a.ContentType, eventsType) {
		w = flushed{w}
	}
	if _, err := io.Copy(w, a.Stream); err != nil {
		panic(http.ErrAbortHandler) // so that a truncated response does not look complete
	}
}

const eventsType = "text/event-stream"

// flushed sends each piece at once.
type flushed struct{ http.ResponseWriter }

func (f flushed) Write(p []byte) (int, error) {
	n, err := f.ResponseWriter.Write(p)
	if err == nil {
		err = http.NewResponseController(f.ResponseWriter).Flush()
		if errors.Is(err, http.ErrNotSupported) { // the host buffers responses
			err = nil
		}
	}
	return n, err
}

// complete fills in what the routes of a family do not say themselves. It runs once and
// writes nothing afterwards, because the document is made while the routes serve.
func (f *Family) complete() {
	for i := range f.Routes {
		r := &f.Routes[i]
		if r.Authenticate == nil && f.Authenticate != nil && !r.Public {
			r.Authenticate = f.Authenticate
		}
		if r.Refusals == nil && f.Refusals != nil {
			r.Refusals = f.Refusals
		}
		if r.Produces == "" && f.Produces != "" {
			r.Produces = f.Produces
		}
		if r.Consumes == nil && f.Consumes != nil {
			r.Consumes = f.Consumes
		}
		r.describeRehearsal()
	}
}

// answerSchema is the schema of what the route answers.
func (r *Route) answerSchema() Schema {
	if r.Answer == nil && r.AnswerOf != nil {
		return r.AnswerOf()
	}
	return r.Answer
}

// documentAnswers are the answers of the route in the document.
func (r *Route) documentAnswers() map[string]any {
	answer := r.answerSchema()
	if answer == nil {
		answer = Schema{}
	}
	done := map[string]any{"description": "Done."}
	if !bodyless(r.status()) {
		done["content"] = r.orBinary(map[string]any{r.produces(): map[string]any{"schema": answer}})
	}
	out := map[string]any{strconv.Itoa(r.status()): done}
	refusal, media := describedError, jsonType
	if r.Refusals != nil {
		refusal, media = r.Refusals.Schema, r.Refusals.ContentType
	}
	statuses := []int{400, 429, 500, 503}
	if !r.Public {
		statuses = append(statuses, 401, 403)
	}
	if strings.Contains(r.Path, "{") || r.Where == InWorkspace || r.Where == InEither { // also of a workspace that is named
		statuses = append(statuses, 404)
	}
	if r.Body != nil {
		statuses = append(statuses, 413)
	}
	for _, s := range append(statuses, r.Errors...) {
		if bodyless(s) || s == http.StatusAccepted {
			out[strconv.Itoa(s)] = map[string]any{"description": "Nothing to send."}
			continue
		}
		content := map[string]any{media: map[string]any{"schema": refusal}}
		if page := r.produces(); strings.HasPrefix(page, "text/html") { // some errors are pages
			content[page] = map[string]any{"schema": answer}
		}
		description := "Refused."
		if s < http.StatusMultipleChoices {
			delete(content, media)
			description = "Done."
		}
		out[strconv.Itoa(s)] = map[string]any{"description": description, "content": r.orBinary(content)}
	}
	return out
}

// orBinary adds the binary form of an answer.
func (r *Route) orBinary(content map[string]any) map[string]any {
	if r.Binary != "" {
		content[r.Binary] = map[string]any{"schema": Schema{"type": "string", "format": "binary"}}
	}
	return content
}
