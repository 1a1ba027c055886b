package identity

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"maps"
	"net/mail"
	"strconv"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/fault/bound"
	"gateway/shared/fault/hint"
	"gateway/shared/ledger"
	"gateway/shared/notice"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// KindKey is the resource kind of API keys. Organization keys are in the organization's scope,
// workspace keys in their workspace's.
const KindKey resource.Kind = "APIKEY"

// credentialKind is the partition kind of rows found by a key's hash.
const credentialKind = "KEY"

// States of a key. Exhausted is derived from its budget and never stored.
const (
	StatusActive   = "active"
	StatusExpired  = "expired"
	StatusArchived = "archived"
	StatusPaused   = "paused" // rejected until it is resumed
)

// MaxName limits a key's name, in characters.
const MaxName = 255

// Key is the stored form of an API key: the body of its resource.
type Key struct {
	Type   KeyType `json:"type"`
	UserID string  `json:"user_id,omitempty" max:"64"`
	// Rank is the rank of the key's creator, which the key never exceeds. A user's key is also
	// limited by the current role of its user. It is empty in keys from before ranks were
	// stored; see Granted.
	Rank Rank `json:"rank,omitempty"`
	// Sponsor is the user whose present rights limit a service key: whoever created it, or the
	// last user of its rank or above who changed or rotated it; NoSponsor if no user did. Empty
	// in keys from before sponsors were stored.
	Sponsor      string             `json:"sponsor,omitempty"`
	Description  string             `json:"description,omitempty" max:"1024"`
	CreationMode string             `json:"creation_mode"` // api, ui or auto
	Scopes       []string           `json:"scopes" min:"1" max:"500" each:"max=255"`
	RateLimits   []ledger.RateLimit `json:"rate_limits,omitempty"`
	UsageLimits  *ledger.UsageLimit `json:"usage_limits,omitempty"`
	ExpiresAt    *time.Time         `json:"expires_at,omitempty"`
	Defaults     Defaults           `json:"defaults"`
	AlertEmails  []string           `json:"alert_emails,omitempty" max:"20" each:"max=254"`
	Rotation     *RotationPolicy    `json:"rotation_policy,omitempty"`
	LastResetAt  *time.Time         `json:"last_reset_at,omitempty"`
	Secret       Secret             `json:"secret"`
	Previous     *Secret            `json:"previous,omitempty"` // valid until its ExpiresAt
	RotatedAt    *time.Time         `json:"last_rotated_at,omitempty"`
}

// NoSponsor is the sponsor of keys for which an installation's own key answers: it is no user.
const NoSponsor = "installation"

// Defaults apply to requests that use the key.
type Defaults struct {
	ConfigID      string            `json:"config_id,omitempty" max:"255" doc:"Id or slug of the config that routes requests; null removes it."`
	Metadata      map[string]string `json:"metadata,omitempty" max:"64" each:"max=128" doc:"Pairs added to the metadata of every request."`
	AllowOverride *bool             `json:"allow_config_override,omitempty" doc:"Whether a request may bring another config."` // nil means true
}

// RefusesConfig reports whether requests with the key must not contain a config.
func (d *Defaults) RefusesConfig() bool { return d.AllowOverride != nil && !*d.AllowOverride }

// Secret is a raw key, stored as its hash and a masked form.
type Secret struct {
	Hash      string     `json:"hash"` // SHA-256, hex
	Masked    string     `json:"masked"`
	ExpiresAt *time.Time `json:"expires_at,omitempty"` // of a secret in transition
	// Shared is set for a secret in transition that users other than the key's user may know.
	// It does not act for the user, although the key's new secret does.
	Shared bool `json:"shared,omitempty"`
}

// NewSecret returns a random raw key of 32 bytes (43 characters) and its stored form.
func NewSecret() (raw string, s Secret) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	raw = "gw-" + base64.RawURLEncoding.EncodeToString(b[:])
	return raw, SecretOf(raw)
}

// SecretOf returns the stored form of a raw key.
func SecretOf(raw string) Secret {
	return Secret{Hash: HashToken(raw), Masked: Mask(raw)}
}

// HashToken returns the SHA-256 of a token's bytes, in hex.
func HashToken(raw string) string {
	sum := sha256.Sum256([]byte(raw))
	return hex.EncodeToString(sum[:])
}

