package cli

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"

	"gateway/local/cli/settings"
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
