package providers

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"gateway/shared/ledger"
	"gateway/shared/provider"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// collection is below the maximum, for the resources that the benchmarks create.
const collection = 9_000

// full is a House with many providers with budgets in its first workspace.
func full(b *testing.B) *admintest.Installation {
	b.Helper()
	h := newInstallation(b)
	of := integrate(b, h, admintest.Org, h.One, "own")
	in := provider.Instance{UsageLimits: &ledger.UsageLimit{Type: ledger.Cost, CreditLimit: 5_000_000_000}}
	in.Bind(&of, &provider.Integration{AIProviderID: "openai"})
	body, err := json.Marshal(in)
	if err != nil {
		b.Fatal(err)
	}
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	for i := 0; i < collection; i += 30 {
		err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error {
			for j := i; j < i+30; j++ {
				rec := resource.Record{Scope: sc, Kind: provider.KindProvider, Slug: fmt.Sprint("bench-", j), Name: fmt.Sprint("Bench ", j), Status: "active", Body: body}
				if err := tx.Create(&rec); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			b.Fatal(err)
		}
	}
	return h
}

func BenchmarkListWarm(b *testing.B) {
	h := full(b)
	b.ReportAllocs()
	for b.Loop() {
		h.Do("GET", "/providers?page_size=50&current_page=100", key, nil).OK()
	}
}

func BenchmarkRead(b *testing.B) {
	h := full(b)
	b.ReportAllocs()
	for b.Loop() {
		h.Do("GET", "/providers/bench-7", key, nil).OK()
	}
}

func BenchmarkCreateAndDeleteVirtualKey(b *testing.B) {
	h := full(b)
	b.ReportAllocs()
	for b.Loop() {
		slug := h.Do("POST", "/virtual-keys", key, `{"name":"n","provider":"openai","key":"sk-abcdefgh"}`).OK().Text("data", "slug")
		h.Do("DELETE", "/virtual-keys/"+slug, key, nil).OK()
	}
}
