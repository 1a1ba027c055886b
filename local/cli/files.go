package cli

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"gateway/local/cli/settings"
	"gateway/local/declare"
	"gateway/local/document"
)

// readSettings reads a settings file of at most settings.MaxSize; nil if there is none.
func readSettings(name string) (raw []byte, mode fs.FileMode, err error) {
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, 0, nil
	}
	switch {
	case err != nil:
		return nil, 0, err
	case !info.Mode().IsRegular():
		return nil, 0, fmt.Errorf("%s is not a regular file", name)
	case info.Size() > settings.MaxSize:
		return nil, 0, fmt.Errorf("%s is larger than %d bytes", name, settings.MaxSize)
	}
	raw, err = os.ReadFile(name)
	if raw == nil {
		raw = []byte{}
	}
	return raw, info.Mode().Perm(), err
}

// writeFile replaces a file atomically: a reader sees the old bytes or the new ones. A symbolic
// link remains one. It returns the folders that it created, outermost first.
func writeFile(name string, raw []byte, mode fs.FileMode) (made []string, err error) {
	if target, err := filepath.EvalSymlinks(name); err == nil {
		name = target
	}
	dir := filepath.Dir(name)
	for at := dir; ; at = filepath.Dir(at) {
		if _, err := os.Stat(at); err == nil || at == filepath.Dir(at) {
			break
		}
		made = append([]string{at}, made...)
	}
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return nil, err
	}
	f, err := os.CreateTemp(dir, ".gateway-*")
	if err != nil {
		return made, err
	}
	_, err = f.Write(raw)
	err = errors.Join(err, f.Chmod(mode), f.Sync(), f.Close())
	if err == nil {
		err = os.Rename(f.Name(), name)
	}
	if err != nil {
		_ = os.Remove(f.Name())
	}
	return made, err
}

// readInput reads a file that the user named, or Stdin for "-", up to a size.
func (e Env) readInput(name string, most int64) ([]byte, error) {
	in := e.Stdin
	if name != "-" {
		info, err := os.Stat(name)
		if err != nil {
			return nil, err
		}
		if !info.Mode().IsRegular() {
			return nil, fmt.Errorf("%s is not a regular file", name)
		}
		f, err := os.Open(name)
		if err != nil {
			return nil, err
		}
		defer f.Close()
		in = f
	}
	raw, err := io.ReadAll(io.LimitReader(in, most+1))
	if err == nil && int64(len(raw)) > most {
		err = fmt.Errorf("%s is larger than %d bytes", name, most)
	}
	return raw, err
}

// done is the record of one setup, by which it is undone. It is stored with mode 0600: the
// settings before may hold keys.
type done struct {
	Agent   string   `json:"agent"`
	URL     string   `json:"url"`
	KeyID   string   `json:"key_id"`
	File    string   `json:"file"`
	Existed bool     `json:"existed"`
	Mode    uint32   `json:"mode"`
	Before  []byte   `json:"before"`
	Written string   `json:"written"` // SHA-256 of the written file
	Folders []string `json:"folders"` // that were made for it
}

func sum(raw []byte) string {
	h := sha256.Sum256(raw)
	return hex.EncodeToString(h[:])
}

// setupDir is the folder of the records and of what undo replaced.
func (e Env) setupDir() (string, error) {
	dir, err := e.dir()
	return filepath.Join(dir, "setup"), err
}

func (e Env) readDone(agent string) (*done, error) {
	dir, err := e.setupDir()
	if err != nil {
		return nil, err
	}
	name := filepath.Join(dir, agent+".json")
	raw, err := os.ReadFile(name)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	var d done
	if err := json.Unmarshal(raw, &d); err != nil || d.Agent != agent || d.File == "" {
		return nil, fmt.Errorf("%s is damaged: restore %s from a backup and delete it", name, agent)
	}
	return &d, nil
}

