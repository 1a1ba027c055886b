package provider

import (
	"maps"
	"net/url"
	"strings"

	"gateway/shared/fault"
)

// Object stores: providers that run in a cloud read and write the files of their jobs in
// the object store of that cloud.

// Objects is the target for the object store of its cloud: the same credential, signed for
// the store.
func (t Target) Objects() Target {
	if t.Provider.Auth.Scheme == SigV4Auth {
		t.Credential.Fields = maps.Clone(t.Credential.Fields)
		if t.Credential.Fields == nil {
			t.Credential.Fields = make(map[string]string, 1)
		}
		t.Credential.Fields["aws_service"] = "s3"
	}
	return t
}

// ObjectURL returns the address of an object, named as bucket/key, in the object store of
// the target's cloud. For a custom host, the buckets are below it.
func (t *Target) ObjectURL(object string) (string, error) {
	bucket, key, _ := strings.Cut(object, "/")
	if !HostLabels.fits(bucket) || key == "" {
		return "", fault.Invalid("id", "id must name an object in a bucket")
	}
	segments := strings.Split(key, "/")
	for i, s := range segments {
		if s == "." || s == ".." || strings.ContainsAny(s, "\x00\r\n") {
			return "", fault.Invalid("id", "id must not contain . or .. segments or control characters")
		}
		segments[i] = objectEscape(s)
	}
	path := strings.Join(segments, "/")
	if own := t.customHost(); own != "" {
		return strings.TrimRight(own, "/") + "/" + bucket + "/" + path, nil
	}
	if t.Provider.Auth.Scheme == GoogleOAuth {
		return "https://storage.googleapis.com/" + bucket + "/" + path, nil
	}
	if t.Provider.Auth.Scheme != SigV4Auth {
		return "", fault.Newf(fault.UnsupportedOperation, "", "%s has no store of objects", t.Provider.ID)
	}
	if awsMode((t)) == awsAPIKey {
		return "", fault.New(fault.InvalidRequest, "aws_auth_type", "Files are stored in Amazon S3, which does not accept an API key of Bedrock: use access keys or a role")
	}
	region, err := awsRegion(t)
	if err != nil {
		return "", err
	}
	if strings.Contains(bucket, ".") { // the certificate of S3 is for one label only
		return "https://s3." + region + ".amazonaws.com/" + bucket + "/" + path, nil
	}
	return "https://" + bucket + ".s3." + region + ".amazonaws.com/" + path, nil
}

// objectEscape escapes a segment of a key in the way that S3 signatures demand: every
// character except unreserved ones.
func objectEscape(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}
