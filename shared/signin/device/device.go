// Package device implements the device authorization grant (RFC 8628) for devices without a
// browser. A device shows a short code. A user who has signed in elsewhere enters it and
// decides. The device receives its credential with the next poll; it is created at that moment
// and not stored. Requests are stored under the hashes of their codes.
package device

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"strings"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/resource"
	"gateway/shared/store"
)

// What a device may request.
const (
	Session = "session" // of the user
	APIKey  = "api_key" // of the user, in one workspace
)

// Times of a request.
const (
	Life     = 10 * time.Minute
	Interval = 5 * time.Second // between two polls of a device; longer after each poll that is too early
	// remembered is how long an ended code is recognized.
	remembered = time.Hour
)

// ClientGateway is the client id of the gateway's programs, which need no registration.
const ClientGateway = "gateway-cli"

// Request is a device authorization request.
type Request struct {
	Client, ClientName string
	Wants              string // Session or APIKey
	Workspace          string // for APIKey: requested by the device, then selected by the user; empty if not selected yet
	ClientIP, Agent    string // of the device
	UserCode           string // normalized, without the hyphen
	Since, Until       time.Time
	// The user who allowed it, with the session that was used.
	By By

	hash string
}

// By is the user who decides.
type By struct {
	Org, User, Session        string
	Method, Via, Subject, SID string
	LogoutURL                 string
	Authenticated             time.Time
	Ends                      time.Time // end of the session, which limits a new session
	At                        time.Time // when it was allowed; set by Allow
}

// States of a request.
const (
	statePending = "asked"
	stateAllowed = "allowed"
	stateDenied  = "denied"
	stateTaken   = "taken"
)

// Kinds of rows, keyed by the hash of a code.
const (
	kindDevice = "DEVICE"
	kindUser   = "DEVICE_USER"
)

// Errors with the names of RFC 8628. ErrUnknown is also returned for codes of other clients and
// for used codes.
var (
	ErrUnknown  = errors.New("device: no such code")
	ErrPending  = errors.New("device: the user has not responded yet")
	ErrSlowDown = errors.New("device: polled too early")
	ErrExpired  = errors.New("device: the code has expired")
	ErrDenied   = errors.New("device: the user denied the request")
)

const (
	// letters are the letters of user codes: no vowels, so that codes do not form words, and no
	// letters that are easily confused.
	letters    = "BCDFGHJKLMNPQRSTVWXZ"
	userLength = 8
	codeLength = 43
)

// userCode returns a code with 34 random bits. A code lives for ten minutes, and each user can
// try only a few.
func userCode() string {
	out := make([]byte, 0, userLength)
	var b [1]byte
	for len(out) < userLength {
		_, _ = rand.Read(b[:]) // crypto/rand never fails
		if int(b[0]) < 256-256%len(letters) {
			out = append(out, letters[int(b[0])%len(letters)])
		}
	}
	return string(out)
}

// NormalizeCode normalizes a typed code. ok is false if it is not a code.
func NormalizeCode(typed string) (code string, ok bool) {
	if len(typed) > 64 {
		return "", false
	}
	for _, c := range strings.ToUpper(typed) {
		switch {
		case strings.ContainsRune(letters, c):
			code += string(c)
		case c != '-' && c != ' ':
			return "", false
		}
	}
	return code, len(code) == userLength
}

// FormatCode returns the displayed form of a code.
func FormatCode(code string) string { return code[:userLength/2] + "-" + code[userLength/2:] }

func key(kind, hash string) store.Key { return store.Credential(kind, hash) }

// Begin stores a request and returns the device code for polling. It sets UserCode, Since and
// Until.
func Begin(ctx context.Context, s store.Store, r *Request, now time.Time) (code string, err error) {
	var b [32]byte
	_, _ = rand.Read(b[:]) // crypto/rand never fails
	code = base64.RawURLEncoding.EncodeToString(b[:])
	r.hash, r.Since, r.Until = identity.HashToken(code), now.UTC().Truncate(time.Millisecond), now.Add(Life).UTC().Truncate(time.Millisecond)
	for range 5 {
		r.UserCode = userCode()
		err = s.Transact(ctx,
			store.Action{Table: store.Keys, Put: &store.Put{Row: store.Row{
				Key: key(kindUser, identity.HashToken(r.UserCode)), Item: store.Item{"device": r.hash, "until": r.Until.UnixMilli()}, Expires: r.Until,
			}, If: []store.Cond{store.IfAbsent()}}},
			store.Action{Table: store.Keys, Put: &store.Put{Row: store.Row{Key: key(kindDevice, r.hash), Item: r.item(), Expires: r.Until.Add(remembered)}, If: []store.Cond{store.IfAbsent()}}})
		if _, taken := store.AsCondition(err); !taken {
			break
		}
	}
	if err != nil {
		return "", fault.Unavailable(err)
	}
	return code, nil
}

func (r *Request) item() store.Item {
	it := store.Item{"state": statePending, "wants": r.Wants, "code": r.UserCode, "since": r.Since.UnixMilli(), "until": r.Until.UnixMilli(), "interval": int64(Interval / time.Second), "hash": r.hash}
	for name, v := range map[string]string{"client": r.Client, "name": r.ClientName, "ws": r.Workspace, "ip": r.ClientIP, "agent": r.Agent} {
		if v != "" {
			it[name] = v
		}
	}
	return it
}

