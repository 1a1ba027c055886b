package usagequery_test

import (
	"encoding/json"
	"net/url"
	"strings"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/admin/usagequery"
	"gateway/shared/testkit/admintest"
)

// echo is a route that responds with what it understood.
func echo() admin.Family {
	return admin.Family{Name: "echo", Doc: "Echo.", Routes: []admin.Route{{
		Method: "GET", Path: "/echo", Name: "echo", Doc: "Echo.", Scopes: []string{"analytics.view"}, Level: admin.InEither,
		Query: append(usagequery.Fields(true), usagequery.PageFields(50, 1000)...),
		Do: func(c *admin.Call) (any, error) {
			sc, err := usagequery.Scope(c)
			if err != nil {
				return nil, err
			}
			f, err := usagequery.TimedFilter(c.Query)
			if err != nil {
				return nil, err
			}
			offset, limit := usagequery.Page(c.Query, 50)
			return map[string]any{"org": sc.Org, "workspace": sc.Workspace, "filter": f, "from": f.From.Format(time.RFC3339), "offset": offset, "limit": limit}, nil
		},
	}}}
}

const times = "time_of_generation_min=2026-03-10T00:00:00+05:30&time_of_generation_max=2026-03-11T00:00:00Z"

func TestFamilyChecks(t *testing.T) { admintest.CheckFamily(t, admintest.New(t, echo())) }

func TestQueryBecomesAFilter(t *testing.T) {
	h := admintest.New(t, echo())
	q := times + "&total_units_min=1&total_units_max=2&prompt_token_min=3&completion_token_max=4&cost_min=0.15&cost_max=20.5" +
		"&status_code=401,%20403&virtual_keys=@a,b&configs=c&prompt_slug=p&api_key_ids=k1,k2&ai_org=openai&ai_model=m&ai_org_model=openai__gpt__4,x__y" +
		"&cache_status=HIT,SEMANTIC%20HIT&trace_id=t&span_id=s&metadata=" + url.QueryEscape(`{"a":"b","_user":"u"}`) + "&current_page=3&page_size=20"
	a := h.Do("GET", "/echo?"+q, admintest.WorkspaceA, nil).OK()
	for path, want := range map[string]string{
		"from": `"2026-03-10T00:00:00+05:30"`, "offset": "60", "limit": "20", "workspace": `"` + h.One + `"`,
		"filter.TotalTokens": `{"Max":2,"Min":1}`, "filter.PromptTokens": `{"Max":null,"Min":3}`, "filter.CompletionTokens": `{"Max":4,"Min":null}`,
		"filter.Cost": `{"Max":205000000,"Min":1500000}`, "filter.Statuses": `[401,403]`, "filter.ProviderSlugs": `["a","b"]`, "filter.Configs": `["c"]`,
		"filter.Prompts": `["p"]`, "filter.Keys": `["k1","k2"]`, "filter.Providers": `["openai"]`, "filter.Models": `["m"]`,
		"filter.ProviderModel": `[{"Model":"gpt__4","Provider":"openai"},{"Model":"y","Provider":"x"}]`, "filter.CacheStatuses": `["HIT","SEMANTIC HIT"]`,
		"filter.TraceIDs": `["t"]`, "filter.SpanIDs": `["s"]`, "filter.Metadata": `{"_user":"u","a":"b"}`,
	} {
		got, err := json.Marshal(a.At(strings.Split(path, ".")...))
		if err != nil || string(got) != want {
			t.Errorf("%s = %s, want %s", path, got, want)
		}
	}
}

