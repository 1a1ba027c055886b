package main

import (
	"crypto/sha256"
	"encoding/hex"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

const source = "../../functions/console"

// files are the contents of a folder by their name. Packed files are omitted: what they
// are made of is compared, and functions/console tests that they unpack to it.
func files(t *testing.T, dir string) map[string]string {
	t.Helper()
	out := map[string]string{}
	err := filepath.WalkDir(dir, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || filepath.Ext(path) == ".gz" {
			return err
		}
		raw, err := os.ReadFile(path)
		name, _ := filepath.Rel(dir, path)
		out[filepath.ToSlash(name)] = string(raw)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func TestTheCommittedConsoleIsBuiltFromItsSources(t *testing.T) {
	t.Parallel()
	out := filepath.Join(t.TempDir(), "dist")
	if err := build(source, out); err != nil {
		t.Fatal(err)
	}
	built, committed := files(t, out), files(t, source+"/dist")
	for name := range built {
		if committed[name] != built[name] {
			t.Errorf("%s is not what the sources give: run make console", name)
		}
	}
	for name := range committed {
		if _, ok := built[name]; !ok {
			t.Errorf("%s is not built any more: run make console", name)
		}
	}
}

func TestThirdPartyFilesAreThePublishedOnes(t *testing.T) {
	t.Parallel()
	sums, err := os.ReadFile(source + "/third_party/SHA256SUMS")
	if err != nil {
		t.Fatal(err)
	}
	known := map[string]string{"README.md": "", "SHA256SUMS": ""}
	for line := range strings.Lines(string(sums)) {
		f := strings.Fields(line)
		known[f[1]] = f[0]
	}
	for name, content := range files(t, source+"/third_party") {
		want, ok := known[name]
		sum := sha256.Sum256([]byte(content))
		if !ok || want != "" && want != hex.EncodeToString(sum[:]) {
			t.Errorf("%s differs from SHA256SUMS, or is not listed", name)
		}
	}
}
