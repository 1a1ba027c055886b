package admin_test

import (
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/testkit/admintest"
)

// The family of the engine's doc page: README.md shows it, and the test below
// holds the two against each other.

// [family]

// Note is the stored form. It is in the package that uses it, with its limits.
type Note struct {
	Text   string            `json:"text" min:"1" max:"2000"`
	Color  string            `json:"color,omitempty" enum:"red,blue"`
	Due    *time.Time        `json:"due_at,omitempty"`
	Masked map[string]string `json:"masked,omitempty"` // of secrets
}

// Notes is the family: six routes, their document and their audit records.
func Notes() admin.Family {
	notes := &admin.Collection[Note]{
		Kind: "NOTE", Object: "note", Path: "/notes", Param: "slug",
		Scope: "notes", Level: admin.InWorkspace, WriteRole: admin.Manager,
		Slugs: &admin.Slugs{Prefix: "nt-"}, Versions: &admin.Versions[Note]{},
		List: admin.List{Tags: true, Search: true},
		Fields: []admin.Field{
			admin.NameField(255), admin.TagsField(),
			{Name: "text", Required: true, Doc: "What to remember."},
			{Name: "color", Listed: true},
			{Name: "due_at", Doc: "When it is due."},
			{Name: "token", Secret: true, Max: 200},
		},
		Computed: []admin.ComputedField[Note]{{
			Field: admin.Field{Name: "overdue", Type: admin.Boolean, Required: true},
			Value: func(c *admin.Call, it admin.Item[Note]) any { return it.Form.Due != nil && it.Form.Due.Before(c.Now) },
		}},
		Check: func(c *admin.Call, ch *admin.Change[Note]) []fault.Detail {
			if c.Body.HasValue("due_at") && ch.Form.Due.Before(c.Now) {
				return []fault.Detail{{Field: "due_at", Message: "must be in the future"}}
			}
			return nil
		},
	}
	return admin.Family{Name: "notes", Doc: "Notes.", Routes: notes.Routes()}
}

// [end]

// stage replaces a test where an example runs.
type stage struct {
	testing.TB
	dir     string
	cleanup []func()
}

func (s *stage) Helper()                      {}
func (s *stage) TempDir() string              { return s.dir }
func (s *stage) Cleanup(f func())             { s.cleanup = append(s.cleanup, f) }
func (s *stage) Fatal(args ...any)            { panic(fmt.Sprint(args...)) }
func (s *stage) Fatalf(f string, args ...any) { panic(fmt.Sprintf(f, args...)) }
func (s *stage) Errorf(f string, args ...any) { fmt.Printf(f+"\n", args...) }
func (s *stage) close() {
	for _, f := range s.cleanup {
		f()
	}
	_ = os.RemoveAll(s.dir)
}

func Example() {
	dir, err := os.MkdirTemp("", "notes")
	if err != nil {
		panic(err)
	}
	s := &stage{dir: dir}
	defer s.close()
	h := admintest.New(s, Notes())
	const key = admintest.WorkspaceA

	made := h.Do("POST", "/notes", key, `{"name":"Milk","text":"Buy some.","color":"red","token":"secret-of-mine","tags":{"home":"yes"}}`)
	at := "/notes/" + made.Text("slug")
	h.Do("POST", "/notes", key, `{"name":"Post","text":"Letters.","color":"blue"}`)
	h.Do("PUT", at, key, `{"text":"Buy two."}`)

	note := h.Do("GET", at, key, nil)
	fmt.Println(note.Text("name"), note.Text("text"), note.At("overdue"), note.Text("masked_token"))
	fmt.Println(h.Do("GET", "/notes?color=red", key, nil).At("total"), h.Do("GET", at+"/versions", key, nil).At("total"))
	fmt.Println(h.Do("POST", "/notes", key, `{"text":"","color":"green","due_at":"soon"}`).Text("data", "message"))
	fmt.Println(h.Do("PUT", at, admintest.MemberKey, `{"text":"x"}`).Status, h.Do("GET", at, admintest.WorkspaceB, nil).Status)
	for _, e := range h.Audit() {
		if e.Action == "update" && e.StatusCode == 200 {
			fmt.Println(e.Details["changes"])
		}
	}
	// Output:
	// Milk Buy two. false se****ne
	// 1 2
	// name: is required (and 3 more)
	// 403 404
	// {"text":["Buy some.","Buy two."]}
}

func TestTheDocPageShowsTheFamilyThatRuns(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("example_test.go")
	if err != nil {
		t.Fatal(err)
	}
	page, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, code, _ := strings.Cut(string(source), "// [family]\n\n")
	code, _, ok := strings.Cut(code, "\n// [end]")
	if !ok || !strings.Contains(string(page), "```go\n"+code+"```\n") {
		t.Error("README.md shows another family than example_test.go")
	}
	admintest.CheckFamily(t, admintest.New(t, Notes()))
}
