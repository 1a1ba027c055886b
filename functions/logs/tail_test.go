package logs

import (
	"bufio"
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
)

// following is a client of a tail.
type following struct {
	t     *testing.T
	resp  *http.Response
	lines *bufio.Scanner
}

// follow opens a tail over a connection.
func (in *installation) follow(t *testing.T, key, query, after string) *following {
	t.Helper()
	server := httptest.NewServer(in.Handler)
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, server.URL+"/v1/logs/tail"+query, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("X-Gateway-Api-Key", key)
	req.Header.Set(lastEvent, after)
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { resp.Body.Close() })
	f := &following{t, resp, bufio.NewScanner(resp.Body)}
	f.lines.Buffer(nil, 1<<20)
	if name, _, _ := f.next(); resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" || name != "" {
		t.Fatalf("%d %s", resp.StatusCode, name)
	}
	return f
}

// next is the next event; name is "" for one without data, and "end" at the end.
func (f *following) next() (name, id string, data map[string]any) {
	f.t.Helper()
	for f.lines.Scan() {
		switch key, value, _ := strings.Cut(f.lines.Text(), ": "); key {
		case "":
			return name, id, data
		case "event":
			name = value
		case "id":
			id = value
		case "data":
			if err := json.Unmarshal([]byte(value), &data); err != nil {
				f.t.Fatal(err)
			}
		}
	}
	return "end", "", nil
}

// log is the id of the next log.
func (f *following) log() (log, mark string) {
	f.t.Helper()
	name, mark, data := f.next()
	if name != "log" || mark == "" {
		f.t.Fatalf("%s %v", name, data)
	}
	return data["id"].(string), mark
}

func TestTailStreamsNewLogs(t *testing.T) {
	in := install(t)
	before := made(admintest.Org, in.One, admintest.OneSlug, time.Minute)
	in.ahead = -time.Minute
	in.store(t, before)
	in.ahead = 0
	one, two := in.follow(t, admintest.WorkspaceA, "", ""), in.follow(t, admintest.WorkspaceA, "?status_code=500", "")
	foreign := in.follow(t, admintest.WorkspaceB, "", "")
	first, failed, theirs := made(admintest.Org, in.One, admintest.OneSlug, 0), made(admintest.Org, in.One, admintest.OneSlug, 0), made(admintest.Org, in.Two, admintest.TwoSlug, 0)
	failed.ClientStatus = 500
	in.store(t, first)
	if id, _ := one.log(); id != first.ID {
		t.Errorf("got %s, want %s", id, first.ID)
	}
	in.store(t, failed)
	id, mark := one.log()
	if other, _ := two.log(); id != failed.ID || other != failed.ID {
		t.Errorf("got %s and %s, want %s", id, other, failed.ID)
	}
	in.store(t, theirs)
	if id, _ := foreign.log(); id != theirs.ID {
		t.Errorf("another workspace's log: %s", id)
	}
	// A client that reconnects gets the missed logs once.
	in.ahead = time.Second
	last := made(admintest.Org, in.One, admintest.OneSlug, 0)
	in.store(t, last)
	if id, _ := in.follow(t, admintest.WorkspaceA, "", mark).log(); id != last.ID {
		t.Errorf("got %s, want %s", id, last.ID)
	}
}

func TestATailEndsWithTheRightToIt(t *testing.T) {
	in := install(t)
	f := in.follow(t, admintest.MemberKey, "", "")
	in.store(t, made(admintest.Org, in.One, admintest.OneSlug, 0))
	f.log()
	in.SetSettings(tenant.Settings{RolePermissions: tenant.RolePermissions{MembersViewAllData: no()}})
	mine := made(admintest.Org, in.One, admintest.OneSlug, 0)
	mine.UserID = in.Caller(admintest.MemberKey).UserID
	in.store(t, made(admintest.Org, in.One, admintest.OneSlug, 0), mine)
	if id, _ := f.log(); id != mine.ID {
		t.Errorf("a log of somebody else: %s", id)
	}
	c := in.Caller(admintest.MemberKey)
	c.Scopes = admintest.ScopeList{"logs.view"}
	in.SetCaller(admintest.MemberKey, c)
	if name, _, data := f.next(); name != "refused" || data["success"] != false {
		t.Errorf("%s %v", name, data)
	}
	if name, _, _ := f.next(); name != "end" {
		t.Errorf("%s behind the end", name)
	}
}

// A client that was away for too long is informed of the omitted range.
func TestTailReportsOmittedRange(t *testing.T) {
	in := install(t)
	in.ahead = -time.Hour
	old := made(admintest.Org, in.One, admintest.OneSlug, time.Hour)
	in.store(t, old)
	in.ahead = 0
	mark := base64.RawURLEncoding.EncodeToString(append(binary.BigEndian.AppendUint64(nil, uint64(time.Now().Add(-2*time.Hour).UnixMilli())), 'x'))
	f := in.follow(t, admintest.WorkspaceA, "", mark)
	name, _, data := f.next()
	from, ferr := time.Parse(time.RFC3339, data["from"].(string))
	to, terr := time.Parse(time.RFC3339, data["to"].(string))
	if name != "missed" || ferr != nil || terr != nil || to.Sub(from) < time.Hour || time.Since(to) > time.Hour {
		t.Errorf("%s %v", name, data)
	}
	fresh := made(admintest.Org, in.One, admintest.OneSlug, 0)
	in.store(t, fresh)
	if id, _ := f.log(); id != fresh.ID {
		t.Errorf("got %s, want %s", id, fresh.ID)
	}
}

// If responses are buffered, a tail ends with the first logs, or when its time is over.
func TestABriefTail(t *testing.T) {
	in := install(t)
	in.tail(TailOptions{MaxBuffered: time.Hour, Interval: time.Millisecond})
	f := in.follow(t, admintest.WorkspaceA, "", "")
	in.store(t, made(admintest.Org, in.One, admintest.OneSlug, 0))
	f.log()
	if name, _, _ := f.next(); name != "end" {
		t.Errorf("%s behind the end", name)
	}
	in.tail(TailOptions{MaxBuffered: time.Nanosecond, Interval: time.Millisecond})
	if name, _, _ := in.follow(t, admintest.WorkspaceA, "", "").next(); name != "end" {
		t.Errorf("%s", name)
	}
}

func TestTailsAreBoundedAndEndWithTheProcess(t *testing.T) {
	in := install(t)
	ends := make(chan struct{})
	in.tail(TailOptions{Interval: time.Millisecond, Ends: ends})
	var all []*following
	for range maxTails {
		all = append(all, in.follow(t, admintest.WorkspaceA, "", ""))
	}
	in.Do("GET", "/logs/tail", admintest.WorkspaceA, nil).RequireFault(503, "AB04", "")
	close(ends)
	for _, f := range all {
		if name, _, _ := f.next(); name != "end" {
			t.Errorf("%s", name)
		}
	}
	for deadline := time.Now().Add(time.Minute); tails.Load() > 0; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d tails are left", tails.Load())
		}
	}
}

func TestQueriesOfATailThatAreRefused(t *testing.T) {
	in := install(t)
	for query, field := range map[string]string{"?status_code=x": "status_code", "?cost_min=2&cost_max=1": "cost_min", "?cache_status=no": "cache_status", "?metadata=5": "metadata"} {
		in.Do("GET", "/logs/tail"+query, admintest.WorkspaceA, nil).RequireFault(400, "AB01", field)
	}
	in.Do("GET", "/logs/tail", admintest.NoScopesWs, nil).RequireFault(403, "AB03", "")
}
