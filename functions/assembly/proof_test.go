package assembly_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"gateway/functions/assembly"
	"gateway/functions/docs/components"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/app/console"
	"gateway/shared/app/notices"
	"gateway/shared/audit"
	"gateway/shared/egress"
	"gateway/shared/notice"
	"gateway/shared/queue"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
	"gateway/shared/testkit/admintest/drive"
	"gateway/shared/usage"
	"gateway/shared/usage/segment"
)

// installation is the complete administration on an embedded store, with the keys and roles of
// a real one.
type installation struct {
	t        testing.TB
	core     *app.Core
	handler  *admin.Handler
	families []admin.Family
	doc      *drive.Document
	checked  *admintest.Document
	archive  *segment.Archive
}

// Raw keys of the first organization, and of another one.
const (
	rootKey, firstKey   = "root-key-of-the-organisation-0001", "key-of-the-first-workspace-0001"
	otherRoot, otherKey = "root-key-of-the-other-organisation", "key-of-the-other-workspace-00001"
)

// install returns an installation; wrap may observe its tables.
func install(t testing.TB, wrap func(store.Store) store.Store) *installation {
	t.Helper()
	opened, err := sqlite.Open(filepath.Join(t.TempDir(), "tables.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opened.Close() })
	var s store.Store = opened
	if wrap != nil {
		s = wrap(s)
	}
	stopping := make(chan struct{})
	close(stopping) // nothing that lasts is waited for
	in := &installation{t: t, core: app.New(app.Backends{Store: s, Embedded: true, Sealer: admintest.Sealer{}, Journal: unread{}}, app.Settings{Egress: egress.Policy{}, Stopping: stopping})}
	in.core.Transport = nobody{}
	in.core.AllowDuplicates = true // tests create many equal resources
	for _, f := range []app.First{
		{Organisation: "first", Workspace: "first-space", AdminKey: rootKey, WorkspaceKey: firstKey},
		{Organisation: "other", Workspace: "other-space", AdminKey: otherRoot, WorkspaceKey: otherKey},
	} {
		if _, err := in.core.Bootstrap(context.Background(), f); err != nil {
			t.Fatal(err)
		}
	}
	in.archive = segment.New(s, nil, segment.Options{})
	in.families = assembly.Administration(in.core, in.archive)
	if in.handler, err = console.New(in.core, audit.NewSender(in.core.Resources, nowhere{}), in.families...); err != nil {
		t.Fatal(err)
	}
	_, raw := in.request("GET", "/openapi.json", rootKey, nil) // with examples
	resolved, err := components.Resolve(raw)
	if err != nil {
		t.Fatal(err)
	}
	if in.doc, err = drive.Read(resolved); err != nil {
		t.Fatal(err)
	}
	if in.checked, err = admintest.NewDocument(resolved); err != nil {
		t.Fatal(err)
	}
	return in
}

// nobody is a network without reachable hosts.
type nobody struct{}

func (nobody) RoundTrip(*http.Request) (*http.Response, error) {
	return nil, errors.New("no such host")
}

// unread discards usage events.
type unread struct{}

func (unread) Emit(context.Context, *usage.Record) error { return nil }

// nowhere is a queue that drops audit records, which stay in the outbox.
type nowhere struct{ queue.Queue }

func (nowhere) Send(context.Context, ...queue.Outgoing) error { return nil }

// request makes a call and holds its response against the document.
func (in *installation) request(method, path, key string, body []byte) (int, []byte) {
	in.t.Helper()
	a := in.send(method, path, key, body)
	if at, _, _ := strings.Cut(path, "?"); method == "POST" && a.Code == http.StatusOK {
		switch {
		case at == "/webhooks":
			in.notify(a.Body.Bytes())
		case strings.HasSuffix(at, "/redeliver"):
			in.deliver()
		}
	}
	return a.Code, a.Body.Bytes()
}

// notify sends an event to a new webhook, and a mail.
func (in *installation) notify(made []byte) {
	in.t.Helper()
	var w struct{ ID string }
	if err := json.Unmarshal(made, &w); err != nil {
		in.t.Fatal(err)
	}
	for _, e := range []notice.Event{{Type: notice.Ping, Webhook: w.ID}, {Type: notice.BudgetExhausted, Webhook: "none", Summary: "over", Audience: notice.Audience{Admins: true}}} {
		for _, org := range []string{"first", "other"} {
			spaces, err := in.core.Resources.List(context.Background(), store.Scope{Org: org}, tenant.KindWorkspace)
			if err != nil {
				in.t.Fatal(err)
			}
			for _, ws := range spaces {
				e.Org, e.Workspace = org, ws.ID
				if err := notice.Raise(context.Background(), in.core.Store, e, time.Now()); err != nil {
					in.t.Fatal(err)
				}
			}
		}
	}
	in.deliver()
}

// deliver does what the worker of notices does.
func (in *installation) deliver() {
	in.t.Helper()
	at := time.Now().Add(time.Second)
	worker := &notice.Worker{Store: in.core.Store, Directory: readers{&notices.Directory{Resources: in.core.Resources, Sealer: in.core.Sealer}}, Transport: taken{}, Mailer: taken{}, Now: func() time.Time { return at }}
	if err := worker.Run(context.Background()); err != nil {
		in.t.Fatal(err)
	}
}

// readers are the people of a Directory, and one more.
type readers struct{ *notices.Directory }

func (readers) Addresses(context.Context, *notice.Event) ([]string, error) {
	return []string{"somebody@example.com"}, nil
}

// taken is a network, and a mail server, that takes everything.
type taken struct{}

func (taken) RoundTrip(*http.Request) (*http.Response, error) {
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{}, Body: http.NoBody}, nil
}

func (taken) Send(context.Context, notice.Mail) error { return nil }

func (in *installation) send(method, path, key string, body []byte) *httptest.ResponseRecorder {
	in.t.Helper()
	r := httptest.NewRequest(method, "/v1"+path, bytes.NewReader(body))
	r.RemoteAddr = "192.0.2.7:4711"
	if key != "" {
		r.Header.Set("x-gateway-api-key", key)
	}
	if len(body) > 0 {
		r.Header.Set("content-type", "application/json")
	}
	w := httptest.NewRecorder()
	in.handler.ServeHTTP(w, r)
	if pattern, ok := in.handler.Pattern(method, r.URL.EscapedPath()); ok && in.checked != nil {
		if wrong := in.checked.Check(method, pattern, w.Code, w.Header().Get("Content-Type"), w.Body.Bytes()); wrong != "" {
			in.t.Errorf("%s %s answers otherwise than documented: %s\n%.1000s", method, path, wrong, w.Body.Bytes())
		}
	}
	return w
}

// as makes calls with a key.
func (in *installation) as(key string) drive.Send {
	return func(method, path string, body []byte) (int, []byte) { return in.request(method, path, key, body) }
}

// must makes a call that succeeds.
func (in *installation) must(method, path, key, body string) map[string]any {
	in.t.Helper()
	status, raw := in.request(method, path, key, []byte(body))
	var out map[string]any
	if err := json.Unmarshal(raw, &out); status != http.StatusOK || err != nil {
		in.t.Fatalf("%s %s: %d %s", method, path, status, raw)
	}
	return out
}

// user makes a user of an organization, who joins a workspace where one is named.
func (in *installation) user(key, email, role, workspace, roleThere string) (id string) {
	in.t.Helper()
	spaces := "[]"
	if workspace != "" {
		spaces = fmt.Sprintf(`[{"id":%q,"role":%q}]`, workspace, roleThere)
	}
	made := in.must("POST", "/invites", key, fmt.Sprintf(`{"email":%q,"role":%q,"workspaces":%s}`, email, role, spaces))
	link := made["invite_link"].(string)
	token := link[strings.LastIndexByte(link, '=')+1:]
	return in.must("POST", "/invites/accept?token="+token, "", `{"first_name":"A","last_name":"B"}`)["user_id"].(string)
}
