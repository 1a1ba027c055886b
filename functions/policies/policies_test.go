package policies

import (
	"context"
	"flag"
	"net/url"
	"strings"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/ledger"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

var update = flag.Bool("update", false, "rewrite the golden files")

const (
	key   = admintest.WorkspaceA
	usage = "/policies/usage-limits"
	rates = "/policies/rate-limits"

	usageBody = `{"name":"U","conditions":[{"key":"metadata.team","value":"*"}],"group_by":[{"key":"metadata.team"}],"type":"requests","credit_limit":10,"alert_threshold":5,"periodic_reset":"weekly"}`
	rateBody  = `{"name":"R","conditions":[{"key":"api_key","value":"*"}],"group_by":[{"key":"api_key"}],"type":"requests","unit":"rpm","value":5}`
)

func newInstallation(t *testing.T) (*admintest.Installation, *ledger.Ledger) {
	t.Helper()
	var l *ledger.Ledger
	h := admintest.Build(t, func(d admin.Deps) []admin.Family {
		l = ledger.New(d.Resources.Store(), time.Now, ledger.Hooks{})
		return []admin.Family{New(l)}
	})
	return h, l
}

func TestTheFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	admintest.CheckFamily(t, h)
	for path, body := range map[string]string{usage: usageBody, rates: rateBody} {
		id := h.Do("POST", path, key, body).OK().Text("id")
		for _, method := range []string{"GET", "PUT", "DELETE"} {
			var b any
			if method == "PUT" {
				b = `{"name":"x"}`
			}
			admintest.ForeignIsMissing(t, h, method, path, id, b)
		}
		admintest.BadBodies(t, h, "POST", path, key, body)
		admintest.BadBodies(t, h, "PUT", path+"/"+id, key, `{"name":"x"}`)
		if n := h.Do("GET", path, key, nil).OK().At("total"); n != 1.0 {
			t.Errorf("%s: %v", path, n)
		}
	}
}

func TestAnswersArePinned(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	u, r := h.Do("POST", usage, key, usageBody).OK().Text("id"), h.Do("POST", rates, key, rateBody).OK().Text("id")
	h.Golden(*update, "answers.txt", admintest.As(key, "GET", usage+"/"+u+"?include_usage=true", ""), admintest.As(key, "GET", usage, ""), admintest.As(key, "GET", rates+"/"+r, ""),
		admintest.As(key, "POST", rates, `{"conditions":[{"key":"mcp_tool","value":["a","b"],"excludes":"c"}],"target":"mcp_tools","type":"requests","unit":"rpw","value":1}`), admintest.As(key, "GET", rates+"?target=mcp_tools", ""))
}

