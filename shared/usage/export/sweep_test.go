package export

import (
	"context"
	"errors"
	"testing"
	"time"

	"gateway/shared/blob"
	"gateway/shared/store"
	"gateway/shared/usage"
)

// stubborn is a bucket that deletes so many objects, then dies.
type stubborn struct {
	Bucket
	left int
}

var errDied = errors.New("the process died here")

func (b *stubborn) Delete(ctx context.Context, key string) error {
	if b.left--; b.left < 0 {
		return errDied
	}
	return b.Bucket.Delete(ctx, key)
}

// A file of logs goes with the logs of the day on which it was started: hidden at once,
// deleted by the next sweep that lives, and only where its own workspace says so.
func TestFilesGoWithTheLogsOfTheirDay(t *testing.T) {
	t.Parallel()
	h, ctx := newFixture(t), context.Background()
	h.fill(30, nil)
	days := map[string]int{}
	h.Runs.WorkspaceRetention = func(_ context.Context, sc store.Scope) (usage.WorkspaceRetention, error) {
		return usage.WorkspaceRetention{Standard: 5, Of: days}, nil
	}
	h.start("a", h.order("id"))
	h.finish()
	h.start("b", h.order("id"))
	h.finish()
	foreign := "exports/" + noon.Format(time.DateOnly) + "/org-1/ws-2/x-1/logs.jsonl"
	whole := "exports/" + noon.Format(time.DateOnly) + "/org-1/" + noWorkspace + "/y-1/logs.jsonl"
	other := "exports/" + noon.Format(time.DateOnly) + "/org-1/ws-3/z-1/logs.jsonl"
	for _, key := range []string{foreign, whole, other, "exports/notes.txt"} {
		if err := h.bucket.Put(ctx, key, []byte("x")); err != nil {
			t.Fatal(err)
		}
	}
	has := func(key string) bool {
		_, err := h.bucket.Get(ctx, key, 0)
		if err != nil && !errors.Is(err, blob.ErrNotFound) {
			t.Fatal(err)
		}
		return err == nil
	}
	midnight := noon.Truncate(24 * time.Hour)
	if r := h.run("a"); !r.Fetchable(h.clock()) || !r.Expires().Equal(midnight.AddDate(0, 0, 6)) {
		t.Fatalf("a file of logs that are kept for five days goes at %s", r.Expires())
	}
	days["ws-1"], days["ws-3"] = 1, 3
	h.pass(midnight.AddDate(0, 0, 2).Sub(noon) - time.Second)
	if err := h.Sweep(ctx); err != nil || !h.run("a").Fetchable(h.clock()) || !has(h.run("a").Key) {
		t.Fatalf("the file goes before the logs of its day: %v", err)
	}
	h.pass(time.Second)
	if r := h.run("a"); r.Fetchable(h.clock()) {
		t.Error("the file is shown when the logs of its day are not")
	}
	h.Worker.Bucket = &stubborn{h.bucket, 1}
	if err := h.Sweep(ctx); !errors.Is(err, errDied) {
		t.Fatal(err)
	}
	h.Worker.Bucket = h.bucket
	if err := h.Sweep(ctx); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{h.run("a").Key: false, h.run("b").Key: false, whole: false, foreign: true, other: true, "exports/notes.txt": true} {
		if has(key) != want {
			t.Errorf("%s is there: %v, want %v", key, !want, want)
		}
	}
	h.start("a", h.order("id")) // it may be written again
	h.Runs.Longest = 24 * time.Hour
	h.finish()
	if r := h.run("a"); !r.Expires().Equal(midnight.AddDate(0, 0, 4)) {
		t.Errorf("an installation that keeps bodies for a day keeps the file until %s", r.Expires())
	}
}
