package reference

import (
	"encoding/json"
	"fmt"
	"slices"
)

// Kind of the records of secret references, which belong to the organisation.
const Kind = "SECRET_REFERENCE"

// The managers that a reference may name.
const (
	AWS   = "aws_sm"
	Azure = "azure_kv"
	Vault = "hashicorp_vault"
)

// Reference is the stored form of a secret reference: the body of its record. The secret
// parts of Auth are sealed beside it, each under its own name.
type Reference struct {
	Description string            `json:"description,omitempty" max:"1024"`
	ManagerType string            `json:"manager_type" enum:"aws_sm,azure_kv,hashicorp_vault"`
	Auth        map[string]string `json:"auth_config,omitempty"` // without secrets
	Masked      map[string]string `json:"masked,omitempty"`      // of the sealed secrets
	SecretPath  string            `json:"secret_path" min:"1" max:"1024"`
	SecretKey   string            `json:"secret_key,omitempty" max:"255"` // "": the entire secret
	AllowAll    bool              `json:"allow_all_workspaces"`
	Allowed     []string          `json:"allowed_workspaces,omitempty"` // ids, if not all workspaces are allowed
}

// Decode reads the stored form.
func Decode(body []byte) (*Reference, error) {
	var r Reference
	if err := json.Unmarshal(body, &r); err != nil {
		return nil, fmt.Errorf("reference: stored form: %w", err)
	}
	return &r, nil
}

// OpenTo reports whether a workspace may use the reference.
func (r *Reference) OpenTo(workspace string) bool {
	return r.AllowAll || slices.Contains(r.Allowed, workspace)
}
