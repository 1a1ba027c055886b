package saml

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"time"

	"gateway/shared/fault"
	"gateway/shared/identity"
	"gateway/shared/store"
)

// Partition kinds of rows that are keyed by a hash.
const (
	usedKind     = "SAMLUSED"
	metadataKind = "SAMLMETA"
)

// ErrUsed is returned for an assertion that was used before.
var ErrUsed = errors.New("the assertion was used before")

// Use marks an assertion as used. It returns ErrUsed for a second use.
func Use(ctx context.Context, s store.Store, org string, p *Person) error {
	key := store.Credential(usedKind, identity.HashToken(org+"\x00"+p.Issuer+"\x00"+p.Assertion))
	err := s.Table(store.Keys).Put(ctx, store.Row{Key: key, Expires: p.NotAfter, Item: store.Item{"org": org}}, store.IfAbsent())
	if _, there := store.AsCondition(err); there {
		return ErrUsed
	}
	if err != nil {
		return fault.Unavailable(err)
	}
	return nil
}

// Times for fetched metadata: when they are fetched again, how long they are used if that
// fails, and how soon an unknown key causes another fetch.
const (
	freshFor  = time.Hour
	keptFor   = 24 * time.Hour
	againFrom = time.Minute
	fetchTime = 10 * time.Second
)

// Source fetches the published metadata of an identity provider. They are cached in the store
// for every process.
type Source struct {
	Store   store.Store
	Via     http.RoundTripper // guarded
	Org, ID string            // of the configuration
	URL     string
	Entity  string // the selected entity; empty for the only one
}

func (s *Source) key() store.Key {
	return store.Credential(metadataKind, identity.HashToken(s.Org+"\x00"+s.ID+"\x00"+s.URL+"\x00"+s.Entity))
}

// Get returns the published metadata. renew requests newer metadata because a copy lacks the
// key; if the copy is too recent, Get returns the copy.
func (s *Source) Get(ctx context.Context, now time.Time, renew bool) (*Provider, error) {
	copied, at, err := s.stored(ctx, now)
	if err != nil {
		return nil, err
	}
	age := now.Sub(at)
	if copied != nil && (age < againFrom || age < freshFor && !renew) {
		return copied, nil
	}
	got, err := s.fetch(ctx, now)
	if err != nil && copied != nil {
		return copied, nil // it is valid for a day
	}
	if err != nil {
		return nil, err
	}
	raw, err := json.Marshal(got)
	if err != nil {
		return nil, err
	}
	row := store.Row{Key: s.key(), Expires: now.Add(keptFor), Item: store.Item{"provider": string(raw), "at": now.UnixMilli()}}
	if err := s.Store.Table(store.Keys).Put(ctx, row); err != nil {
		return nil, fault.Unavailable(err)
	}
	return got, nil
}

func (s *Source) stored(ctx context.Context, now time.Time) (*Provider, time.Time, error) {
	it, ok, err := s.Store.Table(store.Keys).Get(ctx, s.key(), true)
	if err != nil {
		return nil, time.Time{}, fault.Unavailable(err)
	}
	at := time.UnixMilli(it.Int("at"))
	p := &Provider{}
	if !ok || now.Sub(at) >= keptFor || json.Unmarshal([]byte(it.String("provider")), p) != nil || !p.Until.IsZero() && !now.Before(p.Until) {
		return nil, time.Time{}, nil
	}
	return p, at, nil
}

// fetch fetches the metadata without following redirects.
func (s *Source) fetch(ctx context.Context, now time.Time) (*Provider, error) {
	ctx, cancel := context.WithTimeout(ctx, fetchTime)
	defer cancel()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, s.URL, nil)
	if err != nil {
		return nil, errors.New("the metadata cannot be fetched: the address is none")
	}
	req.Header.Set("Accept", "application/samlmetadata+xml, application/xml, text/xml")
	resp, err := s.Via.RoundTrip(req)
	if err != nil {
		return nil, errors.New("the metadata cannot be fetched: nobody answers")
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, errors.New("the metadata cannot be fetched: the answer is " + http.StatusText(resp.StatusCode))
	}
	raw, err := io.ReadAll(io.LimitReader(resp.Body, MaxMetadata+1))
	if err != nil {
		return nil, errors.New("the metadata cannot be fetched: the answer ended early")
	}
	return ParseMetadata(raw, s.Entity, now)
}
