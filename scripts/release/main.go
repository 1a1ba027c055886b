// Command release builds what a release consists of: static binaries for Linux, macOS and
// Windows on amd64 and arm64, an SBOM (CycloneDX), the changelog since the last tag, the
// definition of the container image, and the SHA-256 sums of all of them.
//
//	go run ./scripts/release [-out dist/release] [-targets linux/amd64,...]
package main

import (
	"bytes"
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"

	"gateway/shared/wire/release"
)

const standardTargets = "linux/amd64,linux/arm64,darwin/amd64,darwin/arm64,windows/amd64,windows/arm64"

func main() {
	out := flag.String("out", filepath.Join("dist", "release"), "folder that is written")
	targets := flag.String("targets", standardTargets, "systems and architectures, separated by commas")
	flag.Parse()
	if err := run(*out, ".", "./local", release.Version, strings.Split(*targets, ",")); err != nil {
		fmt.Fprintln(os.Stderr, "release:", err)
		os.Exit(1)
	}
}

// run builds a package of the repository in root into a folder, which it empties.
func run(out, root, pkg, version string, targets []string) error {
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(out, 0o755); err != nil {
		return err
	}
	modules := map[string]component{}
	for _, target := range targets {
		system, arch, ok := strings.Cut(target, "/")
		if !ok {
			return fmt.Errorf("%q is no target: it is a system and an architecture, as in linux/amd64", target)
		}
		name := fmt.Sprintf("gateway-%s-%s-%s", version, system, arch)
		if system == "windows" {
			name += ".exe"
		}
		file, err := filepath.Abs(filepath.Join(out, name))
		if err != nil {
			return err
		}
		if err := build(root, file, pkg, system, arch); err != nil {
			return err
		}
		info, err := buildinfo.ReadFile(file)
		if err != nil {
			return err
		}
		collect(modules, info)
		fmt.Println(name)
	}
	bom, err := json.MarshalIndent(describe(version, modules), "", "  ")
	if err != nil {
		return err
	}
	changes, err := changelog(root, version)
	if err != nil {
		return err
	}
	image, err := os.ReadFile(filepath.Join(root, "local", "Dockerfile"))
	if err != nil {
		return err
	}
	for name, raw := range map[string][]byte{"gateway-" + version + ".cdx.json": append(bom, '\n'), "CHANGELOG.md": changes, "Dockerfile": image} {
		if err := os.WriteFile(filepath.Join(out, name), raw, 0o644); err != nil {
			return err
		}
	}
	// The image's folder of data must belong to the user of the image.
	if err := os.MkdirAll(filepath.Join(out, "data"), 0o755); err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(out, "data", ".keep"), nil, 0o644); err != nil {
		return err
	}
	return writeSums(out)
}

// build links a static binary without tables for debuggers and without paths of this
// machine, so that the same commit gives the same bytes.
func build(root, file, pkg, system, arch string) error {
	cmd := exec.Command("go", "build", "-trimpath", "-ldflags", "-s -w", "-o", file, pkg)
	cmd.Dir = root
	cmd.Env = append(os.Environ(), "CGO_ENABLED=0", "GOFLAGS=", "GOOS="+system, "GOARCH="+arch)
	if out, err := cmd.CombinedOutput(); err != nil {
		return fmt.Errorf("go build for %s/%s: %w\n%s", system, arch, err, bytes.TrimSpace(out))
	}
	return nil
}

// bom is a software bill of materials in the format CycloneDX 1.5.
type bom struct {
	Format     string      `json:"bomFormat"`
	Spec       string      `json:"specVersion"`
	Version    int         `json:"version"`
	Metadata   metadata    `json:"metadata"`
	Components []component `json:"components"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type       string     `json:"type"`
	Name       string     `json:"name"`
	Version    string     `json:"version"`
	URL        string     `json:"purl,omitempty"`
	Properties []property `json:"properties,omitempty"`
}

type property struct {
	Name  string `json:"name"`
	Value string `json:"value"`
}

// collect adds the modules that are linked into a binary, and the toolchain.
func collect(into map[string]component, info *buildinfo.BuildInfo) {
	into["stdlib"] = component{Type: "library", Name: "stdlib", Version: info.GoVersion, URL: "pkg:golang/stdlib@" + strings.TrimPrefix(info.GoVersion, "go")}
	for _, dep := range info.Deps {
		m := dep
		if m.Replace != nil {
			m = m.Replace
		}
		c := component{Type: "library", Name: m.Path, Version: m.Version, URL: "pkg:golang/" + m.Path + "@" + m.Version}
		if m.Sum != "" {
			c.Properties = []property{{"go:sum", m.Sum}}
		}
		into[m.Path] = c
	}
}

// describe returns the SBOM of a release, components by name.
func describe(version string, modules map[string]component) bom {
	b := bom{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{component{Type: "application", Name: "gateway", Version: version}}}
	for _, c := range modules {
		b.Components = append(b.Components, c)
	}
	slices.SortFunc(b.Components, func(x, y component) int { return strings.Compare(x.Name, y.Name) })
	return b
}

// changelog lists the commits since the last tag, by package.
func changelog(root, version string) ([]byte, error) {
	git := func(args ...string) (string, error) {
		cmd := exec.Command("git", args...)
		cmd.Dir = root
		out, err := cmd.Output()
		return strings.TrimSpace(string(out)), err
	}
	since := "HEAD"
	if tag, err := git("describe", "--tags", "--abbrev=0", "HEAD^"); err == nil && tag != "" {
		since = tag + "..HEAD"
	}
	log, err := git("log", "--no-merges", "--format=%s", since)
	if err != nil {
		return nil, fmt.Errorf("git log: %w", err)
	}
	return grouped(version, strings.Split(log, "\n")), nil
}

// grouped writes subjects of the form "package: change" as a list for each package.
func grouped(version string, subjects []string) []byte {
	groups := map[string][]string{}
	var names []string
	for _, s := range subjects {
		name, change, ok := strings.Cut(s, ": ")
		if !ok || strings.Contains(name, " ") && !strings.Contains(name, ", ") {
			name, change = "other", s
		}
		if groups[name] == nil {
			names = append(names, name)
		}
		groups[name] = append(groups[name], change)
	}
	slices.Sort(names)
	var b bytes.Buffer
	fmt.Fprintf(&b, "# Changes in %s\n", version)
	for _, name := range names {
		fmt.Fprintf(&b, "\n## %s\n\n", name)
		for _, change := range groups[name] {
			fmt.Fprintf(&b, "- %s\n", change)
		}
	}
	return b.Bytes()
}

// writeSums writes the sums of all files in the form that sha256sum --check reads.
func writeSums(out string) error {
	entries, err := os.ReadDir(out)
	if err != nil {
		return err
	}
	var b bytes.Buffer
	for _, e := range entries {
		if e.IsDir() {
			continue
		}
		raw, err := os.ReadFile(filepath.Join(out, e.Name()))
		if err != nil {
			return err
		}
		sum := sha256.Sum256(raw)
		fmt.Fprintf(&b, "%s  %s\n", hex.EncodeToString(sum[:]), e.Name())
	}
	return os.WriteFile(filepath.Join(out, "SHA256SUMS"), b.Bytes(), 0o644)
}
