package signin

import (
	"cmp"
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"log/slog"
	"maps"
	"strings"
	"sync"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
	"gateway/shared/tenant"
)

// Default times of sessions.
const (
	TTL  = 12 * time.Hour // since the sign-in
	Idle = 2 * time.Hour  // without activity
)

// touchEvery is the age of the stored activity at which new activity is stored.
const touchEvery = time.Minute

// Sign-in methods.
const (
	ByOIDC = "oidc"
	BySAML = "saml"
	// ByDevice is a device without a browser, allowed from another session.
	ByDevice = "device"
)

// prefix is the prefix of session tokens; tokenLength is their length.
const (
	prefix      = "gs-"
	tokenLength = len(prefix) + 43
)

// credentialKind is the partition kind of rows that are found by token.
const credentialKind = "SESSION"

// Session is one sign-in of one user.
type Session struct {
	ID, Org, User string
	Method        string // ByOIDC, BySAML, ByDevice
	Via           string // id of the configuration
	Subject       string // the identity provider's ids of the user and its session
	ProviderSID   string
	LogoutURL     string // logout address at the identity provider; may be empty
	ClientIP      string
	Agent         string
	Created       time.Time
	Authenticated time.Time // when the user last authenticated
	Until         time.Time // end, independent of the settings
	Seen          time.Time // the last stored activity
	// Renewable is set at the beginning of a session that ends unless its provider renews it.
	// Due is the time of the first renewal, or zero.
	Renewable *Renewable
	Due       time.Time

	hash string
}

// IsToken reports whether a credential is a session token and not a key.
func IsToken(credential string) bool {
	return len(credential) == tokenLength && strings.HasPrefix(credential, prefix)
}

// Ended returns the fault for sessions that are unknown, expired or ended.
func Ended() error {
	return fault.New(fault.Unauthorized, "", "The session has ended. Sign in again")
}

// WriteToken returns the value that a browser must send with its cookie for changes (CSRF
// protection). Only readers of the gateway's responses know it.
func WriteToken(token string) string {
	m := hmac.New(sha256.New, []byte(token))
	m.Write([]byte("write token of a session"))
	return base64.RawURLEncoding.EncodeToString(m.Sum(nil))
}

// Sessions begins, finds and ends sessions. It is safe for concurrent use.
type Sessions struct {
	// Renewal renews sessions at identity providers. If nil, other processes do so.
	Renewal *Renewal

	loader    *resource.Loader
	resources *resource.Resources

	mu       sync.Mutex
	seen     map[string]time.Time // stored activity, by session hash
	due      map[string]time.Time // next renewals, by session hash
	readOnly bool                 // the process may not store activity
}

// New returns a Sessions.
func New(l *resource.Loader, r *resource.Resources) *Sessions {
	return &Sessions{loader: l, resources: r, seen: map[string]time.Time{}, due: map[string]time.Time{}}
}

// Begin stages a new session of a user and returns its token, which is not stored. It sets ID,
// Created and Seen. It sets Authenticated if that is zero, and Until if that is zero or later
// than the settings allow.
func Begin(tx *resource.Tx, s *Session) (token string, err error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	token = prefix + base64.RawURLEncoding.EncodeToString(b[:])
	now := tx.Now().UTC().Truncate(time.Millisecond)
	settings, err := tenant.ReadSettings(tx, store.Scope{Org: s.Org})
	if err != nil {
		return "", err
	}
	ttl := TTL
	if most := settings.Settings.MaxSession(); most > 0 {
		ttl = most
	}
	s.ID, s.Created, s.Seen, s.hash = resource.NewID(), now, now, identity.HashToken(token)
	if end := now.Add(ttl); s.Until.IsZero() || s.Until.After(end) {
		s.Until = end
	}
	if s.Authenticated.IsZero() || s.Authenticated.After(now) {
		s.Authenticated = now
	}
	if s.Renewable != nil {
		s.Due = now.Add(RenewEvery)
	}
	item := s.item()
	if err := tx.CreateCredential(store.Row{Key: store.Credential(credentialKind, s.hash), Item: item, Expires: s.Until}); err != nil {
		return "", err
	}
	own := maps.Clone(item)
	if s.Renewable != nil {
		if err := s.renewable(tx.Context(), own); err != nil {
			return "", err
		}
	}
	tx.Do(store.Action{Table: store.Control, Put: &store.Put{Row: store.Row{Key: s.place(), Item: own, Expires: s.Until}}}, nil)
	return token, nil
}

