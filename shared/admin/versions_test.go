package admin_test

import (
	"fmt"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/testkit/admintest"
)

// text is a stored template: its content has versions, of which one is published.
type text struct {
	Folder string `json:"folder,omitempty" max:"20"` // no content
	Body   string `json:"string,omitempty" max:"100"`
	Model  string `json:"model,omitempty" max:"100"`
}

type label struct {
	Color string `json:"color_code,omitempty" max:"20"`
}

func textFamily() admin.Family {
	labels := &admin.Collection[label]{
		Kind: "LABEL", Object: "label", Path: "/labels", Scope: "texts", Level: admin.InWorkspace,
		Fields: []admin.Field{admin.NameField(20), {Name: "color_code"}},
	}
	texts := &admin.Collection[text]{
		Kind: "TEXT", Object: "text", Path: "/texts", Scope: "texts", Level: admin.InWorkspace, Slugs: &admin.Slugs{Prefix: "tt-"},
		Fields: []admin.Field{admin.NameField(20), {Name: "folder"}, {Name: "string"}, {Name: "model"}},
		Versions: &admin.Versions[text]{
			Of: []string{"string", "model"}, Combined: []string{"string", "model"}, Patch: true, Publish: "texts.publish", Labels: "LABEL",
			Computed: []admin.ComputedField[text]{{Field: admin.Field{Name: "label_ids", Type: admin.Array, Of: &admin.Field{Type: admin.String}, Required: true},
				Value: func(_ *admin.Call, it admin.Item[text]) any { return admin.LabelsOf(it.Record) }}},
		},
		Computed: []admin.ComputedField[text]{
			{Field: admin.Field{Name: "version", Type: admin.Integer, Required: true}, Value: func(_ *admin.Call, it admin.Item[text]) any { return it.Version }},
			{Field: admin.Field{Name: "version_id", Type: admin.String, Required: true}, Value: func(_ *admin.Call, it admin.Item[text]) any { return it.VersionID }},
		},
	}
	return admin.Family{Name: "texts", Doc: "Texts.", Routes: append(texts.Routes(), labels.Routes()...)}
}

func TestTextFamilyPassesTheChecksOfEveryFamily(t *testing.T) {
	t.Parallel()
	admintest.CheckFamily(t, admintest.New(t, textFamily()))
}

func TestVersionsArePublishedLabelledAndPatched(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, textFamily())
	const key = admintest.WorkspaceA
	id := h.Do("POST", "/texts", key, `{"name":"t","string":"first","model":"m1","folder":"a"}`).OK().Text("id")
	at := "/texts/" + id
	want := func(ref, what string) {
		t.Helper()
		a := h.Do("GET", at+ref, key, nil).OK()
		if got := fmt.Sprint(a.Text("string"), " ", a.Text("model"), " ", a.Text("folder"), " ", a.At("version")); got != what {
			t.Errorf("%s: %s, want %s", ref, got, what)
		}
	}
	want("", "first m1 a 1")

	// New content is a version that is returned only on request; the rest changes immediately.
	h.Do("PUT", at, key, `{"string":"second"}`).RequireFault(400, "AB01", "model")
	h.Do("PUT", at, key, `{"string":"second","model":"m2","folder":"b"}`).OK()
	want("", "first m1 b 1")
	want("@latest", "second m2 b 2")
	want("@2", "second m2 b 2")
	want("%401", "first m1 b 1")
	want("?version=latest", "second m2 b 2")
	want("?version=default", "first m1 b 1")

	// patch copies missing fields from the newest version, not from the published one.
	h.Do("PUT", at, key, `{"string":"third","patch":true}`).OK()
	want("@latest", "third m2 b 3")
	h.Do("PUT", at, key, `{"folder":"c"}`).OK() // no content, no version
	want("@latest", "third m2 c 3")
	want("", "first m1 c 1")

	h.Do("PUT", at+"/makeDefault", key, `{"version":2}`).OK()
	want("", "second m2 c 2")
	want("@latest", "third m2 c 3")
	h.Do("PUT", at, key, `{"string":"fourth","patch":true}`).OK() // numbers never repeat
	want("@latest", "fourth m2 c 4")
	want("", "second m2 c 2")
	for _, bad := range []string{`{"version":0}`, `{"version":"2"}`, `{}`, `{"version":null}`} {
		h.Do("PUT", at+"/makeDefault", key, bad).RequireFault(400, "AB01", "")
	}
	h.Do("PUT", at+"/makeDefault", key, `{"version":9}`).RequireFault(404, "AB08", "version")

	list := h.Do("GET", at+"/versions?page_size=2", key, nil).OK()
	if list.At("total") != 4.0 || list.Text("data", "0", "string") != "fourth" || list.Text("data", "1", "string") != "third" {
		t.Errorf("versions: %s", list.Body)
	}
	third := list.Text("data", "1", "version_id")
	if got := h.Do("GET", at+"/versions/"+third, key, nil).OK(); got.Text("string") != "third" || got.At("version") != 3.0 {
		t.Errorf("one version: %s", got.Body)
	}

	prod := h.Do("POST", "/labels", key, `{"name":"production"}`).OK().Text("id")
	h.Do("PUT", at+"/versions/"+third, key, `{"label_id":"`+prod+`"}`).OK()
	want("@production", "third m2 c 3")
	want("@"+prod, "third m2 c 3")
	h.Do("PUT", at+"/versions/1", key, `{"label_id":"`+prod+`"}`).OK() // it moves
	want("@production", "first m1 c 1")
	if got := h.Do("GET", at+"/versions", key, nil).OK(); got.Text("data", "3", "label_ids", "0") != prod || got.At("data", "1", "label_ids", "0") != nil {
		t.Errorf("labels in the list: %s", got.Body)
	}
	h.Do("PUT", at+"/versions/1", key, `{"label_id":null}`).OK()
	h.Do("GET", at+"@production", key, nil).RequireFault(404, "AB08", "version")
	h.Do("PUT", at+"/versions/1", key, `{"label_id":"none"}`).RequireFault(400, "AB01", "label_id")
	for _, ref := range []string{"@99", "@0", "@-1", "@nolabel", "@published"} {
		h.Do("GET", at+ref, key, nil).RequireFault(404, "AB08", "version")
	}
	h.Do("PUT", at+"/versions/nothing", key, `{"label_id":null}`).RequireFault(404, "AB08", "versionId")
}

func TestPublishingTakesItsOwnScope(t *testing.T) {
	t.Parallel()
	h := admintest.New(t, textFamily())
	id := h.Do("POST", "/texts", admintest.WorkspaceA, `{"name":"t","string":"s","model":"m"}`).OK().Text("id")
	c := h.Caller(admintest.WorkspaceA)
	c.Scopes = admintest.ScopeList{"texts.update", "texts.read"}
	h.SetCaller("writer", c)
	h.Do("PUT", "/texts/"+id, "writer", `{"string":"x","model":"m"}`).OK()
	h.Do("PUT", "/texts/"+id+"/makeDefault", "writer", `{"version":2}`).RequireFault(403, "AB03", "")
	for _, method := range []string{"GET", "PUT", "DELETE"} {
		var body any
		if method == "PUT" {
			body = `{"folder":"x"}`
		}
		admintest.ForeignIsMissing(t, h, method, "/texts", id, body)
	}
}
