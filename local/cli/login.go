package cli

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"time"
)

var loginVerb = Verb{Name: "login", Summary: "Sign in at the gateway as a user, with a browser on this or another device", Path: []string{"--no-browser", "--out"}, Run: login}

// clientID is that of the gateway's own command line.
const clientID = "gateway-cli"

// deviceGrant is the grant type of RFC 8628.
const deviceGrant = "urn:ietf:params:oauth:grant-type:device_code"

func login(ctx context.Context, e Env) int {
	fs := Flags("login")
	noBrowser := fs.Bool("no-browser", false, "open no browser: show an address and a code to use on any device")
	out := fs.Bool("out", false, "sign out: end the session and delete the profile")
	_, asJSON, err := e.Parse(fs, 0, 0)
	if err != nil {
		return e.Fail(err)
	}
	base, err := e.Address()
	if err != nil {
		return e.Fail(err)
	}
	if _, err := e.dir(); err != nil {
		return e.Fail(err)
	}
	if *out {
		return e.Fail(e.logout(ctx, base, asJSON))
	}
	c := newClient(base)
	if *noBrowser {
		e.Browse = nil
	}
	if c.Key, err = e.signIn(ctx, c); err != nil {
		return e.Fail(err)
	}
	var self struct {
		User struct {
			Email string `json:"email"`
		} `json:"user"`
		Session struct {
			Expires time.Time `json:"expires_at"`
		} `json:"session"`
	}
	if err := c.Call(ctx, http.MethodGet, "/auth/self", nil, &self); err != nil {
		return e.Fail(err)
	}
	where, err := e.store(ctx, base, c.Key)
	if err != nil {
		return e.Fail(err)
	}
	if asJSON {
		return e.Fail(json.NewEncoder(e.Stdout).Encode(map[string]any{"url": base, "email": self.User.Email, "expires_at": self.Session.Expires, "stored": where}))
	}
	fmt.Fprintf(e.Stdout, "Signed in at %s as %s until %s. The token is in %s.\n", base, plain(self.User.Email), self.Session.Expires.Local().Format("2006-01-02 15:04"), where)
	return ExitDone
}

// grant is the first response of the device flow.
type grant struct {
	Device   string `json:"device_code"`
	User     string `json:"user_code"`
	Page     string `json:"verification_uri"`
	Complete string `json:"verification_uri_complete"`
	Expires  int64  `json:"expires_in"`
	Interval int64  `json:"interval"`
}

// signIn returns the token of a session. The person allows it in a browser: the one of this
// machine, opened at the page of the code, or any other.
func (e Env) signIn(ctx context.Context, c Client) (string, error) {
	var g grant
	if err := c.form(ctx, "/oauth/device_authorization", url.Values{"client_id": {clientID}, "scope": {"session"}}, &g); err != nil {
		return "", err
	}
	opened := false
	// The page must be the gateway's own: nothing else is opened.
	if e.Browse != nil && strings.HasPrefix(g.Complete, "http") {
		opened = e.Browse(g.Complete) == nil
	}
	if opened {
		fmt.Fprintf(e.Stderr, "A browser was opened at %s\nCheck that it shows the code %s, and allow it.\n", plain(g.Complete), plain(g.User))
	} else {
		fmt.Fprintf(e.Stderr, "Open %s on any device and enter the code %s\n", plain(g.Page), plain(g.User))
	}
	pause := time.Duration(max(g.Interval, 1)) * time.Second
	for end := time.Now().Add(time.Duration(g.Expires) * time.Second); ; {
		var t struct {
			Token string `json:"access_token"`
		}
		err := c.form(ctx, "/oauth/token", url.Values{"grant_type": {deviceGrant}, "client_id": {clientID}, "device_code": {g.Device}}, &t)
		var refused *oauthError
		switch {
		case err == nil && t.Token != "":
			return t.Token, nil
		case err == nil:
			return "", errors.New("the gateway returned no token")
		case !errors.As(err, &refused):
			return "", err
		case refused.Code == "slow_down":
			pause += 5 * time.Second
		case refused.Code != "authorization_pending":
			return "", fmt.Errorf("not signed in: %w", err)
		}
		if time.Now().After(end) {
			return "", errors.New("not signed in: the code has expired")
		}
		if e.Sleep != nil {
			e.Sleep(pause)
			continue
		}
		select {
		case <-time.After(pause):
		case <-ctx.Done():
			return "", ctx.Err()
		}
	}
}

// oauthError is an error response of RFC 6749.
type oauthError struct {
	Code        string `json:"error"`
	Description string `json:"error_description"`
}

func (e *oauthError) Error() string {
	if e.Description == "" {
		return e.Code
	}
	return e.Code + ": " + plain(e.Description)
}

