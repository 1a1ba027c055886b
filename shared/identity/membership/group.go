package membership

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Kinds of resources from an identity provider: groups, and their mappings to workspaces. Both
// belong to the organisation.
const (
	KindGroup   resource.Kind = "SCIM_GROUP"
	KindMapping resource.Kind = "SCIM_MAPPING"
)

// Group is the stored form of a group. Its name is in the record.
type Group struct {
	// Role is the role of all its mappings; empty while it has none.
	Role     string `json:"role,omitempty"`
	Mappings int    `json:"mappings,omitempty"`
	// Provisioned is set if the identity provider manages the group; ExternalID is the group's
	// id there.
	Provisioned bool   `json:"provisioned,omitempty"`
	ExternalID  string `json:"external_id,omitempty"`
	// Remapped is set if mappings of the group have changed. Ended names the workspaces of
	// mappings that its former name created. Both remain until the members were settled.
	Remapped bool     `json:"remapped,omitempty"`
	Ended    []string `json:"ended,omitempty"`
}

// EndedOf returns the mappings of a former name of the group, for GroupSync.
func (g *Group) EndedOf(id string) map[[2]string]bool {
	out := map[[2]string]bool{}
	for _, ws := range g.Ended {
		out[[2]string{id, ws}] = true
	}
	return out
}

// Remap records that mappings of a group have changed; the caller saves the group.
func (g *Group) Remap(ended ...string) {
	g.Remapped = true
	for _, ws := range ended {
		if !slices.Contains(g.Ended, ws) {
			g.Ended = append(g.Ended, ws)
		}
	}
}

// SaveGroup stages the changes of Remap.
func SaveGroup(tx *resource.Tx, rec *resource.Record, g *Group, actor string) error {
	if err := setGroup(rec, g, actor); err != nil {
		return err
	}
	return tx.Update(rec)
}

// MembersSettled stages that the members of a group were settled.
func MembersSettled(tx *resource.Tx, org store.Scope, id, actor string) error {
	rec, g, ok, err := AnyGroup(tx, org, id)
	if err != nil || !ok || !g.Remapped {
		return err
	}
	g.Remapped, g.Ended = false, nil
	return SaveGroup(tx, &rec, g, actor)
}

// Mapping is the stored form of a mapping from a group to a workspace.
type Mapping struct {
	WorkspaceID string `json:"workspace_id"`
	GroupID     string `json:"scim_group_id"`
	Group       string `json:"scim_group"` // name, for lists
	Role        string `json:"role"`       // admin, manager or member
	// Automatic is set if the group's name created the mapping, Made if it also created the
	// workspace.
	Automatic bool `json:"automatic,omitempty"`
	Made      bool `json:"made,omitempty"`
}

// Fields of the list rows of mappings.
const (
	FieldWorkspace = "workspace_id"
	FieldGroup     = "scim_group_id"
	FieldRole      = "role"
)

// groupSlug returns the slug of a group, a hash of its name, which may contain any characters.
func groupSlug(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "group-" + hex.EncodeToString(sum[:])
}

// GroupByName finds a group, or stages a new one.
func GroupByName(tx *resource.Tx, org store.Scope, name, actor string) (resource.Record, *Group, error) {
	settings, err := tenant.ReadSettings(tx, org.Organisation())
	if err != nil {
		return resource.Record{}, nil, err
	}
	if _, _, maps := settings.Settings.AutomaticGroup(name); maps {
		return resource.Record{}, nil, fault.Invalid("scim_group_name", "is mapped automatically by its name")
	}
	rec, g, ok, err := group(tx, org, groupSlug(name))
	if err != nil || ok {
		return rec, g, err
	}
	rec = resource.Record{Scope: org.Organisation(), Kind: KindGroup, ID: resource.NewID(), Slug: groupSlug(name), Name: name, Status: "active", CreatedBy: actor, UpdatedBy: actor, Looked: true}
	g = &Group{}
	if err := encode(&rec, g); err != nil {
		return rec, nil, err
	}
	return rec, g, tx.Create(&rec)
}

