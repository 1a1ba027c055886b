package onaws

import (
	"cmp"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/netip"
	"net/url"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	awshttp "github.com/aws/aws-sdk-go-v2/aws/transport/http"
	"github.com/aws/aws-sdk-go-v2/credentials/endpointcreds"
)

// fromEnvironment is the Loader of functions. AWS gives them all that they need in
// variables, named and read as in every SDK of AWS. What only other machines need
// (profiles, single sign-on, instance roles) is in package profiles: it would be a
// twentieth of a function's binary.
func fromEnvironment(_ context.Context, client *awshttp.BuildableClient) (cfg aws.Config, err error) {
	var errs []error
	note := func(err error) { errs = append(errs, err) }
	cfg.Region = cmp.Or(os.Getenv("AWS_REGION"), os.Getenv("AWS_DEFAULT_REGION"))
	cfg.AppID = os.Getenv("AWS_SDK_UA_APP_ID")
	cfg.ConfigSources = []any{variables{}}
	if url := os.Getenv("AWS_ENDPOINT_URL"); url != "" && !ignoresEndpoints() {
		cfg.BaseEndpoint = &url
	}
	for _, name := range flags { // clients would ignore a wrong value as if it were absent
		_, _, err := flag(name)
		note(err)
	}
	if v := os.Getenv("AWS_RETRY_MODE"); v != "" {
		cfg.RetryMode, err = aws.ParseRetryMode(v)
		note(err)
	}
	if v := os.Getenv("AWS_MAX_ATTEMPTS"); v != "" {
		if cfg.RetryMaxAttempts, err = strconv.Atoi(v); err != nil {
			note(fmt.Errorf("AWS_MAX_ATTEMPTS: %q is not a number", v))
		}
	}
	if bundle := os.Getenv("AWS_CA_BUNDLE"); bundle != "" {
		client, err = trusting(client, bundle)
		note(err)
	}
	cfg.HTTPClient = client
	cfg.Credentials, err = credentialsOfEnvironment(client)
	note(err)
	return cfg, errors.Join(errs...)
}

// trusting makes the client trust the roots of a file, and no others.
func trusting(client *awshttp.BuildableClient, file string) (*awshttp.BuildableClient, error) {
	pem, err := os.ReadFile(file)
	if err != nil {
		return client, fmt.Errorf("AWS_CA_BUNDLE: %w", err)
	}
	roots := x509.NewCertPool()
	if !roots.AppendCertsFromPEM(pem) {
		return client, errors.New("AWS_CA_BUNDLE: the file contains no certificate")
	}
	return client.WithTransportOptions(func(t *http.Transport) {
		if t.TLSClientConfig == nil {
			t.TLSClientConfig = &tls.Config{}
		}
		t.TLSClientConfig.RootCAs = roots
	}), nil
}

// expiryWindow is how long before their end credentials are fetched again.
const expiryWindow = 5 * time.Minute

// credentialsOfEnvironment returns the credentials in variables, or those of the endpoint that
// variables name: ECS tasks have one, and functions that start from a snapshot. The endpoint is
// called on the first use.
func credentialsOfEnvironment(client aws.HTTPClient) (aws.CredentialsProvider, error) {
	id := cmp.Or(os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_ACCESS_KEY"))
	secret := cmp.Or(os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SECRET_KEY"))
	if id != "" && secret != "" {
		value := aws.Credentials{AccessKeyID: id, SecretAccessKey: secret, SessionToken: os.Getenv("AWS_SESSION_TOKEN"),
			AccountID: os.Getenv("AWS_ACCOUNT_ID"), Source: "EnvConfigCredentials"}
		return aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) { return value, nil }), nil
	}
	endpoint, err := credentialsEndpoint()
	if err != nil {
		return nil, err
	}
	if endpoint == "" {
		return aws.NewCredentialsCache(aws.CredentialsProviderFunc(func(context.Context) (aws.Credentials, error) {
			return aws.Credentials{}, errors.New("neither AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY nor AWS_CONTAINER_CREDENTIALS_FULL_URI are set")
		})), nil
	}
	provider := endpointcreds.New(endpoint, func(o *endpointcreds.Options) {
		o.HTTPClient = client
		o.AuthorizationToken = os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN")
		if file := os.Getenv("AWS_CONTAINER_AUTHORIZATION_TOKEN_FILE"); file != "" {
			o.AuthorizationTokenProvider = endpointcreds.TokenProviderFunc(func() (string, error) {
				token, err := os.ReadFile(file)
				return string(token), err
			})
		}
	})
	return aws.NewCredentialsCache(provider, func(o *aws.CredentialsCacheOptions) { o.ExpiryWindow = expiryWindow }), nil
}

