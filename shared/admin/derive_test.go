package admin_test

import (
	"strings"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/testkit/admintest"
)

// If a description says something of a type that the type does not have, the start fails,
// wherever the description stands.
func TestADescriptionThatDoesNotFitItsTypeStopsTheStart(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		field admin.Field
		want  string
	}{
		"a name that is no member":       {admin.Field{Name: "colour"}, "colour is no member of"},
		"another stored name":            {admin.Field{Name: "color", In: "colour"}, "color is no member of"},
		"a member below":                 {admin.Field{Name: "setup", Fields: []admin.Field{{Name: "quick"}}}, "quick is no member of"},
		"not stored and without a type":  {admin.Field{Name: "again", Trigger: true}, "has no type"},
		"a member of the type, lower in": {admin.Field{Name: "fast"}, "fast is no member of"},
	} {
		col := gadgets()
		col.Fields = append(col.Fields, c.field)
		_, err := admin.NewHandler(admin.Deps{}, admin.Family{Name: "g", Routes: col.Routes()})
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), "/gadgets") {
			t.Errorf("%s: %v", name, err)
		}
	}
	type odd struct {
		Size int `json:"size" max:"many"`
	}
	broken := &admin.Collection[odd]{Kind: "ODD", Object: "odd", Path: "/odds", Scope: "odds", Level: admin.InWorkspace, Fields: []admin.Field{{Name: "size"}}}
	if _, err := admin.NewHandler(admin.Deps{}, admin.Family{Name: "o", Routes: broken.Routes()}); err == nil {
		t.Error("a bound that is no number: accepted")
	}
	settings := &admin.Singleton[options]{Object: "o", Path: "/o", Kind: "O", Scope: "o", Sections: []admin.Field{{Name: "s", Fields: []admin.Field{{Name: "none"}}}}}
	if _, err := admin.NewHandler(admin.Deps{}, admin.Family{Name: "o", Routes: settings.Routes()}); err == nil {
		t.Error("a setting that is no member: accepted")
	}
}

// A new field needs only a field and a line: the rest follows from the type. It is
// checked, stored, documented, shown and put into the audit log.
func TestBoundsOfTheTypeAreThoseOfTheDescription(t *testing.T) {
	t.Parallel()
	type sample struct {
		Text  string            `json:"text,omitempty" min:"2" max:"3" doc:"A text."`
		Mode  string            `json:"mode,omitempty" enum:"on,off"`
		Pairs map[string]string `json:"pairs,omitempty" max:"1" each:"max=2"`
		Below struct {
			Count int `json:"count,omitempty" min:"1" max:"3"`
		} `json:"below"`
	}
	col := &admin.Collection[sample]{Kind: "SAMPLE", Object: "sample", Path: "/samples", Scope: "samples", Level: admin.InWorkspace,
		Fields: []admin.Field{{Name: "text"}, {Name: "mode"}, {Name: "pairs"}, {Name: "below"}}}
	h := admintest.New(t, admin.Family{Name: "samples", Doc: "Samples.", Routes: col.Routes()})
	h.Do("POST", "/samples", admintest.WorkspaceA, `{"text":"aaaa","mode":"mid","pairs":{"a":"xxx"},"below":{"count":4,"more":1}}`).
		RequireFault(400, "AB01", "text").RequireFault(400, "AB01", "mode").RequireFault(400, "AB01", "pairs.a").RequireFault(400, "AB01", "below.count").RequireFault(400, "AB01", "below.more")
	id := h.Do("POST", "/samples", admintest.WorkspaceA, `{"text":"aa","mode":"on","pairs":{"a":"xx"},"below":{"count":3}}`).OK().Text("id")
	if got := h.Do("GET", "/samples/"+id, admintest.WorkspaceA, nil).OK(); got.Text("text") != "aa" || got.Text("pairs", "a") != "xx" || got.At("below", "count") != 3.0 {
		t.Errorf("%s", got.Body)
	}
	if doc := string(admin.OpenAPI("t", "1", h.Families...)); !strings.Contains(doc, `"A text."`) || !strings.Contains(doc, `"maxLength": 3`) || !strings.Contains(doc, `"maxProperties": 1`) {
		t.Error("the document does not tell the bounds")
	}
}

func TestTheAuditLogContainsTheChangesOfAnUpdate(t *testing.T) {
	t.Parallel()
	h := newInstallation(t)
	id, _ := makeGadget(t, h, `{"name":"a","size":1,"key":"first-secret-1"}`)
	for _, c := range []struct{ body, want string }{
		{`{"size":2,"name":"b"}`, `{"name":["a","b"],"size":[1,2]}`},
		{`{"size":2}`, ""},
		{`{"size":null}`, `{"size":[2,null]}`},
		{`{"setup":{"fast":true}}`, `{"setup":[null,{"fast":true}]}`},
		{`{"key":"second-secret-2"}`, `{"masked_key":["fi****-1","se****-2"]}`},
		{`{"tags":{"t":"1"}}`, `{"tags":[null,{"t":"1"}]}`},
	} {
		h.Do("PUT", "/gadgets/"+id, admintest.WorkspaceA, c.body).OK()
		log := h.Audit()
		if got := log[len(log)-1].Details["changes"]; got != c.want {
			t.Errorf("%s: %s, want %s", c.body, got, c.want)
		}
	}
	for _, e := range h.Audit() {
		for name, v := range e.Details {
			if strings.Contains(v, "secret") {
				t.Errorf("%s tells a secret: %s", name, v)
			}
		}
	}
}
