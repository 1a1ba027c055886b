package tenant

import "strings"

// Scim tells how users and groups from an identity provider are treated.
type Scim struct {
	GroupPrefix   string `json:"scim_group_prefix,omitempty" max:"64"`
	RoleSeparator string `json:"scim_role_separator,omitempty" max:"64"`
	// GroupProvisions reactivates stopped users who are put into a group.
	GroupProvisions bool `json:"group_based_user_provisioning,omitempty"`
	// UserGroups makes the groups of a user part of the user, not of the groups.
	UserGroups bool `json:"scim_user_groups,omitempty"`
	// ScimOnly lets only the identity provider add and remove users and give them roles.
	ScimOnly bool `json:"scim_only_users,omitempty"`
}

// Standards for names of groups that map themselves.
const (
	GroupPrefix   = "ws-"
	RoleSeparator = "-role-"
)

// AutomaticGroup reads the name of a group that itself tells which workspace and which role
// its members get; ok is false for other names.
func (s *Scim) AutomaticGroup(name string) (workspace, role string, ok bool) {
	prefix, separator := s.GroupPrefix, s.RoleSeparator
	if prefix == "" {
		prefix = GroupPrefix
	}
	if separator == "" {
		separator = RoleSeparator
	}
	if len(name) < len(prefix) || !strings.EqualFold(name[:len(prefix)], prefix) {
		return "", "", false
	}
	rest := name[len(prefix):]
	for i := len(rest) - len(separator); i > 0; i-- {
		if !strings.EqualFold(rest[i:i+len(separator)], separator) {
			continue
		}
		switch role = strings.ToLower(rest[i+len(separator):]); role {
		case "admin", "manager", "member":
			workspace = strings.TrimSpace(rest[:i])
			return workspace, role, workspace != ""
		}
	}
	return "", "", false
}
