package batch

import (
	"errors"
	"io"
	"path/filepath"
	"strings"
	"testing"
	"testing/iotest"
	"time"

	"gateway/shared/blob/files"
	"gateway/shared/seal"
	"gateway/shared/seal/local"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
)

// A worker that lost its batch to another must not take away what that one made:
// both write the same file of output.
func TestAFailedTryLeavesTheFileOfAnother(t *testing.T) {
	tables, err := sqlite.Open(filepath.Join(t.TempDir(), "tables.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { tables.Close() })
	master, err := local.Open(filepath.Join(t.TempDir(), "master.key"))
	if err != nil {
		t.Fatal(err)
	}
	bucket, err := files.Open(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	now := time.Now()
	rooms := &FileStores{Now: func() time.Time { return now }, Table: tables.Table(store.Usage), Bucket: bucket, Sealer: seal.New(master, time.Now)}
	room := rooms.BuiltIn(store.Scope{Org: "o", Workspace: "w"})
	rows := strings.Repeat(`{"custom_id":"a"}`+"\n", 100_000) // more than a chunk
	const id = "gw_file_1_output"
	if _, err := room.SaveAs(t.Context(), id, "rows.jsonl", "batch_output", strings.NewReader(rows)); err != nil {
		t.Fatal(err)
	}
	lost := errors.New("the lease is lost")
	late := io.MultiReader(strings.NewReader(rows[:chunkSize+10]), iotest.ErrReader(lost))
	if _, err := room.SaveAs(t.Context(), id, "rows.jsonl", "batch_output", late); !errors.Is(err, lost) {
		t.Fatal(err)
	}
	f, err := room.File(t.Context(), id)
	if err != nil || f == nil {
		t.Fatalf("%v %v", f, err)
	}
	got, err := io.ReadAll(room.Open(t.Context(), f))
	if err != nil || string(got) != rows {
		t.Errorf("%d bytes of %d: %v", len(got), len(rows), err)
	}
}