// taskEndpoint is where ECS gives credentials to its tasks.
const taskEndpoint = "http://169.254.170.2"

// credentialsEndpoint is the endpoint of credentials that variables name. Plain HTTP is
// only allowed to this machine and to the addresses of ECS and EKS, or the token would go
// to anybody.
func credentialsEndpoint() (string, error) {
	if path := os.Getenv("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI"); path != "" {
		return taskEndpoint + path, nil
	}
	full := os.Getenv("AWS_CONTAINER_CREDENTIALS_FULL_URI")
	if full == "" {
		return "", nil
	}
	u, err := url.Parse(full)
	switch {
	case err != nil || u.Host == "":
		return "", errors.New("AWS_CONTAINER_CREDENTIALS_FULL_URI is not a URL")
	case u.Scheme == "https", u.Scheme == "http" && onMachine(u.Hostname()):
		return full, nil
	}
	return "", fmt.Errorf("AWS_CONTAINER_CREDENTIALS_FULL_URI: over plain HTTP the host must be this machine or one of ECS and EKS, not %s", u.Hostname())
}

// hostsOfCredentials are those of ECS and EKS.
var hostsOfCredentials = [...]netip.Addr{
	netip.AddrFrom4([4]byte{169, 254, 170, 2}), netip.AddrFrom4([4]byte{169, 254, 170, 23}),
	netip.AddrFrom16([16]byte{0: 0xfd, 2: 0x0e, 3: 0xc2, 15: 0x23}), // fd00:ec2::23
}

func onMachine(host string) bool {
	addresses := []string{host}
	if _, err := netip.ParseAddr(host); err != nil {
		if addresses, err = net.LookupHost(host); err != nil {
			return false
		}
	}
	for _, text := range addresses {
		a, err := netip.ParseAddr(text)
		if err != nil || !(a.IsLoopback() || a == hostsOfCredentials[0] || a == hostsOfCredentials[1] || a == hostsOfCredentials[2]) {
			return false
		}
	}
	return true
}

// The variables that are true or false.
const (
	flagIgnore = "AWS_IGNORE_CONFIGURED_ENDPOINT_URLS"
	flagFIPS   = "AWS_USE_FIPS_ENDPOINT"
	flagDual   = "AWS_USE_DUALSTACK_ENDPOINT"
)

var flags = [...]string{flagIgnore, flagFIPS, flagDual}

// variables answers when clients of services ask a configuration's sources.
type variables struct{}

// GetServiceBaseEndpoint is the endpoint of one service, such as that of
// "S3Vectors" in AWS_ENDPOINT_URL_S3VECTORS.
func (variables) GetServiceBaseEndpoint(_ context.Context, service string) (string, bool, error) {
	name := "AWS_ENDPOINT_URL_" + strings.ToUpper(strings.ReplaceAll(service, " ", "_"))
	url := os.Getenv(name)
	return url, url != "", nil
}

// GetIgnoreConfiguredEndpoints reports whether endpoints in variables are ignored.
func (variables) GetIgnoreConfiguredEndpoints(context.Context) (bool, bool, error) {
	return ignoresEndpoints(), ignoresEndpoints(), nil
}

// GetUseFIPSEndpoint reports whether to use endpoints with validated cryptography.
func (variables) GetUseFIPSEndpoint(context.Context) (aws.FIPSEndpointState, bool, error) {
	value, found, err := flag(flagFIPS)
	if value {
		return aws.FIPSEndpointStateEnabled, found, err
	}
	return aws.FIPSEndpointStateDisabled, found, err
}

// GetUseDualStackEndpoint reports whether to use endpoints with IPv6.
func (variables) GetUseDualStackEndpoint(context.Context) (aws.DualStackEndpointState, bool, error) {
	value, found, err := flag(flagDual)
	if value {
		return aws.DualStackEndpointStateEnabled, found, err
	}
	return aws.DualStackEndpointStateDisabled, found, err
}

func ignoresEndpoints() bool {
	value, _, _ := flag(flagIgnore)
	return value
}

// flag reads a variable that is true or false.
func flag(name string) (value, found bool, err error) {
	switch v := os.Getenv(name); {
	case v == "":
		return false, false, nil
	case strings.EqualFold(v, "true"):
		return true, true, nil
	case strings.EqualFold(v, "false"):
		return false, true, nil
	default:
		return false, false, fmt.Errorf("%s: %q must be true or false", name, v)
	}
}
