package identity

import (
	"encoding/json"
	"fmt"
	"maps"

	"gateway/shared/resource"
)

// kindConfig is the kind of configs. A key may name one as its default.
const kindConfig resource.Kind = "CONFIG"

// Retire archives a key within a transaction: it becomes invalid, and its rows are deleted. It
// takes at most RowsOfKey rows.
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

// Fields of suspended keys: the user and the former status.
const (
	suspendedFor = "suspended"
	suspendedAs  = "suspended_as"
)

// Suspend retires a key so that Restore can restore it.
func Suspend(tx *resource.Tx, rec *resource.Record) error {
	fields := map[string]string{suspendedFor: rec.Fields["user"], suspendedAs: rec.Status}
	maps.Copy(fields, rec.Fields)
	rec.Fields = fields
	return Retire(tx, rec)
}

// Suspended returns the user for whom a key is suspended, from its list row, or "".
func Suspended(row *resource.Row) string { return row.Fields[suspendedFor] }

// Restore restores a suspended key. It takes at most RowsOfKey rows.
func Restore(tx *resource.Tx, rec *resource.Record, workspaceSlug string) error {
	var k Key
	if err := json.Unmarshal(rec.Body, &k); err != nil {
		return fmt.Errorf("identity: key %s: %w", rec.ID, err)
	}
	rec.Status = rec.Fields[suspendedAs]
	delete(rec.Fields, suspendedFor)
	delete(rec.Fields, suspendedAs)
	if name := k.Defaults.ConfigID; name != "" {
		cfg, ok, err := tx.Get(rec.Scope, kindConfig, name)
		if err != nil {
			return err
		}
		if ok && !cfg.Archived() {
			if err := tx.Use(cfg.Ref(), rec.Ref()); err != nil {
				return err
			}
		} else {
			k.Defaults.ConfigID = ""
			if rec.Body, err = json.Marshal(&k); err != nil {
				return fmt.Errorf("identity: encode key: %w", err)
			}
		}
	}
	if err := tx.Update(rec); err != nil {
		return err
	}
	if err := Reschedule(tx, rec.Ref(), nil, &k); err != nil {
		return err
	}
	return Stage(tx, rec, &k, workspaceSlug)
}

// RowsOfKey is the maximum number of rows for creating or retiring a key.
const RowsOfKey = 14
