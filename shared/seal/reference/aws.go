package reference

import (
	"bytes"
	"context"
	"encoding/json"
	"maps"
	"net/http"
	"net/url"
	"os"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"gateway/shared/fault"
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
		return nil, rejected("has a path that cannot be sent")
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, endpoint+"/", bytes.NewReader(body))
	if err != nil {
		return nil, rejected("has an address that is not a URL")
	}
	req.Header.Set("Content-Type", "application/x-amz-json-1.1")
	req.Header.Set("X-Amz-Target", "secretsmanager.GetSecretValue")
	if err := r.identities.SignAWS(ctx, auth, req, body, "secretsmanager", region); err != nil {
		return nil, proofFailed(err)
	}
	status, answer, err := r.call(req, who)
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
		return nil, awsRejection(status, a.Type)
	}
	switch {
	case bad || a.SecretString == nil && a.SecretBinary == nil:
		return nil, passing(nil, "cannot be read: the response of %s is not valid", who)
	case a.SecretString != nil:
		return newValue(*a.SecretString)
	}
	return newValue(string(a.SecretBinary))
}

// awsRejection recognizes final rejections. Throttled calls, which may pass, have the same
// status.
func awsRejection(status int, kind string) error {
	if _, name, ok := strings.Cut(kind, "#"); ok {
		kind = name
	}
	kind = word(kind)
	switch {
	case status >= 500, status == http.StatusTooManyRequests, strings.HasPrefix(kind, "Throttl"), kind == "RequestLimitExceeded", kind == "TooManyRequestsException", kind == "InternalServiceError":
		return passing(nil, "cannot be read: AWS Secrets Manager responded with %d (%s)", status, kind)
	}
	return rejected("was denied by AWS Secrets Manager: %d (%s)", status, kind)
}

// Value is a secret as its manager gave it. It is shared and never changed.
type Value struct {
	text string
	// object means that the manager stores fields, not a text.
	object  bool
	members map[string]json.RawMessage // fields of the text, if it is a JSON object
}

// Formats in which a secret is read.
const (
	FormatString = "string"
	FormatJSON   = "json"
)

// newValue makes a Value from a text.
func newValue(text string) (*Value, error) {
	if !utf8.ValidString(text) {
		return nil, rejected("is not UTF-8 text")
	}
	v := &Value{text: text}
	if err := json.Unmarshal([]byte(text), &v.members); err != nil {
		v.members = nil
	}
	return v, nil
}

// newObject makes a Value from fields.
func newObject(members map[string]json.RawMessage) (*Value, error) {
	text, err := json.Marshal(members)
	if err != nil {
		return nil, rejected("cannot be read")
	}
	return &Value{text: string(text), object: true, members: members}, nil
}

// Read gives a field of the secret, or with key "" all of it. If the secret has only one
// field, "" gives that field. format json gives JSON, anything else a text.
func (v *Value) Read(key, format string) (string, error) {
	raw := json.RawMessage(nil)
	switch {
	case key != "":
		if v.members == nil {
			return "", rejected("is not a JSON object and has no secret_key %s", strconv.Quote(fault.Clip(key, 80)))
		}
		raw = v.members[key]
		if raw == nil || string(raw) == "null" {
			return "", rejected("has no field %s", strconv.Quote(fault.Clip(key, 80)))
		}
	case v.object && format != FormatJSON:
		if len(v.members) != 1 {
			return "", rejected("has %d fields: choose one with secret_key, or map all with value_format json", len(v.members))
		}
		for _, only := range v.members {
			raw = only
		}
	}
	text := v.text
	if raw != nil {
		var err error
		if text, err = asText(raw, format); err != nil {
			return "", err
		}
	}
	if format == FormatJSON {
		var out bytes.Buffer
		if json.Compact(&out, []byte(text)) != nil {
			return "", rejected("is not JSON, as value_format requires")
		}
		text = out.String()
	}
	if text == "" {
		return "", rejected("is empty")
	}
	return text, nil
}

// asText is a field as a text: the content of a string; numbers and truth values as they
// are written.
func asText(raw json.RawMessage, format string) (string, error) {
	switch raw[0] {
	case '"':
		var s string
		if err := json.Unmarshal(raw, &s); err != nil {
			return "", rejected("cannot be read")
		}
		return s, nil
	case '{', '[':
		if format != FormatJSON {
			return "", rejected("is not a string: map it with value_format json")
		}
	}
	return string(raw), nil
}

// Members are the names of a secret's fields, in order; a text has none.
func (v *Value) Members() []string { return slices.Sorted(maps.Keys(v.members)) }

// azureVersion is the version of Key Vault's interface.
const azureVersion = "7.4"

// fromAzure calls a key vault.
func (r *Resolver) fromAzure(ctx context.Context, auth map[string]string, path string) (*Value, error) {
	const who = "Azure Key Vault"
	base, err := url.Parse(auth[azureVaultURL])
	if err != nil || base.Host == "" {
		return nil, rejected("has an azure_vault_url that is not a URL")
	}
	cloud := cloudOf(base.Hostname())
	if cloud == "" {
		if auth[azureAuthMode] != entra {
			return nil, rejected("has an azure_vault_url for which the gateway's own identity may not be used")
		}
		cloud = clouds[0]
	}
	bearer, err := r.identities.AzureToken(ctx, auth, "https://"+cloud)
	if err != nil {
		return nil, proofFailed(err)
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, base.Scheme+"://"+base.Host+"/secrets/"+path+"?api-version="+azureVersion, nil)
	if err != nil {
		return nil, rejected("has an azure_vault_url that is not a URL")
	}
	req.Header.Set("Authorization", "Bearer "+bearer)
	req.Header.Set("Accept", "application/json")
	status, answer, err := r.call(req, who)
	if err != nil {
		return nil, err
	}
	var a struct {
		Value *string `json:"value"`
		Error struct {
			Code string `json:"code"`
		} `json:"error"`
	}
	bad := json.Unmarshal(answer, &a) != nil
	switch {
	case status == http.StatusOK && !bad && a.Value != nil:
		return newValue(*a.Value)
	case status == http.StatusOK:
		return nil, passing(nil, "cannot be read: the response of %s is not valid", who)
	case status >= 500, status == http.StatusTooManyRequests, status == http.StatusRequestTimeout, status >= 300 && status < 400:
		return nil, passing(nil, "cannot be read: %s responded with %d (%s)", who, status, word(a.Error.Code))
	}
	return nil, rejected("was denied by %s: %d (%s)", who, status, word(a.Error.Code))
}
