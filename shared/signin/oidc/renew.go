package oidc

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"slices"
	"strings"

	coreos "github.com/coreos/go-oidc/v3/oidc"
)

// offline is the scope that requests a refresh token.
const offline = coreos.ScopeOfflineAccess

const assertionType = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"

// maxRefresh is the size limit of a refresh token.
const maxRefresh = 16 << 10

// ErrNotRenewed is returned when the provider has ended a sign-in.
var ErrNotRenewed = errors.New("the provider does not renew the sign-in")

// Renews reports whether sign-ins must be renewed.
func (c *Client) Renews() bool { return slices.Contains(c.Scopes, offline) }

// Renew renews the sign-in of a subject at the provider and returns the next refresh token.
// Only ErrNotRenewed means that the sign-in has ended.
func (c *Client) Renew(ctx context.Context, refresh, subject string) (next string, err error) {
	ctx, cancel := c.context(ctx)
	defer cancel()
	_, d, err := c.discover(ctx)
	if err != nil {
		return "", err
	}
	got, err := c.renewed(ctx, d.Token, refresh)
	if err != nil {
		return "", err
	}
	if got.ID != "" {
		id, err := c.verify(ctx, d.Keys, got.ID)
		if err != nil {
			return "", fmt.Errorf("the ID token is not valid: %s", plainLine(err.Error()))
		}
		if id.Subject != subject {
			return "", ErrNotRenewed // another user
		}
	}
	switch {
	case got.Access == "":
		return "", errors.New("the provider returned no tokens")
	case len(got.Refresh) > maxRefresh:
		return "", errors.New("the provider's refresh token is too long")
	case got.Refresh != "":
		return got.Refresh, nil
	}
	return refresh, nil
}

// renewed is a token response to a refresh token.
type renewed struct {
	Access  string `json:"access_token"`
	Refresh string `json:"refresh_token"`
	ID      string `json:"id_token"`
	Error   string `json:"error"`
}

func (c *Client) renewed(ctx context.Context, endpoint, refresh string) (*renewed, error) {
	form := url.Values{"grant_type": {"refresh_token"}, "refresh_token": {refresh}}
	switch c.Method {
	case Post:
		form.Set("client_id", c.ID)
		form.Set("client_secret", c.Secret)
	case PrivateKey:
		assertion, err := c.assertion(endpoint)
		if err != nil {
			return nil, err
		}
		form.Set("client_id", c.ID)
		form.Set("client_assertion_type", assertionType)
		form.Set("client_assertion", assertion)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint, strings.NewReader(form.Encode()))
	if err != nil {
		return nil, errors.New("the provider's token endpoint cannot be called")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	req.Header.Set("Accept", "application/json")
	if c.Method == Basic {
		req.SetBasicAuth(url.QueryEscape(c.ID), url.QueryEscape(c.Secret))
	}
	resp, err := c.caller().Do(req)
	if err != nil {
		return nil, errors.New("the provider's token endpoint cannot be reached")
	}
	defer resp.Body.Close()
	var got renewed
	bad := json.NewDecoder(resp.Body).Decode(&got)
	switch {
	case resp.StatusCode == http.StatusBadRequest && bad == nil && got.Error == "invalid_grant":
		return nil, ErrNotRenewed
	case resp.StatusCode != http.StatusOK:
		return nil, fmt.Errorf("the provider responded with %d %s", resp.StatusCode, plainLine(got.Error))
	case bad != nil:
		return nil, errors.New("the provider's response cannot be read")
	}
	return &got, nil
}
