package admin_test

import (
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/testkit/admintest"
)

// repeating is an installation that recognizes repeated calls.
func repeating(t *testing.T) *admintest.Installation {
	h := newInstallation(t)
	h.Repeats.Store(true)
	return h
}

// keyed sends a call with an idempotency key.
func keyed(h *admintest.Installation, path, caller, key, body string) admintest.Response {
	r := httptest.NewRequest("POST", "/v1"+path, strings.NewReader(body))
	r.RemoteAddr = "192.0.2.7:4711"
	r.Header.Set("x-gateway-api-key", caller)
	r.Header.Set("content-type", "application/json")
	r.Header.Set("idempotency-key", key)
	return h.Send(r)
}

func gadgetCount(h *admintest.Installation) float64 {
	n, _ := h.Do("GET", "/gadgets", admintest.WorkspaceA, nil).OK().At("total").(float64)
	return n
}

func TestRepeatedCreationsReturnTheFirstAnswer(t *testing.T) {
	h := repeating(t)
	make := func(key, body string) admintest.Response { return h.Do("POST", "/gadgets", key, body) }
	first := make(admintest.WorkspaceA, `{"name":"a"}`).OK()
	again := make(admintest.WorkspaceA, `{"name":"a"}`).OK()
	if string(first.Body) != string(again.Body) || again.Header.Get("Idempotent-Replayed") != "true" || gadgetCount(h) != 1 {
		t.Errorf("%s, then %s", first.Body, again.Body)
	}
	records := 0
	for _, e := range h.Audit() {
		if e.ResourceID == first.Text("id") {
			records++
		}
	}
	if records != 1 {
		t.Errorf("%d audit records", records)
	}
	make(admintest.WorkspaceA, `{"name":"b"}`).OK()
	make(admintest.WorkspaceB, `{"name":"a"}`).OK()
	if other := make(admintest.AdminKey, `{"name":"a","workspace_id":"`+h.One+`"}`).OK(); other.Text("id") == first.Text("id") {
		t.Error("another caller gets the answer")
	}
	if gadgetCount(h) != 3 {
		t.Errorf("%v gadgets", gadgetCount(h))
	}
	for name, change := range map[string]func(id string){
		"changed": func(id string) { h.Do("PUT", "/gadgets/"+id, admintest.WorkspaceA, `{"size":2}`).OK() },
		"deleted": func(id string) { h.Do("DELETE", "/gadgets/"+id, admintest.WorkspaceA, nil).OK() },
	} {
		was := make(admintest.WorkspaceA, `{"name":"`+name+`"}`).OK().Text("id")
		change(was)
		if got := make(admintest.WorkspaceA, `{"name":"`+name+`"}`).OK(); got.Text("id") == was {
			t.Errorf("a %s gadget is returned again", name)
		}
	}
	h.Repeats.Store(false)
	if got := make(admintest.WorkspaceA, `{"name":"a"}`).OK(); got.Text("id") == first.Text("id") {
		t.Error("recognized although it is off")
	}
}

func TestEqualParallelCreationsCreateOne(t *testing.T) {
	h := repeating(t)
	ids := make([]string, 50)
	var wg sync.WaitGroup
	for i := range ids {
		wg.Go(func() {
			if a := h.Do("POST", "/gadgets", admintest.WorkspaceA, `{"name":"parallel"}`); a.Status == 200 {
				ids[i] = a.Text("id")
			}
		})
	}
	wg.Wait()
	for _, id := range ids {
		if id == "" || id != ids[0] {
			t.Fatalf("ids %q", ids)
		}
	}
	if gadgetCount(h) != 1 {
		t.Errorf("%v gadgets", gadgetCount(h))
	}
}

func TestIdempotencyKeysNameACall(t *testing.T) {
	h := newInstallation(t)
	first := keyed(h, "/gadgets", admintest.WorkspaceA, "k-1", `{"name":"a"}`).OK()
	h.Do("PUT", "/gadgets/"+first.Text("id"), admintest.WorkspaceA, `{"size":2}`).OK()
	if again := keyed(h, "/gadgets", admintest.WorkspaceA, "k-1", `{"name":"a"}`).OK(); again.Text("id") != first.Text("id") {
		t.Errorf("%s", again.Body)
	}
	keyed(h, "/gadgets", admintest.WorkspaceA, "k-1", `{"name":"b"}`).RequireFault(409, "AB07", "idempotency-key")
	if other := keyed(h, "/gadgets", admintest.WorkspaceA, "k-2", `{"name":"a"}`).OK(); other.Text("id") == first.Text("id") {
		t.Error("another key is the same call")
	}
	for _, bad := range []string{"", "a b", strings.Repeat("k", 256), "ü"} {
		keyed(h, "/gadgets", admintest.WorkspaceA, bad, `{"name":"c"}`).RequireFault(400, "AB01", "idempotency-key")
	}
	keyed(h, "/gadgets", admintest.WorkspaceA, "k-3", `{"name":"a","size":99}`).RequireFault(400, "AB01", "size")
	keyed(h, "/gadgets", admintest.WorkspaceA, "k-3", `{"name":"a","size":9}`).OK() // what was rejected does not count
}

// A call that made its change and failed afterwards is not made again.
func TestAnAnswerThatWasLostIsNamed(t *testing.T) {
	failing := true
	col := gadgets()
	col.Decorate = func(*admin.Call, []admin.Item[gadget], []admin.Members) error {
		if failing {
			return fault.New(fault.ServiceUnavailable, "", "down")
		}
		return nil
	}
	h := admintest.New(t, admin.Family{Name: "gadgets", Doc: "Gadgets.", Routes: col.Routes()})
	h.Repeats.Store(true)
	first := h.Do("POST", "/gadgets", admintest.WorkspaceA, `{"name":"lost"}`)
	if first.Status != 503 {
		t.Fatalf("%d %s", first.Status, first.Body)
	}
	failing = false
	list := h.Do("GET", "/gadgets", admintest.WorkspaceA, nil).OK()
	id := list.At("data").([]any)[0].(map[string]any)["id"].(string)
	a := h.Do("POST", "/gadgets", admintest.WorkspaceA, `{"name":"lost"}`)
	if a.RequireFault(409, "AB07", ""); !strings.Contains(string(a.Body), id) || gadgetCount(h) != 1 {
		t.Errorf("%s", a.Body)
	}
	h.Do("DELETE", "/gadgets/"+id, admintest.WorkspaceA, nil).OK()
	h.Do("POST", "/gadgets", admintest.WorkspaceA, `{"name":"lost"}`).OK()
}

// Calls that were stopped before they changed anything are made again.
func TestAFailedCreationIsMadeAgain(t *testing.T) {
	failing := true
	col := gadgets()
	col.Before = func(*admin.Call, *resource.Tx, *admin.Change[gadget]) error {
		if failing {
			panic("broken")
		}
		return nil
	}
	h := admintest.New(t, admin.Family{Name: "gadgets", Doc: "Gadgets.", Routes: col.Routes()})
	h.Repeats.Store(true)
	if a := h.Do("POST", "/gadgets", admintest.WorkspaceA, `{"name":"a"}`); a.Status != 500 {
		t.Fatalf("%d %s", a.Status, a.Body)
	}
	failing = false
	h.Do("POST", "/gadgets", admintest.WorkspaceA, `{"name":"a"}`).OK()
}
