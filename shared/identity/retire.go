package identity

import (
	"encoding/json"
	"fmt"

	"gateway/shared/resource"
)

// kindConfig is the kind of configs, which a key may name as its default.
const kindConfig resource.Kind = "CONFIG"

// Retire archives a key within a change: nothing opens with it any more, and
// nothing is kept for it. It takes at most RowsOfKey rows.
func Retire(tx *resource.Tx, rec *resource.Record) error {
	var k Key
	if err := json.Unmarshal(rec.Body, &k); err != nil {
		return fmt.Errorf("identity: key %s: %w", rec.ID, err)
	}
	if name := k.Defaults.ConfigID; name != "" {
		cfg, ok, err := tx.Get(rec.Scope, kindConfig, name)
		if err != nil {
			return err
		}
		if ok {
			if err := tx.Unuse(cfg.Ref(), rec.Ref()); err != nil {
				return err
			}
		}
	}
	if err := Reschedule(tx, rec.Ref(), &k, nil); err != nil {
		return err
	}
	Unstage(tx, rec, &k)
	return tx.Archive(rec)
}

// RowsOfKey is how many rows a key takes at most when it is made or retired.
const RowsOfKey = 14
