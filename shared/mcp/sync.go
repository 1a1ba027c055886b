package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"

	"gateway/shared/resource"
)

// syncRows is the number of capabilities per transaction; each writes a record and a list row.
const syncRows = 30

// Fields of the list rows of capabilities.
const (
	FieldType    = "type"
	FieldEnabled = "enabled"
)

// Row returns the record of a capability.
func (c *Capability) Row(of *resource.Record, id, name string) (resource.Record, error) {
	rec := resource.Record{Scope: of.Scope, Kind: KindCapability.Of(of.ID), ID: id, Name: name, Status: "active"}
	return rec, c.Into(&rec)
}

// Into encodes the capability into its record.
func (c *Capability) Into(rec *resource.Record) error {
	rec.Fields = map[string]string{FieldType: c.Type}
	if c.Enabled {
		rec.Fields[FieldEnabled] = "1"
	}
	var err error
	rec.Body, err = json.Marshal(c)
	return err
}

// Store writes the result of an inspection for the integration of. New capabilities are
// enabled. Disabled capabilities stay disabled, even while the upstream does not list them.
func Store(ctx context.Context, r *resource.Resources, of resource.Ref, snap *Snapshot, actor string) error {
	kind := KindCapability.Of(of.ID)
	rows, err := r.List(ctx, of.Scope, kind)
	if err != nil {
		return err
	}
	listed := make(map[string]*Found, len(snap.Found))
	var ids []string
	for i := range snap.Found {
		f := &snap.Found[i]
		id := CapabilityID(f.Type, f.Key)
		if listed[id] == nil {
			ids = append(ids, id)
		}
		listed[id] = f
	}
	for i := range rows {
		if listed[rows[i].ID] == nil && rows[i].Fields[FieldEnabled] != "" {
			ids = append(ids, rows[i].ID) // no longer listed and not disabled
		}
	}
	for len(ids) > 0 {
		part := ids[:min(len(ids), syncRows)]
		ids = ids[len(part):]
		err := r.Change(ctx, of.Scope.Organisation(), func(tx *resource.Tx) error {
			if err := tx.Require(of); err != nil {
				return err
			}
			for _, id := range part {
				if err := storeCapability(tx, of, id, listed[id], actor); err != nil {
					return err
				}
			}
			return nil
		})
		if err != nil {
			return err
		}
	}
	return storeMetadata(ctx, r, of, snap.Metadata)
}

func storeCapability(tx *resource.Tx, of resource.Ref, id string, f *Found, actor string) error {
	rec, known, err := tx.Get(of.Scope, KindCapability.Of(of.ID), id)
	if err != nil {
		return err
	}
	if f == nil {
		if !known {
			return nil
		}
		return tx.Delete(&rec)
	}
	form := &Capability{Type: f.Type, Enabled: true}
	if known {
		if form, err = DecodeCapability(rec); err != nil {
			return err
		}
		if bytes.Equal(form.Shape, f.Shape) && rec.Name == f.Name {
			return nil
		}
	} else {
		rec = resource.Record{Scope: of.Scope, Kind: KindCapability.Of(of.ID), ID: id, Status: "active", CreatedBy: actor}
	}
	var compact bytes.Buffer
	if err := json.Compact(&compact, f.Shape); err != nil {
		return fmt.Errorf("mcp: %w", err)
	}
	form.Shape, rec.Name, rec.UpdatedBy = compact.Bytes(), f.Name, actor
	if err := form.Into(&rec); err != nil {
		return err
	}
	if known {
		return tx.Update(&rec)
	}
	return tx.Create(&rec)
}

// StoreFailure records that the inspection failed and preserves the earlier result.
func StoreFailure(ctx context.Context, r *resource.Resources, of resource.Ref, why string) error {
	return storeMetadata(ctx, r, of, Metadata{Status: SyncFailed, Error: why})
}

// storeMetadata writes the metadata into the integration.
func storeMetadata(ctx context.Context, r *resource.Resources, of resource.Ref, m Metadata) error {
	return r.Change(ctx, of.Scope.Organisation(), func(tx *resource.Tx) error {
		rec, ok, err := tx.Get(of.Scope, KindIntegration, of.ID)
		if err != nil || !ok || rec.Archived() {
			return err
		}
		form, err := DecodeIntegration(rec)
		if err != nil {
			return err
		}
		at := tx.Now().UTC()
		if m.Status == SyncFailed {
			form.Synced.Status, form.Synced.Error, form.Synced.At = SyncFailed, m.Error, &at
		} else {
			form.Synced = m
			form.Synced.Status, form.Synced.At = SyncSuccess, &at
		}
		if rec.Body, err = json.Marshal(form); err != nil {
			return fmt.Errorf("mcp: encode: %w", err)
		}
		return tx.Update(&rec)
	})
}