// Mask shows the first two and the last two characters of a secret.
func Mask(raw string) string {
	if len(raw) < 8 {
		return "*****"
	}
	return raw[:2] + "*******" + raw[len(raw)-2:]
}

// Validate checks the key's own rules, including limits and rotation. now decides whether
// dates are in the future.
func (k *Key) Validate(name string, now time.Time) []fault.Detail {
	d := append(bound.Text("name", name, 1, MaxName), bound.Check(k)...)
	bad := func(field, format string, args ...any) {
		d = append(d, fault.Detail{Field: field, Message: fmt.Sprintf(format, args...)})
	}
	for i, s := range k.Scopes {
		if !k.Type.Grantable(NormalScope(s)) {
			bad(index("scopes", i), "%q is not a scope that keys of the type %s may hold%s", clip(s), k.Type, otherScopes(s, ScopesFor(k.Type)))
		}
	}
	if k.ExpiresAt != nil && !k.ExpiresAt.After(now) {
		bad("expires_at", "must be in the future")
	}
	for i, e := range k.AlertEmails {
		if a, err := mail.ParseAddress(e); err != nil || a.Address != e {
			bad(index("alert_emails", i), "is not an e-mail address")
		}
	}
	if k.Rotation != nil {
		d = append(d, k.Rotation.Validate(now)...)
	}
	return bound.Sorted(k, d)
}

// Live returns the key's state at now, apart from its budget.
func Live(status string, k *Key, now time.Time) string {
	if status == StatusActive && k.ExpiresAt != nil && !now.Before(*k.ExpiresAt) {
		return StatusExpired
	}
	return status
}

// CredentialRows returns the keys-table rows of a key: one per valid secret. They contain
// everything that admission needs, so that a request costs one read.
func CredentialRows(rec *resource.Record, k *Key, workspaceSlug string) ([]store.Row, error) {
	body, err := json.Marshal(principalBody{
		ID: rec.ID, Revision: rec.Rev, Name: rec.Name, Type: k.Type, UserID: k.UserID, WorkspaceSlug: workspaceSlug,
		Scopes: k.Scopes, RateLimits: k.RateLimits, UsageLimits: k.UsageLimits, Defaults: k.Defaults, Rank: k.Rank,
	})
	if err != nil {
		return nil, fmt.Errorf("identity: encode key: %w", err)
	}
	item := func(s *Secret) store.Row {
		it := store.Item{"org": rec.Scope.Org, "ws": rec.Scope.Workspace, "id": rec.ID, "status": rec.Status, "body": body}
		if s.Shared {
			it["shared"] = true
		}
		until := earliest(k.ExpiresAt, s.ExpiresAt)
		if until != nil {
			it["until"] = until.UnixMilli()
			if k.ExpiresAt == nil || until.Before(*k.ExpiresAt) {
				it["rotated"] = true
			}
		}
		return store.Row{Key: store.Credential(credentialKind, s.Hash), Item: it}
	}
	rows := []store.Row{item(&k.Secret)}
	if k.Previous != nil {
		rows = append(rows, item(k.Previous))
	}
	return rows, nil
}

// Stage stages the rows of a key: one per valid secret, and one with the key's scope. gone are
// secrets that are no longer valid.
func Stage(tx *resource.Tx, rec *resource.Record, k *Key, workspaceSlug string, gone ...Secret) error {
	rows, err := CredentialRows(rec, k, workspaceSlug)
	if err != nil {
		return err
	}
	for _, row := range rows {
		if err := tx.PutCredential(row); err != nil {
			return err
		}
	}
	for _, s := range gone {
		tx.DeleteCredential(CredentialKey(s))
	}
	place := store.Row{Key: placeKey(rec.Scope.Org, rec.ID), Item: store.Item{"ws": rec.Scope.Workspace}}
	tx.Do(store.Action{Table: store.Control, Put: &store.Put{Row: place}}, nil)
	return nil
}

// StageDelete stages the deletion of the rows of Stage.
func StageDelete(tx *resource.Tx, rec *resource.Record, k *Key) {
	tx.DeleteCredential(CredentialKey(k.Secret))
	if k.Previous != nil {
		tx.DeleteCredential(CredentialKey(*k.Previous))
	}
	tx.Do(store.Action{Table: store.Control, Delete: &store.Delete{Key: placeKey(rec.Scope.Org, rec.ID)}}, nil)
}

