package webhooks

import (
	"context"
	"flag"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"
	"time"

	standardwebhooks "github.com/standard-webhooks/standard-webhooks/libraries/go"

	"gateway/shared/admin"
	"gateway/shared/app/notices"
	"gateway/shared/egress"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	chief = admintest.AdminKey
	key   = admintest.WorkspaceA
	good  = `{"name":"Ours","url":"https://hooks.example.com/in","events":["api_key.rotated"],"description":"d"}`
)

// installation is a House with the worker of notices.
type installation struct {
	*admintest.Installation
	worker *notice.Worker
	mu     sync.Mutex
	ahead  time.Duration
}

func (h *installation) now() time.Time {
	h.mu.Lock()
	defer h.mu.Unlock()
	return time.Now().Add(h.ahead)
}

func (h *installation) later(d time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.ahead += d
}

func newInstallation(t *testing.T) *installation {
	t.Helper()
	p, err := egress.ParseAllow("127.0.0.0/8")
	if err != nil {
		t.Fatal(err)
	}
	via := egress.New(p, egress.Options{})
	t.Cleanup(func() { egress.CloseIdle(via) })
	h := &installation{}
	var sealer seal.Sealer
	h.Installation = admintest.Build(t, func(d admin.Deps) []admin.Family {
		sealer = d.Sealer
		return []admin.Family{New(Deps{CheckURL: p.CheckURL, Store: d.Resources.Store(), Now: h.now})}
	})
	h.worker = &notice.Worker{Store: h.Store, Directory: &notices.Directory{Resources: resource.New(h.Store, resource.Clock(h.now)), Sealer: sealer}, Transport: via, Now: h.now}
	return h
}

func (h *installation) run(t *testing.T) {
	t.Helper()
	if err := h.worker.Run(context.Background()); err != nil {
		t.Fatal(err)
	}
}

func (h *installation) raise(t *testing.T, e notice.Event) {
	t.Helper()
	e.Org = admintest.Org
	if err := notice.Raise(context.Background(), h.Store, e, h.now()); err != nil {
		t.Fatal(err)
	}
}

// receiver records the messages that it gets.
type receiver struct {
	*httptest.Server
	mu     sync.Mutex
	sent   []*http.Request
	bodies []string
	status int
}

func newReceiver(t *testing.T) *receiver {
	r := &receiver{status: 200}
	r.Server = httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		var b strings.Builder
		buf := make([]byte, 4096)
		for {
			n, err := req.Body.Read(buf)
			b.Write(buf[:n])
			if err != nil {
				break
			}
		}
		r.mu.Lock()
		defer r.mu.Unlock()
		r.sent, r.bodies = append(r.sent, req), append(r.bodies, b.String())
		w.WriteHeader(r.status)
	}))
	t.Cleanup(r.Close)
	return r
}

// verified reports whether the last message is signed with a secret.
func (r *receiver) verified(t *testing.T, secret string) bool {
	t.Helper()
	r.mu.Lock()
	defer r.mu.Unlock()
	reader, err := standardwebhooks.NewWebhook(secret)
	if err != nil {
		t.Fatal(err)
	}
	n := len(r.sent) - 1
	return reader.VerifyIgnoringTimestamp([]byte(r.bodies[n]), r.sent[n].Header) == nil
}

func (r *receiver) count() int { r.mu.Lock(); defer r.mu.Unlock(); return len(r.sent) }

func TestTheFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	admintest.CheckFamily(t, h.Installation)
	id := h.Do("POST", path, key, good).OK().Text("id")
	for _, of := range []struct{ method, suffix, body string }{
		{"GET", "", ""}, {"PUT", "", `{"name":"x"}`}, {"POST", "/rotate-secret", ""}, {"POST", "/ping", ""}, {"GET", "/deliveries", ""}, {"DELETE", "", ""},
	} {
		for _, stranger := range []string{admintest.OtherAdmin, admintest.WorkspaceB} {
			var body any
			if of.body != "" {
				body = of.body
			}
			missing := h.Do(of.method, path+"/3f0c2f4e-5a3c-4d0e-9b0a-2f6d1a7c9e11"+of.suffix, stranger, body)
			if there := h.Do(of.method, path+"/"+id+of.suffix, stranger, body); there.Comparable() != missing.Comparable() || there.Status != 404 {
				t.Errorf("%s %s: %s, of a missing one %s", of.method, of.suffix, there.Comparable(), missing.Comparable())
			}
		}
	}
	admintest.BadBodies(t, h.Installation, "POST", path, key, good)
	admintest.BadBodies(t, h.Installation, "PUT", path+"/"+id, key, `{"name":"x"}`)
}

