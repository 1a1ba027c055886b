package admin_test

import (
	"sync"
	"testing"

	"gateway/shared/admin"
	"gateway/shared/testkit/admintest"
)

// The document is generated at its first read, while the routes that it describes serve:
// neither changes what the other reads.
func TestTheDocumentIsMadeWhileRoutesServe(t *testing.T) {
	t.Parallel()
	families := []admin.Family{boxFamily(), ruleFamily(true), textFamily(), scimFamily()}
	h := admintest.New(t, families...)
	var wg sync.WaitGroup
	for range 4 {
		wg.Go(func() {
			if len(admin.OpenAPI("t", "1", families...)) == 0 {
				t.Error("no document")
			}
		})
		wg.Go(func() {
			for _, path := range []string{"/boxes", "/rules", "/texts"} {
				if got := h.Do("GET", path, admintest.WorkspaceA, nil); got.Status != 200 {
					t.Errorf("%s: %d %s", path, got.Status, got.Body)
				}
			}
		})
	}
	wg.Wait()
}
