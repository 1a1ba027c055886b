package cli

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"strings"
	"time"
)

// Exit codes of every verb.
const (
	ExitDone        = 0
	ExitRefused     = 1 // rejected by the gateway, the input or a check
	ExitUsage       = 2 // the command line is wrong
	ExitUnreachable = 3 // no gateway answers
)

// Env is everything a verb may use of the process that runs it.
type Env struct {
	Args           []string // after the verb
	Stdin          io.Reader
	Stdout, Stderr io.Writer
	Getenv         func(string) string
	Home           string // folder of the user; "" if unknown
	Host           string // name of this machine
	Terminal       bool   // Stdin is a terminal that can answer a question

	// Keyring is the key store of the system. Nil: there is none.
	Keyring Keyring
	// Sleep replaces the pauses of login in tests. May be nil.
	Sleep func(time.Duration)

	// Browse opens an address in the browser of the user. Nil: there is no browser.
	Browse func(address string) error
}

// Verb is one command.
type Verb struct {
	Name    string
	Args    string // the usage after the name, such as "<file>"
	Summary string // one imperative phrase
	Words   []string
	Run     func(context.Context, Env) int
}

// UsageError is a mistake in the command line: exit code 2.
type UsageError struct{ Text string }

func (e UsageError) Error() string { return e.Text }

// Usagef returns a UsageError.
func Usagef(format string, args ...any) error { return UsageError{fmt.Sprintf(format, args...)} }

// errRefused ends a verb that has already printed why it failed.
var errRefused = errors.New("refused")

// Fail prints err, if there is one, and returns the exit code that belongs to it.
func (e Env) Fail(err error) int {
	var usage UsageError
	var away Unreachable
	switch {
	case err == nil, errors.Is(err, flag.ErrHelp):
		return ExitDone
	case errors.Is(err, errRefused):
		return ExitRefused
	}
	fmt.Fprintln(e.Stderr, "gateway:", err)
	switch {
	case errors.As(err, &usage):
		return ExitUsage
	case errors.As(err, &away):
		return ExitUnreachable
	}
	return ExitRefused
}

// Flags returns an empty set of flags for a verb. Parse adds --json and --help.
func Flags(verb string) *flag.FlagSet {
	fs := flag.NewFlagSet(verb, flag.ContinueOnError)
	fs.SetOutput(io.Discard)
	return fs
}

// Parse reads the arguments of a verb. Flags may be anywhere among the positional arguments;
// everything after "--" is positional. It returns the positional arguments, of which there must
// be at least least and at most most (no limit below 0), and whether --json was given. After
// --help it prints the usage and returns flag.ErrHelp.
func (e Env) Parse(fs *flag.FlagSet, least, most int) (args []string, asJSON bool, err error) {
	fs.BoolVar(&asJSON, "json", false, "print JSON")
	rest := e.Args
	for {
		if err := fs.Parse(rest); errors.Is(err, flag.ErrHelp) {
			e.usage(fs)
			return nil, false, err
		} else if err != nil {
			return nil, false, Usagef("%s: %v; see gateway %s --help", fs.Name(), err, fs.Name())
		}
		left := fs.Args()
		used := rest[:len(rest)-len(left)]
		if len(used) > 0 && used[len(used)-1] == "--" {
			args = append(args, left...)
			break
		}
		if len(left) == 0 {
			break
		}
		args, rest = append(args, left[0]), left[1:]
	}
	switch {
	case len(args) < least:
		return nil, false, Usagef("%s: an argument is missing; see gateway %s --help", fs.Name(), fs.Name())
	case most >= 0 && len(args) > most:
		return nil, false, Usagef("%s: unexpected argument %s; see gateway %s --help", fs.Name(), shown(args[most]), fs.Name())
	}
	return args, asJSON, nil
}

// shown quotes an argument for a message. It hides what may be a key: people paste them.
func shown(arg string) string {
	if len(arg) > 24 || strings.Contains(arg, "-key") || strings.HasPrefix(arg, "sk-") {
		return "(not repeated: a key is never an argument)"
	}
	return fmt.Sprintf("%q", arg)
}

func (e Env) usage(fs *flag.FlagSet) {
	v, ok := find(fs.Name())
	if !ok {
		v = Verb{Name: fs.Name()}
	}
	fmt.Fprintf(e.Stdout, "usage: gateway %s\n", strings.TrimSpace(v.Name+" "+v.Args))
	if v.Summary != "" {
		fmt.Fprintf(e.Stdout, "\n%s.\n", v.Summary)
	}
	fmt.Fprintln(e.Stdout, "\nflags:")
	fs.SetOutput(e.Stdout)
	fs.PrintDefaults()
	fs.SetOutput(io.Discard)
}

// Server holds the verbs that need the stores.
type Server struct {
	Serve, Recover func(context.Context, Env) int
}

// Run runs the verb that the first argument names. Without one, or when it is a flag of
// serve, that is serve.
func Run(ctx context.Context, e Env, s Server) int {
	if len(e.Args) == 0 {
		return s.Serve(ctx, e)
	}
	first := e.Args[0]
	switch {
	case first == "--help" || first == "-help" || first == "-h":
		first = "help"
	case first == "--version" || first == "-version":
		first = "version"
	case strings.HasPrefix(first, "-"):
		return s.Serve(ctx, e)
	}
	e.Args = e.Args[1:]
	v, ok := find(first)
	switch {
	case !ok:
		return e.Fail(Usagef("unknown verb %s; use %s", shown(first), strings.Join(names(), ", ")))
	case first == "serve":
		return s.Serve(ctx, e)
	case first == "recover":
		return s.Recover(ctx, e)
	}
	return v.Run(ctx, e)
}