func TestAnswersArePinned(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	id := h.Do("POST", path, chief, good).OK().Text("id")
	h.Golden(*update, "answers.txt", admintest.As(chief, "GET", path+"/"+id, ""), admintest.As(chief, "GET", path, ""), admintest.As(chief, "GET", path+"/"+id+"/deliveries", ""),
		admintest.As(chief, "PUT", path+"/"+id, `{"status":"disabled","events":null}`), admintest.As(chief, "GET", path+"/"+id, ""), admintest.As(chief, "GET", "/notices/mails", ""))
}

// is fails the test unless the response has a status.
func is(t *testing.T, status int, a admintest.Response) {
	t.Helper()
	if a.Status != status {
		t.Errorf("status %d, not %d: %s", a.Status, status, a.Body)
	}
}

// Events are sent to registered webhooks, signed so that the standard's library accepts them. A
// new secret signs immediately; the previous one signs for another day.
func TestDeliveriesAreSignedWithBothSecretsForADay(t *testing.T) {
	t.Parallel()
	h, in := newInstallation(t), newReceiver(t)
	made := h.Do("POST", path, key, fmt.Sprintf(`{"name":"n","url":%q}`, in.URL)).OK()
	id, first := made.Text("id"), made.Text("secret")
	send := func() {
		t.Helper()
		n := in.count()
		h.Do("POST", path+"/"+id+"/ping", key, nil).OK()
		h.run(t)
		if in.count() != n+1 {
			t.Fatalf("%d were sent, not %d", in.count(), n+1)
		}
	}
	send()
	if !in.verified(t, first) {
		t.Error("the signature is not that of the secret")
	}
	second := h.Do("POST", path+"/"+id+"/rotate-secret", key, nil).OK().Text("secret")
	is(t, 409, h.Do("POST", path+"/"+id+"/rotate-secret", key, nil))
	send()
	if first == second || !in.verified(t, first) || !in.verified(t, second) {
		t.Error("both secrets should sign")
	}
	h.later(notices.Overlap)
	send()
	if in.verified(t, first) || !in.verified(t, second) {
		t.Error("a day later only the new secret should sign")
	}
	read := h.Do("GET", path+"/"+id, key, nil).OK()
	if strings.Contains(string(read.Body), second) || strings.Contains(string(read.Body), first) {
		t.Error("a secret is read back")
	}
}