// form posts a form to an OAuth endpoint.
func (c Client) form(ctx context.Context, path string, v url.Values, out any) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, c.Base+"/v1"+path, strings.NewReader(v.Encode()))
	if err != nil {
		return err
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	resp, err := c.HTTP.Do(req)
	if err != nil {
		if ctx.Err() != nil {
			return ctx.Err()
		}
		return Unreachable{c.Base, cause(err)}
	}
	defer resp.Body.Close()
	raw, err := io.ReadAll(io.LimitReader(resp.Body, 1<<20))
	if err != nil {
		return Unreachable{c.Base, cause(err)}
	}
	if resp.StatusCode != http.StatusOK {
		var refused oauthError
		if json.Unmarshal(raw, &refused) == nil && refused.Code != "" {
			return &refused
		}
		return c.failed(http.MethodPost, path, resp, raw)
	}
	if err := json.Unmarshal(raw, out); err != nil {
		return Unreachable{c.Base, fmt.Errorf("POST %s: the response is not the JSON of a gateway: %w", path, err)}
	}
	return nil
}

// store saves the token, in the key store of the system if there is one, and the profile. It
// returns where the token is.
func (e Env) store(ctx context.Context, base, token string) (where string, err error) {
	dir, err := e.dir()
	if err != nil {
		return "", err
	}
	p := profile{URL: base}
	if e.Keyring != nil {
		if err := e.Keyring.Set(ctx, base, token); err == nil {
			p.Keyring, where = true, "the key store of the system"
		} else {
			fmt.Fprintf(e.Stderr, "gateway: %v\n", err)
		}
	}
	if !p.Keyring {
		file := fileKeyring{dir}
		if err := file.Set(ctx, base, token); err != nil {
			return "", err
		}
		where = file.name(base)
		fmt.Fprintln(e.Stderr, "gateway: there is no key store of the system: the token is in a file that only this user may read")
	}
	raw, err := json.MarshalIndent(p, "", "  ")
	if err != nil {
		return "", err
	}
	_, err = writeFile(filepath.Join(dir, "profile.json"), append(raw, '\n'), 0o600)
	return where, err
}

// logout ends the session and removes what login stored.
func (e Env) logout(ctx context.Context, base string, asJSON bool) error {
	p, err := e.profile()
	if err != nil {
		return err
	}
	if p.URL == "" {
		return errors.New("no user is signed in")
	}
	token, err := e.storedToken(ctx, p.URL)
	if err != nil {
		return err
	}
	if token != "" {
		c := newClient(p.URL)
		c.Key = token
		if err := c.Call(ctx, http.MethodPost, "/auth/logout", nil, nil); err != nil {
			fmt.Fprintf(e.Stderr, "gateway: the session was not ended at the gateway: %v\n", err)
		}
	}
	dir, err := e.dir()
	if err != nil {
		return err
	}
	err = errors.Join(e.keyring(p, dir).Delete(ctx, p.URL), os.Remove(filepath.Join(dir, "profile.json")))
	if err != nil {
		return err
	}
	if asJSON {
		return json.NewEncoder(e.Stdout).Encode(map[string]any{"url": p.URL, "signed_out": true})
	}
	fmt.Fprintf(e.Stdout, "Signed out of %s.\n", p.URL)
	return nil
}

func (e Env) keyring(p profile, dir string) Keyring {
	if p.Keyring && e.Keyring != nil {
		return e.Keyring
	}
	return fileKeyring{dir}
}

// storedToken returns the token of login for a gateway; "" if there is none. It is sent to
// no other gateway.
func (e Env) storedToken(ctx context.Context, base string) (string, error) {
	p, err := e.profile()
	if err != nil || p.URL != base {
		return "", err
	}
	dir, err := e.dir()
	if err != nil {
		return "", err
	}
	return e.keyring(p, dir).Get(ctx, base)
}

// profile is what login stored: where the gateway is. The token is in the key store.
type profile struct {
	URL     string `json:"url"`
	Keyring bool   `json:"keyring"` // the token is in the key store of the system
}

// dir is the folder of this program's own files. It is the same on every system.
func (e Env) dir() (string, error) {
	if e.Home == "" {
		return "", errors.New("the home folder of the user is unknown: set HOME (USERPROFILE on Windows)")
	}
	return filepath.Join(e.Home, ".config", "gateway"), nil
}

// profile reads what login stored; the zero profile if nothing was.
func (e Env) profile() (profile, error) {
	var p profile
	dir, err := e.dir()
	if err != nil {
		return p, nil //nolint:nilerr // without a home there is no profile
	}
	name := filepath.Join(dir, "profile.json")
	raw, err := os.ReadFile(name)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return p, nil
	case err != nil:
		return p, err
	}
	if err := json.Unmarshal(raw, &p); err != nil {
		return p, fmt.Errorf("%s: %w; sign in again with gateway login", name, err)
	}
	return p, nil
}
