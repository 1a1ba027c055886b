package auditlogs

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/santhosh-tekuri/jsonschema/v6"

	"gateway/shared/admin"
	"gateway/shared/audit"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

var noon = time.Date(2026, 3, 10, 12, 0, 0, 0, time.UTC)

const day = "start_time=2026-03-10T00:00:00Z&end_time=2026-03-10T23:59:59Z"

func newInstallation(t testing.TB) *admintest.Installation {
	return admintest.Build(t, func(d admin.Deps) []admin.Family {
		return []admin.Family{New(audit.NewReader(d.Resources.Store(), time.Now))}
	})
}

// record puts entries into an organization's log.
func record(t testing.TB, h *admintest.Installation, org string, entries ...audit.Entry) {
	t.Helper()
	for _, e := range entries {
		err := h.Resources.Change(context.Background(), store.Scope{Org: org}, func(tx *resource.Tx) error { return audit.Append(tx, e) })
		if err != nil {
			t.Fatal(err)
		}
	}
	h.Audit()
}

// made is the i-th entry: one a minute before noon.
func made(h *admintest.Installation, i int) audit.Entry {
	e := audit.Entry{
		Timestamp: noon.Add(-time.Duration(i) * time.Minute), Method: "POST", URI: fmt.Sprintf("/v1/configs/%d", i), RequestID: fmt.Sprint("req-", i), RequestBody: "{}", QueryParams: "{}", RequestHeaders: "{}",
		UserID: "key-1", UserType: audit.UserTypeAPIKey, WorkspaceID: h.One, StatusCode: 200, ResourceType: "configs", Action: audit.Create, ResourceID: "c", ClientIP: "192.0.2.1", Country: "DE",
	}
	if i%3 == 1 {
		e.Method, e.StatusCode, e.Action, e.WorkspaceID, e.URI = "DELETE", 409, audit.Delete, h.Two, "/v1/workspaces/x"
	}
	if i%3 == 2 {
		e.UserType, e.UserID, e.ClientIP, e.Country, e.ResourceType, e.Details = audit.UserTypeUser, "u", "192.0.2.9", "FR", "api_keys", map[string]string{"rotation_mode": "auto"}
	}
	return e
}

func TestTimesHaveMilliseconds(t *testing.T) {
	h := newInstallation(t)
	for i, at := range []time.Duration{0, 200 * time.Millisecond, 220 * time.Millisecond, 222 * time.Millisecond} {
		e := made(h, i)
		e.Timestamp = noon.Add(at)
		record(t, h, admintest.Org, e)
	}
	a := h.Do("GET", "/audit-logs?"+day, admintest.AdminKey, nil).OK()
	for i, want := range []string{"12:00:00.222Z", "12:00:00.220Z", "12:00:00.200Z", "12:00:00.000Z"} {
		if got := a.Text("records", fmt.Sprint(i), "timestamp"); got != "2026-03-10T"+want {
			t.Errorf("record %d: %s", i, got)
		}
	}
}

func TestFamilyChecks(t *testing.T) { admintest.CheckFamily(t, newInstallation(t)) }

func TestOnlyOrganisationKeysReadTheAuditLog(t *testing.T) {
	h := newInstallation(t)
	for _, key := range []string{admintest.WorkspaceA, admintest.WorkspaceB, admintest.MemberKey, admintest.ManagerKey, admintest.WsAdminKey} {
		for _, query := range []string{day, "", "start_time=x", day + "&workspace_id=" + h.One} {
			h.Do("GET", "/audit-logs?"+query, key, nil).RequireFault(403, "AB03", "")
		}
	}
	h.Do("GET", "/audit-logs?"+day+"&organisation_id="+admintest.OtherOrg, admintest.AdminKey, nil).RequireFault(403, "AB03", "")
	h.Do("GET", "/audit-logs?"+day+"&organisation_id="+admintest.Org, admintest.AdminKey, nil).OK()
}

func TestOrganisationsSeeTheirOwnRecords(t *testing.T) {
	h := newInstallation(t)
	record(t, h, admintest.Org, made(h, 0), made(h, 1))
	record(t, h, admintest.OtherOrg, made(h, 2))
	if got := h.Do("GET", "/audit-logs?"+day, admintest.AdminKey, nil).OK(); got.At("total") != 2.0 || got.Text("records", "0", "organisation_id") != admintest.Org {
		t.Errorf("own: %s", got.Body)
	}
	if got := h.Do("GET", "/audit-logs?"+day, admintest.OtherAdmin, nil).OK(); got.At("total") != 1.0 || got.Text("records", "0", "request_id") != "req-2" {
		t.Errorf("other: %s", got.Body)
	}
}

// requests are the request ids of a page.
func requests(a admintest.Response) (out []string) {
	for _, r := range a.At("records").([]any) {
		out = append(out, r.(map[string]any)["request_id"].(string))
	}
	return out
}