// ScopeOf finds the scope of a key by its id, for callers with access to the entire
// organization.
func ScopeOf(ctx context.Context, s store.Store, org, id string) (store.Scope, bool, error) {
	it, ok, err := s.Table(store.Control).Get(ctx, placeKey(org, id), true)
	if err != nil {
		return store.Scope{}, false, fault.Unavailable(err)
	}
	return store.Scope{Org: org, Workspace: it.String("ws")}, ok, nil
}

func placeKey(org, id string) store.Key {
	return store.Scope{Org: org}.Partition().Key("KEYPLACE", id)
}

// CredentialKey returns the keys-table key of a secret.
func CredentialKey(s Secret) store.Key { return store.Credential(credentialKind, s.Hash) }

func earliest(a, b *time.Time) *time.Time {
	if a == nil || (b != nil && b.Before(*a)) {
		return b
	}
	return a
}

func index(field string, i int) string { return field + "[" + strconv.Itoa(i) + "]" }

// clip shortens a caller's text for an error message.
func clip(s string) string {
	if len(s) > 64 {
		return s[:64] + "..."
	}
	return s
}

// otherScopes suggests the valid scope nearest to an invalid one, or where to find them.
func otherScopes(scope string, valid []string) string {
	if meant := hint.DidYouMean(scope, valid); meant != "" {
		return meant
	}
	return "; to call models it needs completions.write, and GET /v1/scopes lists all"
}

// Rank orders principals by their role. Organization admins rank above admins of a
// workspace, although both have the role admin inside the workspace.
type Rank string

// The ranks, from the lowest. The empty rank is below all of them.
const (
	RankMember            Rank = "member"
	RankManager           Rank = "manager"
	RankWorkspaceAdmin    Rank = "admin"
	RankOrganisationAdmin Rank = "organisation-admin"
	RankOwner             Rank = "owner"
)

var rankLevel = map[Rank]int{RankMember: 1, RankManager: 2, RankWorkspaceAdmin: 3, RankOrganisationAdmin: 4, RankOwner: 5}

// IsHigherThan reports whether r is higher than other.
func (r Rank) IsHigherThan(other Rank) bool { return rankLevel[r] > rankLevel[other] }

// Min returns the lower of two ranks.
func (r Rank) Min(other Rank) Rank {
	if r.IsHigherThan(other) {
		return other
	}
	return r
}

// Role returns the role of the rank: organization admins have the role admin.
func (r Rank) Role() string { return strings.TrimPrefix(string(r), "organisation-") }

// Granted returns the highest rank of a key, and whether only its own user can know its secret.
// createdBy is the author of the key's record.
//
// Keys store the rank of their creator, and their user collects the secret. Keys from before
// ranks were stored get a safe one: a bootstrap key, which has no author, the rank of an owner,
// or of an admin in its workspace; a key that a user created for itself, or got on joining a
// workspace, the user's rank; an organization key that of an organization admin; and every
// other key that of the lowest role with its scopes, but not less than a manager's.
func (k *Key) Granted(createdBy string) (rank Rank, personal bool) {
	own := k.UserID != "" && (createdBy == k.UserID || k.CreationMode == "auto")
	switch {
	case k.Rank != "":
		return k.Rank, true
	case own:
		return RankOwner, true
	case k.Type == OrganisationService && createdBy == "":
		return RankOwner, false
	case k.Type == OrganisationService:
		return RankOrganisationAdmin, false
	case createdBy == "", NewScopeSet(k.Scopes...).Has("workspaces.update"): // the scope that managers lack
		return RankWorkspaceAdmin, false
	}
	return RankManager, false
}

// Notice returns an event about a key for admins of the organization, the key's owner and its
// alert_emails. what continues the sentence after the key's name: "was rotated".
func (k *Key) Notice(rec *resource.Record, kind, what string, more map[string]string) notice.Event {
	data := map[string]string{"api_key_id": rec.ID, "api_key_name": rec.Name, "api_key_type": string(k.Type), "user_id": k.UserID}
	maps.Copy(data, more)
	return notice.Event{
		Type: kind, Org: rec.Scope.Org, Workspace: rec.Scope.Workspace, Data: data,
		Summary: "The API key \"" + rec.Name + "\" " + what, Audience: notice.Audience{Admins: true, Key: rec.ID},
	}
}
