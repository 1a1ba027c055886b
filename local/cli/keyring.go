package cli

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"
)

// Keyring stores the token of a person. Get returns "" if there is none.
type Keyring interface {
	Get(ctx context.Context, address string) (string, error)
	Set(ctx context.Context, address, token string) error
	Delete(ctx context.Context, address string) error
}

// keyringTime limits how long a key store of the system may take: it may ask its user.
const keyringTime = 2 * time.Minute

// commandKeyring is a key store accessed by a program. The token never is an argument: other
// users could read it in the list of processes.
type commandKeyring struct {
	program string
	// Get, set and del return the arguments and the input of the program.
	get, set, del func(address, token string) (args []string, input string)
	missing       func(output string) bool // reports whether a failed get means that there is none
}

// secretService is that of Linux desktops, by secret-tool of libsecret.
func secretService(program string) Keyring {
	named := func(verb string, more ...string) func(string, string) ([]string, string) {
		return func(address, token string) ([]string, string) {
			args := append([]string{verb}, more...)
			return append(args, "service", "ai-gateway", "address", address), token
		}
	}
	return &commandKeyring{program: program, get: func(a, _ string) ([]string, string) { return named("lookup")(a, "") },
		set: named("store", "--label=AI gateway"), del: func(a, _ string) ([]string, string) { return named("clear")(a, "") },
		missing: func(output string) bool { return strings.TrimSpace(output) == "" }}
}

// keychain is that of macOS, by the program security, which reads commands from its input.
func keychain(program string) Keyring {
	quote := func(s string) string {
		return `"` + strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", "").Replace(s) + `"`
	}
	return &commandKeyring{program: program,
		get: func(a, _ string) ([]string, string) {
			return []string{"find-generic-password", "-s", "ai-gateway", "-a", a, "-w"}, ""
		},
		set: func(a, token string) ([]string, string) {
			return []string{"-i"}, "add-generic-password -U -s ai-gateway -a " + quote(a) + " -w " + quote(token) + "\n"
		},
		del: func(a, _ string) ([]string, string) {
			return []string{"delete-generic-password", "-s", "ai-gateway", "-a", a}, ""
		},
		missing: func(output string) bool { return strings.Contains(output, "could not be found") }}
}

func (k *commandKeyring) run(ctx context.Context, args []string, input string) (out, errs string, err error) {
	ctx, cancel := context.WithTimeout(ctx, keyringTime)
	defer cancel()
	cmd := exec.CommandContext(ctx, k.program, args...)
	var stdout, stderr bytes.Buffer
	cmd.Stdin, cmd.Stdout, cmd.Stderr = strings.NewReader(input), &stdout, &stderr
	if err := cmd.Run(); err != nil {
		return stdout.String(), stderr.String(), fmt.Errorf("the key store of the system (%s) failed: %w", filepath.Base(k.program), err)
	}
	return stdout.String(), stderr.String(), nil
}

func (k *commandKeyring) Get(ctx context.Context, address string) (string, error) {
	args, input := k.get(address, "")
	out, errs, err := k.run(ctx, args, input)
	if err != nil && k.missing(out+errs) {
		return "", nil
	}
	return strings.TrimSpace(out), err
}

func (k *commandKeyring) Set(ctx context.Context, address, token string) error {
	args, input := k.set(address, token)
	_, _, err := k.run(ctx, args, input)
	return err
}

func (k *commandKeyring) Delete(ctx context.Context, address string) error {
	args, input := k.del(address, "")
	out, errs, err := k.run(ctx, args, input)
	if err != nil && k.missing(out+errs) {
		return nil
	}
	return err
}

// fileKeyring stores the token in a file that only its user may read.
type fileKeyring struct{ dir string }

func (k fileKeyring) name(address string) string {
	return filepath.Join(k.dir, "token-"+sum([]byte(address))[:16])
}

func (k fileKeyring) Get(_ context.Context, address string) (string, error) {
	name := k.name(address)
	info, err := os.Stat(name)
	if errors.Is(err, fs.ErrNotExist) {
		return "", nil
	}
	if err != nil {
		return "", err
	}
	if !private(info) {
		return "", fmt.Errorf("%s can be read by others: chmod 600 it, and sign in again", name)
	}
	raw, err := os.ReadFile(name)
	if err != nil {
		return "", err
	}
	raw, err = unprotect(raw)
	return strings.TrimSpace(string(raw)), err
}

func (k fileKeyring) Set(_ context.Context, address, token string) error {
	raw, err := protect([]byte(token))
	if err != nil {
		return err
	}
	_, err = writeFile(k.name(address), raw, 0o600)
	return err
}

func (k fileKeyring) Delete(_ context.Context, address string) error {
	if err := os.Remove(k.name(address)); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}
