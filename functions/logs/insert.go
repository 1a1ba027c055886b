package logs

import (
	"encoding/json"
	"fmt"
	"net/http"
	"regexp"
	"time"
	"unicode/utf8"

	"gateway/functions/logs/ingest"
	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/tenant"
)

// Limits of reported requests.
const (
	maxReported     = 100     // requests of one call
	maxReportedBody = 4 << 20 // bytes of one call
	maxReportedAge  = 90 * 24 * time.Hour
	maxAhead        = 5 * time.Minute
	maxPairs        = 64
	maxHeaders      = 100
	maxDuration     = 24 * 60 * 60 * 1000 // milliseconds
)

var (
	methodForm   = regexp.MustCompile(`^[A-Za-z]{1,16}$`)
	providerForm = regexp.MustCompile(`^[A-Za-z0-9][A-Za-z0-9._-]{0,63}$`)
)

// Both scopes are required: only a caller that may send requests may report them.
const (
	insertScope = "logs.write"
	makeScope   = "completions.write"
)

func (f *family) insertRoute() admin.Route {
	text := func(name, doc string, most int64) admin.Field {
		return admin.Field{Name: name, Type: admin.String, Max: most, Doc: doc}
	}
	headers := admin.Field{Name: "headers", Type: admin.Map, Of: &admin.Field{Type: admin.String, Max: 8 << 10}, Max: maxHeaders, Doc: "Credentials among them are masked."}
	duration := admin.Field{Name: "response_time", Type: admin.Number, Max: maxDuration, Doc: "Milliseconds."}
	late := duration
	late.Name, late.Doc = "time", "The same, if response_time is absent."
	address := text("url", "Requested URL; the query string is not stored.", 2048)
	address.Required, address.Min = true, 1
	body := admin.Field{Name: "body", Type: admin.Any, Doc: "JSON or a JSON text.", Example: map[string]any{"model": "gpt-4o-mini", "messages": []any{map[string]any{"role": "user", "content": "Hello"}}}}
	answer := admin.Field{Name: "body", Type: admin.Any, Doc: "JSON, a JSON text, or a list of the chunks of a stream. Usage is extracted from it.",
		Example: map[string]any{"object": "chat.completion", "model": "gpt-4o-mini", "choices": []any{}, "usage": map[string]any{"prompt_tokens": 9, "completion_tokens": 12, "total_tokens": 21}}}
	method := text("method", "Default POST.", 16)
	method.Pattern = methodForm
	service := text("provider", "Provider, such as openai; without it there is no price.", 64)
	service.Pattern = providerForm
	needed := body
	needed.Required = true
	return admin.Route{
		Method: "POST", Path: "/logs", Name: "createLogs",
		Doc:    "Import logs of requests made outside the gateway: one, or a list. Tokens are extracted from the response and priced by the price list; budgets and rate limits do not count them. Requires completions.write and logs.write.",
		Scopes: []string{insertScope}, Level: admin.InWorkspace, ByWorkspaces: true, Unrecorded: true, MaxItems: maxReported, MaxBody: maxReportedBody,
		Body: []admin.Field{
			{Name: "request", Type: admin.Object, Required: true, Doc: "The request.", Fields: []admin.Field{address, method, service, headers, needed}},
			{Name: "response", Type: admin.Object, Required: true, Doc: "The response.", Fields: []admin.Field{
				{Name: "status", Type: admin.Integer, Min: 100, Max: 599, Default: 200, Doc: "HTTP status."}, headers, answer, duration, late,
				{Name: "streamingMode", Type: admin.Boolean, Doc: "The response was a stream."}}},
			{Name: "metadata", Type: admin.Map, Of: &admin.Field{Type: admin.String, Max: 255}, Max: maxPairs, Check: checkMetadata,
				Doc: "Any string pairs. trace_id, span_id, span_name and parent_span_id place the request in a trace; user (or _user) is the end user."},
			text("id", "Client-chosen id: sending the same id and created_at again changes nothing. Requires created_at.", 255),
			{Name: "created_at", Type: admin.Timestamp, Doc: "When the request began, at most 90 days ago. When absent: response_time before now.", Check: checkTime},
		},
		Response: admin.Closed(map[string]admin.Schema{"status": {"type": "string", "const": "success"}, "ids": {"type": "array", "items": admin.Schema{"type": "string"}, "description": "Ids of the logs, in the order of the list."}}),
		Do:       f.insert,
	}
}

func checkTime(raw json.RawMessage) []fault.Detail {
	var text string
	if json.Unmarshal(raw, &text) != nil {
		return nil // its type is reported already
	}
	at, err := admin.ParseTime(text)
	if now := time.Now(); err == nil && (at.Before(now.Add(-maxReportedAge)) || at.After(now.Add(maxAhead))) {
		return []fault.Detail{{Message: "must be a time of the last 90 days"}}
	}
	return nil
}

