package admintest

import (
	"bytes"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gateway/shared/admin"
)

// Document is an OpenAPI document to hold answers against.
type Document struct {
	mu        sync.Mutex
	bodies    *jsonschema.Compiler
	responses *jsonschema.Compiler
	schemas   map[string]*jsonschema.Schema
	whole     any
}

// written is the one form of times in responses; what clients send may have any of
// RFC 3339.
var written = &jsonschema.Format{Name: "date-time", Validate: func(v any) error {
	s, ok := v.(string)
	if !ok {
		return nil
	}
	if _, err := time.Parse("2006-01-02T15:04:05.000Z", s); err != nil {
		return errors.New("is not in UTC with milliseconds")
	}
	return nil
}}

// NewDocument reads a document.
func NewDocument(raw []byte) (*Document, error) {
	whole, err := jsonschema.UnmarshalJSON(bytes.NewReader(raw))
	if err != nil {
		return nil, err
	}
	d := &Document{bodies: jsonschema.NewCompiler(), responses: jsonschema.NewCompiler(), schemas: make(map[string]*jsonschema.Schema), whole: whole}
	d.responses.RegisterFormat(written)
	for _, c := range []*jsonschema.Compiler{d.bodies, d.responses} {
		c.AssertFormat()
		if err := c.AddResource("document.json", whole); err != nil {
			return nil, err
		}
	}
	return d, nil
}

// Check compares a response of an operation with the document; path is written as in the
// document. It returns the problem (an undocumented status or content type, or a body that does
// not match the schema), or "" if there is none.
func (d *Document) Check(method, path string, status int, contentType string, body []byte) string {
	at := []string{"paths", path, strings.ToLower(method), "responses", strconv.Itoa(status)}
	response, ok := d.at(at).(map[string]any)
	if !ok {
		return "the status " + strconv.Itoa(status) + " is not documented"
	}
	content, _ := response["content"].(map[string]any)
	if len(content) == 0 {
		if len(body) > 0 {
			return "there is a body, and none is documented"
		}
		return ""
	}
	media, ok := content[contentType].(map[string]any)
	if !ok {
		return "the content type " + contentType + " is not documented"
	}
	if _, ok := media["schema"]; !ok || !strings.HasSuffix(contentType, "json") {
		return ""
	}
	times := d.responses
	if strings.HasPrefix(path, "/analytics/") || path == "/reconciliations" || path == "/simulations" {
		times = d.bodies // entire minutes, in the UTC offset that the caller requested
	}
	schema, err := d.schema(times, append(at, "content", contentType, "schema"))
	if err != nil {
		return err.Error()
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// Validate validates a body against the operation's schema. It returns the problem, or "" if the
// schema allows the body.
func (d *Document) Validate(method, path string, body []byte) string {
	schema, err := d.schema(d.bodies, []string{"paths", path, strings.ToLower(method), "requestBody", "content", "application/json", "schema"})
	if err != nil {
		return err.Error()
	}
	value, err := jsonschema.UnmarshalJSON(bytes.NewReader(body))
	if err == nil {
		err = schema.Validate(value)
	}
	if err != nil {
		return err.Error()
	}
	return ""
}

// Contains reports whether the document contains the operation.
func (d *Document) Contains(method, path string) bool {
	return d.at([]string{"paths", path, strings.ToLower(method)}) != nil
}

func (d *Document) at(path []string) any {
	v := d.whole
	for _, p := range path {
		m, _ := v.(map[string]any)
		v = m[p]
	}
	return v
}

var pointer = strings.NewReplacer("~", "~0", "/", "~1", "%", "%25", "{", "%7B", "}", "%7D")

func (d *Document) schema(c *jsonschema.Compiler, at []string) (*jsonschema.Schema, error) {
	var ref strings.Builder
	ref.WriteString("document.json#")
	for _, p := range at {
		ref.WriteString("/" + pointer.Replace(p))
	}
	d.mu.Lock()
	defer d.mu.Unlock()
	if s, ok := d.schemas[ref.String()]; ok {
		return s, nil
	}
	s, err := c.Compile(ref.String())
	if err == nil {
		d.schemas[ref.String()] = s
	}
	return s, err
}

// checkResponse holds a response against the document of the families.
func (h *Installation) checkResponse(r *http.Request, a *Response) {
	h.t.Helper()
	path, ok := h.Handler.Pattern(r.Method, r.URL.EscapedPath())
	if !ok {
		return // there is no such route
	}
	h.document.once.Do(func() {
		h.document.read, h.document.err = NewDocument(admin.OpenAPI("test", "1", h.Families...))
	})
	if h.document.err != nil {
		h.t.Fatal(h.document.err)
	}
	if wrong := h.document.read.Check(r.Method, path, a.Status, a.Header.Get("Content-Type"), a.Body); wrong != "" {
		h.t.Errorf("%s %s answers otherwise than documented: %s\n%.2000s", r.Method, r.URL.EscapedPath(), wrong, a.Body)
	}
}

// lazyDocument is made at the first response.
type lazyDocument struct {
	once sync.Once
	read *Document
	err  error
}
