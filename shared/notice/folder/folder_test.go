package folder_test

import (
	"bytes"
	"net/mail"
	"os"
	"path/filepath"
	"testing"

	"gateway/shared/notice"
	"gateway/shared/notice/folder"
)

func TestEachMailIsAFileOfItsOwn(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "mail")
	f := folder.Open(dir, "gateway@localhost")
	for _, subject := range []string{"first", "second"} {
		if err := f.Send(t.Context(), notice.Mail{To: []string{"ann@example.com"}, Subject: subject, Text: "Hello"}); err != nil {
			t.Fatal(err)
		}
	}
	if err := f.Send(t.Context(), notice.Mail{Subject: "to nobody", Text: "Hello"}); err == nil {
		t.Error("a mail to nobody was kept")
	}
	all, err := os.ReadDir(dir)
	if err != nil || len(all) != 2 {
		t.Fatalf("%d files, %v", len(all), err)
	}
	for i, want := range []string{"first", "second"} {
		path := filepath.Join(dir, all[i].Name())
		raw, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		m, err := mail.ReadMessage(bytes.NewReader(raw))
		if err != nil || m.Header.Get("Subject") != want || m.Header.Get("To") != "ann@example.com" || filepath.Ext(path) != ".eml" {
			t.Errorf("%s: %v\n%s", path, err, raw)
		}
		if info, err := os.Stat(path); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: %v %v", path, info.Mode(), err)
		}
	}
}
