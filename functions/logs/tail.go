package logs

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"sync/atomic"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/fault"
	"gateway/shared/store"
	"gateway/shared/usage/report"
)

// Bounds of tails.
const (
	maxTails  = 32        // of a process at once
	maxAtOnce = 200       // logs that one look gives
	maxTail   = time.Hour // then the client has to come again
	tailQuiet = 15 * time.Second
	tailPace  = time.Second
	lastEvent = "Last-Event-Id"
)

// TailOptions are what hosts differ in.
type TailOptions struct {
	MaxBuffered time.Duration   // if responses are buffered: ends with the first logs, or after this; 0: continues for an hour
	Interval    time.Duration   // between looks; 0: a second
	Ends        <-chan struct{} // closed when the process stops; nil: never
}

// tails counts those that are open.
var tails atomic.Int64

// Followed reports whether a client of this process follows logs.
func Followed() bool { return tails.Load() > 0 }

func (f *family) tailRoute() admin.Route {
	return admin.Route{
		Method: "GET", Path: "/logs/tail", Name: "tailLogs",
		Doc:    "Follow new logs as server-sent events: log has an entry of the list, dropped the number of omitted logs, missed the time range of omitted logs, refused means that the caller's access ended. A client that reconnects with Last-Event-ID gets the logs since then, up to fifteen minutes. Lambda functions end the response with the first logs or after 20 s, and clients reconnect automatically; elsewhere it lasts an hour.",
		Scopes: []string{"logs.list"}, Level: admin.InEither, Query: tailQuery(),
		Produces: "text/event-stream", Response: admin.Schema{"type": "string"}, Do: f.tail,
	}
}

// tailQuery is that of the list without its times and pages.
func tailQuery() (q []admin.Field) {
	for _, field := range usagequery.Fields(false) {
		if field.Name != usagequery.From && field.Name != usagequery.To {
			q = append(q, field)
		}
	}
	return q
}

func (f *family) tail(c *admin.Call) (any, error) {
	sc, err := usagequery.Scope(c)
	if err != nil {
		return nil, err
	}
	filter, err := usagequery.Filter(c.Query)
	if err != nil {
		return nil, err
	}
	if tails.Add(1) > maxTails {
		tails.Add(-1)
		busy := fault.New(fault.ServiceUnavailable, "", "Too many clients follow logs here; try again")
		busy.RetryAfter = tailQuiet
		return nil, busy
	}
	now := time.Now()
	t := &follower{
		family: f, call: c, scope: sc, filter: filter, tail: f.Reader.Tail(sc, now, c.Request.Header.Get(lastEvent)),
		pace: f.Tail.Interval, quiet: now, until: now.Add(maxTail), versions: configVersions{}, spaces: workspaceNames{},
	}
	if t.pace == 0 {
		t.pace = tailPace
	}
	if f.Tail.MaxBuffered > 0 {
		t.until = now.Add(f.Tail.MaxBuffered)
	}
	t.ctx, t.cancel = context.WithCancel(c.Request.Context())
	t.out = []byte(fmt.Sprintf("retry: %d\n\n", t.pace.Milliseconds()))
	if missed := t.tail.Missed; !missed.IsZero() {
		t.event("missed", "", map[string]any{"from": admin.Instant(missed), "to": admin.Instant(t.tail.Since)})
	}
	return admin.Response{Stream: t}, nil
}

// follower is the response of one tail.
type follower struct {
	*family
	call   *admin.Call
	scope  store.Scope
	filter report.Filter
	tail   *report.Tail
	pace   time.Duration
	quiet  time.Time // when something was sent last
	until  time.Time // when it ends
	ended  bool
	out    []byte // not read yet

	ctx      context.Context
	cancel   context.CancelFunc
	closed   bool
	org      string // name of the organization
	versions configVersions
	spaces   workspaceNames
}

// Close implements io.Closer.
func (t *follower) Close() error {
	if !t.closed {
		t.closed = true
		t.cancel()
		tails.Add(-1)
	}
	return nil
}

// Read implements io.Reader: it waits for something to send.
func (t *follower) Read(p []byte) (int, error) {
	for len(t.out) == 0 {
		if t.ended || !t.wait() {
			return 0, io.EOF
		}
		t.look()
	}
	n := copy(p, t.out)
	t.out = t.out[n:]
	return n, nil
}

// wait waits for the next look; false: there is none.
func (t *follower) wait() bool {
	timer := time.NewTimer(t.pace)
	defer timer.Stop()
	select {
	case <-timer.C:
		return time.Now().Before(t.until)
	case <-t.ctx.Done():
	case <-t.Tail.Ends:
	}
	return false
}

// look sends new logs, and a comment from time to time if there are none. Each time the
// caller is checked again, so that a revoked key ends the tail.
func (t *follower) look() {
	now := time.Now()
	fresh, more, err := t.news(now)
	for i := range fresh {
		t.event("log", fresh[i].Mark, t.row(&fresh[i]))
	}
	if more > 0 {
		t.event("dropped", "", map[string]int{"count": more})
	}
	switch {
	case err != nil:
		t.event("refused", "", json.RawMessage(fault.From(err).AdminBody(t.call.RequestID)))
		t.ended = true
	case len(fresh)+more > 0:
		t.ended = t.Tail.MaxBuffered > 0
	case now.Sub(t.quiet) >= tailQuiet:
		t.out = append(t.out, ": nothing yet\n\n"...)
	}
	if len(t.out) > 0 {
		t.quiet = now
	}
}

// news are the logs since the last look that the caller may see now.
func (t *follower) news(now time.Time) ([]report.TailRecord, int, error) {
	ctx, cancel := context.WithTimeout(t.ctx, time.Minute)
	defer cancel()
	t.call.Context, t.call.Now = ctx, now
	if err := t.call.Renew(); err != nil {
		return nil, 0, err
	}
	filter := t.filter
	if err := usagequery.Restrict(t.call, &filter); err != nil {
		return nil, 0, err
	}
	fresh, more, err := t.tail.Next(ctx, now, &filter, maxAtOnce)
	if err == nil && t.org == "" && len(fresh) > 0 {
		t.org, err = organisationName(t.call)
	}
	if err == nil {
		err = t.spaces.read(t.call, func(yield func(string) bool) {
			for i := range fresh {
				if !yield(fresh[i].Record.Workspace) {
					return
				}
			}
		})
	}
	return fresh, more, usagequery.Failed(err)
}

// row is a log as the list shows it. The id of its config's version is omitted where it
// cannot be read.
func (t *follower) row(f *report.TailRecord) row {
	version, _ := t.versions.id(t.call, &f.Record)
	m := fieldsOf(&f.Record, t.org, version)
	m.WorkspaceName = admin.NullIfZero(t.spaces[f.Record.Workspace])
	return row{m, admin.Instant(f.Record.Start), "log"}
}

func (t *follower) event(name, id string, data any) {
	text, err := json.Marshal(data)
	if err != nil {
		return // made of rows and counts
	}
	if id != "" {
		t.out = append(append(append(t.out, "id: "...), id...), '\n')
	}
	t.out = append(append(append(t.out, "event: "...), name...), "\ndata: "...)
	t.out = append(append(t.out, text...), "\n\n"...)
}