func TestTheLogListsDeliveriesAndResendsThem(t *testing.T) {
	t.Parallel()
	h, in := newInstallation(t), newReceiver(t)
	in.status = 500
	body := fmt.Sprintf(`{"name":"n","url":%q,"events":["budget.exhausted"]}`, in.URL)
	id := h.Do("POST", path, key, body).OK().Text("id")
	above := h.Do("POST", path, chief, body).OK().Text("id")
	h.raise(t, notice.Event{Type: notice.BudgetExhausted, Workspace: h.One, Summary: "over", Data: map[string]string{"limit": "10"}})
	h.raise(t, notice.Event{Type: notice.BudgetExhausted, Workspace: h.Two, Summary: "elsewhere"})
	h.raise(t, notice.Event{Type: notice.KeyExpired, Workspace: h.One, Summary: "not asked for"})
	h.run(t)
	of := path + "/" + id + "/deliveries"
	list := h.Do("GET", of+"?status=pending", key, nil).OK()
	one := list.At("data", "0", "id").(string)
	if list.At("data", "0", "response_status") != 500.0 || strings.Count(string(list.Body), `"delivery"`) != 1 {
		t.Fatalf("%s", list.Body)
	}
	if all := h.Do("GET", path+"/"+above+"/deliveries", chief, nil).OK(); strings.Count(string(all.Body), `"delivery"`) != 2 {
		t.Errorf("the organization's webhook got %s", all.Body)
	}
	h.later(time.Second)
	h.Do("POST", of+"/"+one+"/redeliver", key, nil).OK()        // it waited
	is(t, 409, h.Do("POST", of+"/"+one+"/redeliver", key, nil)) // it is due
	is(t, 404, h.Do("GET", path+"/"+above+"/deliveries/"+one, chief, nil))
	for range 12 {
		h.later(24 * time.Hour)
		h.run(t)
	}
	d := h.Do("GET", of+"/"+one, key, nil).OK()
	if d.At("status") != "failed" || d.At("payload", "data", "limit") != "10" || d.At("payload", "type") != "budget.exhausted" || d.At("attempts_count") != 11.0 {
		t.Fatalf("%s", d.Body)
	}
	in.status = 204
	h.Do("POST", of+"/"+one+"/redeliver", key, nil).OK()
	h.run(t)
	if d := h.Do("GET", of+"/"+one, key, nil).OK(); d.At("status") != "delivered" || d.At("response_status") != 204.0 {
		t.Errorf("%s", d.Body)
	}
	is(t, 400, h.Do("GET", of+"?cursor=nonsense", key, nil))
	is(t, 400, h.Do("GET", of+"?page_size=0", key, nil))
	is(t, 404, h.Do("GET", of+"/nothing", key, nil))
}

func TestGoneReceiverIsDisabledAndCanBeEnabled(t *testing.T) {
	t.Parallel()
	h, in := newInstallation(t), newReceiver(t)
	in.status = http.StatusGone
	id := h.Do("POST", path, key, fmt.Sprintf(`{"name":"n","url":%q}`, in.URL)).OK().Text("id")
	h.raise(t, notice.Event{Type: notice.KeyRotated, Workspace: h.One, Summary: "rotated"})
	h.run(t)
	if w := h.Do("GET", path+"/"+id, key, nil).OK(); w.At("status") != "disabled" || w.At("disabled_reason") == nil {
		t.Fatalf("%s", w.Body)
	}
	h.Do("PUT", path+"/"+id, key, `{"status":"active"}`).OK()
	in.status = 200
	h.raise(t, notice.Event{Type: notice.KeyRotated, Workspace: h.One, Summary: "rotated"})
	h.run(t)
	if w := h.Do("GET", path+"/"+id, key, nil).OK(); w.At("status") != "active" || w.At("disabled_reason") != nil || in.count() != 2 {
		t.Errorf("%s, %d sent", w.Body, in.count())
	}
}

// The guarded dialer applies to every webhook: an address that was stored before a rule, or
// that resolves to an address inside, is not called.
func TestAddressesInsideAreNotCalled(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	for _, url := range []string{"http://169.254.169.254/latest", "https://10.0.0.1/x", "ftp://example.com", "https://user:pass@example.com/", "nonsense"} {
		is(t, 400, h.Do("POST", path, key, fmt.Sprintf(`{"name":"n","url":%q}`, url)))
	}
	id := h.Do("POST", path, key, `{"name":"n","url":"https://hooks.example.com/"}`).OK().Text("id")
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error {
		rec, _, err := tx.Get(sc, notices.KindWebhook, id)
		if err != nil {
			return err
		}
		rec.Body = []byte(strings.Replace(string(rec.Body), "https://hooks.example.com/", "http://10.0.0.1/", 1))
		return tx.Update(&rec)
	})
	if err != nil {
		t.Fatal(err)
	}
	h.Do("POST", path+"/"+id+"/ping", key, nil).OK()
	h.run(t)
	if list := h.Do("GET", path+"/"+id+"/deliveries", key, nil).OK(); list.At("data", "0", "status") != "pending" || list.At("data", "0", "response_status") != nil {
		t.Errorf("%s", list.Body)
	}
}

func TestThereIsABoundOfWebhooks(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	for range maxWebhooks {
		h.Do("POST", path, key, good).OK()
	}
	is(t, 409, h.Do("POST", path, key, good))
	h.Do("POST", path, chief, good).OK()
}
