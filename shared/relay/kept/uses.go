package kept

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
	"gateway/shared/route/saved"
	"gateway/shared/store"
)

// A credential may be saved more than once, in several workspaces or integrations. What was
// made with it at the provider is kept apart by credential, not by the record that holds
// it. Rows below its fingerprint tell which workspaces use it; a workspace that uses it
// alone needs no wall.

const (
	usesFor       = 90 * 24 * time.Hour // a workspace counts so long after its last use
	usesRenewed   = 7 * 24 * time.Hour
	UsesAsked     = time.Second // how old the answer may be on routes of kept things
	UsesTalked    = time.Minute // and in conversations, which seldom name one
	fingerprinted = 1024        // rounds: fields may be weaker than keys are
)

// Account is a credential and where it is used.
type Account struct {
	Integration   string // id
	Provider      *provider.Provider
	Credential    *provider.Credential
	CustomHost    string
	CustomHeaders map[string]string
}

// fingerprint names a credential at its host within an organisation, without
// telling it.
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

// uses notes that the workspace uses a credential, and tells whether others do.
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
	// Another may have come in between.
	page, err = o.Table.Query(ctx, store.Query{Partition: at, Limit: 2})
	return err == nil && len(page.Rows) > 1, err
}

// Wall is what a request knows of who else uses its credential.
type Wall struct {
	On     bool // things are told apart by workspace
	Shared bool // what nobody made through the gateway is nobody's
	// Places are where rows stand: below the credential, then below the integration. Rows
	// of the integration outlive a change of credential, and older rows stand only there.
	Places []string
	// Foreign are the ids of items of the request that are not the workspace's: see reference.Disown.
	Foreign map[string]bool
}

// Around tells which wall stands around what an account keeps. What users remembers is used
// as long as it is no older than age. On an error others are assumed to use the account,
// and the next request asks again.
func (o *Owners) Around(ctx context.Context, sc store.Scope, users *saved.Users, a *Account, at time.Time, age time.Duration) (Wall, error) {
	known := users.Known.Load()
	var err error
	if known == nil || at.Sub(known.Asked) > age {
		now := &saved.Uses{Asked: at}
		if known != nil {
			now.Print, now.Places = known.Print, known.Places
		} else {
			now.Print = a.fingerprint(sc.Org)
			now.Places = []string{now.Print, a.Integration}
		}
		if now.Others, err = o.uses(ctx, sc, now.Print); err != nil {
			now.Others, now.Asked = true, time.Time{}
		}
		users.Known.Store(now)
		known = now
	}
	return Wall{On: known.Others, Shared: known.Others, Places: known.Places}, err
}
