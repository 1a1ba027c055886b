package logs

import (
	"context"
	"fmt"
	"net/url"
	"reflect"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/parquet-go/parquet-go"

	"gateway/shared/tenant"
	"gateway/shared/testkit/admintest"
	"gateway/shared/usage"
	"gateway/shared/usage/export"
)

// work performs the requested steps.
func (in *installation) work(t *testing.T) {
	t.Helper()
	for len(in.steps.sent) > 0 {
		m := in.steps.sent[:1]
		in.steps.sent = in.steps.sent[1:]
		if failed, err := in.worker.Handle(context.Background(), m); err != nil || len(failed) > 0 {
			t.Fatal(failed, err)
		}
	}
}

func (in *installation) exported(t *testing.T, key, id string) string {
	t.Helper()
	link := in.Do("GET", "/logs/exports/"+id+"/download", key, nil).OK().Text("signed_url")
	u, err := url.Parse(link)
	if err != nil {
		t.Fatal(err)
	}
	got := in.Do("GET", strings.TrimPrefix(u.Path, "/v1"), "nobody", nil).OK()
	return string(got.Body)
}

const someExport = `{"filters":{"ai_model":"gpt-4o-2024,other","status_code":[200],"cost_min":"0","page_size":100},"requested_data":["id","ai_model","response"],"description":"Mine"}`

func TestExportsFromDraftToFile(t *testing.T) {
	in := install(t)
	key := admintest.WorkspaceA
	var ids []string
	for i := range 3 {
		r := made(admintest.Org, in.One, admintest.OneSlug, time.Duration(i+1)*time.Minute)
		seals(t, &r, usage.Bodies{Response: []byte(`{"ok":true}`)})
		in.store(t, r)
		ids = append(ids, r.ID)
	}
	in.store(t, made(admintest.Org, in.Two, admintest.TwoSlug, time.Minute), made(admintest.OtherOrg, "ws", "ws", time.Minute))
	created := in.Do("POST", "/logs/exports", key, someExport).OK()
	id := created.Text("id")
	if created.At("total") != 3.0 || created.Text("object") != "export" {
		t.Errorf("%s", created.Body)
	}
	at := "/logs/exports/" + id
	if got := in.Do("GET", at, key, nil).OK(); got.Text("status") != export.Draft || got.Text("description") != "Mine" || got.Text("format") != "jsonl" {
		t.Errorf("%s", got.Body)
	}
	in.Do("GET", at+"/download", key, nil).RequireFault(400, "AB01", "exportId")
	in.Do("POST", at+"/cancel", key, nil).RequireFault(409, "AB07", "exportId")
	whole, listed := in.Do("GET", at, key, nil).OK(), in.Do("GET", "/logs/exports", key, nil).OK().At("data").([]any)[0].(map[string]any)
	if whole.Text("created_by") == "" || listed["created_by"] != whole.At("created_by") || !reflect.DeepEqual(listed["filters"], whole.At("filters")) {
		t.Errorf("the list says %v, the export %s", listed, whole.Body)
	}
	if got := in.Do("PUT", at, key, `{"filters":{},"requested_data":["id","response"]}`).OK(); got.At("total") != 3.0 || got.Text("id") != id {
		t.Errorf("%s", got.Body)
	}
	in.Do("POST", at+"/start", key, nil).OK()
	for method, path := range map[string]string{"POST": at + "/start", "PUT": at, "DELETE": at} {
		var body any
		if method == "PUT" {
			body = `{"description":"x"}`
		}
		in.Do(method, path, key, body).RequireFault(409, "AB07", "exportId")
	}
	in.work(t)
	if got := in.Do("GET", at, key, nil).OK(); got.Text("status") != export.Success || got.At("rows") != 3.0 || got.Text("expires_at") == "" {
		t.Errorf("%s", got.Body)
	}
	want := ""
	for _, id := range ids {
		want += fmt.Sprintf(`{"id":%q,"response":{"body":{"ok":true}}}`, id) + "\n"
	}
	if got := in.exported(t, key, id); got != want {
		t.Errorf("%s", got)
	}
	if got := in.Do("GET", "/logs/exports", key, nil).OK(); got.At("total") != 1.0 || got.At("data", "0", "status") != export.Success {
		t.Errorf("%s", got.Body)
	}
	for _, token := range []string{"x", "b3Jn.AAAA", "b3Jn", ".", strings.Repeat("A", 3000)} {
		in.Do("GET", "/logs/exports/files/"+token, "nobody", nil).RequireFault(404, "AB08", "token")
	}
	link, err := url.Parse(in.Do("GET", at+"/download", key, nil).OK().Text("signed_url"))
	if err != nil {
		t.Fatal(err)
	}
	in.Do("DELETE", at, key, nil).OK()
	in.Do("GET", at, key, nil).RequireFault(404, "AB08", "exportId")
	in.Do("GET", strings.TrimPrefix(link.Path, "/v1"), "nobody", nil).RequireFault(404, "AB08", "token") // the file went with it
}