// GroupByID finds a group by its id.
func GroupByID(tx *resource.Tx, org store.Scope, id string) (resource.Record, *Group, error) {
	rec, g, ok, err := group(tx, org, id)
	if err == nil && (!ok || rec.ID != id) {
		err = fault.Invalid("scim_group_id", "must name a group of the organization")
	}
	return rec, g, err
}

func group(tx *resource.Tx, org store.Scope, name string) (resource.Record, *Group, bool, error) {
	rec, ok, err := tx.Get(org.Organisation(), KindGroup, name)
	if err != nil || !ok || rec.Archived() {
		return rec, nil, false, err
	}
	g, err := resource.Decode[Group](rec)
	return rec, g, err == nil, err
}

// Map adds a mapping between a group and a workspace. All mappings of a group have the same
// role; they are counted in the group to ensure this for concurrent calls.
func Map(tx *resource.Tx, rec *resource.Record, m *Mapping, of resource.Record, g *Group, actor string) error {
	if g.Role != "" && g.Role != m.Role {
		return fault.Newf(fault.Conflict, "role", "the group has the role %s in other workspaces; a group has the same role in all of them", g.Role)
	}
	m.GroupID, m.Group = of.ID, of.Name
	rec.Slug, rec.Name = of.ID+"."+m.WorkspaceID, of.Name
	rec.Fields = map[string]string{FieldWorkspace: m.WorkspaceID, FieldGroup: of.ID, FieldRole: m.Role}
	g.Role, g.Mappings, of.UpdatedBy = m.Role, g.Mappings+1, actor
	if err := encode(&of, g); err != nil {
		return err
	}
	if err := tx.Update(&of); err != nil {
		return err
	}
	return tx.Use(workspaceRef(rec.Scope, m), rec.Ref())
}

// Unmap archives a mapping. The workspace and its members stay.
func Unmap(tx *resource.Tx, rec *resource.Record, m *Mapping, actor string) error {
	of, g, ok, err := group(tx, rec.Scope, m.GroupID)
	if err != nil {
		return err
	}
	if ok {
		if g.Mappings--; g.Mappings <= 0 {
			g.Mappings, g.Role = 0, ""
		}
		of.UpdatedBy = actor
		if err := encode(&of, g); err != nil {
			return err
		}
		if err := tx.Update(&of); err != nil {
			return err
		}
	}
	if err := tx.RemoveUse(workspaceRef(rec.Scope, m), rec.Ref()); err != nil {
		return err
	}
	if m.Made {
		if err := inherit(tx, rec, m, actor); err != nil {
			return err
		}
	}
	rec.UpdatedBy = actor
	return tx.ArchiveAndFreeSlug(rec)
}

// inherit records in another mapping that a group's name created the workspace, so that the
// workspace ends with its last mapping.
func inherit(tx *resource.Tx, of *resource.Record, gone *Mapping, actor string) error {
	rows, err := tx.List(of.Scope, KindMapping)
	if err != nil {
		return err
	}
	for i := range rows {
		if rows[i].ID == of.ID || rows[i].Fields[FieldWorkspace] != gone.WorkspaceID || rows[i].Fields[FieldGroup] == gone.GroupID {
			continue
		}
		rec, ok, err := tx.Get(of.Scope, KindMapping, rows[i].ID)
		if err != nil {
			return err
		}
		if !ok || rec.Archived() {
			continue
		}
		m, err := resource.Decode[Mapping](rec)
		if err != nil {
			return err
		}
		m.Made, rec.UpdatedBy = true, actor
		if err := encode(&rec, m); err != nil {
			return err
		}
		return tx.Update(&rec)
	}
	return nil
}

func workspaceRef(org store.Scope, m *Mapping) resource.Ref {
	return resource.Ref{Scope: org.Organisation(), Kind: tenant.KindWorkspace, ID: m.WorkspaceID}
}

// errGroupTaken returns the fault for a name that another group has.
func errGroupTaken() error {
	return fault.New(fault.Conflict, "displayName", "another group of the organization already has this name")
}

// AnyGroup finds a group by its id.
func AnyGroup(tx *resource.Tx, org store.Scope, id string) (resource.Record, *Group, bool, error) {
	rec, g, ok, err := group(tx, org, id)
	return rec, g, ok && rec.ID == id, err
}

