package main

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"sync"
	"testing"

	"gateway/shared/app/onaws"
	"gateway/shared/store/dynamo/emulator"
	"gateway/shared/testkit/awsemulator"
	"gateway/shared/testkit/awstest"
)

// printed is what a command prints, read while it runs.
type printed struct {
	mu sync.Mutex
	b  strings.Builder
}

func (p *printed) Write(b []byte) (int, error) {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.Write(b)
}

func (p *printed) text() string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.b.String()
}

// withoutAWS takes every variable out that leads to AWS or names something there.
func withoutAWS(t *testing.T) {
	t.Helper()
	for _, pair := range os.Environ() {
		name, _, _ := strings.Cut(pair, "=")
		if strings.HasPrefix(name, "AWS_") || strings.HasPrefix(name, "GATEWAY_") {
			t.Setenv(name, "")
		}
	}
	// What the command sets itself is as before when the test ends.
	for _, name := range []string{
		"AWS_ENDPOINT_URL_DYNAMODB", "AWS_ENDPOINT_URL_SQS", "AWS_ENDPOINT_URL_S3", "AWS_ENDPOINT_URL_KMS", "AWS_REGION", "AWS_PROFILE", "AWS_DEFAULT_PROFILE",
		"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN", "AWS_DEFAULT_REGION",
		onaws.EnvTablePrefix, onaws.EnvBucket, onaws.EnvKey, onaws.EnvAuditQueue, onaws.EnvUsageQueue, onaws.EnvRunQueue,
	} {
		t.Setenv(name, "")
	}
}

// commandOf reads the command that a start prints: address, headers and body.
var commandOf = regexp.MustCompile(`(?s)curl (\S+) -H ("[^"]*"|'[^']*') -H '([^']*)' -H '([^']*)' \\\n\s*-d '([^']*)'`)

// In a row: it sets the environment.
func TestEmulatorsOfAWSInOneCommand(t *testing.T) {
	if _, err := os.Stat("../" + emulator.Binary); err != nil && os.Getenv("CI") == "" {
		t.Skipf("NOT TESTED ON AWS: %v", emulator.ErrMissing)
	}
	for name, flags := range map[string][]string{"stores": {"-store", "aws"}, "functions": {"-store", "aws", "-lambda"}} {
		t.Run(name, func(t *testing.T) {
			withoutAWS(t)
			t.Setenv("AWS_PROFILE", "one-that-is-not-there")
			data := t.TempDir()
			if err := os.Symlink(awstest.Functions(t), data+"/functions"); err != nil {
				t.Fatal(err)
			}
			ctx, stop := context.WithCancel(t.Context())
			defer stop()
			var out printed
			ended := make(chan error, 1)
			go func() { ended <- run(ctx, append(flags, "-addr", "127.0.0.1:0", "-data", data), &out) }()
			eventually(t, func() error {
				select {
				case err := <-ended:
					t.Fatalf("it ended: %v\n%s", err, out.text())
				default:
				}
				if !strings.Contains(out.text(), "gateway ready on ") {
					return fmt.Errorf("not ready: %s", out.text())
				}
				return nil
			})
			asPrinted(t, out.text())
			endpoint := os.Getenv("AWS_ENDPOINT_URL_DYNAMODB")
			stop()
			if err := <-ended; err != nil {
				t.Error(err)
			}
			if _, err := http.Get(endpoint); err == nil {
				t.Errorf("%s still answers", endpoint)
			}
			if left, err := os.ReadDir(data); err != nil || len(left) != 1 {
				t.Errorf("left in the folder: %v %v", left, err)
			}
		})
	}
}

// asPrinted does what the printed command does.
func asPrinted(t *testing.T, out string) {
	t.Helper()
	m := commandOf.FindStringSubmatch(out)
	if m == nil {
		t.Fatalf("no command is printed: %s", out)
	}
	req, err := http.NewRequest("POST", m[1], strings.NewReader(m[5]))
	if err != nil {
		t.Fatal(err)
	}
	for _, header := range m[2:5] {
		name, value, _ := strings.Cut(strings.Trim(header, `'"`), ": ")
		req.Header.Set(name, value)
	}
	res, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer res.Body.Close()
	if body, _ := io.ReadAll(res.Body); res.StatusCode != 200 || !strings.Contains(string(body), "chat.completion") {
		t.Errorf("%d %s", res.StatusCode, body)
	}
}

// What names an installation, or an endpoint, is used and nothing stands in for it.
// In a row: it sets variables of the environment.
func TestEmulatorsOnlyWithoutAnInstallation(t *testing.T) {
	for name, c := range map[string]struct{ store, variable, value string }{
		"embedded":           {"embedded", "AWS_REGION", "eu-west-1"},
		"one endpoint":       {"aws", "AWS_ENDPOINT_URL", "http://127.0.0.1:1"},
		"tables elsewhere":   {"aws", "AWS_ENDPOINT_URL_DYNAMODB", "http://127.0.0.1:1"},
		"queues elsewhere":   {"aws", "AWS_ENDPOINT_URL_SQS", "http://127.0.0.1:1"},
		"prefix":             {"aws", onaws.EnvTablePrefix, "prod-"},
		"bucket":             {"aws", onaws.EnvBucket, "b"},
		"key":                {"aws", onaws.EnvKey, "k"},
		"queue of usage":     {"aws", onaws.EnvUsageQueue, "u"},
		"queue of audit":     {"aws", onaws.EnvAuditQueue, "u"},
		"queue of the steps": {"aws", onaws.EnvRunQueue, "u"},
	} {
		t.Run(name, func(t *testing.T) {
			withoutAWS(t)
			t.Setenv(c.variable, c.value)
			o := options{store: c.store, data: t.TempDir()}
			end, err := startEmulators(t.Context(), &o, io.Discard)
			if err != nil || os.Getenv("AWS_ACCESS_KEY_ID") != "" || o.functions != "" {
				t.Errorf("%v, %+v", err, o)
			}
			if err := end(); err != nil {
				t.Error(err)
			}
		})
	}
}

// A newcomer without the emulator is told the command that installs it.
func TestMissingEmulatorNamesItsCommand(t *testing.T) {
	t.Parallel()
	root := t.TempDir()
	if err := os.WriteFile(root+"/go.mod", nil, 0o600); err != nil {
		t.Fatal(err)
	}
	_, err := awsemulator.Start(t.Context(), root)
	if err == nil || !strings.Contains(err.Error(), "npm ci --prefix scripts/testdeps") {
		t.Errorf("%v", err)
	}
}
