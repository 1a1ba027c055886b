package onaws

import (
	"context"
	"encoding/pem"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/service/s3"
	"github.com/aws/aws-sdk-go-v2/service/sqs"

	"gateway/shared/app/onaws/profiles"
	"gateway/shared/store"
)

// onlyAWS makes an environment with these variables of AWS and no other.
func onlyAWS(t *testing.T, variables map[string]string) {
	t.Helper()
	for _, v := range os.Environ() {
		if name, _, _ := strings.Cut(v, "="); strings.HasPrefix(name, "AWS_") {
			t.Setenv(name, "")
			if err := os.Unsetenv(name); err != nil {
				t.Fatal(err)
			}
		}
	}
	t.Setenv("AWS_CONFIG_FILE", os.DevNull)
	t.Setenv("AWS_SHARED_CREDENTIALS_FILE", os.DevNull)
	t.Setenv("AWS_EC2_METADATA_DISABLED", "true")
	for k, v := range variables {
		t.Setenv(k, v)
	}
}

// What a service's client makes of a configuration.
type made struct {
	region, appID, mode   string
	attempts              int
	s3, sqs               string
	fips, dual            bool
	id, secret, token, of string
}

func clientsOf(t *testing.T, cfg aws.Config) made {
	t.Helper()
	a, b := s3.NewFromConfig(cfg).Options(), sqs.NewFromConfig(cfg).Options()
	m := made{region: a.Region, appID: a.AppID, mode: string(a.RetryMode), attempts: a.RetryMaxAttempts,
		s3: aws.ToString(a.BaseEndpoint), sqs: aws.ToString(b.BaseEndpoint),
		fips: a.EndpointOptions.UseFIPSEndpoint == aws.FIPSEndpointStateEnabled,
		dual: a.EndpointOptions.UseDualStackEndpoint == aws.DualStackEndpointStateEnabled}
	c, err := cfg.Credentials.Retrieve(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	m.id, m.secret, m.token, m.of = c.AccessKeyID, c.SecretAccessKey, c.SessionToken, c.AccountID
	return m
}

// The SDK's own loader is the measure. In a row: they set the environment.
func TestVariablesAreReadAsEverySDKReadsThem(t *testing.T) {
	usual := map[string]string{"AWS_REGION": "eu-west-1", "AWS_ACCESS_KEY_ID": "AKIDEXAMPLE", "AWS_SECRET_ACCESS_KEY": "secret", "AWS_SESSION_TOKEN": "token"}
	for name, more := range map[string]map[string]string{
		"of a function":        {},
		"account":              {"AWS_ACCOUNT_ID": "123456789012"},
		"other region's name":  {"AWS_REGION": "", "AWS_DEFAULT_REGION": "eu-north-1"},
		"both regions":         {"AWS_DEFAULT_REGION": "eu-north-1"},
		"other names of keys":  {"AWS_ACCESS_KEY_ID": "", "AWS_SECRET_ACCESS_KEY": "", "AWS_ACCESS_KEY": "AKIDOTHER", "AWS_SECRET_KEY": "other"},
		"endpoint":             {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566"},
		"endpoint of one":      {"AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:9324"},
		"both endpoints":       {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_ENDPOINT_URL_S3": "http://127.0.0.1:9000"},
		"endpoints ignored":    {"AWS_ENDPOINT_URL": "http://127.0.0.1:4566", "AWS_ENDPOINT_URL_SQS": "http://127.0.0.1:9324", "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS": "true"},
		"retries":              {"AWS_RETRY_MODE": "adaptive", "AWS_MAX_ATTEMPTS": "7"},
		"fips and dual":        {"AWS_USE_FIPS_ENDPOINT": "true", "AWS_USE_DUALSTACK_ENDPOINT": "TRUE"},
		"neither fips nor":     {"AWS_USE_FIPS_ENDPOINT": "false", "AWS_USE_DUALSTACK_ENDPOINT": "false"},
		"application":          {"AWS_SDK_UA_APP_ID": "gateway"},
		"half of the old name": {"AWS_ACCESS_KEY": "AKIDOTHER"},
	} {
		t.Run(name, func(t *testing.T) {
			all := maps.Clone(usual)
			maps.Copy(all, more)
			onlyAWS(t, all)
			client := awshttp.NewBuildableClient()
			ours, err := fromEnvironment(t.Context(), client)
			if err != nil {
				t.Fatal(err)
			}
			theirs, err := profiles.Load(t.Context(), client)
			if err != nil {
				t.Fatal(err)
			}
			if got, want := clientsOf(t, ours), clientsOf(t, theirs); got != want {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		})
	}
}

func TestWrongVariablesAreNamedTogether(t *testing.T) {
	onlyAWS(t, map[string]string{"AWS_REGION": "eu-west-1", "AWS_RETRY_MODE": "often", "AWS_MAX_ATTEMPTS": "many", "AWS_USE_FIPS_ENDPOINT": "1",
		"AWS_USE_DUALSTACK_ENDPOINT": "yes", "AWS_CA_BUNDLE": filepath.Join(t.TempDir(), "none.pem"), "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://192.0.2.1/credentials"})
	_, err := Config(t.Context())
	if err == nil {
		t.Fatal("taken")
	}
	for _, part := range []string{"often", "AWS_MAX_ATTEMPTS", "AWS_USE_FIPS_ENDPOINT", "AWS_USE_DUALSTACK_ENDPOINT", "AWS_CA_BUNDLE", "192.0.2.1"} {
		if !strings.Contains(err.Error(), part) {
			t.Errorf("%s is not named: %v", part, err)
		}
	}
}

// Credentials of an endpoint are fetched with the first call, and again before
// they end.
func TestCredentialsOfAnEndpoint(t *testing.T) {
	var calls atomic.Int64
	var authorized atomic.Value
	ends := time.Now().Add(time.Minute) // within the window: each use asks again
	srv := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		authorized.Store(r.Header.Get("Authorization"))
		_, _ = io.WriteString(w, `{"AccessKeyId":"AKIDTASK","SecretAccessKey":"secret","Token":"token","Expiration":"`+ends.UTC().Format(time.RFC3339)+`"}`)
	}))
	t.Cleanup(srv.Close)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte("in a file"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, c := range map[string]struct {
		more map[string]string
		want string
	}{
		"nothing":  {nil, ""},
		"variable": {map[string]string{"AWS_CONTAINER_AUTHORIZATION_TOKEN": "in a variable"}, "in a variable"},
		"file":     {map[string]string{"AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE": token}, "in a file"},
	} {
		onlyAWS(t, map[string]string{"AWS_REGION": "eu-west-1", "AWS_CONTAINER_CREDENTIALS_FULL_URI": srv.URL + "/credentials"})
		for k, v := range c.more {
			t.Setenv(k, v)
		}
		before := calls.Load()
		cfg, err := Config(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if calls.Load() != before {
			t.Errorf("%s: asked before the first call", name)
		}
		for range 2 {
			got, err := cfg.Credentials.Retrieve(t.Context())
			if err != nil || got.AccessKeyID != "AKIDTASK" || got.SessionToken != "token" {
				t.Fatalf("%s: %+v, %v", name, got.AccessKeyID, err)
			}
		}
		if n := calls.Load() - before; n != 2 {
			t.Errorf("%s: asked %d times for credentials that end at once, want 2", name, n)
		}
		if got := authorized.Load(); got != c.want {
			t.Errorf("%s: authorized by %q, want %q", name, got, c.want)
		}
	}
}

func TestEndpointsOfCredentials(t *testing.T) {
	for full, ok := range map[string]bool{
		"http://169.254.170.2/v2/x": true, "http://169.254.170.23/v1/credentials": true, "http://[fd00:ec2::23]/v1/credentials": true,
		"http://127.0.0.1:9001/x": true, "http://[::1]/x": true, "https://credentials.example.com/x": true,
		"http://169.254.169.254/latest": false, "http://10.0.0.1/x": false, "http://[fd00:ec2::254]/x": false,
		"ftp://127.0.0.1/x": false, "127.0.0.1/x": false, "http:///x": false, "://": false,
	} {
		onlyAWS(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_FULL_URI": full})
		if got, err := credentialsEndpoint(); (err == nil) != ok || ok && got != full {
			t.Errorf("%s: %q, %v", full, got, err)
		}
	}
	onlyAWS(t, map[string]string{"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI": "/v2/credentials/x", "AWS_CONTAINER_CREDENTIALS_FULL_URI": "http://10.0.0.1"})
	if got, err := credentialsEndpoint(); err != nil || got != "http://169.254.170.2/v2/credentials/x" {
		t.Errorf("%q, %v", got, err)
	}
}

func TestMissingCredentialsAreExplained(t *testing.T) {
	onlyAWS(t, map[string]string{"AWS_REGION": "eu-west-1"})
	cfg, err := Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if _, err = cfg.Credentials.Retrieve(context.Background()); err == nil || !strings.Contains(Advise(err).Error(), "there are no AWS credentials") {
		t.Errorf("%v", Advise(err))
	}
}

// A server with a certificate of its own, as behind a company's proxy, found by
// AWS_CA_BUNDLE; nothing is sent to it before the first operation.
func TestRootsOfAFile(t *testing.T) {
	var calls atomic.Int64
	seen := make(chan []string, 1)
	srv := httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		calls.Add(1)
		body, _ := io.ReadAll(r.Body)
		seen <- []string{r.Header.Get("X-Amz-Target"), string(body)}
		w.Header().Set("Content-Type", "application/x-amz-json-1.0")
		_, _ = io.WriteString(w, `{"Item":{"pk":{"S":"KEY#aa"},"sk":{"S":"-"},"n":{"N":"7"}}}`)
	}))
	t.Cleanup(srv.Close)
	bundle := filepath.Join(t.TempDir(), "ca.pem")
	if err := os.WriteFile(bundle, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: srv.Certificate().Raw}), 0o600); err != nil {
		t.Fatal(err)
	}
	onlyAWS(t, map[string]string{"AWS_CA_BUNDLE": bundle, "AWS_REGION": "eu-central-1", "AWS_ACCESS_KEY_ID": "id", "AWS_SECRET_ACCESS_KEY": "secret",
		"AWS_ENDPOINT_URL": srv.URL, EnvTablePrefix: "prod-"})
	cfg, err := Config(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	s, err := Store(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if n := calls.Load(); n != 0 {
		t.Errorf("%d calls before the first operation", n)
	}
	item, ok, err := s.Table(store.Keys).Get(t.Context(), store.Credential("KEY", "aa"), true)
	if err != nil || !ok || item.Int("n") != 7 {
		t.Fatalf("got %v, %v, %v", item, ok, err)
	}
	sent := <-seen
	if sent[0] != "DynamoDB_20120810.GetItem" || !strings.Contains(sent[1], `"TableName":"prod-keys"`) || !strings.Contains(sent[1], `"ConsistentRead":true`) {
		t.Errorf("sent %s", slices.Concat(sent))
	}
}