func TestBadQueriesNameTheirParameter(t *testing.T) {
	h := admintest.New(t, echo())
	long := strings.Repeat("x", 300)
	for query, field := range map[string]string{
		"": "time_of_generation_min", "time_of_generation_min=2026-03-10T00:00:00Z": "time_of_generation_max",
		"time_of_generation_max=2026-03-10T00:00:00Z": "time_of_generation_min", "time_of_generation_min=yesterday&" + times[len("time_of_generation_min=2026-03-10T00:00:00+05:30&"):]: "time_of_generation_min",
		"time_of_generation_min=&time_of_generation_max=":                                         "time_of_generation_min",
		"time_of_generation_min=2026-03-11T00:00:00Z&time_of_generation_max=2026-03-10T00:00:00Z": "time_of_generation_max",
		"time_of_generation_min=2006-03-11T00:00:00Z&time_of_generation_max=2026-03-10T00:00:00Z": "time_of_generation_max",
		times + "&time_of_generation_min=2026-03-10T00:00:00Z":                                    "time_of_generation_min",
		times + "&total_units_min=-1":                                                             "total_units_min",
		times + "&total_units_max=1.5":                                                            "total_units_max",
		times + "&total_units_max=99999999999999999999":                                           "total_units_max",
		times + "&total_units_max=9007199254740993":                                               "total_units_max", // 2^53 + 1, one float64 with 2^53
		times + "&prompt_token_min=x":                                                             "prompt_token_min",
		times + "&completion_token_max=0x10":                                                      "completion_token_max",
		times + "&cost_min=-0.5":                                                                  "cost_min",
		times + "&cost_min=NaN":                                                                   "cost_min",
		times + "&cost_max=1e400":                                                                 "cost_max",
		times + "&cost_max=1e12":                                                                  "cost_max",
		times + "&cost_min=2&cost_max=1":                                                          "cost_min",
		times + "&weighted_feedback_min=-11":                                                      "weighted_feedback_min",
		times + "&weighted_feedback_max=10.5":                                                     "weighted_feedback_max",
		times + "&weighted_feedback_min=3&weighted_feedback_max=2":                                "weighted_feedback_min",
		times + "&status_code=ok":                                                                 "status_code",
		times + "&status_code=200,,401":                                                           "status_code",
		times + "&status_code=600":                                                                "status_code",
		times + "&status_code=0200":                                                               "status_code",
		times + "&virtual_keys=a," + long:                                                         "virtual_keys",
		times + "&api_key_ids=" + strings.Repeat("k,", 100) + "k":                                 "api_key_ids",
		times + "&ai_org_model=gpt-4o":                                                            "ai_org_model",
		times + "&ai_org_model=__gpt":                                                             "ai_org_model",
		times + "&cache_status=warm":                                                              "cache_status",
		times + "&metadata=a":                                                                     "metadata",
		times + "&metadata=[]":                                                                    "metadata",
		times + "&metadata=" + url.QueryEscape(`{"a":1}`):                                         "metadata.a",
		times + "&metadata=" + url.QueryEscape(`{"a":"1","a":"2"}`):                               "metadata",
		times + "&metadata=" + url.QueryEscape(`{"":"x"}`):                                        "metadata",
		times + "&current_page=-1":                                                                "current_page",
		times + "&current_page=x":                                                                 "current_page",
		times + "&page_size=1001":                                                                 "page_size",
		times + "&trace_id=%ff":                                                                   "trace_id",
		times + "&workspace_slug=" + long:                                                         "workspace_slug",
	} {
		h.Do("GET", "/echo?"+query, admintest.WorkspaceA, nil).RequireFault(400, "AB01", field)
	}
	h.Do("GET", "/echo?%zz", admintest.WorkspaceA, nil).RequireFault(400, "AB01", "")
}

func TestScopeIsTheCallersReach(t *testing.T) {
	h := admintest.New(t, echo())
	for _, c := range []struct{ key, query, workspace string }{
		{admintest.WorkspaceA, "", h.One},
		{admintest.WorkspaceA, "&workspace_slug=" + admintest.TwoSlug, h.One},
		{admintest.WorkspaceA, "&workspace_id=" + admintest.OneSlug, h.One},
		{admintest.AdminKey, "", ""},
		{admintest.AdminKey, "&workspace_slug=" + admintest.TwoSlug, h.Two},
		{admintest.AdminKey, "&workspace_slug=" + h.Two, h.Two},
		{admintest.AdminKey, "&workspace_id=" + admintest.TwoSlug, h.Two},
		{admintest.AdminKey, "&workspace_slug=" + admintest.TwoSlug + "&workspace_id=" + h.Two, h.Two},
	} {
		if got := h.Do("GET", "/echo?"+times+c.query, c.key, nil).OK().Text("workspace"); got != c.workspace {
			t.Errorf("%s with %q looks in %q, want %q", c.key, c.query, got, c.workspace)
		}
	}
	missing := h.Do("GET", "/echo?"+times+"&workspace_slug=ws-none", admintest.AdminKey, nil).RequireFault(403, "AB03", "")
	for _, slug := range []string{admintest.ThreeSlug, h.Three} {
		if got := h.Do("GET", "/echo?"+times+"&workspace_slug="+slug, admintest.AdminKey, nil); got.Comparable() != missing.Comparable() {
			t.Errorf("a foreign workspace is told from a missing one: %s", got.Body)
		}
	}
	h.Do("GET", "/echo?"+times+"&workspace_slug="+h.Two+"&workspace_id="+h.One, admintest.AdminKey, nil).RequireFault(400, "AB01", "workspace_slug")
}
