package cli

import (
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

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