// Names under which metadata may place a request in a trace.
var traceNames = map[string]string{
	"trace_id": "trace_id", "traceId": "trace_id", "span_id": "span_id", "spanId": "span_id", "span_name": "span_name", "spanName": "span_name",
	"parent_span_id": "parent_span_id", "parentSpanId": "parent_span_id",
}

// checkMetadata checks that metadata has no control characters, and no field of a trace in two
// spellings.
func checkMetadata(raw json.RawMessage) (wrong []fault.Detail) {
	var pairs map[string]string
	if json.Unmarshal(raw, &pairs) != nil {
		return nil // its type is reported already
	}
	seen := map[string]bool{}
	for _, name := range keys(pairs) {
		value := pairs[name]
		if field := traceNames[name]; field != "" {
			if seen[field] {
				wrong = append(wrong, fault.Detail{Field: name, Message: "is sent in two spellings; send one of them"})
			}
			seen[field] = true
		}
		for _, c := range value {
			if c < ' ' || c == 0x7f || c == utf8.RuneError {
				wrong = append(wrong, fault.Detail{Field: name, Message: "must not contain control characters"})
				break
			}
		}
	}
	return wrong
}

func (f *family) insert(c *admin.Call) (any, error) {
	if !c.Caller.HasAny([]string{makeScope}) {
		return nil, admin.Denied()
	}
	all := make([]ingest.Exchange, len(c.Items))
	var wrong []fault.Detail
	for i, in := range c.Items {
		if in.Text("id") != "" && !in.HasValue("created_at") {
			field := "created_at"
			if len(c.Items) > 1 {
				field = fmt.Sprintf("[%d].created_at", i)
			}
			wrong = append(wrong, fault.Detail{Field: field, Message: "is required with id: both together identify the log"})
		}
		all[i] = exchange(in)
	}
	if err := fault.Invalids(wrong); err != nil {
		return nil, err
	}
	by, err := reporter(c)
	if err != nil {
		return nil, err
	}
	ids, err := f.Ingest.Emit(c.Context, by, all)
	if err != nil {
		return nil, err
	}
	return admin.Members{"status": "success", "ids": ids}, nil
}

// reporter returns the caller, and whether logs of the workspace contain bodies; it decides as
// admission.Request.LogsBodies does for requests through the gateway.
func reporter(c *admin.Call) (*ingest.Reporter, error) {
	ws, _, err := c.Workspace(c.Scope.Workspace)
	if err != nil {
		return nil, err
	}
	org, err := tenant.FetchSettings(c.Context, c.Resources, c.Scope)
	if err != nil {
		return nil, err
	}
	s := &org.Settings
	bodies := s.RequestLogging != tenant.LogMetrics && c.Request.Header.Get("X-Gateway-Debug") != "false"
	if s.EnforceDebug != nil {
		bodies = *s.EnforceDebug
	}
	return &ingest.Reporter{Scope: c.Scope, Slug: ws.Slug, KeyID: c.Caller.KeyID, KeyType: c.Caller.Type, UserID: c.Caller.UserID, Bodies: bodies}, nil
}

// exchange returns an entry of the body, which was validated.
func exchange(in admin.Values) ingest.Exchange {
	req, _ := in.Object("request")
	resp, _ := in.Object("response")
	x := ingest.Exchange{
		ID: in.Text("id"), Created: in.Time("created_at"),
		URL: req.Text("url"), Method: req.Text("method"), Provider: req.Text("provider"), RequestHeaders: req.TextMap("headers"), Request: req.Raw("body"),
		Status: int(resp.Int("status")), ResponseHeaders: resp.TextMap("headers"), Response: resp.Raw("body"), Stream: resp.Bool("streamingMode"),
	}
	if x.Method == "" {
		x.Method = http.MethodPost
	}
	if x.Status == 0 {
		x.Status = http.StatusOK
	}
	field := "response_time"
	if !resp.HasValue(field) {
		field = "time"
	}
	x.Duration = time.Duration(resp.Float(field) * float64(time.Millisecond))
	place(&x, in.TextMap("metadata"))
	return x
}

// place sets the fields of a trace, and the metadata from the other pairs.
func place(x *ingest.Exchange, pairs map[string]string) {
	to := map[string]*string{"trace_id": &x.TraceID, "span_id": &x.SpanID, "span_name": &x.SpanName, "parent_span_id": &x.ParentSpanID}
	for name, value := range pairs {
		if field := to[traceNames[name]]; field != nil {
			*field = value
			continue
		}
		if x.Metadata == nil {
			x.Metadata = make(map[string]string)
		}
		x.Metadata[name] = value
	}
	if user := x.Metadata["user"]; user != "" && x.Metadata["_user"] == "" {
		x.Metadata["_user"] = user
	}
}
