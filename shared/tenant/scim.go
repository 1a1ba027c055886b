package tenant

import "strings"

// Scim is how an identity provider's users and groups are taken.
type Scim struct {
	GroupPrefix   string `json:"scim_group_prefix,omitempty" max:"64"`
	RoleSeparator string `json:"scim_role_separator,omitempty" max:"64"`
	// GroupProvisions has stopped users come back who are put into a group.
	GroupProvisions bool `json:"group_based_user_provisioning,omitempty"`
	// UserGroups has groups of users written with the users, and not with the groups.
	UserGroups bool `json:"scim_user_groups,omitempty"`
	// ScimOnly has users come and go, and get their roles, by the identity provider alone.
	ScimOnly bool `json:"scim_only_users,omitempty"`
}

// Standards of names of groups that map themselves.
const (
	GroupPrefix   = "ws-"
	RoleSeparator = "-role-"
)

// AutomaticGroup takes the name of a group apart that says by itself which workspace and
// which role its members get; ok is false for other names.
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
