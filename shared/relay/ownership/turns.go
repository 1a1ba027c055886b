package ownership

import (
	"context"
	"time"

	"gateway/shared/store"
)

// turnLife is how long providers store a response or an interaction by default.
const turnLife = 30 * 24 * time.Hour

// Turn is a response or an interaction that a later request may continue.
type Turn struct {
	RequestedModel, Answered string // its model, as the request and as the response name it
	Tokens                   int64  // input and output tokens: the input of the next turn
}

// Of reports whether the turn was made by the model. Others may count the same content
// differently.
func (t Turn) Of(model string) bool {
	return model != "" && (model == t.RequestedModel || model == t.Answered)
}

func turnKey(sc store.Scope, place, id string) store.Key {
	return sc.Partition("TURN", place).Key(id)
}

// NoteTurn stores the size of a turn, at the place where its provider stores the id.
func NoteTurn(ctx context.Context, o *Owners, sc store.Scope, place, id string, t Turn) error {
	if id == "" || len(id) > MaxID {
		return nil
	}
	return o.Table.Put(ctx, store.Row{
		Key:     turnKey(sc, place, id),
		Item:    store.Item{"asked": t.RequestedModel, "answered": t.Answered, "tokens": t.Tokens},
		Expires: o.Now().Add(turnLife),
	})
}

// FindTurn returns what NoteTurn has stored; ok is false if it has not stored anything.
func FindTurn(ctx context.Context, o *Owners, sc store.Scope, place, id string) (t Turn, ok bool, err error) {
	if id == "" || len(id) > MaxID {
		return t, false, nil
	}
	item, there, err := o.Table.Get(ctx, turnKey(sc, place, id), true)
	if err != nil || !there {
		return t, false, err
	}
	return Turn{item.String("asked"), item.String("answered"), item.Int("tokens")}, true, nil
}
