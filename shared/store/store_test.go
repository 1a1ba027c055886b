package store_test

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"

	"gateway/shared/store"
)

func TestKeysOfScopesDoNotMeet(t *testing.T) {
	scopes := []store.Scope{
		{Org: "a"}, {Org: "a", Workspace: "b"}, {Org: "a#WS#b"}, {Org: "a#WS", Workspace: "b"}, {Org: "a%23WS%23b"},
		{Org: "a", Workspace: "b#c"}, store.Scope{Org: "a", Workspace: "b"}.Organisation(),
	}
	seen := map[string]store.Scope{}
	for _, s := range scopes {
		pk := s.Partition().String()
		if other, twice := seen[pk]; twice && other != s {
			t.Errorf("%+v and %+v share %s", s, other, pk)
		}
		seen[pk] = s
	}
	for s, want := range map[store.Scope]string{
		{Org: "a"}:                   "ORG#a",
		{Org: "a", Workspace: "b"}:   "ORG#a#WS#b",
		{Org: "a#b", Workspace: "c"}: "ORG#a%23b#WS#c",
	} {
		if got := s.Partition().String(); got != want {
			t.Errorf("%+v is %s, want %s", s, got, want)
		}
	}
	k := store.Scope{Org: "a"}.Partition("audit", "2026-11").Key("X", "1")
	if k.PK() != "ORG#a#audit#2026-11" || k.SK() != "X#1" || k.Partition().Key("X#1") != k {
		t.Errorf("key is %+v", k)
	}
	if k := store.Credential("KEY", "ab#c"); k.PK() != "KEY#ab%23c" || k.SK() != "-" {
		t.Errorf("credential is %+v", k)
	}
}

func TestAScopeWithoutOrganisationPanics(t *testing.T) {
	defer func() {
		if recover() == nil {
			t.Error("a partition of nobody was made")
		}
	}()
	store.Scope{Workspace: "w"}.Partition()
}

func TestSizeCountsAsDynamoDBDoes(t *testing.T) {
	key := store.RawKey("p", "s")
	empty := store.Item{}.Size(key)
	for name, c := range map[string]struct {
		item store.Item
		want int
	}{
		"text":         {store.Item{"ab": "çd"}, 2 + 3},
		"bytes":        {store.Item{"ab": []byte{1, 2, 3}}, 2 + 3},
		"boolean":      {store.Item{"ab": true}, 2 + 1},
		"zero":         {store.Item{"ab": int64(0)}, 2 + 2},
		"two digits":   {store.Item{"ab": int64(99)}, 2 + 2},
		"three digits": {store.Item{"ab": int64(100)}, 2 + 3},
		"negative":     {store.Item{"ab": int64(-99)}, 2 + 3},
		"map":          {store.Item{"ab": store.Map{"k": "v", "kk": int64(1)}}, 2 + 3 + (1 + 1 + 1) + (2 + 2 + 1)},
	} {
		if got := c.item.Size(key) - empty; got != c.want {
			t.Errorf("%s: %d bytes, want %d", name, got, c.want)
		}
	}
}

func TestEpochPreservesWholeSecondsAndNever(t *testing.T) {
	if store.Epoch(time.Time{}) != 0 || !store.FromEpoch(0).IsZero() {
		t.Error("never is not kept")
	}
	if got := store.Epoch(time.Unix(0, 0)); got != 1 {
		t.Errorf("1970 is stored as %d, which means never", got)
	}
	at := time.Date(2026, 11, 20, 12, 0, 0, 999, time.UTC)
	if got := store.FromEpoch(store.Epoch(at)); !got.Equal(at.Truncate(time.Second)) {
		t.Errorf("%v is kept as %v", at, got)
	}
}

// Callers keep what they were given: an update shares no map that it changes,
// nor a map that the caller passed in.
func TestApplyLeavesItsArgumentsAlone(t *testing.T) {
	before := store.Item{"n": int64(1), "m": store.Map{"k": int64(1), "l": "x"}}
	original := store.Map{"a": "b"}
	u := store.Update{
		Key:    store.RawKey("p", "s"),
		Set:    []store.Assign{{Path: store.In("m", "l"), Value: "y"}, {Path: store.At("g"), Value: original}},
		Add:    []store.Increment{{Path: store.In("m", "k"), By: 1}, {Path: store.At("n"), By: 1}},
		Remove: []store.Path{store.In("m", "gone")},
	}
	after, err := u.Apply(before)
	if err != nil {
		t.Fatal(err)
	}
	original["a"] = "changed"
	want := store.Item{"n": int64(2), "m": store.Map{"k": int64(2), "l": "y"}, "g": store.Map{"a": "b"}}
	if diff := cmp.Diff(want, after); diff != "" {
		t.Error(diff)
	}
	if diff := cmp.Diff(store.Item{"n": int64(1), "m": store.Map{"k": int64(1), "l": "x"}}, before); diff != "" {
		t.Errorf("the row before changed: %s", diff)
	}
}

// The check of few paths and the one of many decide alike.
func TestPathsThatMeetAreFoundAmongFewAndMany(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		path := rapid.Custom(func(t *rapid.T) store.Path {
			return store.Path{
				Attr: rapid.SampledFrom([]string{"a", "b", "c", "d", "e"}).Draw(t, "attr"),
				Key:  rapid.SampledFrom([]string{"", "k", "l", "m"}).Draw(t, "key"),
			}
		})
		few := store.Update{Key: store.RawKey("p", "s"), Remove: rapid.SliceOfN(path, 1, 5).Draw(t, "paths")}
		many := few
		for i := range 20 {
			many.Add = append(many.Add, store.Increment{Path: store.At(strings.Repeat("x", i+2)), By: 1})
		}
		if a, b := few.Validate(), many.Validate(); (a == nil) != (b == nil) {
			t.Fatalf("%v among few, %v among many", a, b)
		}
	})
}
