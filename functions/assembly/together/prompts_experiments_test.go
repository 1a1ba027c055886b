package together_test

import (
	"fmt"
	"strings"
	"testing"

	"gateway/shared/testkit/admintest"
)

// withVersions makes a prompt of three versions, of which the first is published, and
// gives its path.
func (h *promptInstallation) withVersions() string {
	at := "/prompts/" + h.create("").OK().Text("id")
	for n := 2; n <= 3; n++ {
		h.Do("PUT", at, key, fmt.Sprintf(`{"patch":true,"model":"m%d"}`, n)).OK()
	}
	return at
}

const halves = `{"name":"Halves","variants":[{"version":1,"weight":50},{"version":2,"weight":50}]}`

func TestExperimentsStartStopAndEndWithAWinner(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	at := h.withVersions()
	made := h.Do("POST", at+"/experiments", key, halves).OK()
	if made.Text("status") != "draft" {
		t.Fatalf("%s", made.Body)
	}
	one := at + "/experiments/" + made.Text("id")
	other := at + "/experiments/" + h.Do("POST", at+"/experiments", key, halves).OK().Text("id")
	h.Do("POST", one+"/stop", key, nil).RequireFault(409, "AB07", "")
	h.Do("POST", one+"/promote", key, `{"version":2}`).RequireFault(409, "AB07", "")
	if got := h.Do("POST", one+"/start", key, nil).OK(); got.Text("status") != "running" {
		t.Errorf("%s", got.Body)
	}
	h.Do("POST", one+"/start", key, nil).RequireFault(409, "AB07", "")
	h.Do("POST", other+"/start", key, nil).RequireFault(409, "AB07", "")
	h.Do("DELETE", one, key, nil).RequireFault(409, "AB07", "")
	h.Do("PUT", one, key, `{"variants":[{"version":1,"weight":10},{"version":2,"weight":90}]}`).OK()
	h.Do("PUT", one, key, `{"variants":[{"version":1,"weight":10},{"version":3,"weight":90}]}`).RequireFault(400, "AB01", "variants")
	h.Do("PUT", one, key, `{"sticky_by":"team"}`).RequireFault(400, "AB01", "sticky_by")
	h.Do("PUT", at, key, `{"name":"Renamed"}`).OK() // the prompt retains its experiment
	h.Do("POST", other+"/start", key, nil).RequireFault(409, "AB07", "")

	h.Do("POST", one+"/promote", key, `{"version":3}`).RequireFault(400, "AB01", "version")
	if got := h.Do("POST", one+"/promote", key, `{"version":2}`).OK(); got.Text("status") != "stopped" {
		t.Errorf("%s", got.Body)
	}
	if got := h.Do("GET", at, key, nil).OK(); got.At("prompt_version") != 2.0 || got.Text("model") != "m2" {
		t.Errorf("the winner is not published: %s", got.Body)
	}
	got := h.Do("GET", one, key, nil).OK()
	if got.At("promoted_version") != 2.0 || got.At("started_at") == nil || got.At("stopped_at") == nil || got.At("variants", "1", "weight") != 90.0 {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", one, key, `{"variants":[{"version":1,"weight":50},{"version":2,"weight":50}]}`).RequireFault(400, "AB01", "variants")
	h.Do("POST", one+"/start", key, nil).RequireFault(409, "AB07", "")
	h.Do("POST", other+"/start", key, nil).OK()
	h.Do("POST", other+"/stop", key, nil).OK()
	list := h.Do("GET", at+"/experiments", key, nil).OK()
	if list.At("total") != 2.0 {
		t.Errorf("%s", list.Body)
	}
	h.Do("DELETE", one, key, nil).OK()
	h.Do("DELETE", at, key, nil).OK()
	h.Do("GET", other, key, nil).RequireFault(404, "AB08", "promptId")
}

func TestExperimentsAreTheirPrompts(t *testing.T) {
	t.Parallel()
	h := newPromptInstallation(t)
	at, elsewhere := h.withVersions(), h.withVersions()
	id := h.Do("POST", at+"/experiments", key, halves).OK().Text("id")
	h.Do("GET", elsewhere+"/experiments/"+id, key, nil).RequireFault(404, "AB08", "experimentId")
	h.Do("GET", at+"/experiments/"+id, admintest.WorkspaceB, nil).RequireFault(404, "AB08", "promptId")
	later := at + "/experiments/" + h.Do("POST", at+"/experiments", key, strings.Replace(halves, `"version":2`, `"version":4`, 1)).OK().Text("id")
	h.Do("POST", later+"/start", key, nil).RequireFault(409, "AB07", "variants[1].version")
	for _, c := range []struct{ body, field string }{
		{strings.Replace(halves, `"version":2`, `"version":1`, 1), "variants[1].version"},
		{`{"name":"x","variants":[{"version":1,"weight":1}]}`, "variants"}, {`{"name":"x"}`, "variants"}, {`{"variants":[{"version":1,"weight":1},{"version":2,"weight":1}]}`, "name"},
		{`{"name":"x","variants":[{"version":1,"weight":0},{"version":2,"weight":0}]}`, "variants"}, {`{"name":"x","variants":[{"version":1,"weight":1.5},{"version":2,"weight":1}]}`, "variants[0].weight"},
		{strings.Replace(halves, `"name"`, `"sticky_by":7,"name"`, 1), "sticky_by"},
	} {
		h.Do("POST", at+"/experiments", key, c.body).RequireFault(400, "AB01", c.field)
	}
	admintest.BadBodies(t, h.Installation, "POST", at+"/experiments", key, halves)
	admintest.BadBodies(t, h.Installation, "POST", at+"/experiments/"+id+"/promote", key, `{"version":1}`)
}
