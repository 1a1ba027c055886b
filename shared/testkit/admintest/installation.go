// Package admintest lets a family of admin routes be tested through HTTP: a
// small installation with two organizations, callers of every kind, and checks
// that every family has to pass.
package admintest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/queue"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/tenant"
)

// Organizations and workspaces of the test installation. Workspace ids are fields of House.
const (
	Org      = "o1"
	OtherOrg = "o2"
	// OneSlug and TwoSlug are workspaces of Org, ThreeSlug one of OtherOrg.
	OneSlug, TwoSlug, ThreeSlug = "ws-one-000001", "ws-two-000002", "ws-three-000003"
)

// Keys of the test installation; each is the value of x-gateway-api-key.
const (
	AdminKey    = "key-admin"     // organization key of Org with every scope
	OtherAdmin  = "key-admin-o2"  // organization key of OtherOrg with every scope
	WorkspaceA  = "key-ws-one"    // service key of the first workspace, every scope
	WorkspaceB  = "key-ws-two"    // service key of the second workspace, every scope
	MemberKey   = "key-member"    // user keys of the first workspace, every scope
	ManagerKey  = "key-manager"   //
	WsAdminKey  = "key-ws-admin"  //
	NoScopesKey = "key-none"      // organization key without scopes
	NoScopesWs  = "key-none-ws"   // service key of the first workspace without scopes
	ExpiredKey  = "key-expired"   // rejected with 401
	UnknownKey  = "key-not-there" // refused with 401
)

// Installation is a test installation in a temporary folder.
type Installation struct {
	// Repeats makes the handler recognize calls that repeat one of the last minute.
	Repeats *atomic.Bool

	Handler         *admin.Handler
	Families        []admin.Family
	Store           store.Store
	Resources       *resource.Resources
	One, Two, Three string // ids of the workspaces
	t               testing.TB
	queue           *memoryQueue
	callers         map[string]admin.Caller
	callersMu       *sync.RWMutex // requests go on while a test gives a key another caller
	document        *lazyDocument
	governed        *atomic.Bool // see SetSettings
}

type allScopes struct{}

func (allScopes) Has(string) bool { return true }

// ScopeList is a set of scopes for a caller of a test.
type ScopeList []string

// Has implements admin.Scopes.
func (l ScopeList) Has(scope string) bool {
	for _, s := range l {
		if s == scope {
			return true
		}
	}
	return false
}

// New returns a House that serves the families.
func New(t testing.TB, families ...admin.Family) *Installation {
	t.Helper()
	return Build(t, func(admin.Deps) []admin.Family { return families })
}

// Build is New for families that need the stores.
func Build(t testing.TB, make func(admin.Deps) []admin.Family) *Installation {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "store.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return build(t, s, resource.New(s, resource.Embedded()), make)
}

// NewWithStore is New over a store and resources of the test's own.
func NewWithStore(t testing.TB, s store.Store, r *resource.Resources, families ...admin.Family) *Installation {
	t.Helper()
	return build(t, s, r, func(admin.Deps) []admin.Family { return families })
}

func build(t testing.TB, s store.Store, r *resource.Resources, make func(admin.Deps) []admin.Family) *Installation {
	t.Helper()
	var err error
	h := &Installation{Store: s, Resources: r, t: t, queue: &memoryQueue{}, document: &lazyDocument{}, governed: new(atomic.Bool), Repeats: new(atomic.Bool), callersMu: new(sync.RWMutex)}
	h.Resources.BeforeCommit(audit.StageStates)
	sender := audit.NewSender(h.Resources, h.queue)
	if t, ok := t.(*testing.T); ok {
		t.Cleanup(func() {
			if !t.Failed() {
				h.checkAuditLog()
			}
		})
	}
	h.One = h.workspace(Org, OneSlug, "One")
	h.Two = h.workspace(Org, TwoSlug, "Two")
	h.Three = h.workspace(OtherOrg, ThreeSlug, "Three")
	h.callers = h.makeCallers()
	d := admin.Deps{Resources: h.Resources, Sealer: Sealer{}, Authenticate: h.authenticate, Audit: sender, Permissions: h.rights, Lenient: h.lenient, Repeats: h.Repeats.Load}
	h.Families = make(d)
	if h.Handler, err = admin.NewHandler(d, h.Families...); err != nil {
		t.Fatal(err)
	}
	return h
}

// For returns the same installation, reporting to another test.
func (h *Installation) For(t testing.TB) *Installation {
	c := *h
	c.t = t
	return &c
}

func (h *Installation) workspace(org, slug, name string) string {
	h.t.Helper()
	rec := resource.Record{Scope: store.Scope{Org: org}, Kind: tenant.KindWorkspace, Slug: slug, Name: name, Status: "active", Body: []byte("{}")}
	err := h.Resources.Change(context.Background(), rec.Scope, func(tx *resource.Tx) error { return tx.Create(&rec) })
	if err != nil {
		h.t.Fatal(err)
	}
	return rec.ID
}