// End stages the end of a session.
func End(tx *resource.Tx, s *Session) {
	tx.DeleteCredential(store.Credential(credentialKind, s.hash))
	tx.Do(store.Action{Table: store.Control, Delete: &store.Delete{Key: s.place()}}, nil)
}

// RequireActive makes the transaction conditional on a session: if the session has ended, the
// transaction fails with gone.
func RequireActive(tx *resource.Tx, org, user, id string, gone error) {
	of := Session{Org: org, User: user, ID: id}
	tx.Do(store.Action{Table: store.Control, Check: &store.Check{Key: of.place(), If: []store.Cond{store.IfPresent()}}}, gone)
}

// place returns the key of the session's row.
func (s *Session) place() store.Key {
	return store.Scope{Org: s.Org}.Partition().Key(credentialKind, s.User, s.ID)
}

func (s *Session) item() store.Item {
	it := store.Item{
		"org": s.Org, "user": s.User, "id": s.ID, "hash": s.hash, "method": s.Method,
		"created": s.Created.UnixMilli(), "shown": s.Authenticated.UnixMilli(), "until": s.Until.UnixMilli(), "seen": s.Seen.UnixMilli(),
	}
	for name, v := range map[string]string{"via": s.Via, "subject": s.Subject, "sid": s.ProviderSID, "logout": s.LogoutURL, "ip": s.ClientIP, "agent": s.Agent} {
		if v != "" {
			it[name] = v
		}
	}
	if !s.Due.IsZero() {
		it["due"] = s.Due.UnixMilli()
	}
	return it
}

func decode(it store.Item) (*Session, error) {
	at := func(name string) time.Time { return time.UnixMilli(it.Int(name)).UTC() }
	s := &Session{
		ID: it.String("id"), Org: it.String("org"), User: it.String("user"), Method: it.String("method"), Via: it.String("via"),
		Subject: it.String("subject"), ProviderSID: it.String("sid"), LogoutURL: it.String("logout"), ClientIP: it.String("ip"), Agent: it.String("agent"),
		Created: at("created"), Authenticated: at("shown"), Until: at("until"), Seen: at("seen"), hash: it.String("hash"),
	}
	if it.Int("due") > 0 {
		s.Due = at("due")
	}
	return s, nil
}

// Find returns the session of a token, with the current state of its organization, or the fault
// Ended.
func (s *Sessions) Find(ctx context.Context, token string) (*Session, *resource.View, error) {
	if !IsToken(token) {
		return nil, nil, Ended()
	}
	hash := identity.HashToken(token)
	found, ok, err := resource.LoadCredential(ctx, s.loader, credentialKind, hash, decode)
	if err != nil {
		return nil, nil, err
	}
	if !ok {
		return nil, nil, Ended()
	}
	v, err := s.loader.Fresh(ctx, found.Org)
	if err != nil {
		return nil, nil, err
	}
	settings, err := tenant.LoadSettings(ctx, v, store.Scope{Org: found.Org})
	if err != nil {
		return nil, nil, err
	}
	if ok, err := admitted(ctx, v, found); err != nil || !ok {
		return nil, nil, cmp.Or(err, Ended())
	}
	now, idle := s.resources.Now(), settings.Settings.MaxIdle(Idle)
	if !now.Before(found.Until) {
		return nil, nil, Ended()
	}
	if most := settings.Settings.MaxSession(); most > 0 && now.Sub(found.Created) >= most {
		return nil, nil, Ended()
	}
	if now.Sub(s.lastSeen(found)) < idle {
		return found, v, s.renewIfDue(ctx, found)
	}
	// Only the store contains the activity that other processes have seen.
	it, ok, err := s.resources.Store().Table(store.Control).Get(ctx, found.place(), true)
	if err != nil {
		return nil, nil, fault.Unavailable(err)
	}
	if !ok {
		return nil, nil, Ended()
	}
	if found, err = decode(it); err != nil || now.Sub(found.Seen) >= idle {
		return nil, nil, Ended()
	}
	return found, v, s.renewIfDue(ctx, found)
}

