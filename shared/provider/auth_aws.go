package provider

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"time"

	"github.com/aws/aws-sdk-go-v2/aws"
	v4 "github.com/aws/aws-sdk-go-v2/aws/signer/v4"

	"gateway/shared/fault"
)

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
