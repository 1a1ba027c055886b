// Package awstest runs the AWS emulators for one test. The gateway finds them through its
// environment, like an installation.
package awstest

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"gateway/shared/store/dynamo/emulator"
	"gateway/shared/testkit/awsemulator"
)

// Services are the services of one test.
type Services struct {
	*awsemulator.Services
	Env []string // variables with the service addresses, as name=value; they are set for this process too
}

// Start starts the services and, until the test ends, sets the variables with their addresses.
// If the emulator is not installed, the test is skipped; when CI is set, it fails.
func Start(t *testing.T) *Services {
	t.Helper()
	if testing.Short() {
		t.Skip("-short tests the embedded store alone")
	}
	s, err := awsemulator.Start(t.Context(), root(t))
	if errors.Is(err, emulator.ErrMissing) && os.Getenv("CI") == "" {
		t.Skipf("NOT TESTED ON AWS: %v", err)
	}
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Close)
	set := &Services{Services: s}
	for _, vars := range []map[string]string{s.Endpoints(), s.Named(), awsemulator.Identity("AKIDEXAMPLE")} {
		for name, value := range vars {
			t.Setenv(name, value)
			set.Env = append(set.Env, name+"="+value)
		}
	}
	return set
}

func root(t *testing.T) string {
	t.Helper()
	dir, err := os.Getwd()
	if err != nil {
		t.Fatal(err)
	}
	for ; dir != filepath.Dir(dir); dir = filepath.Dir(dir) {
		if _, err := os.Stat(filepath.Join(dir, "go.mod")); err == nil {
			return dir
		}
	}
	t.Fatal("no go.mod above the test's directory")
	return ""
}
