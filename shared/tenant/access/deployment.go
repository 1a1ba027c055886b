package access

import (
	"encoding/json"
	"time"

	"gateway/shared/resource"
)

// KindDeployment is the kind of registered gateways of an organisation.
const KindDeployment resource.Kind = "DEPLOYMENT"

// Types and states of deployments.
const (
	Production    = "production"
	NonProduction = "non-production"
	Active        = "active"
	Inactive      = "inactive"
)

// Deployment is the stored form of a gateway that an organisation operates.
type Deployment struct {
	Type   string          `json:"type" enum:"production,non-production"`
	URL    string          `json:"url,omitempty" max:"2048"`
	Config json.RawMessage `json:"config,omitempty"`
	Users  []string        `json:"user_allowlist,omitempty" max:"1000" each:"min=1 max=255"`
	Access Workspaces      `json:"access"`
	// Token is the SHA-256 of the token with which the deployment authenticates.
	Token    string     `json:"token"`
	SyncedAt *time.Time `json:"last_synced_at,omitempty"`
}
