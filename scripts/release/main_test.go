package main

import (
	"crypto/sha256"
	"debug/elf"
	"encoding/hex"
	"encoding/json"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// small makes a repository with a program, so that a test need not build the gateway.
func small(t *testing.T) string {
	t.Helper()
	root := t.TempDir()
	for name, text := range map[string]string{
		"go.mod": "module small\n\ngo 1.24\n", "local/main.go": "package main\n\nfunc main() { println(\"hello\") }\n", "local/Dockerfile": "FROM scratch\n",
	} {
		file := filepath.Join(root, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(file), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	for _, args := range [][]string{
		{"init", "-q"}, {"add", "."}, {"-c", "user.name=t", "-c", "user.email=t@example.com", "commit", "-qm", "local: say hello"},
	} {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		if out, err := cmd.CombinedOutput(); err != nil {
			t.Fatalf("%v %s", err, out)
		}
	}
	return root
}

func TestReleaseIsStaticSummedAndReproducible(t *testing.T) {
	root := small(t)
	sums := ""
	for range 2 {
		out := filepath.Join(t.TempDir(), "release")
		if err := run(out, root, "./local", "9.9.9", []string{"linux/amd64", "windows/arm64"}); err != nil {
			t.Fatal(err)
		}
		raw, err := os.ReadFile(filepath.Join(out, "SHA256SUMS"))
		if err != nil {
			t.Fatal(err)
		}
		if sums != "" && sums != string(raw) {
			t.Errorf("two builds differ:\n%s\n%s", sums, raw)
		}
		sums = string(raw)
		for _, name := range []string{"gateway-9.9.9-linux-amd64", "gateway-9.9.9-windows-arm64.exe", "gateway-9.9.9.cdx.json", "CHANGELOG.md", "Dockerfile"} {
			content, err := os.ReadFile(filepath.Join(out, name))
			if err != nil {
				t.Fatal(err)
			}
			sum := sha256.Sum256(content)
			if !strings.Contains(sums, hex.EncodeToString(sum[:])+"  "+name+"\n") {
				t.Errorf("no sum of %s in %s", name, sums)
			}
		}
		f, err := elf.Open(filepath.Join(out, "gateway-9.9.9-linux-amd64"))
		if err != nil {
			t.Fatal(err)
		}
		if libs, err := f.ImportedLibraries(); err != nil || len(libs) > 0 {
			t.Errorf("linked with %v %v", libs, err)
		}
		f.Close()
		var b bom
		raw, _ = os.ReadFile(filepath.Join(out, "gateway-9.9.9.cdx.json"))
		if err := json.Unmarshal(raw, &b); err != nil || b.Format != "CycloneDX" || b.Metadata.Component.Version != "9.9.9" || len(b.Components) != 1 || b.Components[0].Name != "stdlib" {
			t.Errorf("%v %s", err, raw)
		}
		raw, _ = os.ReadFile(filepath.Join(out, "CHANGELOG.md"))
		if string(raw) != "# Changes in 9.9.9\n\n## local\n\n- say hello\n" {
			t.Errorf("%s", raw)
		}
	}
}

func TestReleaseRejectsUnknownTargets(t *testing.T) {
	root := small(t)
	for _, target := range []string{"linux", "linux/none", ""} {
		if err := run(filepath.Join(t.TempDir(), "r"), root, "./local", "1", []string{target}); err == nil {
			t.Errorf("%q is built", target)
		}
	}
}

func TestGroupedSortsByPackage(t *testing.T) {
	got := string(grouped("1", []string{"b: two", "a, c: one", "Merge something", "b: three", "a long word: x"}))
	want := "# Changes in 1\n\n## a, c\n\n- one\n\n## b\n\n- two\n- three\n\n## other\n\n- Merge something\n- a long word: x\n"
	if got != want {
		t.Errorf("%s", got)
	}
}

// The image has no shell to run anything, runs as a user without permissions, and serves.
func TestImageNeedsNoShell(t *testing.T) {
	raw, err := os.ReadFile("../../local/Dockerfile")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(raw)) {
		word, rest, _ := strings.Cut(strings.TrimSpace(line), " ")
		switch word {
		case "RUN", "SHELL":
			t.Errorf("%s", line)
		case "ENTRYPOINT", "CMD", "HEALTHCHECK":
			if !strings.Contains(rest, "[") {
				t.Errorf("the shell form: %s", line)
			}
		}
	}
	for _, want := range []string{"nonroot", "${TARGETARCH}", `"serve"`} {
		if !strings.Contains(string(raw), want) {
			t.Errorf("no %s in\n%s", want, raw)
		}
	}
}