func TestPoliciesAreCheckedWhenSaved(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	replaced := func(body string, members ...string) string {
		for i := 0; i < len(members); i += 2 {
			a := strings.LastIndex(body, `"`+members[i]+`":`)
			if a < 0 {
				body = strings.TrimSuffix(body, "}") + `,"` + members[i] + `":` + members[i+1] + "}"
				continue
			}
			end, depth := a+len(members[i])+3, 0
			for ; depth > 0 || body[end] != ',' && body[end] != '}'; end++ {
				switch body[end] {
				case '[', '{':
					depth++
				case ']', '}':
					depth--
				}
			}
			body = body[:a] + `"` + members[i] + `":` + members[i+1] + body[end:]
		}
		return body
	}
	for _, c := range []struct{ path, body, members, field string }{
		{usage, usageBody, `conditions|[]`, "conditions"}, {usage, usageBody, `conditions|null`, "conditions"}, {usage, usageBody, `conditions|{}`, "conditions"}, {usage, usageBody, `conditions|["x"]`, "conditions[0]"},
		{usage, usageBody, `conditions|[{"key":"nothing","value":"x"}]`, "conditions[0].key"}, {usage, usageBody, `conditions|[{"key":"api_key"}]`, "conditions[0].value"},
		{usage, usageBody, `conditions|[{"value":"x"}]`, "conditions[0].key"}, {usage, usageBody, `conditions|[{"key":5,"value":"x"}]`, "conditions[0].key"}, {usage, usageBody, `conditions|[{"key":"api_key","value":5}]`, "conditions[0].value"},
		{usage, usageBody, `conditions|[{"key":"api_key","value":[null]}]`, "conditions[0].value"}, {usage, usageBody, `conditions|[{"key":"api_key","value":[]}]`, "conditions[0].value"},
		{usage, usageBody, `conditions|[{"key":"api_key","value":""}]`, "conditions[0].value"}, {usage, usageBody, `conditions|[{"key":"api_key","value":"*","excludes":7}]`, "conditions[0].excludes"},
		{usage, usageBody, `conditions|[{"key":"api_key","value":"*","more":7}]`, "conditions[0].more"}, {usage, usageBody, `conditions|[{"key":"metadata.","value":"*"}]`, "conditions[0].key"},
		{usage, usageBody, `conditions|[{"key":"model","value":["@a/b","gpt-4o"]}]`, "conditions[0].value[1]"}, {usage, usageBody, `conditions|[{"key":"endpoint_type","value":"embed"}]`, "conditions[0].key"},
		{usage, usageBody, `conditions|[{"key":"mcp_tool","value":"x"}]`, "conditions[0].key"}, {usage, usageBody, `group_by|[]`, "group_by"}, {usage, usageBody, `group_by|[{"key":"api_key"},{"key":"api_key"}]`, "group_by[1].key"},
		{usage, usageBody, `group_by|[{"key":"x"}]`, "group_by[0].key"}, {usage, usageBody, `group_by|["api_key"]`, "group_by[0]"}, {usage, usageBody, `type|"rubles"`, "type"}, {usage, usageBody, `credit_limit|0`, "credit_limit"},
		{usage, usageBody, `credit_limit|null`, "credit_limit"}, {usage, usageBody, `alert_threshold|10`, "alert_threshold"}, {usage, usageBody, `periodic_reset_days|5`, "periodic_reset_days"}, {usage, usageBody, `name|5`, "name"},
		{usage, usageBody, `description|"` + strings.Repeat("d", 501) + `"`, "description"}, {usage, usageBody, `name|"` + strings.Repeat("n", 256) + `"`, "name"},
		{rates, rateBody, `type|"cost"`, "type"}, {rates, rateBody, `unit|"rps"`, "unit"}, {rates, rateBody, `unit|"tpm"`, "unit"}, {rates, rateBody, `value|0`, "value"}, {rates, rateBody, `value|1.5`, "value"}, {rates, rateBody, `target|"gpu"`, "target"},
		{rates, rateBody, `target|"mcp_tools"|conditions|[{"key":"model","value":"*"}]`, "conditions[0].key"}, {rates, rateBody, `conditions|[{"key":"mcp_server","value":"*"}]`, "conditions[0].key"}, {rates, rateBody, `group_by|[]`, "group_by"},
	} {
		h.Do("POST", c.path, key, replaced(c.body, strings.Split(c.members, "|")...)).RequireFault(400, "AB01", c.field)
	}
	for _, c := range []struct{ path, body, members string }{
		{usage, usageBody, `conditions|[{"key":"model","value":["@a/b","@a/*","*"],"excludes":["@a/c"]}]`}, {usage, usageBody, `type|"cost"|credit_limit|1.25|alert_threshold|null`},
		{rates, rateBody, `conditions|[{"key":"endpoint_type","value":["chatComplete","embed"]}]`}, {rates, rateBody, `target|"mcp_tools"|conditions|[{"key":"mcp_server","value":"a"}]|group_by|[]`}, {rates, rateBody, `name|null`},
	} {
		h.Do("POST", c.path, key, replaced(c.body, strings.Split(c.members, "|")...)).OK()
	}
}

