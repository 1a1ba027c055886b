package configs

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"

	"gateway/shared/resource"
	"gateway/shared/route"
	"gateway/shared/store"
	"gateway/shared/testkit/admintest"
)

// full is a House with n configs in its first workspace.
func full(b *testing.B, n int) *admintest.Installation {
	b.Helper()
	h := newInstallation(b)
	sc := store.Scope{Org: admintest.Org, Workspace: h.One}
	for i := 0; i < n; i += 30 {
		err := h.Resources.Change(context.Background(), sc, func(tx *resource.Tx) error {
			for j := i; j < min(i+30, n); j++ {
				rec := resource.Record{Scope: sc, Kind: route.KindConfig, Slug: fmt.Sprint("pc-bench-", j), Name: fmt.Sprint("Bench ", j), Status: "active", Body: []byte(`{"provider":"@mock"}`)}
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

const collection = 9_000 // below the maximum, for the resources that the benchmark creates

func BenchmarkListWarm(b *testing.B) {
	h := full(b, collection)
	for b.Loop() {
		h.Do("GET", "/configs?page_size=50&current_page=100", key, nil).OK()
	}
}

// A list after a change reads its rows again.
func BenchmarkListFirst(b *testing.B) {
	h := full(b, collection)
	for b.Loop() {
		b.StopTimer()
		h.Do("PUT", "/configs/pc-bench-7", key, `{"name":"x"}`).OK()
		b.StartTimer()
		h.Do("GET", "/configs?page_size=50&current_page=100", key, nil).OK()
	}
}

func BenchmarkRead(b *testing.B) {
	h := full(b, collection)
	for b.Loop() {
		h.Do("GET", "/configs/pc-bench-7", key, nil).OK()
	}
}

func BenchmarkUpdate(b *testing.B) {
	h := full(b, collection)
	var n atomic.Int64
	for b.Loop() {
		h.Do("PUT", "/configs/pc-bench-7", key, fmt.Sprintf(`{"config":{"provider":"@m%d"}}`, n.Add(1))).OK()
	}
}

func BenchmarkCreateAndDelete(b *testing.B) {
	h := full(b, collection)
	for b.Loop() {
		slug := h.Do("POST", "/configs", key, `{"name":"n","config":{"provider":"@mock"}}`).OK().Text("data", "slug")
		h.Do("DELETE", "/configs/"+slug, key, nil).OK()
	}
}
