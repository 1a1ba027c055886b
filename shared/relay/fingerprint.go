package relay

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
	"gateway/shared/store"
)

// One credential may be saved more than once, in several workspaces or
// integrations: what it made at its provider is kept apart by the credential, not
// by the record that holds it. Workspaces that use one are found by rows below its
// fingerprint; who stands there alone has no wall to be kept behind.

const (
	usesFor       = 90 * 24 * time.Hour // a workspace counts so long after its last use
	usesRenewed   = 7 * 24 * time.Hour
	usesAsked     = time.Second // how old the answer may be on routes of kept things
	usesTalked    = time.Minute // and in conversations, which seldom name one
	fingerprinted = 1024        // rounds: fields may be weaker than keys are
)

// fingerprint names a credential at its host within an organisation, without
// telling it.
func fingerprint(org string, s *saved, cred *provider.Credential) string {
	material := []string{cred.Key}
	if cred.Key == "" {
		for name, v := range cred.Fields {
			if f, ok := s.provider.Field(name); ok && f.Part()&provider.Opens != 0 && name != "aws_session_token" {
				material = append(material, name+"="+v)
			}
		}
		for _, custom := range [...]map[string]string{cred.CustomHeaders, s.customHeaders} {
			for name, v := range custom {
				material = append(material, strings.ToLower(name)+":"+v)
			}
		}
		slices.Sort(material)
		material = slices.Compact(material)
	}
	t := provider.Target{Provider: s.provider, Credential: *cred, CustomHost: s.customHost}
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
func (o *owners) uses(ctx context.Context, sc store.Scope, print string) (others bool, err error) {
	at := sc.Organisation().Partition("CREDENTIAL", print)
	now, mine := o.now(), false
	page, err := o.table.Query(ctx, store.Query{Partition: at, Limit: 100})
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
	if err := o.table.Put(ctx, store.Row{Key: at.Key(sc.Workspace), Item: store.Item{"until": until.Unix()}, Expires: until}); err != nil {
		return false, err
	}
	if others {
		return true, nil
	}
	// Another may have come in between.
	page, err = o.table.Query(ctx, store.Query{Partition: at, Limit: 2})
	return err == nil && len(page.Rows) > 1, err
}

// wall is what a request knows of who else uses its credential.
type wall struct {
	on     bool // things are told apart by workspace
	shared bool // what nobody made through the gateway is nobody's
	// places are below what rows stand: the credential, then the integration, whose
	// rows outlive a change of the credential and are all that there were once.
	places []string
}

// usesKnown is what was last learned of a saved credential.
type usesKnown struct {
	print  string
	places []string
	others bool
	asked  time.Time
}

// raise learns which wall stands around the saved provider's things.
func (o *ownerWall) raise(s *saved, cred *provider.Credential) {
	age := usesAsked
	if o.rt.Client != nil && o.rt.Operation != provider.ResponsesCreate {
		age = usesTalked
	}
	known := s.uses.Load()
	if known == nil || o.start.Sub(known.asked) > age {
		now := &usesKnown{asked: o.start}
		if known != nil {
			now.print, now.places = known.print, known.places
		} else {
			now.print = fingerprint(o.who.Scope.Org, s, cred)
			now.places = []string{now.print, s.integrationID}
		}
		var err error
		if now.others, err = o.owners.uses(o.ctx, o.who.Scope, now.print); err != nil {
			o.fail("who else uses a credential", err)
			now.others, now.asked = true, time.Time{} // asked again by the next request
		}
		s.uses.Store(now)
		known = now
	}
	o.to.wall = wall{on: s.orgWide || known.others, shared: s.shared || known.others, places: known.places}
}

// keeps tells whether what the request makes is noted: always where workspaces
// share the credential, and else of things that have no other owner to be told by,
// should another come to use it.
func (o *ownerWall) keeps() bool {
	if o.to.saved == nil {
		return false
	}
	switch o.keptPath().collection {
	case "", "models", "responses", "conversations", "chat/completions":
		return o.to.wall.on
	}
	return true
}