func (e Env) writeDone(d *done) error {
	dir, err := e.setupDir()
	if err != nil {
		return err
	}
	raw, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return err
	}
	_, err = writeFile(filepath.Join(dir, d.Agent+".json"), raw, 0o600)
	return err
}

var exportVerb = Verb{Name: "export", Summary: "Print the organization as one YAML file, secrets as ${NAME}", Run: export}

var applyVerb = Verb{Name: "apply", Args: "-f <file> [--plan] [--yes] [--prune]", Summary: "Apply the declared state of a file to the gateway", Run: apply, Path: []string{"-f", "--plan", "--yes", "--prune"}}

func export(ctx context.Context, e Env) int {
	_, asJSON, err := e.Parse(Flags("export"), 0, 0)
	if err != nil {
		return e.Fail(err)
	}
	c, err := e.Client(ctx)
	if err != nil {
		return e.Fail(err)
	}
	raw, secrets, err := declare.Export(ctx, c)
	if err != nil {
		return e.Fail(err)
	}
	if asJSON {
		n, err := document.Parse("export", raw)
		if err != nil {
			return e.Fail(err)
		}
		return e.Fail(e.printJSON(n.Value()))
	}
	if len(secrets) > 0 {
		fmt.Fprintf(e.Stdout, "# gateway apply takes these from the environment where they have to be written:\n# %s\n", strings.Join(secrets, "\n# "))
	}
	_, err = e.Stdout.Write(raw)
	return e.Fail(err)
}

func apply(ctx context.Context, e Env) int {
	fs := Flags("apply")
	file := fs.String("f", "", "the file; - is standard input")
	only := fs.Bool("plan", false, "only show what would be done")
	yes := fs.Bool("yes", false, "write without asking")
	prune := fs.Bool("prune", false, "delete resources that are missing in the sections of the file")
	_, asJSON, err := e.Parse(fs, 0, 0)
	if err == nil && *file == "" {
		err = Usagef("apply: name the file with -f; see gateway apply --help")
	}
	if err != nil {
		return e.Fail(err)
	}
	d, err := e.readDocument(*file)
	if err != nil {
		return e.Fail(err)
	}
	c, err := e.Client(ctx)
	if err != nil {
		return e.Fail(err)
	}
	plan, err := declare.MakePlan(ctx, c, d, declare.Options{Prune: *prune, Secrets: func(name string) (string, bool) {
		v := e.Getenv(name)
		return v, v != ""
	}})
	if err != nil {
		return e.Fail(err)
	}
	out := &outcome{Steps: plan.Steps, Missing: plan.Missing(), Compared: true}
	if out.Steps == nil {
		out.Steps = []*declare.Step{}
	}
	if !asJSON {
		printPlan(e, plan)
	}
	if !*only && len(plan.Steps) > 0 {
		if err := plan.Check(); err != nil {
			return e.Fail(err)
		}
		if !*yes && !e.Terminal {
			return e.Fail(Usagef("apply: without a terminal, --yes is needed to write; nothing was written"))
		}
		if ok, err := e.confirm(*yes, fmt.Sprintf("Carry out %d steps?", len(plan.Steps))); !ok {
			return e.Fail(err)
		}
		if err := plan.Apply(ctx, progressOf(e, asJSON)); err != nil {
			return e.Fail(err)
		}
		out.Applied = true
	}
	if asJSON {
		return e.Fail(e.printJSON(out))
	}
	return ExitDone
}

// readDocument reads a declared state.
func (e Env) readDocument(path string) (*declare.Document, error) {
	var raw []byte
	var err error
	if path == "-" {
		path = "standard input"
		raw, err = io.ReadAll(io.LimitReader(e.Stdin, document.MaxBytes+1))
	} else {
		raw, err = readLimited(path, document.MaxBytes)
	}
	if err != nil {
		return nil, err
	}
	n, err := document.Parse(filepath.Base(path), raw)
	if err != nil {
		return nil, err
	}
	return declare.Parse(n)
}

func readLimited(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	return io.ReadAll(io.LimitReader(f, limit+1))
}
