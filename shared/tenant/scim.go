package tenant

import "strings"

// Scim configures how users and groups from an identity provider are handled.
type Scim struct {
	GroupPrefix   string `json:"scim_group_prefix,omitempty" max:"64"`
	RoleSeparator string `json:"scim_role_separator,omitempty" max:"64"`
	// GroupProvisions reactivates deactivated users who are added to a group.
	GroupProvisions bool `json:"group_based_user_provisioning,omitempty"`
	// UserGroups returns groups as part of the user instead of users as part of the group.
	UserGroups bool `json:"scim_user_groups,omitempty"`
	// ScimOnly allows only the identity provider to add and remove users and to assign roles.
	ScimOnly bool `json:"scim_only_users,omitempty"`
}

// Default name patterns of groups that are mapped automatically.
const (
	GroupPrefix   = "ws-"
	RoleSeparator = "-role-"
)

// AutomaticGroup parses the name of a group that contains its workspace and role. ok is false
// for other names.
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
