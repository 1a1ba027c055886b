package scim

import (
	"crypto/rand"
	"encoding/base64"

	"gateway/shared/admin"
	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/identity/membership"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// kindToken is the kind of the tokens of identity providers.
const kindToken resource.Kind = "SCIM_TOKEN"

// token is the stored form of a token, which cannot be read back. Rank is that of its creator,
// and empty in tokens from before ranks were stored.
type token struct {
	Hash   string        `json:"hash"`
	Masked string        `json:"masked_token"`
	Rank   identity.Rank `json:"rank,omitempty"`
}

// Tokens, and the partition kind of the rows that they are found by.
const (
	tokenPrefix     = "scim-"
	tokenLength     = len(tokenPrefix) + 43
	tokenCredential = "SCIM"
	rankOfToken     = "rank" // member of these rows
)

// maxTokens is how many an organisation may have.
const maxTokens = 200

// tokens lets an organisation's admins hand tokens to identity providers.
func (f *family) describeTokens() *admin.Collection[token] {
	return &admin.Collection[token]{
		Kind: kindToken, Object: "scim-token", Path: "/scim/tokens", Param: "tokenId", UUIDOnly: true,
		Scopes: scopes, Resource: "scim_tokens", Where: admin.InOrganisation, ReadRole: admin.Admin, WriteRole: admin.Admin, Without: []string{"update"},
		Fields: []admin.Field{admin.NameField(255)},
		Shown: []admin.Shown[token]{
			{Field: admin.Field{Name: "masked_token", Type: admin.String, Required: true, Doc: "Its first and last characters."}, Value: func(_ *admin.Call, it admin.Item[token]) any { return it.Form.Masked }},
		},
		Before: func(c *admin.Call, tx *resource.Tx, ch *admin.Change[token]) error {
			if !ch.Creates() {
				return nil
			}
			// A token makes admins of the organization.
			if err := c.Caller.Grantor().Grant("", membership.Rights(identity.RankOrganisationAdmin)); err != nil {
				return err
			}
			rows, err := tx.List(c.Organisation(), kindToken)
			if err != nil {
				return err
			}
			if len(rows) >= maxTokens {
				return fault.Newf(fault.QuotaReached, "", "an organisation has at most %d tokens: delete one first", maxTokens)
			}
			var b [32]byte
			_, _ = rand.Read(b[:]) // never fails (crypto/rand)
			raw := tokenPrefix + base64.RawURLEncoding.EncodeToString(b[:])
			ch.Form.Rank = c.Caller.Rank
			ch.Form.Hash, ch.Form.Masked = identity.HashToken(raw), identity.Mask(raw)
			c.SetValue(tokenCredential, raw)
			return tx.CreateCredential(store.Row{Key: store.Credential(tokenCredential, ch.Form.Hash), Item: store.Item{"org": ch.Rec.Scope.Org, "id": ch.Rec.ID, rankOfToken: string(ch.Form.Rank)}})
		},
		Retire: func(_ *admin.Call, tx *resource.Tx, it admin.Item[token]) error {
			tx.DeleteCredential(store.Credential(tokenCredential, it.Form.Hash))
			return nil
		},
		Adjust: func(action string, r *admin.Route) {
			r.Recent = action == "create" || action == "delete"
			switch action {
			case "delete":
				r.Doc = "Revoke a token. It becomes invalid within two seconds."
			case "create":
				r.Doc = "Create a token for an identity provider, which calls /scim with it as a bearer token. Only this response contains it. Only a token created by an owner can create, change and deactivate owners."
				r.Answer = admin.Closed(map[string]admin.Schema{"id": {"type": "string"}, "token": {"type": "string"}})
				create := r.Do
				r.Do = func(c *admin.Call) (any, error) {
					made, err := create(c)
					if err != nil {
						return nil, err
					}
					return admin.Members{"id": made.(admin.Members)["id"], "token": c.Value(tokenCredential)}, nil
				}
			}
		},
		Created: &admin.Reply{Members: []string{"id"}},
	}
}
