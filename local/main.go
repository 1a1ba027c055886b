// Command local runs the complete gateway in one process: every family, the workers and a mock
// provider, on embedded stores in one folder.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"path/filepath"
	"runtime/debug"
	"syscall"
	"time"

	"github.com/mattn/go-isatty"

	"gateway/local/cli"
	"gateway/local/embedded"
	"gateway/shared/app"
	"gateway/shared/host"
	"gateway/shared/queue"
)

// options are the command's flags.
type options struct {
	addr, data, store     string
	mock, durable, lambda bool
	noRing                bool          // the journal is files alone
	functions             string        // folder of the functions' binaries; "": a folder in data
	drain                 time.Duration // for how long a response is still read when its client has gone; 0: the usual time
	serve                 host.Options
}

// envRing turns off the part of the journal that is a ring mapped into memory.
const envRing = "GATEWAY_RING"

// usageError is a mistake in the command line: exit status 2.
type usageError struct{ text string }

func (e usageError) Error() string { return e.text }

// garbage is the heap growth that triggers a collection, in percent of the live heap, unless
// GOGC is set. The live heap is small compared with what a busy gateway allocates. Compared
// with Go's default of 100 it saves 4 MiB at the peak of the benchmark; it costs about 2
// percent of the time of a chat call and 5 to 10 percent of an MCP call.
const garbage = 70

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), syscall.SIGTERM, syscall.SIGINT)
	code := cli.Run(ctx, processEnv(os.Args[1:]), cli.Server{Serve: serveVerb, Recover: recoverVerb})
	stop()
	os.Exit(code)
}

// processEnv returns the environment of this process.
func processEnv(args []string) cli.Env {
	e := cli.Env{Args: args, Stdin: os.Stdin, Stdout: os.Stdout, Stderr: os.Stderr, Getenv: os.Getenv}
	e.Home, _ = os.UserHomeDir()
	e.Host, _ = os.Hostname()
	e.Terminal = isatty.IsTerminal(os.Stdin.Fd())
	e.Keyring = cli.SystemKeyring(os.Getenv)
	e.Browse = cli.SystemBrowser(os.Getenv)
	return e
}

// serveVerb runs the gateway until its context ends.
func serveVerb(ctx context.Context, e cli.Env) int {
	host.QuietLog()
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(garbage)
	}
	err := run(ctx, e.Args, e.Stdout)
	var wrong usageError
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return cli.ExitDone
	case errors.As(err, &wrong):
		fmt.Fprintln(e.Stderr, wrong.text)
		return cli.ExitUsage
	}
	if aws != nil {
		err = aws.Advise(err)
	}
	fmt.Fprintln(e.Stderr, "gateway:", err)
	return cli.ExitRefused
}

// run starts the gateway and serves until ctx ends.
func run(ctx context.Context, args []string, out io.Writer) error {
	o, err := parse(args)
	if err != nil {
		return err
	}
	if o.store == "aws" && aws == nil {
		return becomeLinked(ctx, o, args)
	}
	end, err := startEmulators(ctx, &o, os.Stderr)
	if err != nil {
		return err
	}
	return errors.Join(serve(ctx, o, out), end())
}

func serve(ctx context.Context, o options, out io.Writer) error {
	make := open
	if o.lambda {
		make = openLambda
	}
	g, err := make(ctx, o)
	if err != nil {
		return err
	}
	return g.serve(ctx, out)
}

func parse(args []string) (options, error) {
	o := options{serve: host.DefaultOptions()}
	var err error
	if o.serve.Standard, err = app.StandardHTTP(); err != nil {
		return o, usageError{err.Error()}
	}
	if o.serve, err = o.serve.FromEnvironment(); err != nil {
		return o, usageError{err.Error()}
	}
	switch v := os.Getenv(envRing); v {
	case "", "on", "off":
		o.noRing = v == "off"
	default:
		return o, usageError{envRing + " must be on or off"}
	}
	fs := flag.NewFlagSet("gateway serve", flag.ContinueOnError)
	fs.StringVar(&o.addr, "addr", "127.0.0.1:8787", "address to listen on")
	fs.StringVar(&o.data, "data", ".gateway", "folder of the embedded stores")
	fs.BoolVar(&o.mock, "mock", mockLinked, "run the built-in mock provider")
	fs.StringVar(&o.store, "store", "embedded", "embedded or aws; without AWS_ENDPOINT_URL and without names of an installation, emulators of AWS are started")
	fs.BoolVar(&o.durable, "durable", false, "flush every commit to the disk before it is acknowledged")
	fs.BoolVar(&o.lambda, "lambda", false, "run the real function binaries behind a fake Lambda Runtime API; needs -store aws")
	fs.IntVar(&o.serve.MaxConns, "max-connections", o.serve.MaxConns, "maximum number of connections; 0 means no limit")
	fs.IntVar(&o.serve.MaxPerAddress, "max-connections-per-address", o.serve.MaxPerAddress, "maximum number of connections from one address; 0 means no limit")
	if err := fs.Parse(args); err != nil {
		if errors.Is(err, flag.ErrHelp) {
			return o, err
		}
		return o, usageError{err.Error()}
	}
	switch {
	case fs.NArg() > 0:
		return o, usageError{fmt.Sprintf("unexpected argument %q", fs.Arg(0))}
	case o.store != "embedded" && o.store != "aws":
		return o, usageError{"-store must be embedded or aws"}
	case o.serve.MaxConns < 0 || o.serve.MaxPerAddress < 0:
		return o, usageError{"-max-connections and -max-connections-per-address must be 0 or above"}
	case o.lambda && o.store != "aws":
		return o, usageError{"-lambda needs -store aws: the function binaries keep nothing in this process"}
	}
	return o, nil
}

// without returns the messages that are not among failed.
func without(messages, failed []queue.Message) []queue.Message {
	bad := make(map[string]bool, len(failed))
	for _, m := range failed {
		bad[m.ID] = true
	}
	out := messages[:0:0]
	for _, m := range messages {
		if !bad[m.ID] {
			out = append(out, m)
		}
	}
	return out
}

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
