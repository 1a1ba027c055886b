package provider

import (
	"maps"
	"net/url"
	"strings"

	"gateway/shared/fault"
)

// Stores of objects: providers that run in a cloud read and write the files of
// their jobs in its own store of objects.

// Objects is the target as the store of its cloud takes it: the same credential,
// signed for the store.
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

// ObjectURL is the address of an object, which is named as bucket/key, in the
// store of the target's cloud. Where the target has a host of its own, the
// buckets stand below that.
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
	if (awsAccess{t}).awsMode() == awsAPIKey {
		return "", fault.New(fault.InvalidRequest, "aws_auth_type", "Files lie in Amazon S3, which takes no API key of Bedrock: use access keys or a role")
	}
	region, err := awsAccess{t}.awsRegion()
	if err != nil {
		return "", err
	}
	if strings.Contains(bucket, ".") { // a certificate of S3 names one label
		return "https://s3." + region + ".amazonaws.com/" + bucket + "/" + path, nil
	}
	return "https://" + bucket + ".s3." + region + ".amazonaws.com/" + path, nil
}

// objectEscape escapes a segment of a key as signatures of S3 want it: all but
// unreserved characters.
func objectEscape(s string) string {
	return strings.ReplaceAll(url.QueryEscape(s), "+", "%20")
}
