package usage

import (
	"bytes"
	"context"
	"fmt"
	"io"
	"path/filepath"
	"testing"

	"gateway/shared/blob/files"
)

// The part that the reader has passed is released in parts without gaps, and remains available
// to anyone who opens a log.
func TestWhatWasReadLeavesThePageCacheAndNotTheFile(t *testing.T) {
	ctx, dir := context.Background(), t.TempDir()
	bucket, err := files.Open(filepath.Join(dir, "blobs"))
	if err != nil {
		t.Fatal(err)
	}
	defer bucket.Close()
	j := openJournal(t, filepath.Join(dir, "journal"), JournalOptions{MaxFileBytes: 5 * cacheStep, Bucket: bucket, Durable: true})
	body := func(i int) []byte { return bytes.Repeat([]byte{byte(i), byte(i >> 8), 0xA7}, 60<<10/3) }
	packs := make(map[string]Pack)
	var dropped int64
	for i := range 200 {
		r := sample()
		r.ID, r.Bodies = fmt.Sprint(i), body(i)
		if err := j.Emit(ctx, &r); err != nil {
			t.Fatal(err)
		}
		if i%7 != 6 {
			continue
		}
		b, err := j.Next(ctx, 100, 0)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range b.Records {
			packs[r.ID] = r.Pack
		}
		rd := &j.reader
		if rd.dropped > rd.flushed || rd.flushed > rd.at.off || rd.at.off-rd.flushed > 2*cacheStep {
			t.Fatalf("dropped %d, flushed %d, read %d", rd.dropped, rd.flushed, rd.at.off)
		}
		dropped = max(dropped, rd.dropped)
	}
	if dropped == 0 {
		t.Error("nothing was given up")
	}
	for id, p := range packs {
		from, _, err := bucket.Open(ctx, p.Key, p.Offset, p.Length)
		if err != nil {
			t.Fatal(err)
		}
		got, err := io.ReadAll(from)
		_ = from.Close()
		var i int
		if fmt.Sscan(id, &i); err != nil || !bytes.Equal(got, body(i)) {
			t.Fatalf("%s: %d bytes, %v", id, len(got), err)
		}
	}
}
