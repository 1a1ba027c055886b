package provider

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"encoding/xml"
	"io"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"gateway/shared/fault"
)

// awsKeys are the keys that sign a request.
type awsKeys struct{ ID, Secret, Session string }

// Variables of the process's environment that an operator sets.
const (
	// awsServiceRoleVariable set to "true" lets saved providers use the credentials of the gateway's
	// own process: directly with aws_auth_type serviceRole, and to assume their role. These
	// credentials reach whatever the gateway may reach, so it is off unless it is set.
	awsServiceRoleVariable = "GATEWAY_AWS_SERVICE_ROLE"
	// The credentials by which customers' roles are assumed, and a role that is assumed
	// first.
	awsSourceID       = "AWS_ASSUME_ROLE_ACCESS_KEY_ID"
	awsSourceSecret   = "AWS_ASSUME_ROLE_SECRET_ACCESS_KEY"
	awsSourceRole     = "AWS_ASSUME_ROLE_SOURCE_ARN"
	awsSourceExternal = "AWS_ASSUME_ROLE_SOURCE_EXTERNAL_ID"
	// awsSTSVariable is another address for the token service.
	awsSTSVariable = "AWS_ENDPOINT_URL_STS"
)

// awsCredentials returns the keys that sign the target's requests.
func awsCredentials(t *Target, ctx context.Context, mode, region string) (awsKeys, error) {
	switch mode {
	case awsAccessKey:
		return ownAWSKeys(t)
	case awsAssumedRole:
		return assumedRole(t, ctx, region)
	case awsServiceRole:
		if err := mayBorrow(t); err != nil {
			return awsKeys{}, err
		}
		return processKeys()
	}
	return awsKeys{}, fault.Invalid("aws_auth_type", "aws_auth_type must be accessKey, assumedRole, serviceRole or apiKey")
}

// ownAWSKeys are the access keys of the credential.
func ownAWSKeys(t *Target) (awsKeys, error) {
	k := awsKeys{t.Field("aws_access_key_id"), t.Field("aws_secret_access_key"), t.Field("aws_session_token")}
	switch {
	case k.ID == "":
		return k, fault.Newf(fault.InvalidRequest, "aws_access_key_id", "%s needs aws_access_key_id and aws_secret_access_key, or an api_key with aws_auth_type apiKey", t.Provider.ID)
	case k.Secret == "":
		return k, fault.Invalid("aws_secret_access_key", "aws_secret_access_key is required with aws_access_key_id")
	case !printable(k.ID):
		return k, fault.Invalid("aws_access_key_id", "aws_access_key_id must not contain spaces or control characters")
	case !printable(k.Session):
		return k, fault.Invalid("aws_session_token", "aws_session_token must not contain spaces or control characters")
	}
	return k, nil
}

// mayBorrow rejects the gateway's own credentials: always to callers, and to saved
// providers unless the operator lends them.
func mayBorrow(t *Target) error {
	switch {
	case t.CallerKey:
		return fault.New(fault.InvalidRequest, "aws_auth_type", "The gateway's own AWS credentials cannot be used by requests; send aws_access_key_id and aws_secret_access_key, or use a saved provider")
	case os.Getenv(awsServiceRoleVariable) != "true":
		return fault.Newf(fault.InvalidRequest, "aws_auth_type", "This installation does not allow the use of its own AWS credentials; its operator may set %s=true, or use accessKey, assumedRole or apiKey", awsServiceRoleVariable)
	}
	return nil
}

// processKeys are the credentials in the environment, such as those of Lambda.
func processKeys() (awsKeys, error) {
	k := awsKeys{os.Getenv("AWS_ACCESS_KEY_ID"), os.Getenv("AWS_SECRET_ACCESS_KEY"), os.Getenv("AWS_SESSION_TOKEN")}
	if k.ID == "" || k.Secret == "" {
		return k, fault.New(fault.InvalidRequest, "aws_auth_type", "The gateway's process has no AWS credentials in its environment; use accessKey, assumedRole or apiKey")
	}
	return k, nil
}

// assumedRole returns the session of the role aws_role_arn. It is assumed with the
// credential's own access keys if it has some, otherwise by the gateway.
func assumedRole(t *Target, ctx context.Context, region string) (awsKeys, error) {
	arn := t.Field("aws_role_arn")
	if !roleARN(arn) {
		return awsKeys{}, fault.Invalid("aws_role_arn", "aws_role_arn must be the ARN of an IAM role, such as arn:aws:iam::123456789012:role/name, for aws_auth_type assumedRole")
	}
	source, err := roleSource(t, ctx, region)
	if err != nil {
		return awsKeys{}, err
	}
	return assume(t, ctx, source, region, arn, t.Field("aws_external_id"), "aws_role_arn")
}