func (h *Installation) makeCallers() map[string]admin.Caller {
	one := store.Scope{Org: Org, Workspace: h.One}
	service := func(sc store.Scope, scopes admin.Scopes) admin.Caller {
		kind := "workspace-service"
		if sc.Workspace == "" {
			kind = "organisation-service"
		}
		return admin.Caller{KeyID: resource.NewID(), Type: kind, Scope: sc, Scopes: scopes}.As(identity.RankOwner)
	}
	user := func(role admin.Role) admin.Caller {
		return admin.Caller{KeyID: resource.NewID(), UserID: resource.NewID(), Type: "workspace-user", Scope: one, Scopes: allScopes{}}.As(identity.Rank(role))
	}
	return map[string]admin.Caller{
		AdminKey:    service(store.Scope{Org: Org}, allScopes{}),
		OtherAdmin:  service(store.Scope{Org: OtherOrg}, allScopes{}),
		WorkspaceA:  service(one, allScopes{}),
		WorkspaceB:  service(store.Scope{Org: Org, Workspace: h.Two}, allScopes{}),
		NoScopesKey: service(store.Scope{Org: Org}, ScopeList{}),
		NoScopesWs:  service(one, ScopeList{}),
		MemberKey:   user(admin.Member),
		ManagerKey:  user(admin.Manager),
		WsAdminKey:  user(admin.Admin),
	}
}

// Caller is the caller of a key.
func (h *Installation) Caller(key string) admin.Caller {
	c, _ := h.caller(key)
	return c
}

func (h *Installation) caller(key string) (c admin.Caller, known bool) {
	h.callersMu.RLock()
	defer h.callersMu.RUnlock()
	c, known = h.callers[key]
	return c, known
}

// SetCaller gives a key another caller.
func (h *Installation) SetCaller(key string, c admin.Caller) {
	h.callersMu.Lock()
	defer h.callersMu.Unlock()
	h.callers[key] = c
}

func (h *Installation) authenticate(_ context.Context, r *http.Request, _ string) (admin.Caller, error) {
	key := r.Header.Get("x-gateway-api-key")
	if key == ExpiredKey {
		return admin.Caller{}, fault.New(fault.KeyExpired, "x-gateway-api-key", "This API key has expired")
	}
	c, ok := h.caller(key)
	if !ok {
		return admin.Caller{}, fault.New(fault.Unauthorized, "x-gateway-api-key", "Invalid API key")
	}
	return c, nil
}

// Response is what a call got.
type Response struct {
	Status int
	Header http.Header
	Body   []byte
	t      testing.TB
}

// Do makes a call. body is sent as it is when it is a string or bytes, as JSON
// otherwise; nil sends none. A path without a version gets /v1.
func (h *Installation) Do(method, path, key string, body any) Response {
	h.t.Helper()
	var send io.Reader
	switch b := body.(type) {
	case nil:
	case string:
		send = strings.NewReader(b)
	case []byte:
		send = bytes.NewReader(b)
	default:
		raw, err := json.Marshal(b)
		if err != nil {
			h.t.Fatal(err)
		}
		send = bytes.NewReader(raw)
	}
	r := httptest.NewRequest(method, "/v1"+path, send)
	r.RemoteAddr = "192.0.2.7:4711"
	if key != "" {
		r.Header.Set("x-gateway-api-key", key)
	}
	if send != nil {
		r.Header.Set("content-type", "application/json")
	}
	return h.Send(r)
}

// Send makes a call from a request. Each response is held against the document of
// the families.
func (h *Installation) Send(r *http.Request) Response {
	h.t.Helper()
	w := httptest.NewRecorder()
	h.Handler.ServeHTTP(w, r)
	a := Response{Status: w.Code, Header: w.Header(), Body: w.Body.Bytes(), t: h.t}
	h.checkResponse(r, &a)
	return a
}

// OK fails the test unless the call was answered with 200.
func (a Response) OK() Response {
	a.t.Helper()
	if a.Status != http.StatusOK {
		a.t.Fatalf("status %d: %s", a.Status, a.Body)
	}
	return a
}

// RequireFault fails the test unless the call was rejected with the status and the
// administration code, and names the field ("" is not checked).
func (a Response) RequireFault(status int, code, field string) Response {
	a.t.Helper()
	f := a.Failure()
	if a.Status != status || f.Code != code || (field != "" && !f.names(field)) {
		a.t.Errorf("got %d %s, want %d %s naming %q", a.Status, a.Body, status, code, field)
	}
	return a
}

// Failure is the parts of an error response.
type Failure struct {
	Message, Code, Param, RequestID string
	Fields                          map[string]string // all field errors
}

func (f Failure) names(field string) bool {
	_, ok := f.Fields[field]
	return ok || f.Param == field
}

