package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"unicode/utf8"

	"gateway/shared/resource"
	"gateway/shared/tenant/upstream"
)

// Limits of what an upstream may list.
const (
	maxPages        = 200
	MaxCapabilities = 5000
	maxShape        = 100 << 10 // bytes of one capability
	maxIcons        = 16 << 10
	maxText         = 8 << 10 // characters
)

// Snapshot is the result of inspecting an upstream.
type Snapshot struct {
	Metadata
	Found []Found
}

// Found is a capability in the form that the upstream lists.
type Found struct {
	Type, Name string
	Key        string // unique within the type
	Shape      json.RawMessage
}

// kinds describes how capabilities are listed: the method, the field of its result, the
// server's capability flag, and the key field of an entry.
var kinds = []struct{ kind, method, member, flag, key string }{
	{Tool, "tools/list", "tools", "tools", "name"},
	{Prompt, "prompts/list", "prompts", "prompts", "name"},
	{Resource, "resources/list", "resources", "resources", "uri"},
	{ResourceTemplate, "resources/templates/list", "resourceTemplates", "resources", "uriTemplate"},
}

// Inspect reads the metadata and all capabilities of an upstream.
func Inspect(ctx context.Context, u *Upstream) (*Snapshot, error) {
	through, hello, version, err := u.handshake(ctx)
	if err != nil {
		return nil, err
	}
	if s, ok := through.(*Session); ok {
		defer s.End(context.WithoutCancel(ctx))
	}
	snap, flags, err := parseHello(hello, version)
	if err != nil {
		return nil, err
	}
	for _, k := range kinds {
		if _, has := flags[k.flag]; !has {
			continue
		}
		if err := listAll(ctx, through, k.method, k.member, func(raw json.RawMessage) error {
			return snap.add(k.kind, k.key, raw)
		}); err != nil {
			if e, refused := err.(*Error); refused && e.Code == CodeMethodNotFound {
				continue // such as a server with resources and without templates
			}
			return nil, err
		}
	}
	return snap, nil
}

// handshake detects whether an upstream is stateless and returns its self-description.
func (u *Upstream) handshake(ctx context.Context) (_ pageLister, hello json.RawMessage, version string, _ error) {
	if u.Transport != TransportSSE {
		hello, _, err := u.Discover(ctx)
		if err != nil {
			return nil, nil, "", err
		}
		if hello != nil {
			return &statelessClient{up: u}, hello, Modern, nil
		}
	}
	s, err := u.Connect(ctx, nil)
	if err != nil {
		return nil, nil, "", err
	}
	return s, s.Hello, s.Version, nil
}

// serverName is the Implementation object of an upstream.
type serverName struct {
	Name        string          `json:"name"`
	Title       string          `json:"title"`
	Version     string          `json:"version"`
	Description string          `json:"description"`
	Website     string          `json:"websiteUrl"`
	Icons       json.RawMessage `json:"icons"`
}

// parseHello reads the result of server/discover or initialize.
func parseHello(hello json.RawMessage, version string) (*Snapshot, map[string]json.RawMessage, error) {
	var h struct {
		Capabilities map[string]json.RawMessage `json:"capabilities"`
		Instructions string                     `json:"instructions"`
		Server       serverName                 `json:"serverInfo"`
		Meta         struct {
			Server *serverName `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if json.Unmarshal(hello, &h) != nil {
		return nil, nil, upstream.Fail(http.StatusOK, "the server's self-description does not match the protocol")
	}
	if h.Meta.Server != nil {
		h.Server = *h.Meta.Server
	}
	flags, _ := json.Marshal(h.Capabilities) // decoded from JSON
	m := Metadata{
		Title: truncate(h.Server.Title), Description: truncate(h.Server.Description), ServerName: truncate(h.Server.Name), ServerVersion: truncate(h.Server.Version),
		ProtocolVersion: truncate(version), Instructions: truncate(h.Instructions), Website: truncate(h.Server.Website),
	}
	if len(h.Capabilities) > 0 && len(flags) <= maxIcons {
		m.Capabilities = flags
	}
	if len(h.Server.Icons) > 0 && h.Server.Icons[0] == '[' && len(h.Server.Icons) <= maxIcons {
		m.Icons = h.Server.Icons
	}
	return &Snapshot{Metadata: m}, h.Capabilities, nil
}

func truncate(s string) string {
	if utf8.RuneCountInString(s) > maxText {
		s = string([]rune(s)[:maxText])
	}
	return s
}

// listAll calls each for the entries of all pages of a list.
func listAll(ctx context.Context, of pageLister, method, member string, each func(json.RawMessage) error) error {
	cursor := ""
	for range maxPages {
		result, err := of.page(ctx, method, cursor)
		if err != nil {
			return err
		}
		var page map[string]json.RawMessage
		var entries []json.RawMessage
		var next string
		if json.Unmarshal(result, &page) != nil || json.Unmarshal(page[member], &entries) != nil {
			return upstream.Fail(http.StatusOK, "the server's response to %s does not match the protocol", method)
		}
		for _, raw := range entries {
			if err := each(raw); err != nil {
				return err
			}
		}
		if raw := page["nextCursor"]; len(raw) > 0 && json.Unmarshal(raw, &next) != nil {
			return upstream.Fail(http.StatusOK, "the server's response to %s does not match the protocol", method)
		}
		if next == "" || next == cursor {
			return nil
		}
		cursor, next = next, ""
	}
	return upstream.Fail(http.StatusOK, "the server's list %s has too many pages", method)
}

// add appends a capability. It skips capabilities without a name, since they cannot be called.
func (s *Snapshot) add(kind, key string, raw json.RawMessage) error {
	var named map[string]json.RawMessage
	text := func(member string) (t string) {
		_ = json.Unmarshal(named[member], &t) // an unexpected type counts as empty
		return t
	}
	if json.Unmarshal(raw, &named) != nil {
		return upstream.Fail(http.StatusOK, "the server lists a %s that is not an object", strings.ReplaceAll(kind, "_", " "))
	}
	f := Found{Type: kind, Name: text("name"), Key: text(key), Shape: raw}
	switch {
	case f.Key == "":
		return nil
	case len(raw) > maxShape:
		return upstream.Fail(http.StatusOK, "the server lists a %s of more than %d bytes", strings.ReplaceAll(kind, "_", " "), maxShape)
	case len(s.Found) >= MaxCapabilities:
		return upstream.Fail(http.StatusOK, "the server lists more than %d capabilities", MaxCapabilities)
	}
	if f.Name == "" {
		f.Name = f.Key
	}
	s.Found = append(s.Found, f)
	return nil
}

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
	return rec, c.EncodeTo(&rec)
}

// EncodeTo encodes the capability into its record.
func (c *Capability) EncodeTo(rec *resource.Record) error {
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
	if err := form.EncodeTo(&rec); err != nil {
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
