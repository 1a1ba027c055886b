package app_test

import (
	"context"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"gateway/shared/app"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/seal"
	"gateway/shared/store"
	"gateway/shared/store/sqlite"
	"gateway/shared/tenant"
)

// lossy commits and then loses the responses of its first commits.
type lossy struct {
	store.Store
	mu   sync.Mutex
	lose int
}

func (l *lossy) Transact(ctx context.Context, actions ...store.Action) error {
	err := l.Store.Transact(ctx, actions...)
	l.mu.Lock()
	defer l.mu.Unlock()
	if err == nil && l.lose > 0 {
		l.lose--
		return store.ErrUncertain
	}
	return err
}

// empty is a core on empty stores whose first commits lose their responses.
func empty(t *testing.T, lose int) *app.Core {
	t.Helper()
	s, err := sqlite.Open(filepath.Join(t.TempDir(), "t.db"), sqlite.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return app.New(app.Backends{Store: &lossy{Store: s, lose: lose}, Sealer: seal.Absent{}}, app.Settings{})
}

func TestSetupWorksOnce(t *testing.T) {
	t.Parallel()
	c := empty(t, 0)
	got, err := c.Setup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if got.Organisation != "default" || got.Workspace != "default" || got.AdminKey == got.WorkspaceKey || got.Note == "" {
		t.Errorf("%s %s %s", got.Organisation, got.Workspace, got.Note)
	}
	for raw, kind := range map[string]identity.KeyType{got.AdminKey: identity.OrganisationService, got.WorkspaceKey: identity.WorkspaceService} {
		p, err := c.Auth.Authenticate(t.Context(), raw, identity.AuthenticationAttempt{})
		if err != nil || p.Type != kind {
			t.Errorf("a key of setup is %v: %v", p, err)
		}
	}
	rec, _, err := c.Resources.Get(t.Context(), store.Scope{Org: "default"}, tenant.KindOrganisation, "default")
	if err != nil || !strings.Contains(string(rec.Body), `"block_inline_config":true`) {
		t.Errorf("inline configs are allowed: %s %v", rec.Body, err)
	}
	if n := outbox(t, c, got); n != 2 {
		t.Errorf("the audit log is told of %d keys", n)
	}
	again, err := c.Setup(t.Context())
	if again != nil || err == nil || !strings.Contains(err.Error(), `organization "default" already exists`) || !strings.Contains(err.Error(), "nothing was changed") {
		t.Errorf("a second time: %v", err)
	}
}

// outbox counts the records that wait for the audit log, none of which may hold a
// raw key.
func outbox(t *testing.T, c *app.Core, keys *app.SetUp) int {
	t.Helper()
	n := 0
	for shard := range resource.OutboxPartitions {
		page, err := c.Store.Table(store.Control).Query(t.Context(), store.Query{Partition: resource.OutboxPartition(shard), Limit: 100})
		if err != nil {
			t.Fatal(err)
		}
		for _, row := range page.Rows {
			for _, v := range row.Item {
				if b, ok := v.([]byte); ok && (strings.Contains(string(b), keys.AdminKey) || strings.Contains(string(b), keys.WorkspaceKey)) {
					t.Error("the audit log is told a raw key")
				}
			}
			// Beside the records travel the states of what was made.
			if !strings.Contains(string(row.Item.Bytes("body")), `"action":"state"`) {
				n++
			}
		}
	}
	return n
}

func TestSetupsAtOnceMakeOneOrganisation(t *testing.T) {
	t.Parallel()
	c := empty(t, 0)
	var wg sync.WaitGroup
	var mu sync.Mutex
	var made []*app.SetUp
	for range 8 {
		wg.Go(func() {
			got, err := c.Setup(t.Context())
			mu.Lock()
			defer mu.Unlock()
			if err == nil {
				made = append(made, got)
			} else if !strings.Contains(err.Error(), "already exists") {
				t.Errorf("refused with %v", err)
			}
		})
	}
	wg.Wait()
	if len(made) != 1 {
		t.Fatalf("%d of 8 were given keys", len(made))
	}
	if _, err := c.Auth.Authenticate(t.Context(), made[0].AdminKey, identity.AuthenticationAttempt{}); err != nil {
		t.Error(err)
	}
}

// The keys of a change whose response was lost are shown all the same: nobody could
// read them again.
func TestSetupWithALostResponse(t *testing.T) {
	t.Parallel()
	c := empty(t, 1)
	got, err := c.Setup(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := c.Auth.Authenticate(t.Context(), got.AdminKey, identity.AuthenticationAttempt{}); err != nil {
		t.Error(err)
	}
}
