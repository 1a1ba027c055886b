package sso

import (
	"context"
	"crypto/rand"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"time"

	"golang.org/x/oauth2"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/signin/oidc"
	"gateway/shared/store"
)

// pendingKind is the partition kind of pending sign-ins.
const pendingKind = "SIGNIN"

// PendingFor is the time limit of a sign-in.
const PendingFor = 10 * time.Minute

// Pending is a pending sign-in with the data to check its end. It is stored under the hash of
// its state and can be taken once. The browser that began it has Binding.
type Pending struct {
	oidc.Pending
	Org, Connection string
	ReturnTo        string
	Binding         string
}

// Start creates the secrets of a sign-in and stores it.
func Start(ctx context.Context, s store.Store, p *Pending, now time.Time) error {
	p.State, p.Nonce, p.Verifier, p.Binding, p.Since = secret(), secret(), oauth2.GenerateVerifier(), secret(), now
	err := s.Table(store.Keys).Put(ctx, store.Row{
		Key: store.Credential(pendingKind, identity.HashToken(p.State)), Expires: now.Add(PendingFor),
		Item: store.Item{
			"org": p.Org, "connection": p.Connection, "nonce": p.Nonce, "verifier": p.Verifier, "return": p.ReturnTo,
			"binding": identity.HashToken(p.Binding), "fresh": p.Fresh, "since": now.UnixMilli(), "until": now.Add(PendingFor).UnixMilli(),
		},
	})
	if err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// NoPending returns the fault for a response without a pending sign-in.
func NoPending() error {
	return fault.New(fault.Unauthorized, "state", "This sign-in was not begun in this browser, is too old, or was finished before; begin again")
}

// maxState limits the input of the hash.
const maxState = 256

// Take returns the sign-in of a state and ends it, so that a second response finds none.
// binding is the browser's value. If another browser has begun the sign-in, it returns its
// organisation and connection with the fault.
func Take(ctx context.Context, s store.Store, state, binding string, now time.Time) (*Pending, error) {
	if state == "" || len(state) > maxState {
		return nil, NoPending()
	}
	key := store.Credential(pendingKind, identity.HashToken(state))
	it, ok, err := s.Table(store.Keys).Get(ctx, key, true)
	if err != nil {
		return nil, fault.Unavailable(err)
	}
	if !ok || now.UnixMilli() >= it.Int("until") {
		return nil, NoPending()
	}
	if subtle.ConstantTimeCompare([]byte(identity.HashToken(binding)), []byte(it.String("binding"))) != 1 {
		return &Pending{Org: it.String("org"), Connection: it.String("connection")}, NoPending() // the browser that began it may continue
	}
	if err := s.Table(store.Keys).Delete(ctx, key, store.IfPresent()); err != nil {
		if _, taken := store.AsCondition(err); taken {
			return nil, NoPending()
		}
		return nil, fault.Unavailable(err)
	}
	return &Pending{
		Pending: oidc.Pending{State: state, Nonce: it.String("nonce"), Verifier: it.String("verifier"), Fresh: it.Bool("fresh"), Since: time.UnixMilli(it.Int("since"))},
		Org:     it.String("org"), Connection: it.String("connection"), ReturnTo: it.String("return"),
	}, nil
}

func secret() string {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	return base64.RawURLEncoding.EncodeToString(b[:])
}

// maxReturn is the length limit of a return path.
const maxReturn = 8192

// ReturnTo validates a path of this host for a redirect. ok is false for anything that could
// lead elsewhere.
func ReturnTo(s string) (path string, ok bool) {
	if s == "" {
		return "/", true
	}
	if len(s) > maxReturn || s[0] != '/' || strings.HasPrefix(s, "//") || strings.ContainsAny(s, `\"<>`) {
		return "", false
	}
	for i := range len(s) {
		if s[i] <= ' ' || s[i] > '~' {
			return "", false
		}
	}
	return s, true
}
