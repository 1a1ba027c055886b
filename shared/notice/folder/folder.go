// Package folder writes mails into a folder, one .eml file each, for people who run the
// gateway on their own machine: any mail program opens them.
package folder

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"time"

	"github.com/google/uuid"

	"gateway/shared/notice"
)

// Folder stores mails as files with names that sort by time.
type Folder struct {
	dir  string
	from string
	now  func() time.Time
}

// Open uses a folder, which is made with the first mail. from is the sender.
func Open(dir, from string) *Folder { return &Folder{dir, from, time.Now} }

// Send implements notice.Mailer. A file gets its name only when it is complete.
func (f *Folder) Send(_ context.Context, m notice.Mail) error {
	at, id := f.now().UTC(), uuid.NewString()
	raw, err := notice.Encode(&m, f.from, id, at)
	if err != nil {
		return err
	}
	if err := os.MkdirAll(f.dir, 0o700); err != nil {
		return fmt.Errorf("folder: %w", err)
	}
	name := filepath.Join(f.dir, at.Format("20060102T150405.000000000")+"-"+id)
	if err := os.WriteFile(name+".part", raw, 0o600); err != nil {
		return fmt.Errorf("folder: %w", err)
	}
	if err := os.Rename(name+".part", name+".eml"); err != nil {
		return fmt.Errorf("folder: %w", err)
	}
	return nil
}
