package provider

import (
	"context"
	"encoding/json"
	"encoding/xml"
	"net/http"
	"net/url"
	"os"
	"strings"
	"time"

	"gateway/shared/fault"
)

// awsKeys are the keys that sign a request.
type awsKeys struct{ ID, Secret, Session string }

// Variables of the process's environment that an operator sets.
const (
	// awsLendVariable set to "true" lets saved providers use the credentials of the gateway's
	// own process: directly with aws_auth_type serviceRole, and to assume their role. These
	// credentials reach whatever the gateway may reach, so it is off unless it is set.
	awsLendVariable = "GATEWAY_AWS_SERVICE_ROLE"
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
		return k, fault.Invalid("aws_secret_access_key", "aws_secret_access_key is required beside aws_access_key_id")
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
		return fault.New(fault.InvalidRequest, "aws_auth_type", "The gateway's own AWS credentials are not lent to requests; send aws_access_key_id and aws_secret_access_key, or use a saved provider")
	case os.Getenv(awsLendVariable) != "true":
		return fault.Newf(fault.InvalidRequest, "aws_auth_type", "This installation does not lend its own AWS credentials; its operator may set %s=true, or use accessKey, assumedRole or apiKey", awsLendVariable)
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
	kept, err := s.Get(ctx, key, func(ctx context.Context, rt http.RoundTripper) (string, time.Time, error) {
		return fetchRole(ctx, rt, source, region, arn, externalID, field, s.Now())
	})
	if err != nil {
		return awsKeys{}, err
	}
	var k awsKeys
	if err := json.Unmarshal([]byte(kept), &k); err != nil {
		return awsKeys{}, fault.New(fault.InvalidProviderResponse, "", "The session of the role cannot be read").WithCause(err)
	}
	return k, nil
}

// stsAnswer is the answer of AssumeRole: a session, or the reason for a refusal.
type stsAnswer struct {
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
	var a stsAnswer
	bad := xml.Unmarshal(answer, &a) != nil
	if status < 200 || status > 299 {
		return "", time.Time{}, tokenRefused(status, who, field, a.Error.Code)
	}
	c := &a.Result.Credentials
	if bad || c.AccessKeyID == "" || c.SecretAccessKey == "" || !printable(c.AccessKeyID) || !printable(c.SessionToken) || c.Expiration.IsZero() {
		f := fault.New(fault.InvalidProviderResponse, "", "The token service of AWS gave an answer without credentials")
		f.Source = fault.SourceProvider
		return "", time.Time{}, f
	}
	kept, err := json.Marshal(awsKeys{c.AccessKeyID, c.SecretAccessKey, c.SessionToken})
	return string(kept), c.Expiration, err
}
