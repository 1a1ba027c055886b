package segment

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"gateway/shared/store"
	"gateway/shared/usage"
)

// An organization with days that were compacted before organizations had rows, and without
// records since, is found by the notes of its days, of whichever kind remain, in however many
// parts; data beyond its workspaces' retention is deleted.
func TestOrganisationsOfOldDaysAreFound(t *testing.T) {
	t.Parallel()
	for name, open := range stores {
		for _, most := range []int{1, 3, migrateRows} {
			t.Run(fmt.Sprintf("%s/%d", name, most), func(t *testing.T) {
				t.Parallel()
				h := newShelf(t)
				ctx := context.Background()
				if open != nil {
					h.store = open(t)
				}
				h.Archive = New(h.store, h.bucket, Options{Clock: func() time.Time { return h.now }, WorkspaceRetention: func(_ context.Context, sc store.Scope) (usage.WorkspaceRetention, error) {
					return usage.WorkspaceRetention{Standard: 5}, nil
				}})
				orgs := []string{"org-1", "org-2", "org-3", "org-4"}
				for i, org := range orgs {
					for day := range 2 {
						r := made(i*2+day, noon.AddDate(0, 0, day))
						r.Org = org
						h.ingest(t, r)
					}
				}
				h.compactAt(t, noon.AddDate(0, 0, 3))
				h.compactAt(t, noon.AddDate(0, 0, 3).Add(time.Minute))
				for i, key := range h.keys(t, dueRows()) {
					if strings.HasPrefix(key.SK(), []string{"B#", "R#"}[i%2]) { // one of the two was done
						h.remove(t, key)
					}
				}
				for _, key := range h.keys(t, retentionRows()) { // as it was before
					h.remove(t, key)
				}
				h.now = noon.AddDate(0, 0, 30)
				if got, err := h.Organizations(ctx, "", 10); err != nil || len(got) != 0 {
					t.Fatal(got, err)
				}
				for range 40 {
					if err := (thinner{h.Archive}).migrate(ctx, most); err != nil {
						t.Fatal(err)
					}
				}
				if got, err := h.Organizations(ctx, "", 10); err != nil || !slices.Equal(got, orgs) {
					t.Fatal(got, err)
				}
				if item, _, err := h.table.Get(ctx, migrationKey(), true); err != nil || !item.Bool("done") {
					t.Error(item, err)
				}
				if err := h.Retain(ctx); err != nil {
					t.Fatal(err)
				}
				for _, org := range orgs {
					if list, err := h.List(ctx, org, 0, maxHour*Hour); err != nil || len(list) != 0 {
						t.Errorf("%s has %d segments: %v", org, len(list), err)
					}
				}
			})
		}
	}
}

// keys are those of a partition.
func (h *shelf) keys(t *testing.T, p store.Partition) (keys []store.Key) {
	t.Helper()
	for _, sk := range h.rows(t, p) {
		keys = append(keys, p.Key(strings.Split(sk, "#")...))
	}
	return keys
}

func (h *shelf) remove(t *testing.T, key store.Key) {
	t.Helper()
	if err := h.table.Delete(context.Background(), key); err != nil {
		t.Fatal(err)
	}
}