// NewGroup stages a group of an identity provider, which may already exist because of a
// mapping.
func NewGroup(tx *resource.Tx, org store.Scope, name, external, actor string) (resource.Record, *Group, error) {
	rec, g, ok, err := group(tx, org, groupSlug(name))
	switch {
	case err != nil:
		return rec, nil, err
	case ok && g.Provisioned:
		return rec, nil, errGroupTaken()
	case !ok:
		rec, g = resource.Record{Scope: org.Organisation(), Kind: KindGroup, ID: resource.NewID(), Slug: groupSlug(name), Name: name, Status: "active", CreatedBy: actor, Looked: true}, &Group{}
	}
	g.Provisioned, g.ExternalID = true, external
	if err := setGroup(&rec, g, actor); err != nil {
		return rec, nil, err
	}
	if ok {
		return rec, g, tx.Update(&rec)
	}
	return rec, g, tx.Create(&rec)
}

func setGroup(rec *resource.Record, g *Group, actor string) error {
	rec.UpdatedBy, rec.Fields = actor, nil
	if g.ExternalID != "" {
		rec.Fields = map[string]string{FieldExternal: g.ExternalID}
	}
	return encode(rec, g)
}

// ChangeGroup stages another name and another external id of a group.
func ChangeGroup(tx *resource.Tx, rec *resource.Record, g *Group, name, external, actor string) error {
	if other, _, ok, err := group(tx, rec.Scope, groupSlug(name)); err != nil || ok && other.ID != rec.ID {
		if err == nil {
			err = errGroupTaken()
		}
		return err
	}
	rec.Name, rec.Slug, rec.Looked, g.ExternalID, g.Provisioned = name, groupSlug(name), true, external, true
	if err := setGroup(rec, g, actor); err != nil {
		return err
	}
	return tx.Update(rec)
}

// DeleteGroup stages the deletion of a group without mappings and members.
func DeleteGroup(tx *resource.Tx, rec *resource.Record) error { return tx.Delete(rec) }

// MappingsOf lists the mappings of a group.
func MappingsOf(tx *resource.Tx, org store.Scope, group string) (recs []resource.Record, forms []*Mapping, err error) {
	rows, err := tx.List(org.Organisation(), KindMapping)
	if err != nil {
		return nil, nil, err
	}
	for i := range rows {
		if rows[i].Fields[FieldGroup] != group {
			continue
		}
		rec, ok, err := tx.Get(org.Organisation(), KindMapping, rows[i].ID)
		if err != nil {
			return nil, nil, err
		}
		if !ok || rec.Archived() {
			continue
		}
		m, err := resource.Decode[Mapping](rec)
		if err != nil {
			return nil, nil, err
		}
		recs, forms = append(recs, rec), append(forms, m)
	}
	return recs, forms, nil
}

// MapByName stages the mapping that the name of a group describes.
func MapByName(tx *resource.Tx, of resource.Record, g *Group, workspace, role string, made bool, actor string) error {
	m := &Mapping{WorkspaceID: workspace, Role: role, Automatic: true, Made: made}
	rec := resource.Record{Scope: of.Scope, Kind: KindMapping, ID: resource.NewID(), Status: "active", CreatedBy: actor, UpdatedBy: actor, Looked: true}
	if err := Map(tx, &rec, m, of, g, actor); err != nil {
		return err
	}
	if err := encode(&rec, m); err != nil {
		return err
	}
	return tx.Create(&rec)
}

// Mapped reports whether other groups are mapped to a workspace.
func Mapped(tx *resource.Tx, org store.Scope, workspace, but string) (bool, error) {
	rows, err := tx.List(org.Organisation(), KindMapping)
	if err != nil {
		return false, err
	}
	for i := range rows {
		if rows[i].Fields[FieldWorkspace] == workspace && rows[i].Fields[FieldGroup] != but {
			return true, nil
		}
	}
	return false, nil
}

// DecodeGroup decodes the stored form.
func DecodeGroup(rec resource.Record) (*Group, error) { return resource.Decode[Group](rec) }
