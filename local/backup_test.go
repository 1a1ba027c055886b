package main

import (
	"os"
	"path/filepath"
	"testing"
)

// A copy of the stopped folder is a whole gateway: keys, providers with their credentials,
// and logs. The original continues independently.
func TestACopiedFolderIsAWholeGateway(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	r := startIn(t, dir)
	key := r.newKey("")
	for range 3 {
		if got := r.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", ""), "X-Gateway-Api-Key", key); got.status != 200 {
			t.Fatal(got.body)
		}
	}
	r.records(3)
	r.stop()
	backup := filepath.Join(t.TempDir(), "copy")
	if err := os.CopyFS(backup, os.DirFS(dir)); err != nil {
		t.Fatal(err)
	}
	if err := os.Chmod(filepath.Join(backup, "master.key"), 0o600); err != nil { // cp -a keeps it
		t.Fatal(err)
	}
	for _, folder := range []string{backup, dir} {
		again := startIn(t, folder)
		if got := again.call("POST", "/chat/completions", chatBody("@mock/gpt-4o-mini", "Hello", ""), "X-Gateway-Api-Key", key); got.status != 200 {
			t.Errorf("%d %s", got.status, got.body)
		}
		if n := len(again.records(4)); n != 4 {
			t.Errorf("%d records", n)
		}
		again.stop()
	}
}
