package bearer

import (
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"net/http"
	"net/url"
	"strings"
	"sync"
	"time"

	"gateway/shared/wire"
)

const (
	FormType   = "application/x-www-form-urlencoded" // of the introspection request
	maxAnswers = 10_000                              // cached per process
)

// answers caches introspection responses (RFC 7662).
type answers struct {
	now   func() time.Time
	mu    sync.Mutex
	known map[answerKey]answer
}

// answerKey identifies an endpoint, its client and a token, so that no other response is used.
type answerKey [sha256.Size]byte

type answer struct {
	token *Token
	until time.Time
}

// ask returns whether a token is valid according to the introspection endpoint.
func (a *answers) ask(ctx context.Context, client *http.Client, r *Rules, raw string) (*Token, string, error) {
	key := answerKey(sha256.Sum256([]byte(r.Introspect + "\x00" + r.Kind + "\x00" + r.ClientID + "\x00" + r.ClientSecret + "\x00" + raw)))
	now := a.now()
	t := a.recall(key, now)
	if t == nil {
		claims, err := introspect(ctx, client, r, raw)
		if err != nil {
			return nil, "", err
		}
		if active, _ := claims["active"].(bool); !active {
			return nil, "The token is not active", nil
		}
		h, _ := headOf(raw) // an opaque token has none
		t = &Token{h, claims}
		a.keep(key, t, now, r.Remember)
	}
	for _, c := range []struct {
		claim, why string
		wrong      func(time.Time) bool
	}{
		{"exp", "The token has expired", func(at time.Time) bool { return !now.Before(at.Add(r.Tolerance)) }},
		{"nbf", "The token is not valid yet", func(at time.Time) bool { return now.Add(r.Tolerance).Before(at) }},
		{"iat", "The token is too old", func(at time.Time) bool { return r.MaxAge > 0 && now.Sub(at) > r.MaxAge+r.Tolerance }},
	} {
		n, ok := t.Claims[c.claim].(float64)
		if t.Claims[c.claim] != nil && !ok {
			return nil, "The claim " + c.claim + " of the token is not a number", nil
		}
		if ok && c.wrong(time.Unix(int64(n), 0)) {
			return nil, c.why, nil
		}
	}
	return t, "", nil
}

func (a *answers) recall(key answerKey, now time.Time) *Token {
	a.mu.Lock()
	defer a.mu.Unlock()
	if k, ok := a.known[key]; ok && now.Before(k.until) {
		return k.token
	}
	return nil
}

func (a *answers) keep(key answerKey, t *Token, now time.Time, age time.Duration) {
	if age <= 0 {
		return
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if len(a.known) >= maxAnswers {
		clear(a.known)
	}
	a.known[key] = answer{t, now.Add(age)}
}

func introspect(ctx context.Context, client *http.Client, r *Rules, raw string) (map[string]any, error) {
	ctx, cancel := context.WithTimeout(ctx, askTime)
	defer cancel()
	body := url.Values{"token": {raw}}.Encode()
	if strings.HasPrefix(r.Kind, "application/json") {
		body = string(append(wire.AppendJSONString([]byte(`{"token":`), raw), '}'))
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, r.Introspect, strings.NewReader(body))
	if err != nil {
		return nil, errors.New("the service of tokens cannot be called")
	}
	req.Header.Set("Content-Type", r.Kind)
	req.Header.Set("Accept", "application/json")
	if r.ClientID != "" || r.ClientSecret != "" {
		req.SetBasicAuth(url.QueryEscape(r.ClientID), url.QueryEscape(r.ClientSecret))
	}
	text, err := fetchFrom(client, req, "the service of tokens")
	if err != nil {
		return nil, err
	}
	var claims map[string]any
	if wire.CheckStrict(text, wire.MaxDepth) != nil || json.Unmarshal(text, &claims) != nil {
		return nil, errors.New("the answer of the service of tokens cannot be read")
	}
	return claims, nil
}