func TestWhatCanChange(t *testing.T) {
	t.Parallel()
	h, _ := newInstallation(t)
	u, r := usage+"/"+h.Do("POST", usage, key, usageBody).OK().Text("id"), rates+"/"+h.Do("POST", rates, key, rateBody).OK().Text("id")
	for _, c := range []struct{ at, body, field string }{
		{u, `{"type":"cost"}`, "type"}, {u, `{"group_by":[{"key":"api_key"}]}`, "group_by"}, {r, `{"type":"tokens"}`, "type"}, {r, `{"target":"mcp_tools"}`, "target"}, {r, `{"group_by":[{"key":"provider"}]}`, "group_by"}, {u, `{}`, ""},
	} {
		h.Do("PUT", c.at, key, c.body).RequireFault(400, "AB01", c.field)
	}
	h.Do("PUT", u, key, `{"credit_limit":20,"conditions":[{"key":"api_key","value":"a"}],"name":null}`).OK()
	if got := h.Do("GET", u, key, nil).OK(); got.At("credit_limit") != 20.0 || got.Text("conditions", "0", "value") != "a" || got.At("name") != nil || got.Text("group_by", "0", "key") != "metadata.team" {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", r, key, `{"value":9,"unit":"rph"}`).OK()
	if n := h.Do("GET", rates+"?unit=rph&type=requests", key, nil).OK().At("total"); n != 1.0 {
		t.Errorf("%v", n)
	}
	for _, at := range []string{u, r} {
		h.Do("DELETE", at, key, nil).OK()
		h.Do("DELETE", at, key, nil).RequireFault(404, "AB08", "")
		h.Do("GET", at, key, nil).RequireFault(404, "AB08", "")
		if got := h.Do("GET", at+"?status=archived", key, nil).OK(); got.Text("status") != "archived" {
			t.Errorf("%s", got.Body)
		}
		h.Do("PUT", at, key, `{"status":"active"}`).OK()
		h.Do("GET", at+"?status=archived", key, nil).RequireFault(404, "AB08", "")
		h.Do("GET", at, key, nil).OK()
	}
}

func TestCountersAreListedAndReset(t *testing.T) {
	t.Parallel()
	h, l := newInstallation(t)
	id := h.Do("POST", usage, key, usageBody).OK().Text("id")
	at := usage + "/" + id
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	rec, _, err := h.Resources.Get(context.Background(), sc, ledger.KindUsagePolicy, id)
	if err != nil {
		t.Fatal(err)
	}
	policy, err := ledger.DecodePolicy(rec)
	if err != nil {
		t.Fatal(err)
	}
	spend := func(bucket string, n int) {
		t.Helper()
		for range n {
			s := policy.SubjectOf(sc, id, policy.Name, policy.Revision, bucket)
			res, err := l.Reserve(context.Background(), resource.NewID(), []*ledger.Subject{s}, ledger.Bound{})
			if err != nil {
				t.Fatal(err)
			}
			if err := res.Settle(context.Background(), 0, 0); err != nil {
				t.Fatal(err)
			}
		}
	}
	spend("metadata.team:red", 3)
	spend("metadata.team:blue/green", 10)
	list := h.Do("GET", at+"/entities", key, nil).OK()
	if list.At("total") != 2.0 {
		t.Fatalf("%s", list.Body)
	}
	if got := h.Do("GET", at+"/entities?search=red", key, nil).OK(); got.At("total") != 1.0 || got.At("data", "0", "current_usage") != 3.0 {
		t.Errorf("%s", got.Body)
	}
	full := h.Do("GET", at+"/entities?status=exhausted", key, nil).OK()
	if full.At("total") != 1.0 || full.Text("data", "0", "value_key") != "metadata.team:blue/green" {
		t.Errorf("%s", full.Body)
	}
	if got := h.Do("GET", at+"?include_usage=true", key, nil).OK(); got.At(usageMap, "metadata.team:red", "current_usage") != 3.0 || got.Text(usageMap, "metadata.team:blue/green", "status") != "exhausted" {
		t.Errorf("%s", got.Body)
	}
	h.Do("PUT", at+"/entities/"+url.PathEscape(full.Text("data", "0", "id"))+"/reset", key, nil).OK()
	h.Do("PUT", at, key, `{"reset_usage_for_value":"metadata.team:red"}`).OK()
	for i := range 2 {
		if got := h.Do("GET", at+"/entities", key, nil).OK(); got.At("data", string(rune('0'+i)), "current_usage") != 0.0 || got.Text("data", "0", "status") != "active" {
			t.Errorf("%s", got.Body)
		}
	}
	for _, none := range []string{"nothing", "!!", entityID("metadata.team:yellow")} {
		h.Do("PUT", at+"/entities/"+none+"/reset", key, nil).RequireFault(404, "AB08", "entityId")
	}
	h.Do("GET", at+"/entities", admintest.WorkspaceB, nil).RequireFault(404, "AB08", "")
}