// Failure reads an error response; it fails the test when the body has another form.
func (a Response) Failure() Failure {
	a.t.Helper()
	var b struct {
		Success *bool
		Data    struct {
			Message, ErrorCode string
			Errors             []struct{ Field, Message string }
		}
		Error struct {
			Message, Type, Code string
			Param               *string
		}
		RequestID string `json:"request_id"`
	}
	if err := json.Unmarshal(a.Body, &b); err != nil || b.Success == nil || *b.Success || b.Data.ErrorCode == "" || b.RequestID == "" {
		a.t.Fatalf("not an error answer (%d): %s", a.Status, a.Body)
	}
	f := Failure{Message: b.Data.Message, Code: b.Data.ErrorCode, RequestID: b.RequestID, Fields: map[string]string{}}
	if b.Error.Param != nil {
		f.Param = *b.Error.Param
	}
	for _, e := range b.Data.Errors {
		f.Fields[e.Field] = e.Message
	}
	return f
}

// Comparable is the response's body without its request id, to compare two rejections.
func (a Response) Comparable() string {
	id := a.Header.Get("X-Gateway-Request-Id")
	if id == "" {
		return string(a.Body)
	}
	return fmt.Sprint(a.Status, " ", strings.ReplaceAll(string(a.Body), id, "ID"))
}

// Object reads the response as a JSON object.
func (a Response) Object() map[string]any {
	a.t.Helper()
	var m map[string]any
	if err := json.Unmarshal(a.Body, &m); err != nil {
		a.t.Fatalf("not an object (%d): %s", a.Status, a.Body)
	}
	return m
}

// At reads a member of the response by its path: At("data", "0", "id").
func (a Response) At(path ...string) any {
	a.t.Helper()
	var v any
	if err := json.Unmarshal(a.Body, &v); err != nil {
		a.t.Fatalf("not JSON (%d): %s", a.Status, a.Body)
	}
	for _, p := range path {
		switch x := v.(type) {
		case map[string]any:
			v = x[p]
		case []any:
			i := 0
			if _, err := fmt.Sscan(p, &i); err != nil || i >= len(x) {
				return nil
			}
			v = x[i]
		default:
			return nil
		}
	}
	return v
}

// Text is At for a string.
func (a Response) Text(path ...string) string {
	s, _ := a.At(path...).(string)
	return s
}

// Audit gives the audit log of Org, oldest first.
func (h *Installation) Audit() []audit.Entry {
	h.t.Helper()
	ctx := context.Background()
	if failed, err := audit.NewWorker(h.Store).Handle(ctx, h.queue.take()); err != nil || len(failed) > 0 {
		h.t.Fatalf("audit worker: %d failed, %v", len(failed), err)
	}
	res, err := audit.NewReader(h.Store, time.Now).List(ctx, Org, audit.Filter{Size: 10_000})
	if err != nil {
		h.t.Fatal(err)
	}
	for i, j := 0, len(res.Records)-1; i < j; i, j = i+1, j-1 {
		res.Records[i], res.Records[j] = res.Records[j], res.Records[i]
	}
	return res.Records
}

// memoryQueue is a queue in memory.
type memoryQueue struct {
	mu   sync.Mutex
	sent []queue.Message
}

func (q *memoryQueue) Send(_ context.Context, ms ...queue.Outgoing) error {
	q.mu.Lock()
	defer q.mu.Unlock()
	for _, m := range ms {
		q.sent = append(q.sent, queue.Message{ID: fmt.Sprint(len(q.sent)), Group: m.Group, Body: m.Body, Attempt: 1})
	}
	return nil
}

func (q *memoryQueue) take() []queue.Message {
	q.mu.Lock()
	defer q.mu.Unlock()
	out := q.sent
	q.sent = nil
	return out
}

func (q *memoryQueue) Receive(context.Context, int, time.Duration, time.Duration) ([]queue.Message, error) {
	return q.take(), nil
}
func (q *memoryQueue) Delete(context.Context, ...queue.Message) error             { return nil }
func (q *memoryQueue) Extend(context.Context, queue.Message, time.Duration) error { return nil }

// Sealer is a seal.Sealer for tests. It binds a value to its place and obscures it from text
// searches, without encryption.
type Sealer struct{}

// Seal implements seal.Sealer.
func (Sealer) Seal(_ context.Context, b seal.Binding, plain []byte) ([]byte, error) {
	return mirror(fmt.Appendf(nil, "%+v|%s", b, plain)), nil
}

// Open implements seal.Sealer.
func (Sealer) Open(_ context.Context, b seal.Binding, sealed []byte) ([]byte, error) {
	plain, ok := bytes.CutPrefix(mirror(sealed), fmt.Appendf(nil, "%+v|", b))
	if !ok {
		return nil, seal.ErrRefused
	}
	return plain, nil
}

func mirror(b []byte) []byte {
	out := make([]byte, len(b))
	for i := range b {
		out[i] = b[i] ^ 0x5a
	}
	return out
}
