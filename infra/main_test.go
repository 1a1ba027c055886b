package main

import (
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// run starts the app as the CDK's command line does: by the command of cdk.json, in
// the root of the source, with the folder for the templates named from there.
func run(t *testing.T, context map[string]any) (out string, dir string, err error) {
	t.Helper()
	raw, err := os.ReadFile("../cdk.json")
	if err != nil {
		t.Fatal(err)
	}
	var config struct {
		App     string
		Context map[string]any
	}
	if err := json.Unmarshal(raw, &config); err != nil {
		t.Fatal(err)
	}
	config.Context["dist"] = fakeDist(t)
	for name, v := range context {
		config.Context[name] = v
	}
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	dir = t.TempDir()
	relative, err := filepath.Rel(root, dir)
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.CommandContext(t.Context(), "sh", "-c", config.App)
	cmd.Dir, cmd.Env = root, append(os.Environ(), "CDK_OUTDIR="+relative, "CDK_CONTEXT_JSON="+text(config.Context))
	combined, err := cmd.CombinedOutput()
	return string(combined), dir, err
}

func TestTheCommandLineFindsTheTemplates(t *testing.T) {
	t.Parallel()
	out, dir, err := run(t, nil)
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{"manifest.json", "Data.template.json", "Functions.template.json", "Workers.template.json", "Edge.template.json"} {
		if _, err := os.Stat(filepath.Join(dir, name)); err != nil {
			t.Error(err)
		}
	}
}

// TestTheCommandLineTellsWhatIsWrong: in lines of text, without a trace.
func TestTheCommandLineTellsWhatIsWrong(t *testing.T) {
	t.Parallel()
	out, dir, err := run(t, map[string]any{"container": "maybe", "regoin": "eu-west-1"})
	if err == nil || !strings.Contains(out, "context container=maybe: must be on, ha or off\n") || !strings.Contains(out, "context regoin: there is no such value") || strings.Contains(out, "goroutine") {
		t.Errorf("%v: %s", err, out)
	}
	if files, err := os.ReadDir(dir); err != nil || len(files) > 0 {
		t.Errorf("templates are written all the same: %v %v", files, err)
	}
}