// A file of columns is one, by whatever codec.
func TestExportsOfColumns(t *testing.T) {
	in := install(t)
	key := admintest.WorkspaceA
	in.store(t, made(admintest.Org, in.One, admintest.OneSlug, time.Minute))
	for _, codec := range []string{"none", "gzip", "snappy", "zstd"} {
		id := in.Do("POST", "/logs/exports", key, fmt.Sprintf(`{"filters":{},"requested_data":["id","cost"],"format":"parquet","compression":%q}`, codec)).OK().Text("id")
		in.Do("PUT", "/logs/exports/"+id, key, `{"format":"parquet"}`).OK()
		in.Do("POST", "/logs/exports/"+id+"/start", key, nil).OK()
		in.work(t)
		file := in.exported(t, key, id)
		f, err := parquet.OpenFile(strings.NewReader(file), int64(len(file)))
		if err != nil || f.NumRows() != 1 || len(f.Schema().Columns()) != 2 {
			t.Errorf("%s: %v", codec, err)
		}
		if got := in.Do("GET", "/logs/exports/"+id, key, nil).OK(); got.Text("format") != "parquet" || got.Text("compression") != codec || got.At("bytes") != float64(len(file)) {
			t.Errorf("%s", got.Body)
		}
	}
}

// Each field that can be exported can be denied.
func TestFieldsCanBeDenied(t *testing.T) {
	can, denied := slices.Sorted(slices.Values(export.Fields())), slices.Sorted(slices.Values(tenant.ExportFields))
	if !slices.Equal(can, denied) {
		t.Errorf("%v\n%v", can, denied)
	}
}

func TestWhoSeesWhatOfExports(t *testing.T) {
	in := install(t)
	key := admintest.WorkspaceA
	id := in.Do("POST", "/logs/exports", key, someExport).OK().Text("id")
	admintest.ForeignIsMissing(t, in.Installation, "GET", "/logs/exports", id, nil)
	admintest.BadBodies(t, in.Installation, "POST", "/logs/exports", key, someExport)
	admintest.BadBodies(t, in.Installation, "PUT", "/logs/exports/"+id, key, someExport)
	for body, field := range map[string]string{
		`{"filters":{"nope":1},"requested_data":["id"]}`:            "filters.nope",
		`{"filters":{"cost_min":-1},"requested_data":["id"]}`:       "filters.cost_min",
		`{"filters":{"status_code":"abc"},"requested_data":["id"]}`: "filters.status_code",
		`{"filters":{"page_size":0},"requested_data":["id"]}`:       "filters.page_size",
		`{"filters":{"time_of_generation_min":"2026-02-01T00:00:00Z","time_of_generation_max":"2026-01-01T00:00:00Z"},"requested_data":["id"]}`: "filters.time_of_generation_max",
		`{"filters":{"workspace_slug":"ws-two-000002"},"requested_data":["id"]}`:                                                                "filters.workspace_slug",
		`{"filters":[],"requested_data":["id"]}`:                                                                                                "filters",
		`{"filters":{},"requested_data":[]}`:                                                                                                    "requested_data",
		`{"filters":{},"requested_data":["secret"]}`:                                                                                            "requested_data[0]",
		`{"filters":{},"requested_data":["id","id"]}`:                                                                                           "requested_data[1]",
		`{"filters":{},"requested_data":["id"],"format":"xlsx"}`:                                                                                "format",
		`{"filters":{},"requested_data":["id"],"compression":"zip"}`:                                                                            "compression",
		`{"filters":{},"requested_data":["id"],"compression":"zstd"}`:                                                                           "compression",
		`{"filters":{},"requested_data":["id"],"format":"csv","compression":"snappy"}`:                                                          "compression",
	} {
		in.Do("POST", "/logs/exports", key, body).RequireFault(400, "AB01", field)
	}
	in.SetSettings(tenant.Settings{DeniedExportFields: []string{"response"}})
	in.Do("POST", "/logs/exports", key, someExport).RequireFault(400, "AB01", "requested_data[2]")
	in.Do("POST", "/logs/exports/"+id+"/start", key, nil).RequireFault(400, "AB01", "requested_data[2]")
	if got := in.Do("GET", "/logs/exports/field-restrictions", key, nil).OK(); got.Text("deniedFields", "0") != "response" {
		t.Errorf("%s", got.Body)
	}
}
