package ownership

import (
	"context"
	"encoding/json"
	"errors"
	"strconv"
	"strings"
	"testing"
	"time"

	"gateway/shared/seal"
	"gateway/shared/store"
)

// A turn is found below its scope and place only, by either name of its model.
func TestTurnsAreFoundWhereTheyWereMade(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := newOwners(t, &now)
	a, b := store.Scope{Org: "o", Workspace: "a"}, store.Scope{Org: "o", Workspace: "b"}
	want := Turn{"gpt-4o", "gpt-4o-2024-08-06", 1234}
	if err := StoreTurn(t.Context(), o, a, "openai", "resp_1", want); err != nil {
		t.Fatal(err)
	}
	if err := StoreTurn(t.Context(), o, a, "openai", strings.Repeat("x", MaxID+1), want); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		sc        store.Scope
		place, id string
		ok        bool
	}{
		{a, "openai", "resp_1", true}, {a, "openai", "resp_2", false}, {a, "azure", "resp_1", false}, {b, "openai", "resp_1", false},
		{a, "openai", "", false}, {a, "openai", strings.Repeat("x", MaxID+1), false},
	} {
		if got, ok, err := FindTurn(t.Context(), o, c.sc, c.place, c.id); err != nil || ok != c.ok || ok && got != want {
			t.Errorf("%v %s %.9s: %+v %v %v", c.sc, c.place, c.id, got, ok, err)
		}
	}
	for model, is := range map[string]bool{"gpt-4o": true, "gpt-4o-2024-08-06": true, "gpt-4o-mini": false, "": false} {
		if want.MadeBy(model) != is || (Turn{}).MadeBy(model) {
			t.Errorf("%s: %v", model, !is)
		}
	}
}

// counted counts the rows that are read together.
type counted struct {
	store.Table
	rows []int
}

func (c *counted) GetMany(ctx context.Context, keys []store.Key) (map[store.Key]store.Item, error) {
	c.rows = append(c.rows, len(keys))
	return c.Table.GetMany(ctx, keys)
}

// plain seals nothing.
type plain struct{}

func (plain) Seal(_ context.Context, _ seal.Binding, b []byte) ([]byte, error) { return b, nil }

func (plain) Open(_ context.Context, _ seal.Binding, b []byte) ([]byte, error) { return b, nil }

// A conversation is read in parts, and no further than its limit.
func TestLongConversationsAreNotReadWhole(t *testing.T) {
	t.Parallel()
	sc := store.Scope{Org: "o", Workspace: "a"}
	now := time.Now()
	table := &counted{Table: newOwners(t, &now).Table}
	m := New(time.Now, table, plain{})
	items := []byte(`["` + strings.Repeat("x", 1000) + `"]`)
	var before []string
	for i := range 40 {
		id := strconv.Itoa(i)
		if err := errors.Join(m.PutOutput(t.Context(), sc, id, items), m.PutInput(t.Context(), sc, id, before, items)); err != nil {
			t.Fatal(err)
		}
		before = append(before, id)
	}
	whole, ids, err := m.Conversation(t.Context(), sc, "39", 1<<20)
	if err != nil || len(ids) != 40 || len(whole) < 80_000 || !json.Valid(whole) || len(table.rows) != 3 {
		t.Errorf("%d bytes of %d responses in %v reads, %v", len(whole), len(ids), table.rows, err)
	}
	table.rows = nil
	part, _, err := m.Conversation(t.Context(), sc, "39", 10_000)
	if err != nil || len(part) <= 10_000 || len(table.rows) != 1 {
		t.Errorf("%d bytes in %v reads, %v", len(part), table.rows, err)
	}
}
