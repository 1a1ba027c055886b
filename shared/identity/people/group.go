package people

import (
	"crypto/sha256"
	"encoding/hex"
	"regexp"

	"gateway/shared/fault"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Kinds of what an identity provider brings: groups, and the workspaces that their
// members join. Both are the organisation's.
const (
	KindGroup   resource.Kind = "SCIM_GROUP"
	KindMapping resource.Kind = "SCIM_MAPPING"
)

// Group is the stored form of a group; its record has the name.
type Group struct {
	// Role is what all of its mappings give; "" while it has none.
	Role     string `json:"role,omitempty"`
	Mappings int    `json:"mappings,omitempty"`
}

// Mapping is the stored form of a group's way into a workspace.
type Mapping struct {
	WorkspaceID string `json:"workspace_id"`
	GroupID     string `json:"scim_group_id"`
	Group       string `json:"scim_group"` // name, for lists
	Role        string `json:"role"`       // admin, manager or member
}

// Fields of the list rows of mappings.
const (
	FieldWorkspace = "workspace_id"
	FieldGroup     = "scim_group_id"
	FieldRole      = "role"
)

// automatic are names of groups that say by themselves which workspace and role they
// mean.
var automatic = regexp.MustCompile(`(?i)^ws-.+-role-(admin|manager|member)$`)

// groupSlug is how a group is found by its name, which may have any characters.
func groupSlug(name string) string {
	sum := sha256.Sum256([]byte(name))
	return "group-" + hex.EncodeToString(sum[:])
}

// GroupByName finds a group, or stages a new one.
func GroupByName(tx *resource.Tx, org store.Scope, name, actor string) (resource.Record, *Group, error) {
	if automatic.MatchString(name) {
		return resource.Record{}, nil, fault.Invalid("scim_group_name", "maps itself: groups of this form are mapped by their name")
	}
	rec, g, ok, err := group(tx, org, groupSlug(name))
	if err != nil || ok {
		return rec, g, err
	}
	rec = resource.Record{Scope: org.Organisation(), Kind: KindGroup, ID: resource.NewID(), Slug: groupSlug(name), Name: name, Status: "active", CreatedBy: actor, UpdatedBy: actor}
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
		err = fault.Invalid("scim_group_id", "is no group of the organisation")
	}
	return rec, g, err
}

func group(tx *resource.Tx, org store.Scope, name string) (resource.Record, *Group, bool, error) {
	rec, ok, err := tx.Get(org.Organisation(), KindGroup, name)
	if err != nil || !ok || rec.Archived() {
		return rec, nil, false, err
	}
	g, err := decode[Group](rec)
	return rec, g, err == nil, err
}

// Map puts a group and a workspace into a new mapping. All mappings of a group give
// one role; that is counted with the group, so that it holds for calls at the same
// time too.
func Map(tx *resource.Tx, rec *resource.Record, m *Mapping, of resource.Record, g *Group, actor string) error {
	if g.Role != "" && g.Role != m.Role {
		return fault.Newf(fault.Conflict, "role", "the group gives the role %s in other workspaces, and gives one role only", g.Role)
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

// Unmap archives a mapping. Who came by it stays, and so does the workspace.
func Unmap(tx *resource.Tx, rec *resource.Record, m *Mapping, actor string) error {
	of, g, ok, err := group(tx, rec.Scope, m.GroupID)
	if err != nil {
		return err
	}
	if ok {
		if g.Mappings--; g.Mappings <= 0 {
			*g = Group{}
		}
		of.UpdatedBy = actor
		if err := encode(&of, g); err != nil {
			return err
		}
		if err := tx.Update(&of); err != nil {
			return err
		}
	}
	if err := tx.Unuse(workspaceRef(rec.Scope, m), rec.Ref()); err != nil {
		return err
	}
	rec.UpdatedBy = actor
	return tx.ArchiveAndFreeSlug(rec)
}

func workspaceRef(org store.Scope, m *Mapping) resource.Ref {
	return resource.Ref{Scope: org.Organisation(), Kind: tenant.KindWorkspace, ID: m.WorkspaceID}
}