// roleARN reports whether s is the ARN of a role.
func roleARN(s string) bool {
	rest, ok := strings.CutPrefix(s, "arn:")
	return ok && len(s) <= 2048 && strings.Contains(rest, ":iam::") && strings.Contains(rest, ":role/") && printable(s)
}

// roleSource returns the keys that assume the role.
func roleSource(t *Target, ctx context.Context, region string) (awsKeys, error) {
	if t.Field("aws_access_key_id") != "" {
		return ownAWSKeys(t)
	}
	if t.CallerKey {
		// A caller who names a role must be able to assume it himself. Otherwise every caller
		// could use each role that trusts the gateway.
		return awsKeys{}, mayBorrow(t)
	}
	source := awsKeys{ID: os.Getenv(awsSourceID), Secret: os.Getenv(awsSourceSecret)}
	if source.ID == "" || source.Secret == "" {
		if err := mayBorrow(t); err != nil {
			return awsKeys{}, err
		}
		var err error
		if source, err = processKeys(); err != nil {
			return awsKeys{}, err
		}
	}
	if first := os.Getenv(awsSourceRole); first != "" {
		return assume(t, ctx, source, region, first, os.Getenv(awsSourceExternal), "aws_auth_type")
	}
	return source, nil
}

// assume returns the session of a role, from the cache or from the token service. field
// is the field that errors name.
func assume(t *Target, ctx context.Context, source awsKeys, region, arn, externalID, field string) (awsKeys, error) {
	s, err := t.signer()
	if err != nil {
		return awsKeys{}, err
	}
	key := TokenKey("aws-role", source.ID, source.Secret, source.Session, region, arn, externalID)
	cached, err := s.Get(ctx, key, func(ctx context.Context, rt http.RoundTripper) (string, time.Time, error) {
		return fetchRole(ctx, rt, source, region, arn, externalID, field, s.Now())
	})
	if err != nil {
		return awsKeys{}, err
	}
	var k awsKeys
	if err := json.Unmarshal([]byte(cached), &k); err != nil {
		return awsKeys{}, fault.New(fault.InvalidProviderResponse, "", "The session of the role cannot be read").WithCause(err)
	}
	return k, nil
}

// stsResponse is the response of AssumeRole: a session, or the reason for a rejection.
type stsResponse struct {
	Result struct {
		Credentials struct {
			AccessKeyID     string `xml:"AccessKeyId"`
			SecretAccessKey string
			SessionToken    string
			Expiration      time.Time
		}
	} `xml:"AssumeRoleResult"`
	Error struct{ Code string }
}

// stsVersion is the version of the token service's interface.
const stsVersion = "2011-06-15"

// fetchRole requests a session of one hour from the token service.
func fetchRole(ctx context.Context, rt http.RoundTripper, source awsKeys, region, arn, externalID, field string, now time.Time) (string, time.Time, error) {
	form := url.Values{"Action": {"AssumeRole"}, "Version": {stsVersion}, "RoleArn": {arn}, "RoleSessionName": {"gateway"}}
	if externalID != "" {
		form.Set("ExternalId", externalID)
	}
	body := []byte(form.Encode())
	endpoint := os.Getenv(awsSTSVariable)
	if endpoint == "" {
		endpoint = "https://sts." + region + ".amazonaws.com"
	}
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, strings.TrimRight(endpoint, "/")+"/", strings.NewReader(string(body)))
	if err != nil {
		return "", time.Time{}, fault.Invalid(field, "the address of the token service is not a URL")
	}
	req.Header.Set("Content-Type", "application/x-www-form-urlencoded; charset=utf-8")
	if err := signAWS(ctx, req, body, source, "sts", region, now); err != nil {
		return "", time.Time{}, err
	}
	const who = "AWS"
	status, answer, err := tokenCall(rt, req, who)
	if err != nil {
		return "", time.Time{}, err
	}
	var a stsResponse
	bad := xml.Unmarshal(answer, &a) != nil
	if status < 200 || status > 299 {
		return "", time.Time{}, tokenRejected(status, who, field, a.Error.Code)
	}
	c := &a.Result.Credentials
	if bad || c.AccessKeyID == "" || c.SecretAccessKey == "" || !printable(c.AccessKeyID) || !printable(c.SessionToken) || c.Expiration.IsZero() {
		f := fault.New(fault.InvalidProviderResponse, "", "The token service of AWS returned a response without credentials")
		f.Source = fault.SourceProvider
		return "", time.Time{}, f
	}
	encoded, err := json.Marshal(awsKeys{c.AccessKeyID, c.SecretAccessKey, c.SessionToken})
	return string(encoded), c.Expiration, err
}

// The values of aws_auth_type.
const (
	awsAccessKey   = "accessKey"
	awsAssumedRole = "assumedRole"
	awsServiceRole = "serviceRole"
	awsAPIKey      = "apiKey"
)

