package ownership

import (
	"strings"
	"testing"
	"time"

	"gateway/shared/store"
)

// A turn is found below its scope and place only, by either name of its model.
func TestTurnsAreFoundWhereTheyWereMade(t *testing.T) {
	t.Parallel()
	now := time.Now()
	o := newOwners(t, &now)
	a, b := store.Scope{Org: "o", Workspace: "a"}, store.Scope{Org: "o", Workspace: "b"}
	want := Turn{"gpt-4o", "gpt-4o-2024-08-06", 1234}
	if err := NoteTurn(t.Context(), o, a, "openai", "resp_1", want); err != nil {
		t.Fatal(err)
	}
	if err := NoteTurn(t.Context(), o, a, "openai", strings.Repeat("x", MaxID+1), want); err != nil {
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
		if want.Of(model) != is || (Turn{}).Of(model) {
			t.Errorf("%s: %v", model, !is)
		}
	}
}
