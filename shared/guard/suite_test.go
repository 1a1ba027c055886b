package guard

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/santhosh-tekuri/jsonschema/v6"
)

// schemaSuite returns the folder of the official test suite of JSON Schema 2020-12, of which a
// module that the tests need has a copy.
func schemaSuite(t *testing.T) string {
	t.Helper()
	out, err := exec.Command("go", "mod", "download", "-json", "github.com/google/jsonschema-go").Output()
	var module struct{ Dir string }
	if err != nil || json.Unmarshal(out, &module) != nil || module.Dir == "" {
		t.Fatalf("the module with the suite is not there: %v %s", err, out)
	}
	return filepath.Join(module.Dir, "jsonschema", "testdata", "draft2020-12")
}

// TestOfficialSchemaSuite runs the official test suite with the validator of guardrails. Only
// schemas that refer to other documents differ: they are rejected when they are saved, because the
// gateway loads nothing from addresses in schemas.
func TestOfficialSchemaSuite(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob(filepath.Join(schemaSuite(t), "*.json"))
	if err != nil || len(files) < 40 {
		t.Fatalf("%d files: %v", len(files), err)
	}
	passed, remote := 0, 0
	for _, file := range files {
		raw, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		var groups []struct {
			Description string
			Schema      json.RawMessage
			Tests       []struct {
				Description string
				Data        json.RawMessage
				Valid       bool
			}
		}
		if err := json.Unmarshal(raw, &groups); err != nil {
			t.Fatal(file, err)
		}
		for _, g := range groups {
			at := filepath.Base(file) + ": " + g.Description
			schema, err := CompileSchema(g.Schema)
			if err != nil {
				if !strings.Contains(err.Error(), "other documents are not loaded") || !bytes.Contains(g.Schema, []byte("http://localhost:1234/")) {
					t.Errorf("%s: %v", at, err)
				}
				remote++
				continue
			}
			for _, c := range g.Tests {
				v, err := jsonschema.UnmarshalJSON(bytes.NewReader(c.Data))
				if err != nil {
					t.Fatal(at, err)
				}
				err = schema.Validate(context.Background(), v)
				var invalid *jsonschema.ValidationError
				if err != nil && !errors.As(err, &invalid) || (err == nil) != c.Valid {
					t.Errorf("%s: %s: valid is %t, want %t: %v", at, c.Description, err == nil, c.Valid, err)
					continue
				}
				passed++
			}
		}
	}
	t.Logf("%d tests; %d schemas refer to other documents", passed, remote)
	if passed < 1050 || remote > 20 {
		t.Errorf("%d tests passed, %d schemas refer to other documents", passed, remote)
	}
}
