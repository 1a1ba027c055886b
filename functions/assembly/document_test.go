package assembly_test

import (
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"path/filepath"
	"testing"
	"time"

	"gateway/functions/assembly"
	"gateway/functions/docs"
	"gateway/functions/docs/document"
	"gateway/shared/admin"
	"gateway/shared/app"
	"gateway/shared/seal"
	"gateway/shared/store/sqlite"
	"gateway/shared/usage/segment"
)

var update = flag.Bool("update", false, "rewrite the document that the function serves")

// maxDocument is the size below which the served document stays.
const maxDocument = 1 << 20

// TestTheDocumentOfTheFunctionIsCurrent compares what the function docs serves
// with what the families and routes say.
func TestTheDocumentOfTheFunctionIsCurrent(t *testing.T) {
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "tables.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	core := app.New(app.Backends{Store: s, Embedded: true, Sealer: seal.New(nil, time.Now)}, app.Settings{})
	for _, f := range assembly.Administration(core, segment.New(s, nil, segment.Options{})) {
		if f.Name != docs.Name {
			continue
		}
		built, err := f.Routes[0].Do(nil)
		if err != nil {
			t.Fatal(err)
		}
		if size := len(built.(*admin.Document).JSON()); size >= maxDocument {
			t.Errorf("the document has %d bytes, %d are allowed: describe repeated parts equally, so that they share a component", size, maxDocument)
		}
		var pretty bytes.Buffer
		if err := json.Indent(&pretty, built.(*admin.Document).JSON(), "", " "); err != nil {
			t.Fatal(err)
		}
		pretty.WriteByte('\n')
		if *update {
			if err := os.WriteFile("../docs/document/openapi.json", pretty.Bytes(), 0o644); err != nil {
				t.Fatal(err)
			}
			return
		}
		if !bytes.Equal(pretty.Bytes(), document.JSON) {
			t.Error("functions/docs/document/openapi.json is not what the routes say; run: go test ./functions/assembly -run Document -update")
		}
		return
	}
	t.Fatal("no family docs")
}