// maxSignedBody bounds a body that is read to be signed, in bytes.
const maxSignedBody = 20 << 20

// authorizeAWS sends a bearer key, or signs the request with AWS Signature Version 4. A
// signature in the caller's request is for another host and is removed.
func authorizeAWS(t *Target, ctx context.Context, req *http.Request, body []byte) error {
	for _, name := range []string{"X-Amz-Date", "X-Amz-Security-Token", "X-Amz-Content-Sha256", "X-Amz-Signature"} {
		req.Header.Del(name)
	}
	mode := awsMode(t)
	if mode == awsAPIKey {
		return keyHeader(t, req.Header, "Authorization", "Bearer ")
	}
	req.Header.Del("Authorization")
	region, err := awsRegion(t)
	if err != nil {
		return err
	}
	cred, err := awsCredentials(t, ctx, mode, region)
	if err != nil {
		return err
	}
	if body, err = signedBody(req, body); err != nil {
		return err
	}
	now := time.Now()
	if t.Signer != nil {
		now = t.Signer.Now()
	}
	return signAWS(ctx, req, body, cred, awsService(t), region, now)
}

// awsMode is the target's aws_auth_type. If there is only a key, it is sent as it is.
func awsMode(t *Target) string {
	mode := t.Field("aws_auth_type")
	switch {
	case mode != "":
		return mode
	case t.Credential.Key != "" && t.Field("aws_access_key_id") == "":
		return awsAPIKey
	}
	return awsAccessKey
}

// awsService is the service name in signatures.
func awsService(t *Target) string {
	if own := t.Field("aws_service"); own != "" && hostLabel(own, false) {
		return own
	}
	return t.Provider.Auth.Name
}

// awsRegion is the region that requests go to and are signed for.
func awsRegion(t *Target) (string, error) {
	region := t.Field("aws_region")
	switch {
	case region == "":
		return "us-east-1", nil
	case !hostLabel(region, false):
		return "", fault.Invalid("aws_region", "aws_region %s", HostLabel.rule())
	}
	return region, nil
}

// signedBody returns the bytes that the request sends. A streamed body is read
// completely, because its hash is part of the signature.
func signedBody(req *http.Request, body []byte) ([]byte, error) {
	if len(body) > 0 || req.Body == nil || req.Body == http.NoBody || req.ContentLength == 0 {
		return body, nil
	}
	tooLarge := fault.Newf(fault.BodyTooLarge, "", "A request that is signed for this provider may have at most %d bytes", maxSignedBody)
	if req.ContentLength > maxSignedBody {
		return nil, tooLarge
	}
	body, err := io.ReadAll(io.LimitReader(req.Body, maxSignedBody+1))
	switch {
	case err != nil:
		return nil, fault.New(fault.InvalidRequest, "", "The body could not be read").WithCause(err)
	case len(body) > maxSignedBody:
		return nil, tooLarge
	}
	req.ContentLength = int64(len(body))
	req.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	req.Body, _ = req.GetBody()
	return body, nil
}

// signAWS signs req as it is sent: its exact path, query and body. It signs only those
// headers that AWS demands (host, content-type and x-amz...), so that changes of other
// headers on the way do not break the signature.
func signAWS(ctx context.Context, req *http.Request, body []byte, cred awsKeys, service, region string, now time.Time) error {
	sum := sha256.Sum256(body)
	hash := hex.EncodeToString(sum[:])
	if service == "s3" {
		req.Header.Set("X-Amz-Content-Sha256", hash)
	}
	u := *req.URL
	probe := &http.Request{Method: req.Method, URL: &u, Host: req.Host, Header: make(http.Header, 8)}
	for name, values := range req.Header {
		if name == "Content-Type" || len(name) > 5 && name[:5] == "X-Amz" {
			probe.Header[name] = values
		}
	}
	keys := aws.Credentials{AccessKeyID: cred.ID, SecretAccessKey: cred.Secret, SessionToken: cred.Session}
	// A signer remembers the keys that it derives by access key id alone. A shared signer
	// would therefore sign for anybody who names another's id, whatever secret he gives.
	err := v4.NewSigner().SignHTTP(ctx, keys, probe, hash, service, region, now, func(o *v4.SignerOptions) {
		o.DisableURIPathEscaping = service == "s3" // elsewhere the escaped path is escaped again
	})
	if err != nil {
		return fault.New(fault.InvalidRequest, "", "The request cannot be signed").WithCause(err)
	}
	for _, name := range []string{"Authorization", "X-Amz-Date", "X-Amz-Security-Token"} {
		if v := probe.Header.Get(name); v != "" {
			req.Header.Set(name, v)
		}
	}
	return nil
}
