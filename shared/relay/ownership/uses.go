package ownership

import (
	"context"
	"crypto/pbkdf2"
	"crypto/sha256"
	"encoding/hex"
	"net/url"
	"slices"
	"strings"
	"time"

	"gateway/shared/provider"
	"gateway/shared/route/rotation"
	"gateway/shared/route/saved"
	"gateway/shared/store"
)

// A credential may be saved more than once, in several workspaces or integrations. Objects
// created with it at the provider are isolated by credential, not by the record that holds it.
// Rows below its fingerprint list the workspaces that use it; a workspace that uses it
// exclusively needs no isolation.

const (
	usesFor        = 90 * 24 * time.Hour // how long a workspace counts after its last use
	usesRenewed    = 7 * 24 * time.Hour
	MaxUsesAge     = time.Second // maximum age of the list on routes of stored objects
	MaxUsesAgeChat = time.Minute // and in conversations, which seldom name one
	fingerprinted  = 1024        // rounds: fields may be weaker than keys are
)

// Account is a credential and where it is used.
type Account struct {
	Integration   string // id
	Provider      *provider.Provider
	Credential    *provider.Credential
	More          []rotation.Entry // all credentials, if there are several; Credential is one of them
	CustomHost    string
	CustomHeaders map[string]string
}

// fingerprints returns the fingerprint of each credential of the account. Objects created with
// one of them at the provider can be read with the others, so each counts.
func (a *Account) fingerprints(org string) []string {
	if len(a.More) == 0 {
		return []string{a.fingerprint(org)}
	}
	out := make([]string, len(a.More))
	for i := range a.More {
		one := *a
		one.Credential = a.More[i].Credential
		out[i] = one.fingerprint(org)
	}
	return out
}

// fingerprint identifies a credential at its host within an organization, without revealing it.
func (a *Account) fingerprint(org string) string {
	cred := a.Credential
	material := []string{cred.Key}
	if cred.Key == "" {
		for name, v := range cred.Fields {
			if f, ok := a.Provider.Field(name); ok && f.Part()&provider.Opens != 0 && name != "aws_session_token" {
				material = append(material, name+"="+v)
			}
		}
		for _, custom := range [...]map[string]string{cred.CustomHeaders, a.CustomHeaders} {
			for name, v := range custom {
				material = append(material, strings.ToLower(name)+":"+v)
			}
		}
		slices.Sort(material)
		material = slices.Compact(material)
	}
	t := provider.Target{Provider: a.Provider, Credential: *cred, CustomHost: a.CustomHost}
	host := ""
	if raw, err := t.PassthroughURL("/", ""); err == nil {
		if u, err := url.Parse(raw); err == nil {
			host = strings.TrimSuffix(strings.ToLower(u.Host), ":443")
		}
	}
	sum, err := pbkdf2.Key(sha256.New, strings.Join(append(material, host), "\x00"), []byte("credential of "+org), fingerprinted, 24)
	if err != nil {
		return "" // never: the parameters are fixed
	}
	return "credential-" + hex.EncodeToString(sum)
}

// uses records that the workspace uses a credential, and reports whether others do.
func (o *Owners) uses(ctx context.Context, sc store.Scope, print string) (others bool, err error) {
	at := sc.Organisation().Partition("CREDENTIAL", print)
	now, mine := o.Now(), false
	page, err := o.Table.Query(ctx, store.Query{Partition: at, Limit: 100})
	if err != nil {
		return false, err
	}
	for _, row := range page.Rows {
		if row.Key.SK() == sc.Workspace {
			mine = now.Before(time.Unix(row.Item.Int("until"), 0).Add(usesRenewed - usesFor))
		} else {
			others = true
		}
	}
	if mine {
		return others, nil
	}
	until := now.Add(usesFor)
	if err := o.Table.Put(ctx, store.Row{Key: at.Key(sc.Workspace), Item: store.Item{"until": until.Unix()}, Expires: until}); err != nil {
		return false, err
	}
	if others {
		return true, nil
	}
	// Another may have been added in between.
	page, err = o.Table.Query(ctx, store.Query{Partition: at, Limit: 2})
	return err == nil && len(page.Rows) > 1, err
}

// TenantIsolation is the tenant isolation that a request needs for its credential.
type TenantIsolation struct {
	Enabled bool // objects are isolated by workspace
	Shared  bool // objects not created through the gateway are inaccessible
	// Places are where rows are stored: below the credential, then below the integration. Rows
	// of the integration outlive a change of credential, and older rows are only there.
	Places []string
	// ForeignItems are the ids of items of the request that are not the workspace's: see reference.ReplaceForeign.
	ForeignItems map[string]bool
}

// Isolate returns the tenant isolation for the objects of an account. The list in users is used
// if it is no older than age. On an error, other users of the account are assumed, and the next
// request reads the list again.
func (o *Owners) Isolate(ctx context.Context, sc store.Scope, users *saved.Users, a *Account, at time.Time, age time.Duration) (TenantIsolation, error) {
	known := users.Current.Load()
	var err error
	if known == nil || at.Sub(known.LastUse) > age {
		if known == nil {
			prints := a.fingerprints(sc.Org)
			known = &saved.Uses{Prints: prints, Places: append(slices.Clone(prints), a.Integration)}
		}
		others, read := false, at
		for _, print := range known.Prints {
			var more bool
			if more, err = o.uses(ctx, sc, print); err != nil {
				others, read = true, time.Time{}
				break
			}
			others = others || more
		}
		known = &saved.Uses{Prints: known.Prints, Places: known.Places, Shared: others, LastUse: read}
		users.Current.Store(known)
	}
	return TenantIsolation{Enabled: known.Shared, Shared: known.Shared, Places: known.Places}, err
}
