// Command console builds the web console from functions/console/web into
// functions/console/dist. `make console` runs it; the result is committed.
package main

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"github.com/evanw/esbuild/pkg/api"
)

// targets are the oldest browsers that the console supports: those of two years ago.
var targets = []api.Engine{{Name: api.EngineChrome, Version: "131"}, {Name: api.EngineFirefox, Version: "133"}, {Name: api.EngineSafari, Version: "18"}}

// build writes the console from the sources in source to the folder out, which it replaces.
func build(source, out string) error {
	root, err := filepath.Abs(source)
	if err != nil {
		return err
	}
	parts := filepath.Join(root, "third_party")
	built := api.Build(api.BuildOptions{
		AbsWorkingDir: root, Outdir: filepath.Join(root, "dist", "assets"),
		EntryPointsAdvanced: []api.EntryPoint{{InputPath: "web/main.tsx", OutputPath: "app"}},
		EntryNames:          "[name]-[hash]", ChunkNames: "[name]-[hash]", Splitting: true, Metafile: true,
		Alias: map[string]string{
			"preact": filepath.Join(parts, "preact.mjs"), "preact/hooks": filepath.Join(parts, "preact-hooks.mjs"),
			"preact/jsx-runtime": filepath.Join(parts, "preact-jsx-runtime.mjs"), "uplot": filepath.Join(parts, "uplot.mjs"), "uplot.css": filepath.Join(parts, "uplot.css"),
		},
		JSX: api.JSXAutomatic, JSXImportSource: "preact", TsconfigRaw: "{}",
		Bundle: true, Format: api.FormatESModule, Engines: targets, LegalComments: api.LegalCommentsNone,
		MinifyWhitespace: true, MinifyIdentifiers: true, MinifySyntax: true, Charset: api.CharsetUTF8,
	})
	if len(built.Errors) > 0 {
		return errors.New(strings.Join(api.FormatMessages(built.Errors, api.FormatMessagesOptions{}), ""))
	}
	if err := os.RemoveAll(out); err != nil {
		return err
	}
	if err := os.MkdirAll(filepath.Join(out, "assets"), 0o755); err != nil {
		return err
	}
	index, err := os.ReadFile(filepath.Join(root, "web", "index.html"))
	if err != nil {
		return err
	}
	var preloads strings.Builder
	for _, f := range built.OutputFiles {
		name := filepath.Base(f.Path)
		if err := write(filepath.Join(out, "assets", name), f.Contents); err != nil {
			return err
		}
		if !strings.HasPrefix(name, "app-") {
			continue
		}
		index = bytes.ReplaceAll(index, []byte("app"+filepath.Ext(name)), []byte("/console/assets/"+name))
		needed, err := imports(built.Metafile, name)
		if err != nil {
			return err
		}
		for _, part := range needed {
			fmt.Fprintf(&preloads, "<link rel=\"modulepreload\" href=\"/console/assets/%s\">\n", part)
		}
	}
	index = bytes.Replace(index, []byte("</head>"), []byte(preloads.String()+"</head>"), 1)
	return os.WriteFile(filepath.Join(out, "index.html"), index, 0o644)
}

// imports returns the files that an output file imports when it is loaded. The index names
// them, so that a browser loads all of them at the same time.
func imports(metafile, name string) ([]string, error) {
	var meta struct {
		Outputs map[string]struct {
			Imports []struct{ Path, Kind string }
		}
	}
	if err := json.Unmarshal([]byte(metafile), &meta); err != nil {
		return nil, err
	}
	var out []string
	for path, o := range meta.Outputs {
		if filepath.Base(path) != name {
			continue
		}
		for _, i := range o.Imports {
			if i.Kind == "import-statement" {
				out = append(out, filepath.Base(i.Path))
			}
		}
	}
	slices.Sort(out)
	return out, nil
}

// write writes a file and its gzip form.
func write(name string, content []byte) error {
	var packed bytes.Buffer
	z, err := gzip.NewWriterLevel(&packed, gzip.BestCompression)
	if err != nil {
		return err
	}
	if _, err = z.Write(content); err == nil {
		err = z.Close()
	}
	if err != nil {
		return fmt.Errorf("pack %s: %w", name, err)
	}
	if err := os.WriteFile(name, content, 0o644); err != nil {
		return err
	}
	return os.WriteFile(name+".gz", packed.Bytes(), 0o644)
}

func main() {
	if err := build("functions/console", "functions/console/dist"); err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}