func TestFiltersMatchExactly(t *testing.T) {
	h := newInstallation(t)
	for i := range 9 {
		record(t, h, admintest.Org, made(h, i))
	}
	for query, want := range map[string]int{
		"": 9, "method=POST": 6, "method=DELETE": 3, "method=PUT": 0, "uri=/v1/configs": 6, "uri=/v1/configs/0": 1, "uri=configs": 0, "request_id=req-4": 1, "request_id=req": 0,
		"user_id=u": 3, "user_type=user": 3, "user_type=api_key": 6, "workspace_id=" + h.Two: 3, "workspace_id=" + admintest.TwoSlug: 3, "workspace_id=none": 0,
		"workspace_id=" + h.Three: 0, "response_status_code=409": 3, "resource_type=api_keys": 3, "action=delete": 3, "action=del": 0, "client_ip=192.0.2.9": 3, "country=FR": 3,
		"method=POST&user_type=user": 3, "method=DELETE&user_type=user": 0,
	} {
		if got := h.Do("GET", "/audit-logs?"+day+"&"+query, admintest.AdminKey, nil).OK(); got.At("total") != float64(want) || len(requests(got)) != want {
			t.Errorf("%q: %v, want %d", query, got.At("total"), want)
		}
	}
	for times, want := range map[string]int{
		"start_time=2026-03-10T17:28:00+05:30&end_time=2026-03-10T17:30:00+05:30": 3, "start_time=2026-03-10T11:58:00Z&end_time=2026-03-10T11:58:00Z": 1, "start_time=2026-03-10&end_time=2026-03-10": 9, "start_time=2026-03-09&end_time=2026-03-09": 0, "start_time=2026-03-10&end_time=2026-03-10T00:00:00Z": 0,
		"start_time=2020-01-01&end_time=2190-01-01": 9,
	} {
		if got := h.Do("GET", "/audit-logs?"+times, admintest.AdminKey, nil).OK().At("total"); got != float64(want) {
			t.Errorf("%q: %v, want %d", times, got, want)
		}
	}
}

func TestPagesAndCursorsGoOverAllRecordsNewestFirst(t *testing.T) {
	h := newInstallation(t)
	var want []string
	for i := range 23 {
		record(t, h, admintest.Org, made(h, i))
		want = append(want, fmt.Sprint("req-", i))
	}
	var byPage, byCursor []string
	for page := range 3 {
		a := h.Do("GET", fmt.Sprintf("/audit-logs?%s&page_size=10&current_page=%d", day, page), admintest.AdminKey, nil).OK()
		byPage = append(byPage, requests(a)...)
		if a.At("total") != 23.0 || (a.Text("next_cursor") == "") != (page == 2) {
			t.Errorf("page %d: %v %q", page, a.At("total"), a.Text("next_cursor"))
		}
	}
	for at := day + "&page_size=9"; at != ""; {
		a := h.Do("GET", "/audit-logs?"+at, admintest.AdminKey, nil).OK()
		byCursor = append(byCursor, requests(a)...)
		if at = ""; a.Text("next_cursor") != "" {
			at = day + "&page_size=9&cursor=" + url.QueryEscape(a.Text("next_cursor"))
		}
	}
	if !slices.Equal(byPage, want) || !slices.Equal(byCursor, want) {
		t.Errorf("by page   %v\nby cursor %v", byPage, byCursor)
	}
	if got := h.Do("GET", "/audit-logs?"+day+"&page_size=0", admintest.AdminKey, nil).OK(); got.At("total") != 23.0 || len(requests(got)) != 0 {
		t.Errorf("the total alone: %s", got.Body)
	}
}

func TestBadQueriesNameTheirParameter(t *testing.T) {
	h := newInstallation(t)
	for query, field := range map[string]string{
		"": "start_time", "start_time=2026-03-10": "end_time", "end_time=2026-03-10": "start_time", "start_time=x&end_time=2026-03-10": "start_time",
		"start_time=2026-03-11&end_time=2026-03-10": "end_time", day + "&start_time=2026-03-10": "start_time",
		day + "&method=GET": "method", day + "&method=post": "method", day + "&user_type=robot": "user_type", day + "&response_status_code=ok": "response_status_code",
		day + "&response_status_code=99": "response_status_code", day + "&response_status_code=600": "response_status_code", day + "&page_size=101": "page_size", day + "&page_size=-1": "page_size",
		day + "&page_size=x": "page_size", day + "&current_page=-1": "current_page", day + "&current_page=100": "current_page", day + "&current_page=10001&page_size=0": "current_page",
		day + "&cursor=x": "cursor", day + "&cursor=01arz3ndektsv4rrffq69g5fav": "cursor", day + "&cursor=01ARZ3NDEKTSV4RRFFQ69G5FAV&current_page=1": "cursor", day + "&uri=%ff": "uri", day + "&country=" + strings.Repeat("x", 256): "country",
	} {
		h.Do("GET", "/audit-logs?"+query, admintest.AdminKey, nil).RequireFault(400, "AB01", field)
	}
}

func TestReadingLeavesNoRecord(t *testing.T) {
	h := newInstallation(t)
	h.Do("GET", "/audit-logs?"+day, admintest.AdminKey, nil).OK()
	h.Do("GET", "/audit-logs?"+day, admintest.WorkspaceA, nil).RequireFault(403, "AB03", "")
	if log := h.Audit(); len(log) != 0 {
		t.Errorf("reading was recorded: %+v", log)
	}
}

func TestAnswerIsAsDocumented(t *testing.T) {
	h := newInstallation(t)
	for i := range 3 {
		record(t, h, admintest.Org, made(h, i))
	}
	doc, err := jsonschema.UnmarshalJSON(bytes.NewReader(admin.OpenAPI("t", "1", h.Families...)))
	if err != nil {
		t.Fatal(err)
	}
	c := jsonschema.NewCompiler()
	if err := c.AddResource("doc.json", doc); err != nil {
		t.Fatal(err)
	}
	s, err := c.Compile("doc.json#/paths/~1audit-logs/get/responses/200/content/application~1json/schema")
	if err != nil {
		t.Fatal(err)
	}
	for _, query := range []string{day, day + "&page_size=1", day + "&method=PUT"} {
		got := h.Do("GET", "/audit-logs?"+query, admintest.AdminKey, nil).OK()
		v, err := jsonschema.UnmarshalJSON(bytes.NewReader(got.Body))
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Validate(v); err != nil {
			t.Errorf("%v\n%s", err, got.Body)
		}
	}
}
