package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"gateway/local/cli"
	"gateway/local/embedded"
	"gateway/shared/app"
	"gateway/shared/host"
)

// recoverVerb creates an admin key in the stores of a folder. Anyone who can write these files
// owns the gateway already, so no further authentication is needed. It connects to no gateway:
// the folder must not be in use.
func recoverVerb(ctx context.Context, e cli.Env) int {
	fs := cli.Flags("recover")
	data := fs.String("data", ".gateway", "folder of the embedded stores")
	organization := fs.String("organization", "default", "id of the organization")
	_, asJSON, err := e.Parse(fs, 0, 0)
	if err != nil {
		return e.Fail(err)
	}
	host.QuietLog()
	key, id, err := recoverKey(ctx, *data, *organization)
	if err != nil {
		return e.Fail(err)
	}
	if asJSON {
		return e.Fail(json.NewEncoder(e.Stdout).Encode(map[string]string{"key": key, "id": id}))
	}
	fmt.Fprintf(e.Stdout, "admin key  %s\n(shown this once; the store keeps only its hash. Its id is %s, its name \"recovered admin key\".)\n", key, id)
	return cli.ExitDone
}

func recoverKey(ctx context.Context, data, organization string) (key, id string, err error) {
	// Nothing is made: a wrong folder must not become an empty store.
	if _, err := os.Stat(filepath.Join(data, "tables.db")); err != nil {
		return "", "", fmt.Errorf("%s is not the folder of a gateway: name it with -data", data)
	}
	s, err := embedded.Open(ctx, data, embedded.Options{})
	if err != nil {
		return "", "", err
	}
	defer func() { err = errors.Join(err, s.Close()) }()
	backends := s.Backends
	backends.Journal = s.Journal
	return app.RecoverAdminKey(ctx, app.New(backends, app.Settings{}), organization)
}
