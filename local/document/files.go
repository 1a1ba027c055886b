package document

import (
	"errors"
	"io"
	"io/fs"
	"os"
	"path/filepath"
)

// Folder reads files of one folder. No name, and no link in it, leads out of the folder.
type Folder struct {
	root *os.Root
	left int // bytes that may still be read
	show string
}

// Open returns the folder of a file, and the name of the file in it. max is how many bytes
// may be read from the folder in all. The caller closes the folder.
func Open(path string, max int) (*Folder, string, error) {
	dir, name := filepath.Split(path)
	if dir == "" {
		dir = "."
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return nil, "", err
	}
	return &Folder{root: root, left: max, show: filepath.Dir(path)}, name, nil
}

// Close closes the folder.
func (f *Folder) Close() error { return f.root.Close() }

// Read parses a file of the folder. at is the place of the name, for errors.
func (f *Folder) Read(name string, at Place) (*Node, error) {
	refuse := func(message string) error {
		if at.File == "" {
			at.File = name
		}
		return Errorf(at, "", "%s: %s", clip(name), message)
	}
	if !filepath.IsLocal(filepath.FromSlash(name)) {
		return nil, refuse("is outside of the folder of the file that is imported")
	}
	file, err := f.root.Open(filepath.FromSlash(name))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return nil, refuse("does not exist")
	case err != nil:
		return nil, refuse("cannot be opened inside the folder of the file that is imported")
	}
	defer file.Close()
	if info, err := file.Stat(); err != nil || !info.Mode().IsRegular() {
		return nil, refuse("is no regular file")
	}
	raw, err := io.ReadAll(io.LimitReader(file, int64(f.left)+1))
	if err != nil {
		return nil, refuse("cannot be read")
	}
	if len(raw) > f.left {
		return nil, refuse("the files have too many bytes in all")
	}
	f.left -= len(raw)
	return Parse(name, raw)
}