// lastSeen returns the last activity of a session that this process knows.
func (s *Sessions) lastSeen(of *Session) time.Time {
	s.mu.Lock()
	defer s.mu.Unlock()
	if at, ok := s.seen[of.hash]; ok && at.After(of.Seen) {
		return at
	}
	return of.Seen
}

// maxSeen is the number of sessions with activity in memory.
const maxSeen = 10_000

// needsTouch reports whether activity must be stored, and records it as stored.
func (s *Sessions) needsTouch(of *Session, now time.Time) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	last, ok := s.seen[of.hash]
	if now.Sub(of.Seen) < touchEvery || ok && now.Sub(last) < touchEvery {
		return false
	}
	if len(s.seen) >= maxSeen {
		clear(s.seen)
	}
	s.seen[of.hash] = now
	return true
}

// Touch stores activity, at most once a minute. Other processes read the store again before
// they treat a session as idle. It writes only the session's row, which every process that
// changes resources may write.
func (s *Sessions) Touch(ctx context.Context, of *Session) error {
	now := s.resources.Now()
	if !s.needsTouch(of, now) {
		return nil
	}
	_, _, err := s.resources.Store().Table(store.Control).Update(ctx, store.Update{
		Key: of.place(), Set: []store.Assign{{Path: store.At("seen"), Value: now.UnixMilli()}}, If: []store.Cond{store.IfPresent()},
	})
	if _, gone := store.AsCondition(err); gone {
		return Ended()
	}
	if err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// Use is Touch for any call. Some processes, such as some functions on AWS, are read-only: such
// a process logs that once and leaves it to others.
func (s *Sessions) Use(ctx context.Context, of *Session) error {
	s.mu.Lock()
	readOnly := s.readOnly
	s.mu.Unlock()
	if readOnly {
		return nil
	}
	err := s.Touch(ctx, of)
	if err == nil || fault.Is(err, fault.Unauthorized) {
		return err
	}
	s.mu.Lock()
	s.readOnly = true
	s.mu.Unlock()
	slog.Warn("keep-alives of sessions are not written by this process", "error", err)
	return nil
}

// maxListed is the number of sessions of a user in one read.
const maxListed = 1000

// Of lists the sessions of a user, oldest id first. It omits sessions that the settings have
// ended.
func (s *Sessions) Of(ctx context.Context, org, user string) ([]*Session, error) {
	settings, err := tenant.FetchSettings(ctx, s.resources, store.Scope{Org: org})
	if err != nil {
		return nil, err
	}
	now, most := s.resources.Now(), settings.Settings.MaxSession()
	all, err := s.all(ctx, org, user)
	if err != nil {
		return nil, err
	}
	var out []*Session
	for _, of := range all {
		if now.Before(of.Until) && (most == 0 || now.Sub(of.Created) < most) {
			out = append(out, of)
		}
	}
	return out, nil
}

func (s *Sessions) all(ctx context.Context, org, user string) (out []*Session, err error) {
	sc := store.Scope{Org: org}
	q := store.Query{Partition: sc.Partition(), Prefix: credentialKind + "#" + user + "#"}
	for len(out) < maxListed {
		page, err := s.resources.Store().Table(store.Control).Query(ctx, q)
		if err != nil {
			return nil, fault.Unavailable(err)
		}
		for _, row := range page.Rows {
			of, err := decode(row.Item)
			if err != nil {
				return nil, err
			}
			out = append(out, of)
		}
		if page.Next == "" {
			break
		}
		q.After = page.Next
	}
	return out, nil
}

// perChange is the number of sessions that one transaction can end.
const perChange = 40

// EndAll stages the end of a user's sessions, except keep, as many as fit into a transaction;
// more is set if there are others.
func (s *Sessions) EndAll(tx *resource.Tx, org, user, except string) (more bool, err error) {
	all, err := s.all(tx.Context(), org, user)
	if err != nil {
		return false, err
	}
	n := 0
	for _, of := range all {
		if of.ID == except {
			continue
		}
		if n == perChange {
			return true, nil
		}
		End(tx, of)
		n++
	}
	return false, nil
}