func decode(it store.Item) *Request {
	at := func(name string) time.Time { return time.UnixMilli(it.Int(name)).UTC() }
	r := &Request{
		Client: it.String("client"), ClientName: it.String("name"), Wants: it.String("wants"), Workspace: it.String("ws"), ClientIP: it.String("ip"), Agent: it.String("agent"),
		UserCode: it.String("code"), Since: at("since"), Until: at("until"), hash: it.String("hash"),
		By: By{Org: it.String("org"), User: it.String("user"), Session: it.String("session"), Method: it.String("method"), Via: it.String("via"), Subject: it.String("subject"), SID: it.String("sid"), LogoutURL: it.String("logout")},
	}
	if it.Int("shown") > 0 {
		r.By.Authenticated, r.By.At, r.By.Ends = at("shown"), at("allowed"), at("ends")
	}
	return r
}

// Find returns the pending request of a typed code.
func Find(ctx context.Context, s store.Store, typed string, now time.Time) (*Request, error) {
	code, ok := NormalizeCode(typed)
	if !ok {
		return nil, ErrUnknown
	}
	it, err := get(ctx, s, key(kindUser, identity.HashToken(code)))
	if err != nil {
		return nil, err
	}
	if it, err = get(ctx, s, key(kindDevice, it.String("device"))); err != nil {
		return nil, err
	}
	if it.String("state") != statePending || it.String("code") != code || now.UnixMilli() >= it.Int("until") {
		return nil, ErrUnknown
	}
	return decode(it), nil
}

func get(ctx context.Context, s store.Store, k store.Key) (store.Item, error) {
	it, ok, err := s.Table(store.Keys).Get(ctx, k, true)
	switch {
	case err != nil:
		return nil, fault.Unavailable(err)
	case !ok:
		return nil, ErrUnknown
	}
	return it, nil
}

// stageState stages a state change of a request. The transaction fails with ErrUnknown if another
// call was faster.
func (r *Request) stageState(tx *resource.Tx, from, to string, set ...store.Assign) {
	tx.Do(store.Action{Table: store.Keys, Update: &store.Update{
		Key: key(kindDevice, r.hash), Set: append(set, store.Assign{Path: store.At("state"), Value: to}),
		If: []store.Cond{store.IfPresent(), store.IfEqual(store.At("state"), from)},
	}}, ErrUnknown)
}

// Allow stages that a user allows the device, and selects the workspace of its key.
func (r *Request) Allow(tx *resource.Tx, by By, workspace string) {
	var set []store.Assign
	for name, v := range map[string]string{
		"org": by.Org, "user": by.User, "session": by.Session, "method": by.Method, "via": by.Via, "subject": by.Subject, "sid": by.SID, "logout": by.LogoutURL, "ws": workspace,
	} {
		if v != "" {
			set = append(set, store.Assign{Path: store.At(name), Value: v})
		}
	}
	set = append(set, store.Assign{Path: store.At("ends"), Value: by.Ends.UnixMilli()}, store.Assign{Path: store.At("shown"), Value: by.Authenticated.UnixMilli()}, store.Assign{Path: store.At("allowed"), Value: tx.Now().UnixMilli()})
	r.stageState(tx, statePending, stateAllowed, set...)
}

// Deny stages that a user denies the request.
func (r *Request) Deny(tx *resource.Tx) { r.stageState(tx, statePending, stateDenied) }

// StageCollected stages that the device receives its credential, which can happen only once.
func (r *Request) StageCollected(tx *resource.Tx) { r.stageState(tx, stateAllowed, stateTaken) }

// Poll handles a poll of a device. It returns a request that was allowed but not taken. Every
// other result is one of this package's errors.
func Poll(ctx context.Context, s store.Store, code, client string, now time.Time) (*Request, error) {
	if len(code) != codeLength {
		return nil, ErrUnknown
	}
	k := key(kindDevice, identity.HashToken(code))
	it, err := get(ctx, s, k)
	if err != nil {
		return nil, err
	}
	switch {
	case it.String("client") != client, it.String("state") == stateTaken:
		return nil, ErrUnknown
	case now.UnixMilli() >= it.Int("until"):
		return nil, ErrExpired
	case it.String("state") == stateDenied:
		return nil, ErrDenied
	case it.String("state") == stateAllowed:
		return decode(it), nil
	}
	return nil, recordPoll(ctx, s, k, it, now)
}

// recordPoll records a poll. A device that polls too early must wait longer afterwards.
func recordPoll(ctx context.Context, s store.Store, k store.Key, it store.Item, now time.Time) error {
	interval, out := it.Int("interval"), ErrPending
	// Clock and network may make a poll slightly early.
	if last := it.Int("asked"); last > 0 && now.UnixMilli()-last < interval*1000-500 {
		interval, out = interval+int64(Interval/time.Second), ErrSlowDown
	}
	_, _, err := s.Table(store.Keys).Update(ctx, store.Update{Key: k, If: []store.Cond{store.IfPresent()}, Set: []store.Assign{
		{Path: store.At("asked"), Value: now.UnixMilli()}, {Path: store.At("interval"), Value: interval},
	}})
	if _, gone := store.AsCondition(err); gone {
		return ErrUnknown
	}
	if err != nil {
		return fault.Unavailable(err)
	}
	return out
}
