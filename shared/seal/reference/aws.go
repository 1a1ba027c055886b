package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"os"
	"strings"
)

// host is what comes from the process's own environment.
type host struct {
	awsEndpoint string // used in place of AWS's own
	awsRegion   string
	// vaults are the addresses to which the service account's token may be sent.
	vaults    []string
	tokenFile string
}

// Variables of the process's environment that an operator sets.
const (
	// EnvKubernetesVaults is a comma list of the vault_addr values that may get the token of
	// the gateway's own service account (vault_auth_type kubernetes). Any other server could
	// use the token elsewhere, so without this list no token is sent.
	EnvKubernetesVaults = "GATEWAY_VAULT_KUBERNETES"
	// EnvServiceAccount is the file with that token.
	EnvServiceAccount = "GATEWAY_SERVICE_ACCOUNT_TOKEN"
)

const serviceAccount = "/var/run/secrets/kubernetes.io/serviceaccount/token"

func environment() host {
	h := host{awsEndpoint: os.Getenv("AWS_ENDPOINT_URL_SECRETS_MANAGER"), awsRegion: os.Getenv("AWS_REGION"), tokenFile: os.Getenv(EnvServiceAccount)}
	if h.awsEndpoint == "" {
		h.awsEndpoint = os.Getenv("AWS_ENDPOINT_URL")
	}
	if h.tokenFile == "" {
		h.tokenFile = serviceAccount
	}
	for _, v := range strings.Split(os.Getenv(EnvKubernetesVaults), ",") {
		if v = strings.TrimRight(strings.TrimSpace(v), "/"); v != "" {
			h.vaults = append(h.vaults, v)
		}
	}
	return h
}

// region is the Region of a secret of AWS: the reference's, or that in its ARN, or the one
// in which the gateway runs.
func (h *host) region(auth map[string]string, path string) string {
	if v := auth[awsRegion]; v != "" {
		return v
	}
	if parts := strings.Split(path, ":"); len(parts) > 3 && parts[0] == "arn" && parts[3] != "" && label(nil, parts[3]) == "" {
		return parts[3]
	}
	if h.awsRegion != "" {
		return h.awsRegion
	}
	return "us-east-1"
}

// fromAWS calls Secrets Manager: one call, signed like every other call of AWS.
func (r *Resolver) fromAWS(ctx context.Context, auth map[string]string, path string) (*Value, error) {
	const who = "AWS Secrets Manager"
	region := r.host.region(auth, path)
	endpoint := strings.TrimRight(r.host.awsEndpoint, "/")
	if endpoint == "" {
		endpoint = "https://secretsmanager." + region + ".amazonaws.com"
		if strings.HasPrefix(region, "cn-") {
			endpoint += ".cn"
		}
	}
	body, err := json.Marshal(map[string]string{"SecretId": path})
	if err != nil {
		return nil, refused("has a path that cannot be sent")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/", bytes.NewReader(body))
	if err != nil {
		return nil, refused("has an address that is not a URL")
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "secretsmanager.GetSecretValue")
	if err := r.identities.SignAWS(ctx, auth, req, body, "secretsmanager", region); err != nil {
		return nil, proofFailed(err)
	}
	status, answer, err := r.ask(req, who)
	if err != nil {
		return nil, err
	}
	var a struct {
		Type         string `json:"__type"`
		SecretString *string
		SecretBinary []byte // base64 in JSON
	}
	bad := json.Unmarshal(answer, &a) != nil
	if status != http.StatusOK {
		return nil, awsRefusal(status, a.Type)
	}
	switch {
	case bad || a.SecretString == nil && a.SecretBinary == nil:
		return nil, passing(nil, "has an answer of %s that cannot be read", who)
	case a.SecretString != nil:
		return newValue(*a.SecretString)
	}
	return newValue(string(a.SecretBinary))
}

// awsRefusal recognises final refusals. Throttled calls, which may pass, have the same
// status.
func awsRefusal(status int, kind string) error {
	if _, name, ok := strings.Cut(kind, "#"); ok {
		kind = name
	}
	kind = word(kind)
	switch {
	case status >= 500, status == http.StatusTooManyRequests, strings.HasPrefix(kind, "Throttl"), kind == "RequestLimitExceeded", kind == "TooManyRequestsException", kind == "InternalServiceError":
		return passing(nil, "has no answer: AWS Secrets Manager answered %d (%s)", status, kind)
	}
	return refused("was not given by AWS Secrets Manager: %d (%s)", status, kind)
}
